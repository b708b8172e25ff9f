"""A net as one ONNX file."""

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.errors import InputError
from capsroute.export.checking import Classifier, Outputs, largest_difference, quiet_exporter
from capsroute.models import CapsNet
from capsroute.sealing import seal_onnx

if TYPE_CHECKING:
    from onnx import ModelProto

MOST_BYTES = 2_000_000_000  # one protocol buffer holds less than 2 GiB


def refuse_without_extra() -> None:
    """Before any work."""
    try:
        for name in ("onnx", "onnxscript", "onnxruntime"):
            import_module(name)
    except ImportError as error:
        raise InputError(
            f"--format onnx needs the extra [export], {error.name} is missing: pip install 'capsroute[export]'"
        ) from error


def onnx_bytes(net: CapsNet, description: dict[str, Any], images: Float[Tensor, "n c h w"]) -> tuple[bytes, float]:
    """The file's content, checked on these images, and the largest difference from the net."""
    import onnxruntime

    size = sum(parameter.numel() * parameter.element_size() for parameter in net.parameters())
    if size > MOST_BYTES:
        raise InputError(f"the net has {size >> 20} MB of weights, and one ONNX file holds less than 2048; use torch")
    classifier = Classifier(net)
    with quiet_exporter():
        program = torch.onnx.export(
            classifier,
            (classifier.example(),),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            input_names=["images"],
            output_names=["capsules", "lengths"],
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    _strip(model)
    for name, value in description.items():
        model.metadata_props.add(key=f"capsroute.{name}", value=json.dumps(value, ensure_ascii=False))
    content = seal_onnx(model.SerializeToString())
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])

    def run(batch: Tensor) -> Outputs:
        capsules, lengths = session.run(["capsules", "lengths"], {"images": batch.numpy()})
        return torch.from_numpy(capsules), torch.from_numpy(lengths)

    return content, largest_difference(classifier, run, images)


def _strip(model: "ModelProto") -> None:
    """Leave out what the exporter notes of each node: lines of source, paths of this machine; most of a small file."""
    graph = model.graph
    for part in (*graph.node, *graph.value_info, *graph.initializer, *graph.input, *graph.output, graph, model):
        del part.metadata_props[:]
