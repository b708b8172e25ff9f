"""`capsroute reproduce`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from capsroute.commands.engines import EngineOptions, command_line
from capsroute.errors import InputError, require_whole
from capsroute.paper.plan import TARGETS, Plan, Run, make_plan
from capsroute.paper.profiles import PROFILES


@dataclass(frozen=True)
class Reproduce(EngineOptions):
    """Run the paper's tables and figures, and report them beside the printed numbers.

    Finished runs are skipped and interrupted ones go on: the same command continues.
    """

    target: Positional[Literal[tuple(TARGETS)]] = "glance"  # type: ignore[valid-type]  # the table is the one list
    """glance: Table 1's Fashion-MNIST column, each depth once, both collapses, all figures; a table; figures; all."""
    profile: Literal[tuple(PROFILES)] = "quick"  # type: ignore[valid-type]
    """How much to spend: quick, short or paper; `--plan` says what that is."""
    seeds: int | None = None
    """Runs of each cell; the profile's, if not given."""
    store: Path = Path("runs/paper")
    """Folder for runs and report; share it between machines to share the work."""
    data_dir: Path | None = None
    """Folder to look for datasets in first."""
    device: str = "auto"
    """cpu, cuda, mps, or auto."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Precision of products; auto is bf16 where the hardware has it."""
    plan: bool = False
    """Only print what would run and how long it would take."""
    report_only: bool = False
    """Report on what is there, without running anything."""
    records: tuple[Path, ...] = ()
    """Files of records (or stores) of runs that were finished elsewhere: they are not done again."""
    archive: Path | None = None
    """Also keep the records of all finished runs in this one file, a line each."""

    def run(self) -> None:
        from capsroute.paper.run import do_runs, make_report, records_of, runs_to_do
        from capsroute.sweeps.monitor import Monitor
        from capsroute.sweeps.records import load_records, save_records

        profile = PROFILES[self.profile]
        seeds = profile.seeds if self.seeds is None else require_whole("seeds", self.seeds)
        options: dict[str, Any] = {"device": self.device, "precision": self.precision}
        elsewhere = [record for path in self.records for record in load_records(path)]
        finished = {record.name for record in elsewhere}
        plan = make_plan(self.target, profile, seeds, self.store, self.data_dir, options, finished)
        todo = runs_to_do(plan, elsewhere)
        console = Console(highlight=False, soft_wrap=True)
        if not self.quiet:
            self._introduce(plan, todo, console)
        if self.plan:
            return
        if not plan.runs:
            raise InputError("none of the datasets is on this machine; " + "; ".join(plan.missing.values()))
        failures = []
        if not self.report_only:
            failures = do_runs(todo, self.make_engine, Monitor(self.quiet), command_line())
        command = f"capsroute reproduce {self.target} --profile {self.profile} --seeds {seeds}"
        folder = self.store / self.profile / f"report-{self.target}"
        records = records_of(plan, elsewhere)
        if self.archive is not None:
            save_records(self.archive, records)
        report, page = make_report(plan, records, folder, failures, command)
        if not self.quiet:
            for table in report.tables:
                console.print(_shown(table, report.note()))
            for title, measured in report.others():
                state = ", ".join(measured.states) or "ok"
                console.print(f"{title}: {measured.text()}, {state}", markup=False)
            for verdict in report.verdicts:
                console.print(f"{verdict.verdict}: {verdict.claim} ({verdict.numbers})", markup=False)
            console.print(f"report: {page}", markup=False)
        if failures:
            told = "; ".join(f"{run}: {why}" for run, why in failures)
            raise InputError(f"{len(failures)} runs failed, the report has the rest: {told}")

    def _introduce(self, plan: Plan, todo: list[Run], console: Console) -> None:
        from capsroute.paper.estimate import estimate_seconds

        console.print(
            f"{plan.target}: {len(plan.runs)} runs, {len(plan.runs) - len(todo)} done; {plan.text}",
            markup=False,
        )
        for dataset, used in plan.stand_ins.items():
            console.print(f"{dataset} is not on this machine: its {used}, inside the package, stands in", markup=False)
        for dataset, way in plan.missing.items():
            told = "cells without a finished run stay empty"
            console.print(f"{dataset} is not on this machine, its {told}; get it: {way}", markup=False)
        if self.plan:
            for run in plan.runs:
                done = "to do" if run in todo else "done"
                console.print(f"  {run.job.title}, seed {run.seed}: {done}, {run.job.folder}", markup=False)
        if todo and not self.report_only:
            seconds = estimate_seconds(todo, self.jobs)
            text = f"{seconds / 60:.0f} minutes" if seconds < 6000 else f"{seconds / 3600:.1f} hours"
            console.print(f"about {text}, by a measured step of each net", markup=False)


def _shown(filled: Any, note: str) -> Table:
    table = Table(title=filled.title, caption=note, show_lines=True)
    table.add_column("")
    for column in filled.columns:
        table.add_column(column)
    for row in filled.rows:
        cells = []
        for column in filled.columns:
            cell = filled.cells.get((row, column))
            cells.append("–" if cell is None else _cell_text(cell))
        table.add_row(row, *cells)
    return table


def _cell_text(cell: Any) -> str:
    text = f"{cell.ours}\npaper {cell.cell.printed:.2f}, {cell.difference}"
    return f"{text}\n{cell.note}" if cell.note else text
