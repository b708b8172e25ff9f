"""How far a run is, in a small file of its folder: whoever shares the store can read it, on any machine."""

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capsroute.display import Display

PROGRESS = "progress.json"


@dataclass(frozen=True)
class Progress:
    """Where a run is, and how it does."""

    share: float = 0.0  # of all its steps
    epoch: int = 0  # complete ones
    accuracy: float | None = None  # after the last complete epoch
    line: str = ""


class Beacon(Display):
    """Writes the progress down; ends the run, saved, if the process that ordered it has gone."""

    def __init__(self, folder: Path, epochs: int, steps_per_epoch: int) -> None:
        self.folder, self.epochs, self.steps_per_epoch = folder, epochs, steps_per_epoch
        self.parent = os.getppid()
        self.accuracy: float | None = None

    def step(self, epoch: int, step: int, line: str) -> None:
        self._tell(epoch, epoch + step / self.steps_per_epoch, line)
        if os.getppid() != self.parent:
            os.kill(os.getpid(), signal.SIGTERM)

    def epoch(self, row: dict[str, Any], line: str) -> None:
        self.accuracy = row["accuracy"]
        self._tell(row["epoch"], row["epoch"], line)

    def close(self, result: dict[str, Any] | None) -> None:
        if result is not None:
            (self.folder / PROGRESS).unlink(missing_ok=True)

    def _tell(self, epoch: int, epochs_done: float, line: str) -> None:
        told = {"share": epochs_done / self.epochs, "epoch": epoch, "accuracy": self.accuracy, "line": line}
        fresh = self.folder / f"{PROGRESS}.writing"
        fresh.write_text(json.dumps(told))
        fresh.replace(self.folder / PROGRESS)


def read_progress(folder: Path) -> Progress:
    """The last that was written down; nothing, if nothing was or it cannot be read just now."""
    try:
        return Progress(**json.loads((folder / PROGRESS).read_text()))
    except (OSError, ValueError, TypeError):
        return Progress()
