"""The options of a training run: one dataclass, which is the command line, `config.json` and the argument of `fit`."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from capsroute.errors import InputError, require_number, require_whole
from capsroute.initialization import STARTS
from capsroute.models import PRESETS, CapsNet
from capsroute.routing import ROUTINGS, find_routing, routing_options
from capsroute.stems import STEMS

# Shifted by up to 2 pixels in the paper, the others not; `--shift` overrules.
SHIFTED = ("svhn", "cifar10")


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a run's result, and where it goes."""

    dataset: str = "fashion-mnist"
    """Dataset: mnist, fashion-mnist, svhn, cifar10, sample, a folder of images, or an .npz file."""
    data_dir: Path | None = None
    """Folder to look for the dataset in first."""
    offline: bool = False
    """Never download."""
    image_size: int | None = None
    """Folders of images: the side that they are resized to; their own, or 32, if not given."""
    limit: int | None = None
    """Train on this many images only, drawn by class in turn; all, if not given."""
    holdout: int = 0
    """Hold out this many training images and evaluate on them instead of the test split."""

    preset: Literal[tuple(PRESETS)] = "paper-2"  # type: ignore[valid-type]  # the table is the one list
    """Net."""
    capsules: tuple[int, ...] | None = None
    """Capsules of each layer, primary first; the preset's, if not given."""
    dims: tuple[int, ...] | None = None
    """Dimensions of each layer's capsules; 8, and 16 for the classes, if not given."""
    primary_stride: int | None = None
    """Stride of the primary convolution; whatever gives the number of primary capsules, if not given."""
    stem: Literal[tuple(STEMS)] = "paper"  # type: ignore[valid-type]
    """What comes before the primary capsules: the paper's convolution, or a small residual net."""
    residual: bool = False
    """Add its input to the result of each hidden capsule layer that is as large as the one before."""
    drop_capsules: float = 0.0
    """Leave out this share of the primary capsules in training."""
    init: Literal[tuple(STARTS)] = "normal"  # type: ignore[valid-type]
    """Start. normal: W ~ N(0, 0.01²), the paper's nets. length: scaled layer by layer until capsules of 128 training
    images have mean length 0.5, classes 0.2; deep stacks need it. length-closed: the same worked out without images."""
    reconstruct: bool = False
    """Train a decoder beside the net, 0.0005 times the squared error of the pictures."""

    routing: Literal[tuple(ROUTINGS)] = "adaptive-lambda"  # type: ignore[valid-type]
    """Routing of every capsule layer; `capsroute routings` tells them."""
    iterations: int | None = None
    """Iterations (dynamic, adaptive); the routing's own, if not given."""
    lam: str | None = None
    """λ (adaptive-lambda): a number, learned, or learned-per-capsule; the routing's own, if not given."""
    lam_start: float | None = None
    """Where a learned λ starts."""
    step: float | None = None
    """Step of each vote (adaptive); the routing's own, if not given."""
    detach: bool | None = None
    """Gradients only through the last iteration (dynamic); the routing's own, if not given."""

    epochs: int = 150
    """Epochs."""
    batch_size: int = 128
    """Images per step, over all processes together."""
    lr: float = 1e-3
    """Learning rate of Adam; the highest one of the schedule."""
    schedule: Literal["paper", "one-cycle"] = "paper"
    """paper: times 0.95 after every epoch. one-cycle: up over the first quarter, down to zero along a cosine."""
    warmup: int = 200
    """Steps over which the paper's schedule rises to the learning rate; 0 is the paper's letter."""
    rise: float = 0.25
    """Share of a one-cycle run over which the learning rate rises."""
    weight_decay: float = 0.0
    """Shrink the weights by this times the learning rate at each step."""
    ema: float = 0.0
    """Evaluate and save an average of the weights that keeps this share of itself at each step; 0 is off."""
    shift: int | None = None
    """Shift each training image by up to so many pixels, zero padded; 2 for svhn and cifar10, else 0, if not given."""
    shift_end: int | None = None
    """The shift of the last epoch, if it is to change evenly from the first epoch to the last."""
    flip: bool = False
    """Mirror every other training image, left to right, by lot."""
    clip: float = 0.0
    """Clip the norm of the gradient; 0 is off."""
    seed: int = 0
    """Seed of weights, order and shifts."""

    device: str = "auto"
    """cpu, cuda, mps, or auto."""
    devices: int = 1
    """Processes, each with a device of its own, that share every batch."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Precision of products; auto is bf16 where the hardware has it."""
    compile: bool = False
    """Compile the net."""
    cuda_graphs: bool | None = None
    """Record a step once and replay it; yes on one CUDA device unless in fp16 or compiled, if not given."""
    deterministic: bool | None = None
    """Only deterministic operations; yes on a CPU, no elsewhere, if not given."""

    out: Path | None = None
    """Run folder; runs/DATASET-PRESET-ROUTING-..., if not given."""
    resume: bool = False
    """Go on with the run in the folder."""
    checkpoint_every: str = "1e"
    """Checkpoint every so many epochs (1e) or minutes (10m)."""
    keep: Literal["all", "net", "result"] = "all"
    """What stays of a finished run beside its records: its checkpoints and its net, only the net, or neither."""
    tensorboard: bool = False
    """Write TensorBoard's files into the run folder as well (extra [log])."""
    quiet: bool = False
    """Print nothing but errors."""

    def __post_init__(self) -> None:
        for name in ("data_dir", "out"):  # a path may be given as text
            if getattr(self, name) is not None:
                object.__setattr__(self, name, Path(getattr(self, name)))
        for name in ("epochs", "batch_size", "devices"):
            require_whole(name, getattr(self, name))
        for name in ("warmup", "holdout", "seed"):
            require_whole(name, getattr(self, name), least=0)
        if self.limit is not None:
            require_whole("limit", self.limit)
        require_number("lr", self.lr, 1e-12, 1e3)
        require_number("clip", self.clip, 0, 1e12)
        require_number("rise", self.rise, 0, 1)
        require_number("weight_decay", self.weight_decay, 0, 1e3)
        require_number("ema", self.ema, 0, 0.99999)
        if self.shift_end is not None and require_whole("shift_end", self.shift_end, least=0) > self.shift_pixels():
            raise InputError(f"shift_end={self.shift_end} must be at most the shift, which is {self.shift_pixels()}")
        self.checkpoint_interval()
        self.routing_options()

    def checkpoint_interval(self) -> tuple[int | None, float | None]:
        """(epochs, None) or (None, seconds)."""
        number, unit = self.checkpoint_every[:-1], self.checkpoint_every[-1:]
        try:
            if unit == "e" and int(number) >= 1:
                return int(number), None
            if unit == "m" and 0 < float(number) < 1e6:
                return None, float(number) * 60
        except ValueError:
            pass
        raise InputError(f"checkpoint_every={self.checkpoint_every!r} must be epochs, like 1e, or minutes, like 10m")

    def routing_options(self) -> dict[str, Any]:
        """What was given of the routing's options; one that it does not have is refused."""
        given = {name: getattr(self, name) for name in ("iterations", "lam", "lam_start", "step", "detach")}
        given = {name: value for name, value in given.items() if value is not None}
        known = routing_options(find_routing(self.routing).name)
        for name in given:
            if name not in known:
                raise InputError(
                    f"--{name.replace('_', '-')} is not for routing {self.routing!r}, which has {', '.join(known)}"
                )
        if "lam" in given:
            given["lam"] = _number_or_name(given["lam"])
        return given

    def make_net(self, in_shape: tuple[int, int, int], classes: int) -> CapsNet:
        """The net for images of this shape and so many classes."""
        shape: dict[str, Any] = {"in_shape": in_shape}
        for name in ("dims", "primary_stride"):
            if getattr(self, name) is not None:
                shape[name] = getattr(self, name)
        capsules = self.capsules or PRESETS[self.preset]["capsules"]
        if self.capsules is not None and capsules[-1] != classes:
            raise InputError(f"capsules={capsules} must end in {classes}, the number of classes of {self.dataset}")
        shape["capsules"] = (*capsules[:-1], classes)
        if self.capsules is None and self.primary_stride is not None:
            shape["capsules"] = (None, *shape["capsules"][1:])
        for name in ("stem", "residual", "drop_capsules"):
            shape[name] = getattr(self, name)
        return CapsNet.from_preset(self.preset, routing=self.routing, **shape, **self.routing_options())

    def shift_pixels(self) -> int:
        """The shift that is asked for, or the dataset's in the paper."""
        return self.shift if self.shift is not None else 2 if self.dataset in SHIFTED else 0

    def shift_at(self, epoch: int) -> int:
        """The shift of this epoch, from 0."""
        first, last = self.shift_pixels(), self.shift_end
        if last is None or self.epochs == 1:
            return first
        return round(first + (last - first) * epoch / (self.epochs - 1))

    def folder(self) -> Path:
        """The run folder."""
        if self.out is not None:
            return self.out.expanduser()
        options = "".join(f"-{name}{value}" for name, value in self.routing_options().items())
        name = f"{Path(self.dataset).name}-{self.preset}-{self.routing}{options}-seed{self.seed}"
        return Path("runs") / name

    def changes(self) -> dict[str, Any]:
        """The options that decide the result and are not at their defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(TrainConfig)
            if field.name not in FREE_TO_CHANGE and getattr(self, field.name) != field.default
        }

    def identity(self) -> str:
        """Eight letters that are the same for configurations with the same result, and for no others."""
        return hashlib.sha256(json.dumps(self.changes(), sort_keys=True).encode()).hexdigest()[:8]

    def to_json(self) -> dict[str, Any]:
        """As `config.json` has it."""
        values = dataclasses.asdict(self)
        return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "TrainConfig":
        """From `config.json`."""
        known = {field.name for field in dataclasses.fields(cls)}
        strange = set(values) - known
        if strange:
            raise InputError(f"config.json has unknown options: {', '.join(sorted(strange))}")
        values = dict(values)
        for name in ("capsules", "dims"):
            if values.get(name) is not None:
                values[name] = tuple(values[name])
        for name in ("data_dir", "out"):
            if values.get(name) is not None:
                values[name] = Path(values[name])
        return cls(**values)


# What may differ between a run and its continuation: none of it changes the result.
FREE_TO_CHANGE = ("data_dir", "offline", "out", "resume", "checkpoint_every", "keep", "tensorboard", "quiet")


def refuse_changes(saved: TrainConfig, now: TrainConfig) -> None:
    """An `InputError` that names every option of `now` which would make another run of the saved one."""
    changed = [
        f"--{field.name.replace('_', '-')} was {getattr(saved, field.name)} and is {getattr(now, field.name)}"
        for field in dataclasses.fields(TrainConfig)
        if field.name not in FREE_TO_CHANGE and getattr(saved, field.name) != getattr(now, field.name)
    ]
    if changed:
        raise InputError(
            f"{now.folder()} holds another run: {'; '.join(changed)}; leave these out, or give another --out"
        )


def _number_or_name(lam: str) -> float | str:
    try:
        return float(lam)
    except ValueError:
        return lam
