"""Readers of the formats that datasets come in: IDX, CIFAR-10's two, and `.npz`.

Each returns (images uint8 [n, c, h, w], labels int64 [n]) or raises a `DataError` that names the file and the offset.
Sizes are known or checked before anything of that size is read; nothing is extracted to disk; nothing is executed.
"""

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capsroute.data.pickles import read_cifar_batch
from capsroute.errors import DataError

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]

IDX_UBYTE = 0x08
IDX_LABELS_START = 8  # after the magic and one size
CIFAR_PIXELS = 3 * 32 * 32
CIFAR_PER_FILE = 10_000
CIFAR_MEMBER_BYTES = 64 << 20
# A CIFAR-10 archive unpacks to 185 MB (pickles a little more); anything beyond this is not one.
CIFAR_ARCHIVE_BYTES = 256 << 20
# The most that an .npz of one's own may declare: as much as 500,000 colour images of 64x64.
NPZ_BYTES = 6 << 30
MOST_CLASSES = 10_000  # of an .npz; a larger label is no class


def read_idx_pair(
    images: Path, labels: Path, count: int, shape: tuple[int, int, int], classes: int
) -> tuple[Images, Labels]:
    """Images and labels from two IDX files, plain or .gz, of exactly this count and shape."""
    channels, height, width = shape
    pixels = read_idx(images, (count, height, width))
    numbers = read_idx(labels, (count,)).astype(np.int64)
    check_labels(str(labels), numbers, classes, start=IDX_LABELS_START, stride=1)
    return pixels.reshape(count, channels, height, width), numbers


