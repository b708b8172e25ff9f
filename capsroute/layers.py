"""The two layers of a capsule net: from feature maps to capsules, and from capsules to capsules."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capsroute.convolution import Convolution
from capsroute.errors import InputError, require_tensor, require_whole
from capsroute.nonlinearity import squash
from capsroute.routing import Observer, create_routing
from capsroute.votes import Votes

WEIGHT_STD = 0.01  # W ~ N(0, 0.01²), whatever the routing, so that λ alone decides how strong a layer starts


class PrimaryCapsules(nn.Module):
    """A convolution whose channels, `dim` at a time, are the capsules at each position.

    Capsules come out ordered by row, column, group: capsule (y·w' + x)·groups + g is channels g·dim to (g + 1)·dim at
    (y, x). In a channels-last tensor that is the order in memory.
    """

    def __init__(self, in_channels: int, groups: int, dim: int, kernel_size: int, stride: int) -> None:
        super().__init__()
        self.groups = require_whole("groups", groups)
        self.dim = require_whole("dim", dim)
        require_whole("in_channels", in_channels)
        require_whole("kernel_size", kernel_size)
        require_whole("stride", stride)
        self.conv = Convolution(in_channels, groups * dim, kernel_size, stride)

    def forward(self, features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b i k"]:
        require_tensor("features", features, ("b", self.conv.in_channels, "h", "w"))
        if min(features.shape[2:]) < self.conv.kernel_size[0]:
            raise InputError(
                f"features of {features.shape[2]}x{features.shape[3]} are smaller than the kernel, "
                f"{self.conv.kernel_size[0]}x{self.conv.kernel_size[0]}; use larger images or a smaller kernel_size"
            )
        return self.capsules_of(self.conv(features))

    def capsules_of(self, maps: Float[Tensor, "b c2 h2 w2"]) -> Float[Tensor, "b i k"]:
        """The convolution's maps, `dim` channels at a time, squashed."""
        rows = maps.permute(0, 2, 3, 1)  # [b, h', w', groups·dim]
        return squash(rows.flatten(1, 2).unflatten(2, (self.groups, self.dim)).flatten(1, 2))

    def extra_repr(self) -> str:
        return f"groups={self.groups}, dim={self.dim}"


class CapsuleLayer(nn.Module):
    """Every lower capsule votes for every upper one through its own matrix; a routing makes capsules of the votes.

    `weight` is W[i,k,j,d]. Options beyond these go to the routing (`iterations=`, `step=`, `lam=`, ...).
    """

    def __init__(
        self,
        in_caps: int,
        out_caps: int,
        in_dim: int,
        out_dim: int,
        routing: str = "adaptive-lambda",
        **options: Any,
    ) -> None:
        super().__init__()
        self.in_caps = require_whole("in_caps", in_caps)
        self.out_caps = require_whole("out_caps", out_caps)
        self.in_dim = require_whole("in_dim", in_dim)
        self.out_dim = require_whole("out_dim", out_dim)
        self.routing_name = routing
        self.routing = create_routing(routing, out_caps=out_caps, **options)
        self.weight = nn.Parameter(torch.empty(in_caps, in_dim, out_caps, out_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """W ~ N(0, 0.01²)."""
        nn.init.normal_(self.weight, std=WEIGHT_STD)

    def forward(self, u: Float[Tensor, "b i k"], observer: Observer | None = None) -> Float[Tensor, "b j d"]:
        require_tensor("u", u, ("b", self.in_caps, self.in_dim), " (batch, in_caps, in_dim)")
        v: Tensor = self.routing(Votes(u, self.weight), observer)
        return v.to(torch.promote_types(u.dtype, self.weight.dtype))

    def extra_repr(self) -> str:
        return f"{self.in_caps} x {self.in_dim}-D -> {self.out_caps} x {self.out_dim}-D"
