"""How long work tells how far it is, without knowing who listens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int], None]  # what is done, how much of it so far, how much in all


def no_progress(what: str, done: int, total: int) -> None:
    """Nobody listens."""


@contextmanager
def progress_bar(bytes_counted: bool = False) -> Iterator[Progress]:
    """A bar on standard error for each thing told; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        yield no_progress
        return
    count = DownloadColumn() if bytes_counted else MofNCompleteColumn()
    with Bars(TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn(), console=console) as bars:
        tasks: dict[str, int] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)  # type: ignore[arg-type]  # rich numbers its tasks

        yield show
