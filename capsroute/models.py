"""Capsule nets of any depth, the paper's among them, and the decoder."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from capsroute.errors import InputError, nearest, require_whole
from capsroute.grid import PrimaryGrid
from capsroute.layers import CapsuleLayer, PrimaryCapsules
from capsroute.losses import Targets, one_hot
from capsroute.routing import RoutingStep, find_routing, routing_options
from capsroute.squash import lengths

HIDDEN_DIM = 8
CLASS_DIM = 16
NetObserver = Callable[[int, RoutingStep], None]  # called with the capsule layer's number, from 0, and the step

PRESETS: MappingProxyType[str, dict[str, Any]] = MappingProxyType(
    {
        "paper-2": {"capsules": (1152, 10)},
        "paper-3": {"capsules": (1152, 256, 10)},
        "paper-4": {"capsules": (1152, 256, 32, 10)},
        "small": {"capsules": (144, 10), "stem_channels": 64, "primary_groups": 4},
    }
)


class CapsNet(nn.Module):
    """Convolution, primary capsules, and one `CapsuleLayer` for each further entry of `capsules`.

    `capsules` counts the capsules of each layer, primary first, classes last; `None` in first place takes what the
    image gives. `dims` are their dimensions (8, and 16 for the classes, if not given). `routing` is one name, or one
    for each capsule layer; `options` go to every routing that knows them.
    `primary_stride`: if not given, the first of 2, 3, 1, 4 that gives `capsules[0]`.
    """

    def __init__(
        self,
        in_shape: Sequence[int] = (1, 28, 28),
        capsules: Sequence[int | None] = (1152, 10),
        dims: Sequence[int] | None = None,
        routing: str | Sequence[str] = "adaptive-lambda",
        *,
        stem_channels: int = 256,
        stem_kernel: int = 9,
        primary_groups: int = 32,
        primary_kernel: int = 9,
        primary_stride: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.in_shape = _image_shape(in_shape)
        if len(capsules) < 2:
            raise InputError(f"capsules={tuple(capsules)} must name at least the primary and the class capsules")
        dims = (HIDDEN_DIM,) * (len(capsules) - 1) + (CLASS_DIM,) if dims is None else tuple(dims)
        if len(dims) != len(capsules):
            raise InputError(
                f"dims={dims} has {len(dims)} entries and capsules={tuple(capsules)} has {len(capsules)}; "
                "give one dimension for each capsule layer, the primary one included"
            )
        grid = PrimaryGrid(self.in_shape, stem_kernel, primary_kernel, require_whole("primary_groups", primary_groups))
        primary_stride, primary_count = grid.choose(capsules, primary_stride)
        self.capsules = (primary_count, *(require_whole("capsules", count) for count in capsules[1:]))
        self.dims = tuple(require_whole("dims", dim) for dim in dims)
        names = _routing_names(routing, len(self.capsules) - 1, options)
        # All that it takes to make this net again, for checkpoints and exports.
        self.config: dict[str, Any] = {
            "in_shape": self.in_shape,
            "capsules": self.capsules,
            "dims": self.dims,
            "routing": names,
            "stem_channels": stem_channels,
            "stem_kernel": stem_kernel,
            "primary_groups": primary_groups,
            "primary_kernel": primary_kernel,
            "primary_stride": primary_stride,
            **options,
        }

        self.stem = nn.Sequential(
            nn.Conv2d(self.in_shape[0], require_whole("stem_channels", stem_channels), stem_kernel), nn.ReLU()
        )
        self.primary = PrimaryCapsules(stem_channels, primary_groups, self.dims[0], primary_kernel, primary_stride)
        self.layers = nn.ModuleList(
            CapsuleLayer(
                self.capsules[n],
                self.capsules[n + 1],
                self.dims[n],
                self.dims[n + 1],
                name,
                **{key: value for key, value in options.items() if key in routing_options(name)},
            )
            for n, name in enumerate(names)
        )

    @classmethod
    def from_preset(cls, name: str, **options: Any) -> "CapsNet":
        """The net of that name ("paper-2", "paper-3", "paper-4", "small"); any argument of the class may be changed.

        With a `primary_stride` of one's own the number of primary capsules follows from the image.
        """
        if name not in PRESETS:
            raise InputError(f"unknown preset {name!r}; {nearest(str(name), PRESETS)}")
        preset = dict(PRESETS[name])
        if options.get("primary_stride") is not None and "capsules" not in options:
            preset["capsules"] = (None, *preset["capsules"][1:])
        return cls(**{**preset, **options})

    def forward(self, images: Float[Tensor, "b c h w"], observer: NetObserver | None = None) -> Float[Tensor, "b j d"]:
        """Class capsules. `observer(layer, step)` is called after each iteration of each capsule layer."""
        if images.ndim != 4 or tuple(images.shape[1:]) != self.in_shape:
            expected = ", ".join(map(str, self.in_shape))
            raise InputError(
                f"this net expects images of shape [b, {expected}], got {list(images.shape)}; "
                "resize them, or build the net with in_shape=(channels, height, width) of yours"
            )
        if not images.is_floating_point():
            raise InputError(f"images must be floats from 0 to 1, got {images.dtype}; use images.float() / 255")
        u = self.primary(self.stem(images))
        for number, layer in enumerate(self.layers):
            u = layer(u, None if observer is None else partial(observer, number))
        return u

    @property
    def classes(self) -> int:
        """The number of class capsules."""
        return self.capsules[-1]

    def __repr__(self) -> str:
        return describe(self)


class Decoder(nn.Module):
    """Images from class capsules, through fully connected layers of 512 and 1024 (Sabour et al.).

    All capsules but one are masked: the true class's where `targets` are given, else the longest.
    """

    def __init__(
        self, classes: int, dim: int, out_shape: Sequence[int] = (1, 28, 28), hidden: Sequence[int] = (512, 1024)
    ) -> None:
        super().__init__()
        self.classes = require_whole("classes", classes)
        self.dim = require_whole("dim", dim)
        self.out_shape = _image_shape(out_shape)
        widths = [classes * dim, *(require_whole("hidden", width) for width in hidden)]
        steps: list[nn.Module] = []
        for before, after in pairwise(widths):
            steps += [nn.Linear(before, after), nn.ReLU()]
        self.net = nn.Sequential(*steps, nn.Linear(widths[-1], math.prod(self.out_shape)), nn.Sigmoid())

    def forward(
        self,
        class_capsules: Float[Tensor, "b j d"],
        targets: Targets | None = None,
    ) -> Float[Tensor, "b c h w"]:
        if class_capsules.ndim != 3 or tuple(class_capsules.shape[1:]) != (self.classes, self.dim):
            raise InputError(
                f"this decoder expects class capsules of shape [b, {self.classes}, {self.dim}], "
                f"got {list(class_capsules.shape)}"
            )
        if targets is None:
            targets = lengths(class_capsules).argmax(dim=1)
        mask = one_hot(targets, len(class_capsules), self.classes).to(class_capsules)
        pixels: Tensor = self.net((class_capsules * mask[:, :, None]).flatten(1))
        return pixels.unflatten(1, self.out_shape)


def describe(net: CapsNet) -> str:
    """The net as a table: shape, parameters and routing of each layer."""
    channels, height, width = net.in_shape
    stem, primary = net.stem[0], net.primary.conv
    assert isinstance(stem, nn.Conv2d)
    stem_size = (height - stem.kernel_size[0] + 1, width - stem.kernel_size[1] + 1)
    rows = [
        (
            "stem",
            f"convolution {stem.kernel_size[0]}x{stem.kernel_size[1]}, ReLU",
            f"{stem.out_channels} x {stem_size[0]} x {stem_size[1]}",
            parameter_count(net.stem),
        ),
        (
            "primary",
            f"convolution {primary.kernel_size[0]}x{primary.kernel_size[1]}, stride {primary.stride[0]}",
            f"{net.capsules[0]} x {net.dims[0]}-D",
            parameter_count(net.primary),
        ),
    ]
    for number, layer in enumerate(net.layers):
        assert isinstance(layer, CapsuleLayer)
        rows.append(
            (
                f"layers.{number}",
                f"{layer.routing_name} ({layer.routing.extra_repr()})",
                f"{layer.out_caps} x {layer.out_dim}-D",
                parameter_count(layer),
            )
        )
    names, how, shapes = (max(len(str(row[column])) for row in rows) for column in range(3))
    lines = [f"CapsNet({channels} x {height} x {width} -> {net.classes} classes, {parameter_count(net):,} parameters)"]
    lines += [f"  {name:<{names}}  {what:<{how}}  {shape:<{shapes}}  {count:>12,}" for name, what, shape, count in rows]
    return "\n".join(lines)


def parameter_count(module: nn.Module) -> int:
    """How many numbers a module trains."""
    return sum(parameter.numel() for parameter in module.parameters())


def _image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    if len(shape) != 3:
        raise InputError(f"image shape {tuple(shape)} must be (channels, height, width)")
    channels, height, width = (require_whole("image shape", side) for side in shape)
    return channels, height, width


def _routing_names(routing: str | Sequence[str], layers: int, options: dict[str, Any]) -> tuple[str, ...]:
    names = (routing,) * layers if isinstance(routing, str) else tuple(routing)
    if len(names) != layers:
        raise InputError(f"routing={names} names {len(names)} routings for {layers} capsule layers; give one for each")
    known = {option for name in names for option in routing_options(find_routing(name).name)}
    for option in options:
        if option not in known:
            network = ("stem_channels", "stem_kernel", "primary_groups", "primary_kernel", "primary_stride")
            raise InputError(f"neither the net nor {set(names)} has {option!r}; {nearest(option, [*known, *network])}")
    return names
