"""Seals: a SHA-256 inside a file of everything else in it, so that a damaged or altered file is refused.

Each kind of file has a place for it that every other reader of that kind passes over:

- safetensors: the entry "sha256" of the metadata; of the header without that entry, and of the tensors' bytes.
- ONNX: the metadata entry "capsroute.sha256", which are the file's last bytes; of all bytes before it.
- .pt2, a zip archive: the archive's comment, likewise at the end; of all bytes before it.

A seal tells of accidents and of changes by other programs. It is no signature: who changes a file on purpose can seal
it anew. Against that, compare the file's own SHA-256 with one that came another way. Nothing here needs torch.
"""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

from capsroute.errors import DataError, InputError

KEY = "capsroute.sha256"
DIGEST_CHARACTERS = 64
ADVICE = "damaged, cut short or altered since it was written; export it anew, or fetch it again"
# A field of a protocol buffer is its number and wire type, its length and its content: 14 is ModelProto's
# metadata_props, in whose entries 1 is the key and 2 the value. All lengths here are below 128, one byte each.
_ONNX_KEY = b"\x0a" + bytes([len(KEY)]) + KEY.encode() + b"\x12" + bytes([DIGEST_CHARACTERS])
_ONNX_ENTRY = b"\x72" + bytes([len(_ONNX_KEY) + DIGEST_CHARACTERS]) + _ONNX_KEY
_ZIP_END = b"PK\x05\x06"  # the record at the end of an archive, of 22 bytes, the last two the comment's length
_COMMENT = f"{KEY} ".encode()
_ZIP_COMMENT_LENGTH = struct.pack("<H", len(_COMMENT) + DIGEST_CHARACTERS)


def read_bytes(path: Path) -> bytes:
    """A file's content, or an error that names it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def seal_onnx(model: bytes) -> bytes:
    """A serialized ONNX model, sealed."""
    return model + _ONNX_ENTRY + _hex(model)


def check_onnx(path: Path, content: bytes) -> None:
    """Refuse an ONNX file that is not as it was sealed."""
    model, entry = content[: -len(_ONNX_ENTRY) - DIGEST_CHARACTERS], content[-len(_ONNX_ENTRY) - DIGEST_CHARACTERS :]
    if entry != _ONNX_ENTRY + _hex(model):
        raise DataError(f"{path}: not a model that capsroute exported, or {ADVICE}")


def seal_zip(archive: bytes) -> bytes:
    """A zip archive without a comment, sealed."""
    if archive[-22:-18] != _ZIP_END or archive[-2:] != b"\0\0":
        raise DataError("not a zip archive without a comment")
    body = archive[:-2] + _ZIP_COMMENT_LENGTH + _COMMENT
    return body + _hex(body)


def check_zip(path: Path, content: bytes) -> None:
    """Refuse a zip archive that is not as it was sealed."""
    body, digest = content[:-DIGEST_CHARACTERS], content[-DIGEST_CHARACTERS:]
    if not body.endswith(_ZIP_COMMENT_LENGTH + _COMMENT) or digest != _hex(body):
        raise DataError(f"{path}: not a program that capsroute exported, or {ADVICE}")


def seal_safetensors(content: bytes) -> bytes:
    """A safetensors file with metadata, sealed."""
    header, tensors = _header_and_tensors(content)
    header["__metadata__"]["sha256"] = _safetensors_digest(header, tensors)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the tensors stay aligned
    return struct.pack("<Q", len(text)) + text + tensors


def check_safetensors(path: Path, content: bytes) -> None:
    """Refuse a safetensors file that is not as it was sealed; one that never was is left to its reader."""
    try:
        header, tensors = _header_and_tensors(content)
        sealed = header["__metadata__"].get("sha256")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not a net of this library, or damaged ({error!r})") from error
    if sealed is not None and sealed != _safetensors_digest(header, tensors):
        raise DataError(f"{path}: {ADVICE}")


def _header_and_tensors(content: bytes) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    return header, content[8 + size :]


def _safetensors_digest(header: dict[str, Any], tensors: bytes) -> str:
    metadata = {key: value for key, value in header["__metadata__"].items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps({**header, "__metadata__": metadata}, sort_keys=True).encode())
    digest.update(tensors)
    return digest.hexdigest()


def _hex(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
