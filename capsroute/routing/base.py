"""What every routing is: a module from votes to upper capsules, and its entry in the table."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capsroute.votes import Votes


class RoutingStep(NamedTuple):
    """What an observer is handed after each iteration. The tensors are outside the graph."""

    iteration: int  # from 0
    coefficients: Float[Tensor, "b i j"] | None  # None where the routing has none
    s: Float[Tensor, "b j d"]  # before the squash
    v: Float[Tensor, "b j d"]


Observer = Callable[[RoutingStep], None]


class Routing(nn.Module, ABC):
    """Decides how lower capsules make upper ones.

    A subclass takes its options as keyword arguments, and `out_caps` besides: the number of upper capsules, which a
    layer knows and which only options with a value per capsule need.
    """

    @abstractmethod
    def forward(self, votes: Votes, observer: Observer | None = None) -> Float[Tensor, "b j d"]:
        """The upper capsules. `observer` is called after each iteration; without it nothing is kept for it."""

    @abstractmethod
    def expected_length(self, norm: float, lower: int, upper: int) -> float:
        """The length of a capsule whose plain sum of votes has this norm, at the start of training.

        For the closed form of the start: exact where v follows from that sum, else an estimate for random votes.
        """

    @abstractmethod
    def reference(self, u_hat: Float[Tensor, "b i j d"]) -> Float[Tensor, "b j d"]:
        """The same by the file's literal `reference()`, on the table of votes, with this module's options."""


def observe(observer: Observer | None, iteration: int, coefficients: Tensor | None, s: Tensor, v: Tensor) -> None:
    """Hand one iteration to `observer`, if there is one."""
    if observer is not None:
        kept = None if coefficients is None else coefficients.detach()
        observer(RoutingStep(iteration, kept, s.detach(), v.detach()))


@dataclass(frozen=True)
class RoutingEntry:
    """A row of the table of routings. All that differs between routings, code aside, is a field here."""

    name: str
    make: type[Routing]
    title: str
    paper: str  # authors, title, year
    link: str
    equation: str  # one line, in the axis letters of the library
    cost: str  # multiply-adds and memory, against one product of u and W
    advice: str  # when to use it
    has_coefficients: bool
    needs_table: bool = False  # whether it asks for the dense votes
    moves_votes: bool = False  # whether its iterations move every vote, all alike, so that s is the sum of moved votes
    # Options under which gradients go through all of it, where the defaults keep some out on purpose.
    full_gradient: Mapping[str, Any] = field(default_factory=dict)
    # Option sets that the tests go over, beside the defaults.
    variants: tuple[Mapping[str, Any], ...] = ()


def squashed_length(norm: float) -> float:
    """The length that squash gives a vector of this norm."""
    return norm * norm / (1 + norm * norm) if norm < 1 else 1 / (1 + norm**-2)


def literal_squash(s: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
    """The squash as printed, for the references; not finite at zero."""
    norm = torch.sqrt((s * s).sum())
    return norm**2 / (1 + norm**2) * s / norm
