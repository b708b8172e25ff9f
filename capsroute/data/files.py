"""From a name to checked tensors: where datasets are looked for, how they are read, what a failure says."""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from capsroute.data import folders
from capsroute.data.formats import (
    Images,
    Labels,
    check_labels,
    npz_classes,
    read_cifar_archive,
    read_cifar_binary,
    read_cifar_python,
    read_idx_pair,
    read_npz,
)
from capsroute.data.mat import read_svhn
from capsroute.data.progress import progress_bar
from capsroute.data.sample import ARCHIVE
from capsroute.data.table import DATASETS, DatasetInfo
from capsroute.errors import DataError, InputError, nearest

SPLITS = ("train", "test")
DATA_VARIABLE = "CAPSROUTE_DATA"
OFFLINE_VARIABLE = "CAPSROUTE_OFFLINE"
# Where tutorials, other libraries and distributions put datasets, beside what the user names.
USUAL_PLACES = (Path("data"), Path("~/data"), Path("~/datasets"), Path("/usr/share/datasets"))


@dataclass(frozen=True)
class Dataset:
    """One split, in memory."""

    name: str
    title: str
    split: str
    images: UInt8[Tensor, "n c h w"]
    labels: Int64[Tensor, " n"]
    classes: tuple[str, ...]
    source: str  # the file or folder that it was read from
    verified: bool  # whether its pixels and labels are known to be the official ones

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        channels, height, width = self.images.shape[1:]
        return channels, height, width

    def __len__(self) -> int:
        return len(self.images)

    def describe(self) -> dict[str, Any]:
        """What results and saved nets say of the data they come from, this being the training split."""
        return {
            "name": self.name,
            "title": self.title,
            "classes": list(self.classes),
            "shape": list(self.shape),
            "train_count": len(self),
            "verified": self.verified,
        }


@dataclass(frozen=True)
class Found:
    """A split on this machine: where, and how to read it."""

    where: Path
    read: Callable[[], tuple[Images, Labels]]


def load_dataset(
    name: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    split: str = "train",
    *,
    offline: bool | None = None,
    image_size: int | None = None,
) -> Dataset:
    """A dataset by name, or one's own by the path of a folder of images or of an `.npz` file.

    A named one is looked for in `root`, in $CAPSROUTE_DATA, in the user's cache and in the usual places, and downloaded
    to the cache if it is nowhere; never with `offline` or $CAPSROUTE_OFFLINE=1. `image_size` is for folders of images.
    """
    if split not in SPLITS:
        raise InputError(f"split={split!r} must be one of {', '.join(SPLITS)}")
    if str(name) in DATASETS:
        info = DATASETS[str(name)]
        found = find_split(info, root, split)
        if found is None:
            if is_offline(offline):
                raise DataError(_not_found(info, split, root))
            from capsroute.data.download import fetch  # requests and pooch: only when there is something to fetch

            with progress_bar(bytes_counted=True) as progress:
                fetch(info, split, progress)
            found = find_split(info, cache_folder(), split)
            if found is None:
                raise DataError(_not_found(info, split, root))
        return read_split(info, split, found)
    path = Path(root or "", os.fspath(name)).expanduser()
    if path.is_dir():
        return _load_folder(path, split, image_size)
    if path.suffix == ".npz" and path.is_file():
        return _load_npz(path, split)
    raise InputError(
        f"unknown dataset {str(name)!r}, and no folder of images or .npz file has that path; "
        f"{nearest(str(name), DATASETS)}"
    )


def find_split(info: DatasetInfo, root: str | os.PathLike[str] | None, split: str) -> Found | None:
    """The first place that has this split whole, by its files' names."""
    if info.family == "sample":
        return Found(ARCHIVE, partial(read_npz, ARCHIVE, split))
    for folder in _folders(info, root):
        for candidate in _LAYOUTS[info.family](info, folder, split):
            return candidate
    return None


def read_split(info: DatasetInfo, split: str, found: Found) -> Dataset:
    """Read a split and make sure of it: counts, shapes, labels, and its content where that is known."""
    images, labels = found.read()
    if images.shape != (info.counts[split], *info.shape):
        raise DataError(f"{found.where}: {images.shape} is not the shape of {info.title}'s {split} split")
    check_labels(str(found.where), labels, len(info.classes))
    digest = content_digest(images, labels)
    if info.content.get(split, digest) != digest:
        other = next((other for other in DATASETS.values() if other.content.get(split) == digest), None)
        if other:
            raise DataError(f"{found.where}: this is {other.title}, not {info.title}")
        raise DataError(
            f"{found.where}: the content is not that of {info.title}'s {split} split; the file is damaged or altered, "
            f"put it away and run: capsroute data fetch {info.name}"
        )
    verified = split in info.content or _is_official_file(found.where, info, split)
    return _dataset(info.name, info.title, split, images, labels, info.classes, str(found.where), verified)


def _is_official_file(path: Path, info: DatasetInfo, split: str) -> bool:
    for file in info.files.get(split, ()):
        if path.is_file() and path.stat().st_size == file.size:
            with path.open("rb") as content:
                if hashlib.file_digest(content, "sha256").hexdigest() == file.sha256:
                    return True
    return False


