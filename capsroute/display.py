"""What a person sees of a training run."""

import time
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table


class Display:
    """Told by the loop what happens; this one shows nothing of it."""

    def say(self, line: str) -> None:
        """Tell something once."""

    def step(self, epoch: int, step: int, line: str) -> None:
        """Tell how a step went; called now and then."""

    def epoch(self, row: dict[str, Any], line: str) -> None:
        """Tell how an epoch went."""

    def close(self, result: dict[str, Any] | None) -> None:
        """Stop, with the result of a finished run."""


class Plain(Display):
    """A line for everything worth one: where the output is no terminal."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)

    def say(self, line: str) -> None:
        self.console.print(line, markup=False)

    def epoch(self, row: dict[str, Any], line: str) -> None:
        self.say(line)

    def close(self, result: dict[str, Any] | None) -> None:
        if result is not None:
            self.console.print(result_table(result))


class LiveDisplay(Plain):
    """Bars and figures that move, on a terminal."""

    def __init__(self, epochs: int, steps_per_epoch: int) -> None:
        super().__init__()
        self.steps_per_epoch = steps_per_epoch
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeRemainingColumn(),
            console=self.console,
        )
        self.run = self.bars.add_task("run", total=epochs * steps_per_epoch)
        self.current = self.bars.add_task("epoch", total=steps_per_epoch)
        self.line = ""
        self.live = Live(get_renderable=self._render, console=self.console, refresh_per_second=4)
        self.live.start()

    def step(self, epoch: int, step: int, line: str) -> None:
        self.line = line
        self.bars.update(self.run, completed=epoch * self.steps_per_epoch + step)
        self.bars.update(self.current, completed=step, description=f"epoch {epoch + 1}")

    def close(self, result: dict[str, Any] | None) -> None:
        self.live.stop()
        super().close(result)

    def _render(self) -> Table:
        grid = Table.grid()
        grid.add_row(self.bars)
        grid.add_row(self.line)
        return grid


def make_display(quiet: bool, epochs: int, steps_per_epoch: int) -> Display:
    """Nothing, lines, or a live display, as fits."""
    if quiet:
        return Display()
    return LiveDisplay(epochs, steps_per_epoch) if Console().is_terminal else Plain()


def epoch_line(row: dict[str, Any], epochs: int) -> str:
    """An epoch in one line."""
    return (
        f"{time.strftime('%H:%M:%S')} epoch {row['epoch']}/{epochs}: "
        f"train loss {row['train_loss']:.4f} accuracy {row['train_accuracy']:.2%}, "
        f"{row['evaluated_on']} accuracy {row['accuracy']:.2%}, lengths true {row['true_length']:.2f} "
        f"others {row['other_length']:.2f}, conv1 gradient {row['conv1_gradient']:.1e}, "
        f"{row['images_per_s']:.0f} img/s"
    )


def result_table(result: dict[str, Any]) -> Table:
    """A finished run in one table."""
    table = Table(title=f"{result['dataset']['title']}, {result['evaluated_on']}", show_header=False)
    table.add_row("accuracy", f"{result['accuracy']:.2%} of {result['count']:,}")
    worst = min(zip(result["per_class_accuracy"], result["dataset"]["classes"], strict=True))
    table.add_row("worst class", f"{worst[1]}: {worst[0]:.2%}")
    table.add_row("state", result["state"])
    table.add_row("epochs", f"{result['epochs']}, {result['wall_s']:.0f} s of training")
    table.add_row("speed", f"{result['images_per_s']:.0f} images a second, {result['precision']}")
    table.add_row("parameters", f"{result['parameters']:,}")
    table.add_row("folder", result["folder"])
    return table
