"""Nets of one routing, exported and run beside eager ones: `python exported_nets.py ROUTING`, exit 0 if they agree.

In a process without run-time checks of shapes, which an exporter would trace.
"""

import io
import itertools
import sys

import numpy as np
import onnxruntime
import torch

from capsroute import ROUTINGS, CapsNet, init_lengths_, lengths, load_dataset
from capsroute.export.description import describe
from capsroute.export.onnx_model import onnx_bytes
from capsroute.export.torch_program import program_bytes

# The presets' layouts with fewer capsules, two to four layers.
DEPTHS = {"paper-2": (None, 10), "paper-3": (None, 24, 10), "paper-4": (None, 24, 12, 10)}
RESIDUAL = {"capsules": (None, 12, 12, 10), "stem": "resnet", "residual": True}


def cases(name):
    """The options of the routing over all depths; and a residual net on a residual stem."""
    entry = ROUTINGS[name]
    # An iteration with coefficients is a hundred nodes for each layer: a few of them are tried, not all.
    options = [{}, *(entry.variants[:2] if entry.has_coefficients else entry.variants)]
    for own, (depth, capsules) in zip(options, itertools.cycle(DEPTHS.items()), strict=False):
        yield f"{depth} {own}", {"capsules": capsules, **own}
    yield f"residual {options[1]}", {**RESIDUAL, **options[1]}


@torch.no_grad()
def check(told, eager, exported):
    for batch in (1, 7):
        images = load_dataset("sample", split="test").images[8 : 8 + batch].float() / 255
        capsules = eager(images)
        assert lengths(capsules).max() > 0.05, f"{told}: nothing to compare"
        ours = (capsules, lengths(capsules))
        for one, other in zip(ours, exported(images), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-4, err_msg=f"{told}, {batch} images")


def main(name):
    images = load_dataset("sample").images[:32].float() / 255
    for told, options in cases(name):
        torch.manual_seed(0)
        net = CapsNet(routing=name, stem_channels=8, primary_groups=2, **options)
        init_lengths_(net, images)
        net.eval()
        description = describe(net, {})
        content, difference = onnx_bytes(net, description, images[:8])
        assert difference < 1e-4
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        check(f"ONNX, {told}", net, lambda batch, session=session: session.run(None, {"images": batch.numpy()}))
        content, difference = program_bytes(net, description, images[:8])
        assert difference < 1e-4
        check(f"torch, {told}", net, torch.export.load(io.BytesIO(content)).module())
        print(told)


if __name__ == "__main__":
    main(sys.argv[1])
