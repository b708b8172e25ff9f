"""The dataset that a command on a trained net looks at."""

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from capsroute.errors import InputError


@runtime_checkable
class RunCommand(Protocol):
    """A command on a run, with the options that say which data."""

    @property
    def run_folder(self) -> Path | None:
        """The run, if there is one."""

    @property
    def dataset(self) -> str | None:
        """Another dataset than the run's."""

    @property
    def data_dir(self) -> Path | None:
        """Where to look for it."""

    @property
    def split(self) -> str:
        """test or train."""

    @property
    def offline(self) -> bool:
        """Never download."""


def dataset_of(command: RunCommand, meta: dict[str, Any]) -> Any:
    """The dataset that the command names, or else the one of the run."""
    from capsroute.data.files import load_dataset

    config = meta.get("config", {})
    name = command.dataset or config.get("dataset") or meta.get("dataset", {}).get("name")
    if not name:
        raise InputError(f"{command.run_folder} does not say what it was trained on; give --dataset")
    folder = command.data_dir or config.get("data_dir")
    size = config.get("image_size")
    return load_dataset(name, folder, command.split, offline=command.offline or None, image_size=size)


def refuse_other_shape(in_shape: tuple[int, int, int], classes: int, dataset: Any) -> None:
    """An `InputError` if the net cannot take this dataset."""
    if dataset.shape != in_shape or len(dataset.classes) != classes:
        raise InputError(
            f"the net takes images of {in_shape} in {classes} classes; {dataset.title} has {dataset.shape} in "
            f"{len(dataset.classes)}"
        )
