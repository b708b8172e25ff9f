"""Class lengths for image files of any size, from a net or from what was exported of it.

An ONNX file is read and run without torch.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from capsroute.data.folders import read_image
from capsroute.errors import DataError, InputError
from capsroute.sealing import check_onnx, read_bytes

BATCH = 64
FORMAT = 1  # of the description that exported files carry

Images = Float32[np.ndarray, "b c h w"]
Lengths = Float32[np.ndarray, "b j"]


@dataclass(frozen=True)
class Classifier:
    """What images of a shape are given to, with floats from 0 to 1, and what its outputs are called."""

    shape: tuple[int, int, int]  # channels, height, width
    classes: Sequence[str]
    lengths: Callable[[Images], Lengths]


def predict(classifier: Classifier, paths: Sequence[Path]) -> Float32[np.ndarray, "n j"]:
    """The class capsules' lengths of each image, brought to the classifier's shape as training images are."""
    channels, height, width = classifier.shape
    results = []
    for first in range(0, len(paths), BATCH):
        pixels = [read_image(path, channels, (height, width)) for path in paths[first : first + BATCH]]
        results.append(classifier.lengths(np.stack(pixels).astype(np.float32) / 255))
    return np.concatenate(results)


def open_classifier(path: Path) -> Classifier:
    """The classifier of an `.onnx` or `.pt2` file that was exported, or of anything that `capsroute.load` reads."""
    path = path.expanduser()
    if path.suffix == ".onnx":
        return _open_onnx(path)
    return _open_program(path) if path.suffix == ".pt2" else _open_net(path)


def _open_onnx(path: Path) -> Classifier:
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError(f"{path} needs onnxruntime to run: pip install 'capsroute[export]'") from error
    content = read_bytes(path)
    check_onnx(path, content)
    try:
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    except Exception as error:  # its classes of errors have no common base but this
        first = str(error).splitlines()[0]
        raise DataError(f"{path}: this onnxruntime, {onnxruntime.__version__}, cannot run it ({first})") from error
    kept = session.get_modelmeta().custom_metadata_map
    return _described(
        path,
        {name: json.loads(kept.get(f"capsroute.{name}", "null")) for name in ("format", "preprocessing", "classes")},
        lambda images: session.run(["lengths"], {"images": images})[0],
    )


def _open_program(path: Path) -> Classifier:
    import torch

    from capsroute.export.torch_program import load_program

    run, description = load_program(path)

    @torch.no_grad()
    def lengths(images: Images) -> Lengths:
        return run(torch.from_numpy(images))[1].numpy()

    return _described(path, description, lengths)


def _open_net(path: Path) -> Classifier:
    import torch

    from capsroute.export.description import class_names
    from capsroute.nonlinearity import lengths
    from capsroute.saving import load_all

    net, _, meta = load_all(path)

    @torch.no_grad()
    def net_lengths(images: Images) -> Lengths:
        return lengths(net(torch.from_numpy(images))).numpy()

    return Classifier(net.in_shape, class_names(meta, net.classes), net_lengths)


def _described(path: Path, description: dict[str, Any], lengths: Callable[[Images], Lengths]) -> Classifier:
    if description.get("format") != FORMAT:
        raise DataError(f"{path}: of a format that this version of capsroute does not know; use a newer one")
    channels, height, width = description["preprocessing"]["shape"]
    return Classifier((channels, height, width), description["classes"], lengths)
