"""How many multiply-adds a net and a layer need, at the least; and the rate at which the machine does them."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from capsroute.layers import CapsuleLayer
from capsroute.models import CapsNet
from capsroute.stems import STEMS

LARGE = 4096  # side of the matrices whose product is the limit


def layer_products(layer: CapsuleLayer, batch: int) -> int:
    """Multiply-adds of Σ_i û: what the cheapest routing needs, once."""
    return batch * layer.in_caps * layer.in_dim * layer.out_caps * layer.out_dim


def convolution_products(net: CapsNet, batch: int) -> tuple[int, int]:
    """Multiply-adds of Conv1 and of the primary convolution, forward."""
    config, conv1 = net.config, net.stem[0]
    assert isinstance(conv1, nn.Conv2d)
    kernel, primary, stride = config["stem_kernel"], config["primary_kernel"], config["primary_stride"]
    sides = [STEMS[config["stem"]].side(side, kernel) for side in net.in_shape[1:]]
    first = batch * sides[0] * sides[1] * conv1.weight.numel()
    positions = [(side - primary) // stride + 1 for side in sides]
    return first, batch * positions[0] * positions[1] * net.primary.conv.weight.numel()


def forward_products(net: CapsNet, batch: int) -> int:
    """Multiply-adds of a forward pass with one product a capsule layer, for the paper's stem."""
    layers = [layer for layer in net.layers if isinstance(layer, CapsuleLayer)]
    return sum(convolution_products(net, batch)) + sum(layer_products(layer, batch) for layer in layers)


def training_products(net: CapsNet, batch: int) -> int:
    """Of a training step: each product once forward and twice backward, but for Conv1, whose images need none."""
    first, _ = convolution_products(net, batch)
    return 3 * forward_products(net, batch) - first


def large_product(device: str, dtype: torch.dtype) -> Callable[[], object]:
    """A large matrix product: the machine at its best."""
    left, right = (torch.randn(LARGE, LARGE, device=device).to(dtype) for _ in range(2))
    return lambda: left @ right


def milliseconds_at_limit(products: int, large_ms: float) -> float:
    """How long so many multiply-adds would take at the rate of the large product."""
    return products / LARGE**3 * large_ms


def autocast(device: str, dtype: torch.dtype) -> AbstractContextManager[object]:
    """Products in this precision."""
    return nullcontext() if dtype == torch.float32 else torch.autocast(device, dtype)
