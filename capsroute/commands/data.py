"""`capsroute data list | fetch | verify | show`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, subcommand

from capsroute.data.files import SPLITS, cache_folder, find_split, is_offline, load_dataset, places, read_split
from capsroute.data.table import DATASETS, DatasetInfo
from capsroute.errors import DataError, InputError, nearest


@dataclass(frozen=True)
class ListDatasets:
    """List the datasets: what they are, and whether and where this machine has them."""

    root: Path | None = None
    """A folder to look in first."""

    def run(self) -> None:
        table = Table(title="Datasets", show_lines=True)
        table.add_column("name", no_wrap=True)
        table.add_column("what")
        table.add_column("on this machine", overflow="fold", ratio=1)
        for info in DATASETS.values():
            counts = " + ".join(f"{info.counts[split]:,}" for split in SPLITS)
            shape = "x".join(map(str, info.shape))
            what = f"{info.title}, {counts} images of {shape}\nlicence: {info.licence}"
            found = {split: find_split(info, self.root, split) for split in SPLITS}
            where = "\n".join(f"{split}: {there.where}" for split, there in found.items() if there)
            table.add_row(info.name, what, where or f"no; get it with: capsroute data fetch {info.name}")
        console = Console()
        console.print(table)
        console.print("Looked in: " + ", ".join(map(str, places(self.root))), soft_wrap=True, highlight=False)


@dataclass(frozen=True)
class Fetch:
    """Download a dataset to the cache, resuming what broke off, and check it."""

    name: Positional[str]
    """Its name, as `capsroute data list` gives it."""
    offline: bool = False
    """Never open a connection; succeed only if the files are there. $CAPSROUTE_OFFLINE=1 does the same."""

    def run(self) -> None:
        from capsroute.data.download import fetch
        from capsroute.data.progress import progress_bar

        info = _info(self.name)
        for split in SPLITS:
            if info.files and not is_offline(self.offline or None):
                with progress_bar(bytes_counted=True) as progress:
                    fetch(info, split, progress)
            dataset = load_dataset(info.name, cache_folder(), split, offline=True)
            print(f"{info.name} {split}: {len(dataset):,} images in {dataset.source}")


@dataclass(frozen=True)
class Verify:
    """Read a dataset whole and check it; every dataset on this machine, if no name is given."""

    name: Positional[str | None] = None
    """Its name, as `capsroute data list` gives it."""
    root: Path | None = None
    """A folder to look in first."""

    def run(self) -> None:
        failures = []
        for info in DATASETS.values() if self.name is None else [_info(self.name)]:
            for split in SPLITS:
                try:
                    found = find_split(info, self.root, split)
                    if found is None:
                        if self.name is not None:
                            load_dataset(info.name, self.root, split, offline=True)
                        print(f"{info.name} {split}: not on this machine", flush=True)
                        continue
                    dataset = read_split(info, split, found)
                    known = "content verified" if dataset.verified else "sound; its content has no published checksum"
                    print(f"{info.name} {split}: {len(dataset):,} images in {dataset.source}: {known}", flush=True)
                except DataError as error:
                    failures.append(str(error))
                    print(f"{info.name} {split}: DAMAGED OR MISSING", flush=True)
        if failures:
            raise DataError("; ".join(failures))


@dataclass(frozen=True)
class Show:
    """Save a contact sheet: a row of images for each class, with its name."""

    name: Positional[str]
    """A dataset's name, a folder of images, or an .npz file."""
    out: Path
    """The picture to write: .png, .svg or .pdf."""
    root: Path | None = None
    """A folder to look in first."""
    split: str = "train"
    """train or test."""
    columns: int = 12
    """Images per class."""
    image_size: int | None = None
    """For folders of images: the side that they are resized to; their own, or 32, if not given."""
    offline: bool = False
    """Never open a connection."""

    def run(self) -> None:
        from capsroute.data.sheet import contact_sheet

        dataset = load_dataset(
            self.name, self.root, self.split, offline=self.offline or None, image_size=self.image_size
        )
        contact_sheet(dataset, self.out, self.columns)
        print(f"{self.out}: {dataset.title}, {self.split}, from {dataset.source}")


@dataclass(frozen=True)
class Data:
    """See, fetch, verify and show datasets."""

    action: (
        Annotated[ListDatasets, subcommand("list")]
        | Annotated[Fetch, subcommand("fetch")]
        | Annotated[Verify, subcommand("verify")]
        | Annotated[Show, subcommand("show")]
    )

    def run(self) -> None:
        self.action.run()


def _info(name: str) -> DatasetInfo:
    if name not in DATASETS:
        raise InputError(f"unknown dataset {name!r}; {nearest(name, DATASETS)}")
    return DATASETS[name]
