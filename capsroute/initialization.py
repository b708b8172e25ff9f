"""Starts under which a stack of any height trains.

Squash is quadratic for short vectors. Under W ~ N(0, 0.01²) each layer's lengths are about the square of those below:
0.1, 0.01, 1e-5, 4e-11, and then exactly zero, gradients too. No routing trains that. Both starts here scale each
layer's weights once, so that its capsules have a stated mean length: `init_lengths_` measures it on a batch,
`init_closed_` works it out.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capsroute.errors import InputError, require_number
from capsroute.layers import CapsuleLayer
from capsroute.models import CapsNet
from capsroute.nonlinearity import lengths
from capsroute.routing.base import squashed_length

HIDDEN, CLASSES = 0.5, 0.2  # mean lengths to start with
IMAGES = 128  # as many as the measured start looks at, when a run chooses them
TOLERANCE = 1e-3
FACTORS = (1e-12, 1e12)  # weights are never scaled beyond these
# Root mean square of a pixel in [0, 1] and of its like over the datasets: 0.33 (MNIST) to 0.54 (CIFAR-10).
PIXEL = 0.4


@torch.no_grad()
def init_lengths_(
    net: CapsNet, images: Float[Tensor, "b c h w"], hidden: float = HIDDEN, classes: float = CLASSES
) -> CapsNet:
    """Scale the weights of each layer so that the mean length of its capsules on these images is `hidden`.

    The primary capsules' convolution likewise, and the class capsules to `classes`. One pass from the images to the
    classes, for every routing; the same images give the same weights.
    """
    hidden, classes = _lengths_wanted(hidden, classes)
    if not len(images):
        raise InputError("init_lengths_ needs at least one image to measure lengths on")
    was_training = net.training
    net.eval()
    if any(isinstance(module, nn.BatchNorm2d) for module in net.stem.modules()):
        _settle_statistics(net.stem, images)
    features = net.stem(images)
    convolution = net.primary.conv
    parts = [part for part in (convolution.weight, convolution.bias) if part is not None]
    _scale_to(parts, lambda: lengths(net.primary(features)).mean().item(), hidden, "the primary capsules")
    u = net.primary(features)
    for number, layer in enumerate(net.layers):
        wanted = classes if number + 1 == len(net.layers) else hidden
        v = _scale_layer(layer, u, wanted, f"layers.{number}")
        u = u + v if net.is_residual(number) else v
    return net.train(was_training)


@torch.no_grad()
def init_closed_(
    net: CapsNet, hidden: float = HIDDEN, classes: float = CLASSES, pixel: float = PIXEL, seed: int | None = None
) -> CapsNet:
    """The same without data: W ~ N(0, σ²) with the σ that gives these lengths if inputs point everywhere alike.

    A sum over I capsules of root-mean-square length ℓ then has D normal entries of variance I·ℓ²·σ², whatever K; each
    routing says which length it makes of it. Of the images only the root mean square of a pixel is assumed (`pixel`).
    """
    hidden, classes = _lengths_wanted(hidden, classes)
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    # PyTorch draws weight and bias of a convolution with variance 1/(3·fan-in), so features have mean square
    # (pixel² + 1/fan-in)/3, of which ReLU passes half. Normalised features have mean square 1 before the ReLU.
    first = net.stem[0]
    assert isinstance(first, nn.Conv2d)
    feature = 0.5 * (pixel**2 + 1 / first.weight[0].numel()) / 3 if first.bias is not None else 0.5
    convolution = net.primary.conv
    parts = [part for part in (convolution.weight, convolution.bias) if part is not None]
    variance = feature * convolution.weight[0].numel() * convolution.weight.var().item()
    variance += 0.0 if convolution.bias is None else convolution.bias.var().item()
    std, length = _std_for(squashed_length, net.dims[0], hidden)
    for part in parts:
        part.mul_(std / math.sqrt(variance))
    for number, layer in enumerate(net.layers):
        assert isinstance(layer, CapsuleLayer)
        wanted = classes if number + 1 == len(net.layers) else hidden
        of_sum = partial(layer.routing.expected_length, lower=layer.in_caps, upper=layer.out_caps)
        std, after = _std_for(of_sum, layer.out_dim, wanted)
        fresh = torch.empty(layer.weight.shape).normal_(generator=generator)
        layer.weight.copy_(fresh * (std / (length * math.sqrt(layer.in_caps))))
        length = math.hypot(length, after) if net.is_residual(number) else after
    return net


def _std_for(length_of: Callable[[float], float], dim: int, wanted: float) -> tuple[float, float]:
    """The deviation of a normal vector's entries that makes the mean length `wanted`, and those lengths' RMS."""
    normal = torch.randn(4096, dim, generator=torch.Generator().manual_seed(0))
    norms = normal.norm(dim=1).sort().values[16::32].tolist()  # 128 quantiles of their distribution

    def made(log_std: float) -> list[float]:
        return [length_of(norm * math.exp(log_std)) for norm in norms]

    found = root(lambda log_std: sum(made(log_std)) / len(norms) - wanted, math.log(FACTORS[1]), 1e-6)
    if found is None:
        raise InputError(f"no scale of the weights gives capsules of mean length {wanted:g}")
    return math.exp(found), math.sqrt(sum(length**2 for length in made(found)) / len(norms))


def _nothing(net: CapsNet, images: Tensor) -> CapsNet:
    return net


# What `--init` takes: each changes a fresh net in place, given images of the training split.
STARTS: Mapping[str, Callable[[CapsNet, Tensor], CapsNet]] = MappingProxyType(
    {"normal": _nothing, "length": init_lengths_, "length-closed": lambda net, images: init_closed_(net)}
)


def _lengths_wanted(hidden: float, classes: float) -> tuple[float, float]:
    return require_number("hidden", hidden, 1e-3, 0.999), require_number("classes", classes, 1e-3, 0.999)


def _scale_layer(layer: nn.Module, u: Tensor, wanted: float, name: str) -> Tensor:
    """Scale a capsule layer's weights to the wanted mean length; its capsules then."""
    assert isinstance(layer, CapsuleLayer)
    _scale_to([layer.weight], lambda: lengths(layer(u)).mean().item(), wanted, name)
    v: Tensor = layer(u)
    return v


