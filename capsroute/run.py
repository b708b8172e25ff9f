"""A run folder: one run's configuration, measurements, checkpoints and result, and nobody else's."""

import csv
import io
import json
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from capsroute import checkpoint
from capsroute.checkpoint import Checkpoint, CheckpointError, write_atomically
from capsroute.config import TrainConfig, refuse_changes
from capsroute.errors import BusyRunError, DataError, InputError

CONFIG, METRICS, STEPS, RESULT, LOG = "config.json", "metrics.csv", "steps.csv", "result.json", "train.log"
STEP_COLUMNS = ("step", "loss", "gradient_min", "gradient_max", "gradient_norm")


class RunFolder:
    """The folder of a run, held by this process for as long as it is open."""

    def __init__(self, config: TrainConfig) -> None:
        self.path = config.folder()
        self._lock = FileLock(self.path / ".lock", timeout=0)
        self._check(config)

    def _check(self, config: TrainConfig) -> None:
        saved = self.path / CONFIG
        if saved.is_file():
            if not config.resume:
                raise InputError(f"{self.path} holds a run already; go on with it by --resume, or give another --out")
            refuse_changes(read_config(self.path), config)
        elif config.resume:
            raise InputError(f"{self.path} holds no run to resume; leave out --resume to start one there")

    def __enter__(self) -> "RunFolder":
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except Timeout as error:
            raise BusyRunError(f"{self.path} is in use by another run; wait for it, or give another --out") from error
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be written to ({error.strerror or error}); give another --out"
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def start(self, config: TrainConfig, bytes_per_checkpoint: int) -> None:
        """Write `config.json`; refuse a disk on which two checkpoints and a third being written have no place."""
        free = shutil.disk_usage(self.path).free
        if free < 3 * bytes_per_checkpoint:
            need = f"{3 * bytes_per_checkpoint >> 20} MB for checkpoints and {free >> 20} MB are free"
            raise CheckpointError(f"{self.path}: the run needs {need}; free some, or give another --out")
        write_json(self.path / CONFIG, config.to_json())

    def finished(self) -> dict[str, Any] | None:
        """The result, if the run has one."""
        file = self.path / RESULT
        return read_json(file) if file.is_file() else None

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest sound checkpoint, and what was wrong with a newer one."""
        return checkpoint.load_newest(self.path)

    def save(self, saved: Checkpoint) -> None:
        """Make this the last checkpoint."""
        checkpoint.save(self.path, saved)

    def drop_checkpoints(self) -> None:
        """Delete the checkpoints of a finished run that is not to keep them."""
        for name in (checkpoint.LAST, checkpoint.PREVIOUS):
            (self.path / name).unlink(missing_ok=True)

    def write_metrics(self, rows: list[dict[str, Any]]) -> None:
        """Write `metrics.csv` anew, a row an epoch."""
        text = io.StringIO()
        if rows:
            writer = csv.DictWriter(text, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        write_atomically(self.path / METRICS, text.getvalue().encode())

    def cut_steps(self, before: int) -> None:
        """Keep the rows of `steps.csv` below this step: what comes after is done again."""
        file = self.path / STEPS
        kept = [",".join(STEP_COLUMNS)]
        if file.is_file():
            for line in file.read_text().splitlines()[1:]:
                number = line.split(",", 1)[0]
                if number.isdigit() and int(number) < before and line.count(",") == len(STEP_COLUMNS) - 1:
                    kept.append(line)
        write_atomically(file, ("\n".join(kept) + "\n").encode())

    def add_steps(self, rows: list[tuple[int, list[float]]]) -> None:
        """Append rows to `steps.csv`."""
        lines = [f"{number}," + ",".join(f"{value:.6g}" for value in values) for number, values in rows]
        self._append(STEPS, lines)

    def log(self, line: str) -> None:
        """Append a line to `train.log`."""
        self._append(LOG, [line])

    def _append(self, name: str, lines: list[str]) -> None:
        try:
            with (self.path / name).open("a") as file:
                file.writelines(line + "\n" for line in lines)
        except OSError as error:
            raise CheckpointError(f"{self.path / name}: cannot be written ({error.strerror or error})") from error

    def write_result(self, result: dict[str, Any]) -> None:
        """Write `result.json`, which makes the run a finished one."""
        write_json(self.path / RESULT, result)


def read_config(folder: Path) -> TrainConfig:
    """The configuration of the run in a folder."""
    return TrainConfig.from_json(read_json(folder / CONFIG))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or an error that names the file."""
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error})") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: not a JSON object")
    return content


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON object; the file is whole or as it was."""
    write_atomically(path, (json.dumps(content, indent=2, ensure_ascii=False) + os.linesep).encode())
