"""Class capsules on top of any net: feature maps, tokens or plain features in, one capsule for each class out."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from capsroute.errors import InputError, nearest, require_sequence, require_tensor, require_whole
from capsroute.layers import CapsuleLayer
from capsroute.nonlinearity import squash
from capsroute.routing import routing_options

HIDDEN_DIM = 8
AXES = {1: ("features",), 2: ("tokens", "features"), 3: ("channels", "height", "width")}


class CapsuleHead(nn.Module):
    """From features of a fixed shape to class capsules [b, j, d]; their lengths are the scores (`capsroute.lengths`).

    `in_shape` is that of one sample: 512 or (512,) for [b, 512]; (64, 192) for 64 tokens of 192 features; (512, 7, 7)
    for feature maps. Lower capsules are `primary_dim` neighbouring channels (or features) at one position or token,
    ordered by position, then group, and squashed. `project` first maps the channels of each position to so many, by
    one matrix for all positions: to fewer, or to a number that divides.

    `hidden` counts the capsules of each layer in between, of `hidden_dim` dimensions. `routing` is one name, or one for
    each capsule layer; `options` go to every routing that knows them, as in `CapsNet`.
    """

    def __init__(
        self,
        in_shape: int | Sequence[int],
        classes: int,
        *,
        primary_dim: int = 8,
        class_dim: int = 16,
        hidden: Sequence[int] = (),
        hidden_dim: int = HIDDEN_DIM,
        project: int | None = None,
        routing: str | Sequence[str] = "adaptive-lambda",
        **options: Any,
    ) -> None:
        super().__init__()
        self.in_shape = _sample_shape(in_shape)
        self.primary_dim = require_whole("primary_dim", primary_dim)
        # Channels come first in feature maps and last otherwise, as everywhere in PyTorch.
        channels = self.in_shape[0] if len(self.in_shape) == 3 else self.in_shape[-1]
        positions = math.prod(self.in_shape) // channels
        self.project = None if project is None else nn.Linear(channels, require_whole("project", project))
        width = channels if project is None else project
        if width % primary_dim:
            raise InputError(_refusal(width, primary_dim, projected=project is not None))
        self.capsules = (
            positions * width // primary_dim,
            *(require_whole("hidden", count) for count in require_sequence("hidden", hidden, "(32,)")),
            require_whole("classes", classes),
        )
        inside = (require_whole("hidden_dim", hidden_dim),) * (len(self.capsules) - 2)
        self.dims = (primary_dim, *inside, require_whole("class_dim", class_dim))
        names = _routing_names(routing, len(self.capsules) - 1, options)
        self.layers = nn.ModuleList(
            CapsuleLayer(*counts, *dims, name, **{key: options[key] for key in options if key in routing_options(name)})
            for counts, dims, name in zip(pairwise(self.capsules), pairwise(self.dims), names, strict=True)
        )

    def forward(self, features: Float[Tensor, "b ..."]) -> Float[Tensor, "b j d"]:
        u = self.primary(features)
        for layer in self.layers:
            u = layer(u)
        return u

    def primary(self, features: Float[Tensor, "b ..."]) -> Float[Tensor, "b i k"]:
        """The lower capsules that are made of these features."""
        require_tensor(
            "features", features, ("b", *self.in_shape), "; build the head with the in_shape of your features"
        )
        if len(self.in_shape) == 3:
            features = features.permute(0, 2, 3, 1)
        if self.project is not None:
            features = self.project(features)
        return squash(features.flatten(1).unflatten(1, (self.capsules[0], self.primary_dim)))

    def extra_repr(self) -> str:
        axes = " x ".join(f"{size} {axis}" for size, axis in zip(self.in_shape, AXES[len(self.in_shape)], strict=True))
        return f"{axes} -> {self.capsules[0]} x {self.primary_dim}-D"


def _sample_shape(in_shape: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(in_shape, Sequence) and not isinstance(in_shape, str):
        sides = tuple(require_whole("in_shape", side) for side in in_shape)
        if len(sides) not in AXES:
            raise InputError(
                f"in_shape={sides} must be (features,), (tokens, features) or (channels, height, width), without the "
                "batch"
            )
        return sides
    return (require_whole("in_shape", in_shape),)


def _refusal(width: int, primary_dim: int, projected: bool) -> str:
    fitting = [dim for dim in range(2, min(width, 64) + 1) if width % dim == 0]
    near = sorted(fitting, key=lambda dim: (abs(dim - primary_dim), dim))[:4]
    dims = f"primary_dim={' or '.join(map(str, sorted(near)))}, or " if near else ""
    down, up = width // primary_dim * primary_dim, -(-width // primary_dim) * primary_dim
    widths = f"{down} or {up}" if down else str(up)
    what = f"project={width}" if projected else f"a width of {width}"
    return f"{what} does not divide into capsules of primary_dim={primary_dim}; use {dims}project={widths}"


def _routing_names(routing: str | Sequence[str], layers: int, options: dict[str, Any]) -> tuple[str, ...]:
    names = (routing,) * layers if isinstance(routing, str) else require_sequence("routing", routing, "('dynamic',)")
    if len(names) != layers:
        raise InputError(f"routing={names} names {len(names)} routings for {layers} capsule layers; give one for each")
    known = [option for name in dict.fromkeys(names) for option in routing_options(name)]
    for option in options:
        if option not in known:
            own = ["primary_dim", "class_dim", "hidden", "hidden_dim", "project", "routing"]
            raise InputError(
                f"neither the head nor its routing ({', '.join(dict.fromkeys(names))}) has {option!r}; "
                f"{nearest(option, [*known, *own])}"
            )
    return names