def _scale_to(weights: list[Tensor], mean_length: Callable[[], float], wanted: float, name: str) -> None:
    """Multiply the weights by the factor at which `mean_length()`, which grows with it, is `wanted`."""
    start = [weight.clone() for weight in weights]

    def excess(log_factor: float) -> float:
        for weight, original in zip(weights, start, strict=True):
            weight.copy_(original * math.exp(log_factor))
        return mean_length() - wanted

    if root(excess, math.log(FACTORS[1]), TOLERANCE) is None:
        raise InputError(f"{name}: no scale of its weights gives capsules of mean length {wanted:g}")


def root(rising: Callable[[float], float], limit: float, tolerance: float) -> float | None:
    """Where a rising function is zero to within the tolerance, the last place it was asked at; None beyond ±limit.

    Bracketed from 0 by steps that double, then the secant method that keeps its bracket (Illinois).
    """
    before = here = 0.0
    at_before = at_here = rising(0.0)
    step = 1.0 if at_here < 0 else -1.0
    while abs(at_here) > tolerance and (at_here < 0) == (step > 0):
        if abs(here + step) > limit:
            return None
        before, at_before, here = here, at_here, here + step
        at_here = rising(here)
        step *= 2
    while abs(at_here) > tolerance and abs(here - before) > 1e-6:
        between = here - at_here * (here - before) / (at_here - at_before)
        at_between = rising(between)
        if (at_between > 0) != (at_here > 0):
            before, at_before = here, at_here
        else:
            at_before /= 2
        here, at_here = between, at_between
    return here


def _settle_statistics(stem: nn.Module, images: Tensor) -> None:
    """Give the normalisations the statistics of these images, which at the start are those of none."""
    norms = [module for module in stem.modules() if isinstance(module, nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the plain average of all batches: of this one
    stem.train()
    stem(images)
    stem.eval()
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
