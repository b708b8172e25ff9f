"""One image through a net whose capsule layers are routed as a visitor wishes, with all that is seen on the way.

Nothing is hooked to the net and nothing in it is changed: several visitors look into the same one at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.layers import CapsuleLayer
from capsroute.models import CapsNet
from capsroute.routing import ROUTINGS, Routing, RoutingStep, create_routing, routing_options
from capsroute.votes import Votes

AS_TRAINED = "as trained"
# Of a table of votes that a routing must have; 128 MB in float32, for one image.
MOST_VOTES = 32 << 20


@dataclass(frozen=True)
class Knob:
    """A number among a routing's options, and how far a visitor may turn it."""

    label: str
    low: float
    high: float
    step: float


# By option, not by routing: one that is added gets the sliders of those options that it shares with others.
KNOBS: MappingProxyType[str, Knob] = MappingProxyType(
    {
        "iterations": Knob("iterations", 1, 8, 1),
        "lam": Knob("λ", 0.1, 10, 0.1),
        "step": Knob("step", 0, 1, 0.005),
    }
)


@dataclass(frozen=True)
class LayerPass:
    """What went on in one capsule layer."""

    votes: Votes
    steps: tuple[RoutingStep, ...]
    v: Float[Tensor, "b j d"]


def fitting_routings(net: CapsNet) -> list[str]:
    """The routings that this net's weights can be put under: all but those whose table of votes has no place."""
    largest = max(
        below * above * dim for below, above, dim in zip(net.capsules, net.capsules[1:], net.dims[1:], strict=False)
    )
    return [name for name, entry in ROUTINGS.items() if not entry.needs_table or largest <= MOST_VOTES]


def knobs_of(name: str) -> dict[str, Knob]:
    """The sliders that this routing has; none as the net was trained."""
    known = () if name == AS_TRAINED else routing_options(name)
    return {option: knob for option, knob in KNOBS.items() if option in known}


def knob_start(net: CapsNet, option: str) -> float:
    """Where a slider starts: at the net's own value, or at that of the first routing which has the option."""
    own = net.config.get(option)
    usual = next(routing_options(name)[option] for name in ROUTINGS if option in routing_options(name))
    value = own if isinstance(own, int | float) else usual
    return min(max(float(value), KNOBS[option].low), KNOBS[option].high)


def make_routings(net: CapsNet, name: str, values: Mapping[str, float]) -> list[Routing]:
    """A routing for each capsule layer: its own, or one of that name with those of `values` that it knows."""
    layers = [layer for layer in net.layers if isinstance(layer, CapsuleLayer)]
    if name == AS_TRAINED:
        return [layer.routing for layer in layers]
    known = routing_options(name)
    options: dict[str, Any] = {}
    for option in knobs_of(name):
        if option in values:
            options[option] = int(values[option]) if isinstance(known[option], int) else float(values[option])
    return [create_routing(name, out_caps=layer.out_caps, **options) for layer in layers]


@torch.no_grad()
def route(net: CapsNet, images: Float[Tensor, "b c h w"], routings: Sequence[Routing]) -> list[LayerPass]:
    """Each capsule layer's votes, iterations and result."""
    u = net.primary(net.stem(images))
    passes = []
    for number, (layer, routing) in enumerate(zip(net.layers, routings, strict=True)):
        assert isinstance(layer, CapsuleLayer)
        votes = Votes(u, layer.weight.detach())
        steps: list[RoutingStep] = []
        v = routing(votes, steps.append)
        passes.append(LayerPass(votes, tuple(steps), v))
        u = u + v if net.is_residual(number) else v
    return passes
