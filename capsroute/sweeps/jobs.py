"""A run of a sweep: its name in the store, its configuration, and how it ended."""

import dataclasses
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from capsroute.config import TrainConfig
from capsroute.errors import BusyRunError, CapsrouteError, DataError, DivergedError, InputError, InterruptedRunError
from capsroute.run import CONFIG, LOG, RESULT


@dataclass(frozen=True)
class Job:
    """A run to be done, or done already: its folder in the store says which."""

    title: str
    config: TrainConfig

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.config.folder()

    @property
    def done(self) -> bool:
        """Whether it has its result."""
        return (self.folder / RESULT).is_file()

    def resumable(self) -> TrainConfig:
        """The configuration with which the run starts, or goes on if it has begun."""
        return resumable(self.config)


def make_job(store: Path, name: str, title: str, options: dict[str, Any]) -> Job:
    """A job whose folder's name says what it is, and by a hash of the configuration that it is nothing else."""
    config = TrainConfig(**{"quiet": True, **options})
    return Job(title, dataclasses.replace(config, out=store / f"{name}-seed{config.seed}-{config.identity()}"))


def resumable(config: TrainConfig) -> TrainConfig:
    """The same run, gone on with if its folder has one."""
    return dataclasses.replace(config, resume=(config.folder() / CONFIG).is_file())


@dataclass(frozen=True)
class Outcome:
    """How a job ended here."""

    kind: Literal["finished", "failed", "busy", "interrupted", "lost"]
    message: str = ""
    final: bool = False  # whether trying again would end the same way


def do_job(config: TrainConfig, fit: Callable[[TrainConfig], object]) -> Outcome:
    """Start the run, or go on with it; whatever happens ends as an outcome."""
    folder = config.folder()
    try:
        fit(resumable(config))
    except InterruptedRunError as error:
        return Outcome("interrupted", str(error))
    except BusyRunError as error:
        return Outcome("busy", str(error))
    except CapsrouteError as error:  # missing data or a divergence is the same the next time; a full disk may not be
        return Outcome("failed", str(error), final=isinstance(error, InputError | DataError | DivergedError))
    except Exception as error:  # a defect must not end the other runs
        return Outcome("failed", f"{type(error).__name__}: {error}{_logged(folder)}")
    return Outcome("finished")


def _logged(folder: Path) -> str:
    """Write the traceback of the error that is being handled to the run's log; where to see it, if that went well."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOG).open("a") as log:
            log.write(traceback.format_exc())
    except OSError:
        return ""
    return f"; see {folder / LOG}"