def content_digest(images: Images, labels: Labels) -> str:
    """SHA-256 of the pixels [n, c, h, w] and then the labels, as bytes."""
    digest = hashlib.sha256(np.ascontiguousarray(images).data)
    digest.update(labels.astype(np.uint8).data)
    return digest.hexdigest()


def is_offline(offline: bool | None) -> bool:
    """The caller's wish, or else the environment's."""
    return os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0") if offline is None else offline


def cache_folder() -> Path:
    """Where downloads are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "capsroute"


def places(root: str | os.PathLike[str] | None) -> list[Path]:
    """Where datasets are looked for, in this order."""
    named = [root, os.environ.get(DATA_VARIABLE) or None]
    chosen = [Path(place).expanduser() for place in named if place is not None]
    return [*chosen, cache_folder(), *(place.expanduser() for place in USUAL_PLACES)]


def _folders(info: DatasetInfo, root: str | os.PathLike[str] | None) -> Iterator[Path]:
    usual = {place.expanduser() for place in USUAL_PLACES}
    for place in places(root):
        for name in info.folders:
            yield place / name
        # The files themselves may lie in a folder that the user named, or where nothing else is called so.
        if place not in usual or info.telling_names:
            yield place


def _idx_layout(info: DatasetInfo, folder: Path, split: str) -> Iterator[Found]:
    prefix = "train" if split == "train" else "t10k"
    for dot, ending in product("-.", ("", ".gz")):
        images = folder / f"{prefix}-images{dot}idx3-ubyte{ending}"
        labels = folder / f"{prefix}-labels{dot}idx1-ubyte{ending}"
        if images.is_file() and labels.is_file():
            yield Found(
                images, partial(read_idx_pair, images, labels, info.counts[split], info.shape, len(info.classes))
            )


def _cifar_layout(info: DatasetInfo, folder: Path, split: str) -> Iterator[Found]:
    stems = [f"data_batch_{number}" for number in range(1, 6)] if split == "train" else ["test_batch"]
    for kind, short, ending, read in (
        ("binary", "bin", ".bin", read_cifar_binary),
        ("python", "py", "", read_cifar_python),
    ):
        inside = f"cifar-10-batches-{short}"
        for place in (folder / inside, folder):
            files = [place / f"{stem}{ending}" for stem in stems]
            if all(file.is_file() for file in files):
                yield Found(place, partial(read, files))
        archive = folder / f"cifar-10-{kind}.tar.gz"
        if archive.is_file():
            yield Found(archive, partial(read_cifar_archive, archive, [f"{inside}/{stem}{ending}" for stem in stems]))


def _svhn_layout(info: DatasetInfo, folder: Path, split: str) -> Iterator[Found]:
    file = folder / f"{split}_32x32.mat"
    if file.is_file():
        yield Found(file, partial(read_svhn, file, info.counts[split]))


_LAYOUTS: dict[str, Callable[[DatasetInfo, Path, str], Iterator[Found]]] = {
    "idx": _idx_layout,
    "cifar": _cifar_layout,
    "svhn": _svhn_layout,
}


def _load_folder(path: Path, split: str, image_size: int | None) -> Dataset:
    has_val_only = (path / "val").is_dir() and not (path / "test").is_dir()
    split_folder = "val" if split == "test" and has_val_only else split
    classes = folders.class_names(path, split_folder)
    shape = folders.choose_shape(path, image_size)
    with progress_bar() as progress:
        images, labels = folders.read_folder(path, split_folder, shape, classes, progress)
    return _dataset(path.name, path.name, split, images, labels, classes, str(path / split_folder), False)


def _load_npz(path: Path, split: str) -> Dataset:
    images, labels = read_npz(path, split)
    classes = tuple(map(str, range(npz_classes(path))))
    return _dataset(path.stem, path.stem, split, images, labels, classes, str(path), False)


def _dataset(
    name: str,
    title: str,
    split: str,
    images: Images,
    labels: Labels,
    classes: tuple[str, ...],
    source: str,
    verified: bool,
) -> Dataset:
    # Copies, because arrays over a file's bytes are read-only and a tensor must not be.
    return Dataset(name, title, split, torch.tensor(images), torch.tensor(labels), classes, source, verified)


def _not_found(info: DatasetInfo, split: str, root: str | os.PathLike[str] | None) -> str:
    looked = "\n".join(f"  {place}" for place in places(root))
    commands = [
        f"capsroute data fetch {info.name}    (on a machine with a network; keeps it in {cache_folder()})",
        *info.advice,
        f"export {DATA_VARIABLE}=FOLDER    (where FOLDER/{info.folders[0]} holds the files)",
        "use the dataset 'sample' instead    (7,000 images of Fashion-MNIST, inside the package)",
    ]
    ways = "\n".join(f"  {command}" for command in commands)
    return f"{info.title}'s {split} split is not on this machine; looked in\n{looked}\nWhat helps:\n{ways}"
