"""Checkpoints: a file is whole or it is not there, and no pickle is ever loaded.

A checkpoint is one line with its kind and the SHA-256 of the rest, and then a safetensors file, whose metadata holds
what is no tensor, as JSON.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from capsroute.errors import CapsrouteError

MAGIC = b"capsroute-checkpoint-1 "
HEADER_BYTES = len(MAGIC) + 64 + 1
LAST, PREVIOUS = "last.ckpt", "previous.ckpt"


class CheckpointError(CapsrouteError):
    """A checkpoint that cannot be written, or is not sound."""


class Checkpoint(NamedTuple):
    """Tensors by name, and everything else, as JSON has it."""

    tensors: dict[str, Tensor]
    meta: dict[str, Any]


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Make this the folder's last checkpoint, and the last one the previous.

    At every instant `last.ckpt` is a whole file: the new one is written beside it, flushed to disk, read back and
    checked, and only then takes its name. If that fails, the last one stays.
    """
    body = safetensors.torch.save(checkpoint.tensors, {"meta": json.dumps(checkpoint.meta)})
    header = MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n"
    last, previous, fresh = (folder / name for name in (LAST, PREVIOUS, f"{LAST}.writing"))
    try:
        with fresh.open("wb") as file:
            file.write(header)
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        _read_back(fresh)
        if last.exists():
            linked = folder / f"{PREVIOUS}.writing"
            linked.unlink(missing_ok=True)
            try:
                os.link(last, linked)
            except OSError:  # a file system without links: a copy does as well, for longer
                shutil.copyfile(last, linked)
            linked.replace(previous)
        fresh.replace(last)
        _flush_names(folder)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        left = f"the one before, {last}, is whole" if last.exists() else "there is none yet"
        raise CheckpointError(
            f"{last}: the checkpoint could not be written ({error.strerror or error}); {left}"
        ) from error


def load(path: Path) -> Checkpoint:
    """The checkpoint in a file, or a `CheckpointError` that says what is wrong with it."""
    body = _checked(path)
    try:
        tensors = safetensors.torch.load(body)
        size = int.from_bytes(body[:8], "little")
        meta = json.loads(json.loads(body[8 : 8 + size])["__metadata__"]["meta"])
    except (SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path}: not a checkpoint of this library ({error})") from error
    return Checkpoint(tensors, meta)


def load_newest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest sound checkpoint of a folder, and what was wrong with newer ones."""
    complaints: list[str] = []
    for name in (LAST, PREVIOUS):
        path = folder / name
        if path.exists():
            try:
                return load(path), complaints
            except CheckpointError as error:
                complaints.append(str(error))
    if complaints:
        raise CheckpointError("; ".join(complaints) + "; no sound checkpoint is left, start the run anew")
    return None, complaints


def _read_back(path: Path) -> None:
    """See that the disk gives back what it was given."""
    try:
        _checked(path)
    except CheckpointError as error:
        raise OSError("what the disk gives back is not what was written") from error


def _checked(path: Path) -> bytes:
    """What follows the header, if its checksum is right."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from error
    if not content.startswith(MAGIC) or len(content) < HEADER_BYTES:
        raise CheckpointError(f"{path}: not a checkpoint of this library, or cut short")
    body = content[HEADER_BYTES:]
    if hashlib.sha256(body).hexdigest().encode() != content[len(MAGIC) : HEADER_BYTES - 1]:
        raise CheckpointError(f"{path}: damaged, its checksum does not fit")
    return body


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a small file by this content, or leave it as it was."""
    fresh = path.with_name(path.name + ".writing")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise CheckpointError(f"{path}: cannot be written ({error.strerror or error})") from error


def _flush_names(folder: Path) -> None:
    """See that the renames are on disk too, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
