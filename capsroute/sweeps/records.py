"""Finished runs read back: from a store of run folders, or from one file that holds the records of many."""

import csv
import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capsroute.checkpoint import write_atomically
from capsroute.errors import DataError
from capsroute.run import METRICS, RESULT, STEPS, read_json

ENVELOPE_POINTS = 150  # of the gradient's range over training, as records keep it


@dataclass(frozen=True)
class Record:
    """What a finished run leaves behind, as far as tables and figures need it."""

    name: str  # its folder's
    config: dict[str, Any]  # options that are not at their defaults
    result: dict[str, Any]
    accuracy_by_epoch: list[float]
    # Conv1's gradient over training: [step, smallest entry, largest entry, largest norm] of each stretch of steps.
    gradient: list[list[float]]

    @property
    def accuracy(self) -> float:
        """In percent."""
        return 100 * float(self.result["accuracy"])

    @property
    def state(self) -> str:
        """ok, saturated or collapsed."""
        return str(self.result["state"])

    @property
    def seed(self) -> int:
        """The run's seed."""
        return int(self.result["seed"])


@dataclass(frozen=True)
class Measured:
    """Runs that differ in their seeds only."""

    records: tuple[Record, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.records)

    @property
    def mean(self) -> float:
        """Mean accuracy in percent."""
        return statistics.fmean(record.accuracy for record in self.records)

    @property
    def std(self) -> float:
        """Deviation between seeds; of one run, not a number."""
        return statistics.stdev(record.accuracy for record in self.records) if self.count > 1 else math.nan

    @property
    def states(self) -> list[str]:
        """What went wrong in some of them: saturated, collapsed."""
        return sorted({record.state for record in self.records} - {"ok"})

    def text(self) -> str:
        """78.41 ± 0.12 (n=3)."""
        spread = f" ± {self.std:.2f}" if self.count > 1 else ""
        return f"{self.mean:.2f}{spread} (n={self.count})"


def read_run(folder: Path) -> Record | None:
    """The record of a run folder; None if the run is not finished."""
    from capsroute.config import TrainConfig

    if not (folder / RESULT).is_file():
        return None
    result = read_json(folder / RESULT)
    config = TrainConfig.from_json(result.pop("config")).changes()
    with (folder / METRICS).open() as file:
        accuracy = [float(row["accuracy"]) for row in csv.DictReader(file)]
    return Record(folder.name, config, result, accuracy, envelope(folder / STEPS))


def read_store(store: Path) -> list[Record]:
    """The records of all finished runs in the folders of a store, by name."""
    folders = sorted(path.parent for path in store.glob(f"*/{RESULT}"))
    return [record for record in map(read_run, folders) if record is not None]


def save_records(path: Path, records: Iterable[Record]) -> None:
    """Keep records in one file, a line each."""
    lines = [json.dumps(vars(record), ensure_ascii=False, sort_keys=True) for record in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def load_records(path: Path) -> list[Record]:
    """The records of a file, or of a store's folders."""
    if path.is_dir():
        return read_store(path)
    try:
        return [Record(**json.loads(line)) for line in path.read_text().splitlines() if line]
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: holds no records of runs ({error}); name a store's folder or its records") from error


def envelope(steps: Path, points: int = ENVELOPE_POINTS) -> list[list[float]]:
    """The range of Conv1's gradient over stretches of a run's steps: [first step, smallest, largest, largest norm]."""
    if not steps.is_file():
        return []
    with steps.open() as file:
        rows = [
            (int(row["step"]), float(row["gradient_min"]), float(row["gradient_max"]), float(row["gradient_norm"]))
            for row in csv.DictReader(file)
        ]
    size = max(1, -(-len(rows) // points))
    stretches = [rows[first : first + size] for first in range(0, len(rows), size)]
    return [
        [part[0][0], min(row[1] for row in part), max(row[2] for row in part), max(row[3] for row in part)]
        for part in stretches
    ]
