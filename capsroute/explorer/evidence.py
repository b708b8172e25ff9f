"""Where a class capsule's length comes from, lower capsule by lower capsule, exactly.

A sum of votes is linear: with v̂_j the direction of Σ_i c_ij û_ij (c = 1 where a routing has no coefficients),

    Σ_i c_ij û_ij · v̂_j  =  ‖Σ_i c_ij û_ij‖.

What a routing then makes of the sum is a factor: λ in λ routing, so that λ Σ_i û_ij · v̂_j = ‖s_j‖ of the squash. In a
net of two capsule layers the lower capsules have places in the image.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.explorer.rerouting import LayerPass
from capsroute.models import CapsNet
from capsroute.stems import STEMS

PARALLEL = 1e-4  # 1 - cosine, beyond which s is no multiple of the sum of votes, in float32


@dataclass(frozen=True)
class Evidence:
    """Of one image and one class capsule."""

    contributions: Float[Tensor, " i"]  # they sum to the norm of the votes' sum
    factor: float  # times which that norm is ‖s‖
    norm: float  # ‖s‖
    length: float  # of the capsule
    exact: bool  # whether s is that multiple


@dataclass(frozen=True)
class Cell:
    """A place of the primary capsules in the image, in pixels: its centre, and the distance to the next."""

    x: float
    y: float
    size: float


@torch.no_grad()
def evidence_of(layer: LayerPass, label: int) -> Evidence:
    """The contributions to this capsule's length, by the last iteration of the layer's routing."""
    last = layer.steps[-1]
    c = last.coefficients
    total = layer.votes.sum() if c is None else layer.votes.mix(c)  # [1, j, d]
    whole = total[0, label].norm().clamp(min=1e-30)
    towards = layer.votes.agreement(total / total.norm(dim=-1, keepdim=True).clamp(min=1e-30))  # [1, i, j]
    contributions = towards[0, :, label] if c is None else c[0, :, label] * towards[0, :, label]
    s = last.s[0, label]
    cosine = (s @ total[0, label]) / (s.norm() * whole).clamp(min=1e-30)
    return Evidence(
        contributions=contributions,
        factor=(s.norm() / whole).item(),
        norm=s.norm().item(),
        length=last.v[0, label].norm().item(),
        exact=bool(1 - cosine <= PARALLEL),
    )


def places_of(net: CapsNet) -> list[Cell] | None:
    """Where each group of lower capsules of the class layer is in the image, row by row; None if they are nowhere."""
    if len(net.layers) > 1:
        return None
    config, stem = net.config, STEMS[net.config["stem"]]
    size = config["primary_stride"] * stem.stride

    def centres(side: int) -> list[float]:
        features = stem.side(side, config["stem_kernel"])
        first = (side - (features - 1) * stem.stride) / 2  # of the first feature; the stem is symmetric
        count = (features - config["primary_kernel"]) // config["primary_stride"] + 1
        return [first + (config["primary_kernel"] - 1) / 2 * stem.stride + number * size for number in range(count)]

    _, height, width = net.in_shape
    return [Cell(x, y, size) for y in centres(height) for x in centres(width)]


def by_place(net: CapsNet, contributions: Float[Tensor, " i"]) -> Float[Tensor, " places"]:
    """The contributions of all groups at each place together, in the order of `places_of`."""
    return contributions.reshape(-1, net.config["primary_groups"]).sum(1)
