"""A net as a `torch.export` program: a .pt2 file that plain torch runs, without this library."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.errors import DataError
from capsroute.export.checking import Classifier, Outputs, largest_difference, quiet_exporter
from capsroute.models import CapsNet
from capsroute.sealing import check_zip, read_bytes, seal_zip

EXTRA = "capsroute.json"  # among the program's extra files


def program_bytes(net: CapsNet, description: dict[str, Any], images: Float[Tensor, "n c h w"]) -> tuple[bytes, float]:
    """The file's content, checked on these images as it will be read, and the largest difference from the net."""
    classifier = Classifier(net)
    with quiet_exporter():
        program = torch.export.export(
            classifier, (classifier.example(),), dynamic_shapes=({0: torch.export.Dim("batch")},)
        )
        for node in program.graph.nodes:
            node.meta.pop("stack_trace", None)  # lines of source and paths of this machine
        buffer = io.BytesIO()
        torch.export.save(program, buffer, extra_files={EXTRA: json.dumps(description, ensure_ascii=False)})
    content = seal_zip(buffer.getvalue())
    run, _ = _open(content)
    return content, largest_difference(classifier, run, images)


def load_program(path: Path) -> tuple[Callable[[Tensor], Outputs], dict[str, Any]]:
    """The program of a file that `program_bytes` made, and its description."""
    content = read_bytes(path)
    check_zip(path, content)
    try:
        return _open(content)
    except (RuntimeError, ValueError, KeyError, OSError, zipfile.BadZipFile, pickle.UnpicklingError) as error:
        first = next(iter(str(error).splitlines()), "")
        raise DataError(f"{path}: this torch, {torch.__version__}, cannot read the program ({first})") from error


def _open(content: bytes) -> tuple[Callable[[Tensor], Outputs], dict[str, Any]]:
    extra = {EXTRA: ""}
    with quiet_exporter():
        module = torch.export.load(io.BytesIO(content), extra_files=extra).module()
    return module, json.loads(extra[EXTRA])
