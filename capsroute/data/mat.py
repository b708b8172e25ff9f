"""SVHN's MATLAB files (version 5): X, uint8 [32, 32, 3, n] in column order, and y, labels 1 to 10 with 10 for digit 0.

A reader of its own, not scipy's: it reads two arrays of known type and shape, holds no more than they declare, and
tells the offset of what is wrong.
"""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capsroute.data.formats import Images, Labels, reading
from capsroute.errors import DataError

HEADER_BYTES = 128
MI_INT8, MI_UINT8, MI_INT32, MI_UINT32, MI_DOUBLE, MI_MATRIX, MI_COMPRESSED = 1, 2, 5, 6, 9, 14, 15
CHUNK = 1 << 20
# Flags, dimensions and name of an array, and the tag of its data, lie within this many bytes.
PREAMBLE_BYTES = 4096


def read_svhn(path: Path, count: int) -> tuple[Images, Labels]:
    """The images and digits of one split of `count` samples."""
    arrays: dict[str, NDArray[np.uint8]] = {}
    with reading(path, unzip=False) as file:
        size = path.stat().st_size
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES or header[124:128] != b"\x00\x01IM":
            kind = "MATLAB 7.3 (HDF5); save it with -v7" if header[:8] == b"\x89HDF\r\n\x1a\n" else "something else"
            raise DataError(f"{path}: offset 124: not a little-endian MATLAB 5 file but {kind}")
        while (offset := file.tell()) < size:
            name, array = _read_array(path, file, offset, size, {"X": (32, 32, 3, count), "y": (count, 1)})
            if name in arrays:
                raise DataError(f"{path}: offset {offset}: a second array {name!r}")
            arrays[name] = array
    for name in ("X", "y"):
        if name not in arrays:
            raise DataError(f"{path}: holds no array {name!r}; fetch the file again")
    labels = arrays["y"].reshape(-1).astype(np.int64)
    wrong = np.flatnonzero((labels < 1) | (labels > 10))
    if len(wrong):
        raise DataError(f"{path}: y[{wrong[0]}]: label {labels[wrong[0]]} is outside 1 to 10")
    # Column order: the bytes run over y, then x, then colour, then sample.
    images = arrays["X"].reshape(count, 3, 32, 32).transpose(0, 1, 3, 2)
    return np.ascontiguousarray(images), labels % 10


def _read_array(
    path: Path, file: io.BufferedIOBase, offset: int, size: int, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, NDArray[np.uint8]]:
    """The top-level element at `offset`, which must be one of the arrays in `shapes`."""
    tag = file.read(8)
    if len(tag) < 8:
        raise DataError(f"{path}: offset {offset}: the file ends within a tag")
    kind, length = struct.unpack("<II", tag)
    if kind not in (MI_MATRIX, MI_COMPRESSED) or offset + 8 + length > size:
        raise DataError(f"{path}: offset {offset}: element of type {kind} and {length} bytes; the file is damaged")
    most = max(int(np.prod(shape)) for shape in shapes.values()) * 8 + PREAMBLE_BYTES
    if kind == MI_COMPRESSED:
        unpacked = _inflate(path, file, offset, length, most)
        if len(unpacked) < 8 or struct.unpack_from("<I", unpacked)[0] != MI_MATRIX:
            raise DataError(f"{path}: offset {offset}: compressed data that is no array")
        data = memoryview(unpacked)[8:]
    elif length <= most:
        data = memoryview(file.read(length))
    else:
        raise DataError(f"{path}: offset {offset}: an array of {length} bytes, where {most} are the most")
    try:
        return _parse_array(data, shapes)
    except (struct.error, ValueError) as error:
        raise DataError(f"{path}: offset {offset}: {error}; fetch the file again") from error


def _parse_array(data: memoryview, shapes: dict[str, tuple[int, ...]]) -> tuple[str, NDArray[np.uint8]]:
    """Name and content of an array; ValueError says what is wrong with it."""
    _, flags, at = _element(data, 0, 16)
    array_class = flags[0] if len(flags) else 0
    kind, sizes, at = _element(data, at, 64)
    dims = struct.unpack(f"<{len(sizes) // 4}i", sizes) if kind == MI_INT32 else ()
    kind, name_bytes, at = _element(data, at, 64)
    name = bytes(name_bytes).decode("latin1")
    if name not in shapes:
        raise ValueError(f"an unexpected array {name!r}")
    if dims != shapes[name]:
        raise ValueError(f"array {name!r} has shape {dims}, expected {shapes[name]}")
    kind, content, at = _element(data, at, len(data))
    if at < len(data):
        raise ValueError(f"array {name!r} is followed by {len(data) - at} bytes")
    dtype = {MI_UINT8: "u1", MI_INT8: "i1", MI_DOUBLE: "<f8"}.get(kind)
    if array_class not in (6, 8, 9) or dtype is None:
        raise ValueError(f"array {name!r} has class {array_class} and type {kind}, expected unsigned bytes or doubles")
    values = np.frombuffer(content, dtype)
    if len(values) != int(np.prod(dims)):
        raise ValueError(f"array {name!r} holds {len(values)} numbers, expected {int(np.prod(dims))}")
    if dtype != "u1" and not ((values >= 0) & (values <= 255) & (values == np.floor(values))).all():
        raise ValueError(f"array {name!r} holds numbers that are no bytes")
    return name, values.astype(np.uint8, copy=False)


def _element(data: memoryview, at: int, most: int) -> tuple[int, memoryview, int]:
    """Type and content of the data element at `at`, and where the next one starts."""
    kind, length = struct.unpack_from("<II", data, at)
    if kind >> 16:  # the small form: length in the upper half, content in place of the length
        kind, length, start = kind & 0xFFFF, kind >> 16, at + 4
        end = at + 8
        if length > 4:
            raise ValueError(f"a small element of {length} bytes")
    else:
        start = at + 8
        end = start + (length + 7) // 8 * 8
    if length > most or start + length > len(data):
        raise ValueError(f"an element of {length} bytes at {at}, beyond the end of its array")
    return kind, data[start : start + length], min(end, len(data))


def _inflate(path: Path, file: io.BufferedIOBase, offset: int, length: int, most: int) -> bytes:
    """A compressed element, refused once it holds more than an expected array could."""
    unzip, parts, total = zlib.decompressobj(), [], 0
    try:
        while length:
            piece = file.read(min(CHUNK, length))
            if not piece:
                raise DataError(f"{path}: offset {file.tell()}: the file ends within an array")
            length -= len(piece)
            while piece:
                parts.append(unzip.decompress(piece, CHUNK))
                piece = unzip.unconsumed_tail
                total += len(parts[-1])
                if total > most:
                    raise DataError(f"{path}: offset {offset}: unpacks to more than {most} bytes")
    except zlib.error as error:
        raise DataError(f"{path}: offset {file.tell()}: damaged compressed data ({error})") from error
    if not unzip.eof:
        raise DataError(f"{path}: offset {offset}: compressed data ends early")
    return b"".join(parts)
