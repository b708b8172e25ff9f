"""What a person sees of a sweep: every run under way with its progress, and what is done."""

import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table

from capsroute.run import RESULT, read_json
from capsroute.sweeps.beacon import Progress, read_progress
from capsroute.sweeps.driver import SweepState
from capsroute.sweeps.jobs import Job

SHOWN_FINISHED = 12  # the newest ones, in the moving table


class Monitor:
    """Told of a sweep's state a few times a second: a moving table on a terminal, else a line for each event."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.quiet = quiet
        self.began = time.monotonic()
        self.told: set[str] = set()
        moving = self.console.is_terminal and not quiet
        self.live = Live(console=self.console, refresh_per_second=4) if moving else None

    def __enter__(self) -> "Monitor":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def __call__(self, state: SweepState) -> None:
        if self.quiet:
            return
        progress = {job: read_progress(job.folder) for job in state.running}
        for notice in state.notices:
            self._once(notice, f"warning: {notice}")
        for job, message in state.failed:
            self._once(f"failed {job.folder}", f"failed: {job.title}: {message}")
        if self.live is not None:
            self.live.update(self._table(state, progress))
            return
        for job, now in progress.items():
            if now.epoch and now.accuracy is not None:
                self._once(
                    f"{job.folder} {now.epoch}",
                    f"{job.title}, seed {job.config.seed}: epoch {now.epoch}/{job.config.epochs}, "
                    f"accuracy {now.accuracy:.2%}",
                )
        for job in state.finished:
            if f"done {job.folder}" not in self.told:
                self._once(f"done {job.folder}", f"{self._count(state)} {job.title}, {_result(job)}")

    def _once(self, key: str, line: str) -> None:
        if key not in self.told:
            self.told.add(key)
            self.console.print(line, markup=False)

    def _count(self, state: SweepState) -> str:
        return f"[{state.done}/{len(state.jobs)}]"

    def _table(self, state: SweepState, progress: dict[Job, Progress]) -> Table:
        table = Table(title=f"{self._count(state)} runs done, {self._time_left(state, progress)}", expand=True)
        table.add_column("run", ratio=2)
        table.add_column("now", ratio=3, no_wrap=True)
        for job in state.finished[-SHOWN_FINISHED:]:
            table.add_row(f"{job.title}, seed {job.config.seed}", _result(job))
        for job, now in progress.items():
            accuracy = "" if now.accuracy is None else f", {now.accuracy:.2%}"
            bar = "━" * round(20 * now.share) + "─" * (20 - round(20 * now.share))
            table.add_row(
                f"{job.title}, seed {job.config.seed}",
                f"{bar} epoch {min(now.epoch + 1, job.config.epochs)}/{job.config.epochs}{accuracy}",
            )
        left = len(state.jobs) - state.done - len(state.running) - len(state.failed)
        if left:
            table.add_row(f"{left} more", "waiting")
        return table

    def _time_left(self, state: SweepState, progress: dict[Job, Progress]) -> str:
        done = len(state.finished) + sum(now.share for now in progress.values())
        elapsed = time.monotonic() - self.began
        if done < 0.1:
            return f"{elapsed:.0f} s so far"
        left = elapsed / done * (len(state.jobs) - state.done_before - done)
        return f"{elapsed:.0f} s so far, about {_span(left)} left"


def _result(job: Job) -> str:
    result = read_json(job.folder / RESULT)
    state = "" if result["state"] == "ok" else f", {result['state']}"
    return f"accuracy {result['accuracy']:.2%}{state}, {_span(result['wall_s'])} of training"


def _span(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
