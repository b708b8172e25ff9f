"""Whether a net will train, told before it does: signals through its layers, forwards and backwards, at the start.

What the verdicts go by was measured (docs/depth.md): a net whose first layer has a gradient of nothing never learned;
one whose capsules, from image to image, have nothing in common hardly did, however large its gradients.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from capsroute.diagnosis import LayerReport, diagnose
from capsroute.initialization import STARTS
from capsroute.models import CapsNet
from capsroute.routing import ROUTINGS
from capsroute.stats import COLLAPSED_GRADIENT, SATURATED_LENGTH

SCATTERED = 0.95  # of the class capsules is each image's own: nothing is left of what images of a class share
NORMAL = "normal"


@dataclass(frozen=True)
class Scan:
    """One start of a net under one routing: its layers, and what becomes of it."""

    init: str
    routing: str
    reports: tuple[LayerReport, ...]

    def verdict(self) -> tuple[str, str]:
        """What will become of it, and why."""
        first, last = self.reports[0], self.reports[-1]
        if first.gradient_norm < COLLAPSED_GRADIENT:
            shortest = min(report.length_mean or 0.0 for report in self.reports[1:])
            where = f"capsules shrink to a mean length of {shortest:.1g}, Conv1's gradient to {first.gradient_norm:.1g}"
            return "will not train", f"dead: {where}" + ("; try --init length" if self.init == NORMAL else "")
        if last.own_share is not None and last.own_share > SCATTERED:
            own = f"{last.own_share:.1%} of the class capsules is each image's own"
            return "will hardly train", f"scattered: {own}, so images of a class share nothing"
        if last.length_mean is not None and last.length_mean > SATURATED_LENGTH:
            return "may not train", f"saturated: class capsules start at a mean length of {last.length_mean:.2g}"
        return "will train", f"Conv1's gradient has norm {first.gradient_norm:.1g}"

    def sentence(self) -> str:
        """The verdict in one line."""
        what, why = self.verdict()
        return f"{self.init}, {self.routing}: {what} ({why})"

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        layers = [report.to_json() for report in self.reports]
        return {"init": self.init, "routing": self.routing, "verdict": self.sentence(), "layers": layers}


def scan(
    shape: dict[str, Any],
    options: dict[str, dict[str, Any]],
    images: Float[Tensor, "b c h w"],
    targets: Int64[Tensor, " b"],
    seed: int = 0,
) -> Iterator[Scan]:
    """The net of this shape (arguments of `CapsNet`) under every start and routing; `options` by routing."""
    for init, start in STARTS.items():
        for routing in ROUTINGS:
            torch.manual_seed(seed)
            net = CapsNet(**{**shape, "routing": routing, **options.get(routing, {})})
            start(net, images)
            yield Scan(init, routing, tuple(diagnose(net, images, targets)))
