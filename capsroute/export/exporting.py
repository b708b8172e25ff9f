"""From a run to a file or folder in one of the formats: made in memory, checked, and only then written."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from capsroute.checkpoint import write_atomically
from capsroute.errors import InputError, nearest
from capsroute.export.card import model_card
from capsroute.export.checking import images_for
from capsroute.export.description import describe, kept_meta, public_meta
from capsroute.export.hub import refuse_target, write_folder
from capsroute.export.onnx_model import onnx_bytes, refuse_without_extra
from capsroute.export.torch_program import program_bytes
from capsroute.saving import FINAL, load_all, net_bytes
from capsroute.sweeps.records import Measured, Record, read_run

# Each format, and how its names end.
FORMATS = MappingProxyType({"onnx": ".onnx", "torch": ".pt2", "safetensors": ".safetensors", "hub-folder": ""})


@dataclass(frozen=True)
class Exported:
    """What was written, and how it was checked."""

    path: Path
    sha256: str  # of the file; of a folder, of its weights
    size: int
    checked: str


def export_run(
    run: Path, kind: str = "onnx", out: Path | None = None, *, force: bool = False, also: Sequence[Path] = ()
) -> Exported:
    """Export the net of a run folder, a `final.safetensors` or a checkpoint.

    `kind` is one of `FORMATS`. `also`: finished runs of other seeds, for the accuracy in a hub folder's card.
    """
    if kind not in FORMATS:
        raise InputError(f"unknown format {kind!r}; {nearest(kind, FORMATS)}")
    run = run.expanduser()
    out = default_target(run, kind) if out is None else out.expanduser()
    if kind == "hub-folder":
        refuse_target(out, force)
    else:
        if also:
            raise InputError("--also is for --format hub-folder, whose card tells the mean of several seeds")
        _refuse_file(out, FORMATS[kind], force)
    if kind == "onnx":
        refuse_without_extra()
    net, decoder, meta = load_all(run)
    description = describe(net, meta)
    if kind == "hub-folder":
        record, measured = _measured(run, also)
        content = net_bytes(net, decoder, public_meta(meta))
        write_folder(out, content, description, model_card(_title(description), description, record, measured))
        checked = "its accuracy is that of one run" if measured is None else f"accuracy {measured.text()}"
    else:
        if kind == "safetensors":
            content, checked = net_bytes(net, decoder, kept_meta(meta)), "the weights as they are"
        else:
            images, source = images_for(net, meta)
            make = onnx_bytes if kind == "onnx" else program_bytes
            content, difference = make(net, description, images)
            checked = f"within {difference:.0e} of the net on {len(images)} images of {source}"
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{out}: cannot be written ({error.strerror or error})") from error
        write_atomically(out, content)
    return Exported(out, hashlib.sha256(content).hexdigest(), len(content), checked)


def default_target(run: Path, kind: str) -> Path:
    """The run's name with the format's ending, in the current folder."""
    folder = run if run.is_dir() else run.parent
    name = folder.resolve().name or "net"
    return Path(f"{name}-hub" if kind == "hub-folder" else name + FORMATS[kind])


def _refuse_file(out: Path, ending: str, force: bool) -> None:
    if out.suffix != ending:
        raise InputError(f"--out {out}: must end in {ending}, by which others know the format")
    if out.is_dir():
        raise InputError(f"{out} is a folder, and this format is one file; give another --out")
    if out.exists() and not force:
        raise InputError(f"{out} is there already; overwrite it by --force, or give another --out")


def _measured(run: Path, also: Sequence[Path]) -> tuple[Record | None, Measured | None]:
    """The record of the run, if these are its final weights; and that of all its seeds."""
    folder = run if run.is_dir() else run.parent
    final = (folder / FINAL).is_file() and (run.is_dir() or run.name == FINAL)
    record = read_run(folder) if final else None
    if record is None:
        if also:
            raise InputError(f"{run} is not a finished run, so that its accuracy has no mean with those of --also")
        return None, None
    records = [record]
    for other in map(Path.expanduser, also):
        another = read_run(other)
        if another is None:
            raise InputError(f"{other} is not a finished run's folder; leave it out of --also")
        names = sorted({*record.config, *another.config} - {"seed"})
        strange = [name for name in names if record.config.get(name) != another.config.get(name)]
        if strange:
            raise InputError(f"{other} differs from {run} in more than its seed ({', '.join(strange)}); leave it out")
        if another.seed in [known.seed for known in records]:
            raise InputError(f"{other} has seed {another.seed}, as another run given here; leave one of them out")
        records.append(another)
    return record, Measured(tuple(records))


def _title(description: dict[str, Any]) -> str:
    names = " and ".join(dict.fromkeys(layer["name"] for layer in description["routing"]))
    dataset = (description["dataset"] or {}).get("title", "images")
    return f"Capsule net on {dataset}, routing {names}"
