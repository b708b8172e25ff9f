"""Capsule nets of any depth, the paper's among them, and the decoder."""

import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capsroute.errors import (
    InputError,
    nearest,
    require_flag,
    require_number,
    require_sequence,
    require_tensor,
    require_whole,
)
from capsroute.grid import PrimaryGrid
from capsroute.layers import CapsuleLayer, PrimaryCapsules
from capsroute.losses import Targets, one_hot
from capsroute.nonlinearity import lengths
from capsroute.routing import ROUTINGS, RoutingStep, routing_options
from capsroute.stems import STEMS, find_stem

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
    """A stem, primary capsules, and one `CapsuleLayer` for each further entry of `capsules`.

    `capsules` counts the capsules of each layer, primary first, classes last; `None` in first place takes what the
    image gives. `dims` are their dimensions (8, and 16 for the classes, if not given). `routing` is one name, or one
    for each capsule layer; `options` go to every routing that knows them.
    `primary_stride`: if not given, the first of 2, 3, 1, 4, 5, ... that gives `capsules[0]`. Kernels: if not given, the
    stem's own (9 and 9 for "paper", 3 and 3 for "resnet").
    `residual` adds its input to the result of each layer that gives as many capsules of as many dimensions as it takes.
    `drop_capsules` leaves out that share of the primary capsules in training, the others scaled up for them.
    """

    def __init__(
        self,
        in_shape: Sequence[int] = (1, 28, 28),
        capsules: Sequence[int | None] = (1152, 10),
        dims: Sequence[int] | None = None,
        routing: str | Sequence[str] = "adaptive-lambda",
        *,
        stem: str = "paper",
        stem_channels: int = 256,
        stem_kernel: int | None = None,
        primary_groups: int = 32,
        primary_kernel: int | None = None,
        primary_stride: int | None = None,
        residual: bool = False,
        drop_capsules: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__()
        self.in_shape = _image_shape(in_shape)
        capsules = require_sequence("capsules", capsules, "(1152, 10)")
        if len(capsules) < 2:
            raise InputError(f"capsules={capsules} must name at least the primary and the class capsules")
        usual = (HIDDEN_DIM,) * (len(capsules) - 1) + (CLASS_DIM,)
        dims = usual if dims is None else require_sequence("dims", dims, str(usual))
        if len(dims) != len(capsules):
            raise InputError(
                f"dims={dims} has {len(dims)} entries and capsules={capsules} has {len(capsules)}; "
                "give one dimension for each capsule layer, the primary one included"
            )
        kind = find_stem(stem)
        stem_kernel = kind.kernel if stem_kernel is None else stem_kernel
        primary_kernel = kind.primary_kernel if primary_kernel is None else primary_kernel
        groups = require_whole("primary_groups", primary_groups)
        grid = PrimaryGrid(self.in_shape, kind, stem_kernel, primary_kernel, groups)
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
            "stem": stem,
            "stem_channels": require_whole("stem_channels", stem_channels),
            "stem_kernel": stem_kernel,
            "primary_groups": primary_groups,
            "primary_kernel": primary_kernel,
            "primary_stride": primary_stride,
            "residual": require_flag("residual", residual),
            "drop_capsules": require_number("drop_capsules", drop_capsules, 0, 0.99),
            **options,
        }

        self.stem = kind.make(self.in_shape[0], stem_channels, stem_kernel)
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
        if not isinstance(name, str) or name not in PRESETS:
            raise InputError(f"unknown preset {name!r}; {nearest(str(name), PRESETS)}")
        preset = dict(PRESETS[name])
        if options.get("primary_stride") is not None and "capsules" not in options:
            preset["capsules"] = (None, *preset["capsules"][1:])
        return cls(**{**preset, **options})

    @classmethod
    def from_pretrained(cls, place: str | Path) -> "CapsNet":
        """The net of an exported folder, or of a model hub's repository ("owner/name"; extra [hub]); for evaluation."""
        from capsroute.export.hub import local_folder
        from capsroute.saving import load

        return load(local_folder(place))

    def forward(self, images: Float[Tensor, "b c h w"], observer: NetObserver | None = None) -> Float[Tensor, "b j d"]:
        """Class capsules. `observer(layer, step)` is called after each iteration of each capsule layer."""
        require_tensor(
            "images",
            images,
            ("b", *self.in_shape),
            "; resize them, or build the net with in_shape=(channels, height, width) of yours",
        )
        dtype = next(self.stem.parameters()).dtype
        if images.dtype != dtype and not torch.is_autocast_enabled(images.device.type):
            raise InputError(f"images are {images.dtype} and the net is {dtype}; use images.to({dtype})")
        u = self._thinned(self.primary(self.stem(images)))
        for number, layer in enumerate(self.layers):
            v = layer(u, None if observer is None else partial(observer, number))
            u = u + v if self.is_residual(number) else v
        return u

    def is_residual(self, layer: int) -> bool:
        """Whether this capsule layer's input is added to its result; never the class capsules', whose length counts."""
        alike = self.capsules[layer] == self.capsules[layer + 1] and self.dims[layer] == self.dims[layer + 1]
        return self.config["residual"] and alike and layer + 1 < len(self.layers)

    def _thinned(self, u: Float[Tensor, "b i k"]) -> Float[Tensor, "b i k"]:
        share = self.config["drop_capsules"]
        if not share or not self.training:
            return u
        kept = torch.rand(u.shape[:2], device=u.device) >= share
        return u * (kept / (1 - share)).to(u.dtype)[:, :, None]

    def channels_last_(self) -> "CapsNet":
        """Lay the convolutions' weights out channels-last; not the capsules', whose four axes are not an image's."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                module.weight.data = module.weight.data.contiguous(memory_format=torch.channels_last)
        return self

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
        self.config = {"classes": classes, "dim": dim, "out_shape": self.out_shape, "hidden": tuple(hidden)}
        widths = [
            classes * dim,
            *(require_whole("hidden", n) for n in require_sequence("hidden", hidden, "(512, 1024)")),
        ]
        steps: list[nn.Module] = []
        for before, after in pairwise(widths):
            steps += [nn.Linear(before, after), nn.ReLU()]
        self.net = nn.Sequential(*steps, nn.Linear(widths[-1], math.prod(self.out_shape)), nn.Sigmoid())

    def forward(
        self,
        class_capsules: Float[Tensor, "b j d"],
        targets: Targets | None = None,
    ) -> Float[Tensor, "b c h w"]:
        require_tensor("class_capsules", class_capsules, ("b", self.classes, self.dim))
        if targets is None:
            targets = lengths(class_capsules).argmax(dim=1)
        mask = one_hot(targets, len(class_capsules), self.classes).to(class_capsules)
        pixels: Tensor = self.net((class_capsules * mask[:, :, None]).flatten(1))
        return pixels.unflatten(1, self.out_shape)


def describe(net: CapsNet) -> str:
    """The net as a table: what each part is, the shape that it gives, and how many numbers it trains."""
    config = net.config
    channels, height, width = net.in_shape
    kernel, primary = config["stem_kernel"], config["primary_kernel"]
    kind = STEMS[config["stem"]]
    stem_shape = f"{config['stem_channels']} x {kind.side(height, kernel)} x {kind.side(width, kernel)}"
    primary_text = (
        f"convolution {primary}x{primary}, stride {config['primary_stride']}, {config['primary_groups']} groups"
    )
    rows = [
        ("stem", kind.text.format(kernel=kernel), stem_shape, net.stem),
        ("primary", primary_text, f"{net.capsules[0]} x {net.dims[0]}-D", net.primary),
    ]
    for number, layer in enumerate(net.layers):
        options = layer.routing.extra_repr() if isinstance(layer, CapsuleLayer) else type(layer).__name__
        options += ", residual" if net.is_residual(number) else ""
        shape = f"{net.capsules[number + 1]} x {net.dims[number + 1]}-D"
        rows.append((f"layers.{number}", f"{config['routing'][number]} ({options})", shape, layer))
    known = ("stem", "primary", "layers")
    rows += [(name, type(part).__name__, "", part) for name, part in net.named_children() if name not in known]
    widths = [max(len(str(row[column])) for row in rows) for column in range(3)]
    lines = [f"CapsNet({channels} x {height} x {width} -> {net.classes} classes, {parameter_count(net):,} parameters)"]
    for *texts, part in rows:
        cells = [f"{text:<{size}}" for text, size in zip(texts, widths, strict=True)]
        lines.append("  ".join(["", *cells, f"{parameter_count(part):>12,}"]))
    return "\n".join(lines)


def parameter_count(module: nn.Module) -> int:
    """How many numbers a module trains."""
    return sum(parameter.numel() for parameter in module.parameters())


def _image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    sides = require_sequence("in_shape", shape, "(1, 28, 28)")
    if len(sides) != 3:
        raise InputError(f"in_shape={sides} must be (channels, height, width)")
    channels, height, width = (require_whole("in_shape", side) for side in sides)
    return channels, height, width


def _routing_names(routing: str | Sequence[str], layers: int, options: dict[str, Any]) -> tuple[str, ...]:
    names = (routing,) * layers if isinstance(routing, str) else require_sequence("routing", routing, "('dynamic',)")
    if len(names) != layers:
        raise InputError(f"routing={names} names {len(names)} routings for {layers} capsule layers; give one for each")
    known = {option for name in names for option in routing_options(name)}
    for option in options:
        if option not in known:
            own = [name for name in inspect.signature(CapsNet).parameters if name != "options"]
            having = [name for name in ROUTINGS if option in routing_options(name)]
            hint = f"only {', '.join(having)} has it" if having else nearest(option, [*known, *own])
            raise InputError(f"neither the net nor its routing ({', '.join(sorted({*names}))}) has {option!r}; {hint}")
    return names
