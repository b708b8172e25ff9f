"""`capsroute sweep`."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from capsroute.commands.engines import EngineOptions, command_line
from capsroute.errors import InputError, require_whole


@dataclass(frozen=True)
class Sweep(EngineOptions):
    """Train every combination of options, several seeds each, and tell their accuracies side by side.

    Finished runs are skipped and interrupted ones go on: the same command continues, from any machine that sees the
    store. With --grid holdout=5000 everything is judged on held-out training images and no test image is read.
    """

    grid: tuple[str, ...] = ()
    """Options of `capsroute train`, each with one value or several: dataset=sample lam=1,2,3 capsules=1152x10. A `/`
    starts another grid on top of the first: lr=1e-3 / lr=3e-4,3e-3 / ema=0.99 tries one change at a time."""
    seeds: int = 1
    """Runs of each combination."""
    store: Path = Path("runs/sweep")
    """Folder for the runs and their summary; share it between machines to share the work."""
    plan: bool = False
    """Only print what would run."""
    records: Path | None = None
    """Also keep the records of the finished runs in this one file, a line each."""

    def run(self) -> None:
        from capsroute.sweeps.driver import run_sweep
        from capsroute.sweeps.grid import make_combinations, read_grids
        from capsroute.sweeps.monitor import Monitor

        if not self.grid:
            raise InputError("--grid names the options to go over, for example: --grid dataset=sample lam=1,2,3")
        combinations = make_combinations(read_grids(self.grid), require_whole("seeds", self.seeds), self.store)
        # A seed of every combination before a second seed of any.
        jobs = [one.jobs[seed] for seed in range(self.seeds) for one in combinations]
        console = Console(highlight=False, soft_wrap=True)
        if not self.quiet:
            done = sum(job.done for job in jobs)
            console.print(f"{len(jobs)} runs, {done} done, in {self.store}", markup=False)
        if self.plan:
            for job in jobs:
                told = "done" if job.done else "to do"
                console.print(f"  {job.title}, seed {job.config.seed}: {told}, {job.folder}", markup=False)
            return
        failed: list[tuple[Any, str]] = []
        if not all(job.done for job in jobs):
            with Monitor(self.quiet) as monitor:
                failed = run_sweep(jobs, self.make_engine(), monitor, command_line()).failed
        self._tell(combinations, console)
        if failed:
            job, message = failed[0]
            raise InputError(
                f"{len(failed)} runs failed, the summary has the rest; the first, {job.title}, seed "
                f"{job.config.seed}: {message}"
            )

    def _tell(self, combinations: list[Any], console: Console) -> None:
        """The summary: on the screen, as `summary.csv` in the store, and the records if they are wanted."""
        from capsroute.checkpoint import write_atomically
        from capsroute.sweeps.records import Measured, read_run, save_records

        names = list(dict.fromkeys(name for one in combinations for name in one.varied))
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow([*names, "accuracy", "std", "runs", "states"])
        table = Table(title="accuracy in percent")
        for heading in (*names, "accuracy", "state"):
            table.add_column(heading)
        kept = []
        for one in combinations:
            values = [one.varied.get(name, "") for name in names]
            found = [record for job in one.jobs if (record := read_run(job.folder)) is not None]
            kept += found
            if not found:
                table.add_row(*values, "–", "no finished run")
                continue
            measured = Measured(tuple(found))
            states = ", ".join(measured.states) or "ok"
            table.add_row(*values, measured.text(), states)
            std = f"{measured.std:.4f}" if measured.count > 1 else ""
            writer.writerow([*values, f"{measured.mean:.4f}", std, measured.count, states])
        write_atomically(self.store / "summary.csv", text.getvalue().encode())
        if self.records is not None:
            save_records(self.records, kept)
        if not self.quiet:
            evaluated = " and ".join(sorted({record.result["evaluated_on"] for record in kept})) or "nothing"
            table.caption = f"on {evaluated}; {self.store / 'summary.csv'}"
            console.print(table)