def read_idx(path: Path, shape: Sequence[int]) -> NDArray[np.uint8]:
    """One IDX file of unsigned bytes, of exactly this shape."""
    header = struct.pack(f">HBB{len(shape)}I", 0, IDX_UBYTE, len(shape), *shape)
    size = int(np.prod(shape, dtype=np.int64))
    with reading(path) as file:
        found = file.read(len(header))
        if found[:4] != header[:4]:
            raise DataError(
                f"{path}: offset 0: {found[:4].hex() or 'nothing'} is not the IDX magic {header[:4].hex()} of unsigned "
                f"bytes in {len(shape)} dimensions; fetch the file again"
            )
        if found != header:
            sizes = struct.unpack(f">{len(found[4:]) // 4}I", found[4 : 4 + len(found[4:]) // 4 * 4])
            raise DataError(f"{path}: offset 4: the header says {sizes}, expected {tuple(shape)}; fetch the file again")
        data = _exactly(path, file, size, len(header))
    return np.frombuffer(data, np.uint8).reshape(shape)


def read_cifar_binary(paths: Sequence[Path]) -> tuple[Images, Labels]:
    """CIFAR-10's binary batches, of 10,000 records each: a label, then 32x32 red, green, blue."""
    batches = []
    for path in paths:
        with reading(path) as file:
            batches.append(parse_cifar_binary(str(path), _exactly(path, file, CIFAR_PER_FILE * (1 + CIFAR_PIXELS), 0)))
    return _joined(batches)


def parse_cifar_binary(name: str, data: bytes) -> tuple[Images, Labels]:
    """The records of one binary batch."""
    if len(data) != CIFAR_PER_FILE * (1 + CIFAR_PIXELS):
        raise DataError(f"{name}: {len(data)} bytes, expected {CIFAR_PER_FILE} records of {1 + CIFAR_PIXELS}")
    rows = np.frombuffer(data, np.uint8).reshape(CIFAR_PER_FILE, 1 + CIFAR_PIXELS)
    labels = rows[:, 0].astype(np.int64)
    check_labels(name, labels, 10, stride=1 + CIFAR_PIXELS)
    return rows[:, 1:].reshape(-1, 3, 32, 32), labels


def read_cifar_python(paths: Sequence[Path]) -> tuple[Images, Labels]:
    """CIFAR-10's Python batches, through an unpickler that makes arrays, dicts, lists, strings and numbers only."""
    batches = []
    for path in paths:
        with reading(path) as file:
            data = file.read(CIFAR_MEMBER_BYTES)
        batches.append(parse_cifar_python(str(path), data))
    return _joined(batches)


def parse_cifar_python(name: str, data: bytes) -> tuple[Images, Labels]:
    """The arrays of one Python batch."""
    pixels, labels = read_cifar_batch(name, data)
    if pixels.shape != (CIFAR_PER_FILE, CIFAR_PIXELS) or len(labels) != CIFAR_PER_FILE:
        raise DataError(
            f"{name}: data of shape {pixels.shape} and {len(labels)} labels, "
            f"expected {(CIFAR_PER_FILE, CIFAR_PIXELS)} and {CIFAR_PER_FILE}"
        )
    check_labels(name, labels, 10)
    return pixels.reshape(-1, 3, 32, 32), labels


def read_cifar_archive(path: Path, members: Sequence[str]) -> tuple[Images, Labels]:
    """The named batches of a CIFAR-10 .tar.gz, in that order, read in place."""
    found: dict[str, tuple[Images, Labels]] = {}
    with reading(path, unzip=False) as raw, gzip.GzipFile(fileobj=raw) as unzipped:
        limited = _Limited(unzipped, str(path), CIFAR_ARCHIVE_BYTES)
        try:
            with tarfile.open(fileobj=limited, mode="r|") as archive:
                for member in archive:
                    _refuse_odd_member(path, member)
                    if member.name not in members:
                        continue
                    content = archive.extractfile(member)
                    data = content.read() if content else b""
                    if len(data) != member.size:
                        raise DataError(f"{path}: {member.name} is cut short; fetch the file again")
                    parse = parse_cifar_binary if member.name.endswith(".bin") else parse_cifar_python
                    found[member.name] = parse(f"{path}: {member.name}", data)
            while limited.read(1 << 20):  # to the end, where gzip's checksum is
                pass
        except (tarfile.TarError, ValueError, OverflowError) as error:
            raise DataError(
                f"{path}: offset {limited.read_bytes} unpacked: not a sound tar archive ({error})"
            ) from error
    missing = [name for name in members if name not in found]
    if missing:
        raise DataError(f"{path}: holds no {', '.join(missing)}; fetch the file again")
    return _joined([found[name] for name in members])


def read_npz(path: Path, split: str) -> tuple[Images, Labels]:
    """`x_train`/`y_train` and `x_test`/`y_test`, as uint8 and whole numbers; `images`/`labels` are a training split.

    Images are [n, h, w], [n, c, h, w] or [n, h, w, c].
    """
    with _npz_arrays(path) as (archive, arrays):
        pair = _npz_pair(split, arrays)
        if pair is None:
            raise DataError(f"{path}: has {sorted(arrays)}; expected arrays {_expected_arrays(split)}")
        pixels, labels = (_read_npy(f"{path}: {name}", archive, arrays[name]) for name in pair)
    if pixels.dtype != np.uint8 or pixels.ndim not in (3, 4):
        raise DataError(
            f"{path}: {pair[0]} is {pixels.dtype} {pixels.shape}; expected uint8 [n, h, w] or with channels"
        )
    if pixels.ndim == 3:
        pixels = pixels[:, None]
    elif pixels.shape[1] not in (1, 3) and pixels.shape[3] in (1, 3):
        pixels = pixels.transpose(0, 3, 1, 2)
    if pixels.shape[1] not in (1, 3) or 0 in pixels.shape:
        raise DataError(f"{path}: {pair[0]} has shape {pixels.shape}; expected 1 or 3 channels and at least one image")
    if not np.issubdtype(labels.dtype, np.integer) or labels.size != len(pixels):
        raise DataError(f"{path}: {pair[1]} is {labels.dtype} {labels.shape}; expected {len(pixels)} whole numbers")
    numbers = labels.reshape(-1).astype(np.int64)
    check_labels(f"{path}: {pair[1]}", numbers, npz_classes(path))
    return np.ascontiguousarray(pixels), numbers


def npz_classes(path: Path) -> int:
    """How many classes the training labels tell; where there are none, the test labels."""
    with _npz_arrays(path) as (archive, arrays):
        pair = _npz_pair("train", arrays) or _npz_pair("test", arrays)
        labels = np.zeros(0, np.int64) if pair is None else _read_npy(f"{path}: {pair[1]}", archive, arrays[pair[1]])
    if pair is None or labels.size == 0 or not np.issubdtype(labels.dtype, np.integer):
        raise DataError(f"{path}: has no labels that are whole numbers; expected arrays {_expected_arrays('train')}")
    return min(MOST_CLASSES, max(0, int(labels.max())) + 1)


def check_labels(name: str, labels: Labels, classes: int, stride: int | None = None, start: int = 0) -> None:
    """Refuse a label outside 0 to classes - 1; `stride` is the bytes per record from `start` on, for the offset."""
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        first = int(wrong[0])
        where = f"record {first}" if stride is None else f"offset {start + first * stride} (record {first})"
        raise DataError(f"{name}: {where}: label {labels[first]} is outside 0 to {classes - 1}")


@contextmanager
def _npz_arrays(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """An .npz and the members that are its arrays, by name."""
    with reading(path, unzip=False) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                yield archive, {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        except (DataError, OSError, MemoryError):
            raise
        except Exception as error:  # zipfile raises many kinds for what is no archive
            raise DataError(f"{path}: not a sound .npz archive ({error})") from error


def _npz_pair(split: str, arrays: Mapping[str, zipfile.ZipInfo]) -> tuple[str, str] | None:
    """The names of a split's images and labels, if the archive has both."""
    pairs = [(f"x_{split}", f"y_{split}"), (f"images_{split}", f"labels_{split}")]
    if split == "train":  # never the test split: a net must not be judged by what it was trained on
        pairs.append(("images", "labels"))
    return next((pair for pair in pairs if set(pair) <= set(arrays)), None)


def _expected_arrays(split: str) -> str:
    other = "images and labels" if split == "train" else "leave some of the training images for it with --holdout"
    return f"x_{split} and y_{split}, or {other}"


@contextmanager
def reading(path: Path, unzip: bool = True) -> Iterator[io.BufferedIOBase]:
    """The file, unzipped if its name says so, with what can go wrong as a `DataError`."""
    try:
        with path.open("rb") as raw:
            if unzip and path.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw) as file:
                    yield file
            else:
                yield raw
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path}: damaged gzip data ({error}); fetch the file again") from error
    except (OSError, MemoryError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error


def _exactly(path: Path, file: io.BufferedIOBase, size: int, start: int) -> bytes:
    """The rest of the file, which must be `size` bytes."""
    data = file.read(size)
    if len(data) < size:
        raise DataError(f"{path}: offset {start + len(data)}: the file ends, {size - len(data)} bytes are missing")
    if file.read(1):
        raise DataError(f"{path}: offset {start + size}: more data where the file should end")
    return data


def _joined(batches: list[tuple[Images, Labels]]) -> tuple[Images, Labels]:
    return np.concatenate([images for images, _ in batches]), np.concatenate([labels for _, labels in batches])


def _refuse_odd_member(path: Path, member: tarfile.TarInfo) -> None:
    parts = Path(member.name).parts
    sound = member.isfile() or member.isdir()
    if member.name.startswith("/") or ".." in parts or not sound or not 0 <= member.size <= CIFAR_MEMBER_BYTES:
        raise DataError(f"{path}: holds {member.name!r}, which no CIFAR-10 archive does; fetch the official file")


def _read_npy(name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[np.generic]:
    """One array of an .npz, no larger than its archive declares, never through pickle."""
    if info.file_size > NPZ_BYTES:
        raise DataError(f"{name}: declares {info.file_size} bytes, over the limit of {NPZ_BYTES}")
    with archive.open(info) as file:
        try:
            version = np.lib.format.read_magic(file)
            read_header = (
                np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read_header(file)
        except Exception as error:  # numpy's parser of the header raises whatever Python's tokenizer does
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(f"{name}: not a sound .npy array ({reason})") from error
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if dtype.hasobject or dtype.kind not in "ui" or min(shape, default=0) < 0 or size > info.file_size:
            raise DataError(
                f"{name}: {dtype} {shape} of {size} bytes; expected whole numbers that fit {info.file_size} bytes"
            )
        try:
            data = file.read(size + 1)
        except (EOFError, zlib.error, zipfile.BadZipFile) as error:
            raise DataError(f"{name}: damaged ({error})") from error
    if len(data) != size:
        raise DataError(f"{name}: {'more than' if len(data) > size else f'{len(data)} of'} {size} bytes of data")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


class _Limited(io.RawIOBase):
    """A stream that refuses to yield more than it should hold."""

    def __init__(self, file: gzip.GzipFile, name: str, limit: int) -> None:
        self.file, self.name_, self.limit, self.read_bytes = file, name, limit, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        left = self.limit - self.read_bytes
        data = self.file.read(left + 1 if size < 0 else min(size, left + 1))
        if len(data) > left:
            raise DataError(f"{self.name_}: unpacks to more than {self.limit} bytes; fetch the official file")
        self.read_bytes += len(data)
        return data
