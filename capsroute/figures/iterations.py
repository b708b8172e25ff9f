"""Both routings at work on the same votes, drawn in the plane: lower capsules, and the capsule that they make."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.figures.drawing import COLOURS, GREY, Drawing, new_figure
from capsroute.figures.inside import votes_of
from capsroute.models import CapsNet
from capsroute.nonlinearity import squash
from capsroute.routing import RoutingStep
from capsroute.routing.dynamic import Dynamic

ITERATIONS = 3
SHOWN = 40  # the longest votes; a thousand arrows are a blot


@dataclass(frozen=True)
class PlaneStep:
    """An iteration in the plane: votes and result as points, and how much each vote counts."""

    votes: Float[Tensor, "n 2"]
    weights: Float[Tensor, " n"]
    v: Float[Tensor, "2"]
    length: float


def plane_of(u_hat: Float[Tensor, "i d"]) -> Float[Tensor, "d 2"]:
    """Two orthonormal directions: of the votes' sum, and of most of what the votes vary in besides."""
    total = u_hat.sum(0)
    first = total / total.norm().clamp(min=1e-30)
    rest = u_hat - (u_hat @ first)[:, None] * first
    second = torch.linalg.svd(rest, full_matrices=False).Vh[0]
    return torch.stack([first, second], dim=1)


def dynamic_steps(net: CapsNet, image: Float[Tensor, "1 c h w"], label: int) -> list[PlaneStep]:
    """Dynamic routing: the votes stay, their coefficients change."""
    votes = votes_of(net, image)
    u_hat = votes.dense()[0, :, label]  # [i, d]
    plane, longest = plane_of(u_hat), u_hat.norm(dim=1).topk(min(SHOWN, len(u_hat))).indices
    steps: list[PlaneStep] = []

    def keep(step: RoutingStep) -> None:
        assert step.coefficients is not None
        v = step.v[0, label]
        weights = step.coefficients[0, longest, label] * votes.upper
        steps.append(PlaneStep(u_hat[longest] @ plane, weights, v @ plane, v.norm().item()))

    with torch.no_grad():
        Dynamic(iterations=ITERATIONS)(votes, keep)
    return steps


def adaptive_steps(net: CapsNet, image: Float[Tensor, "1 c h w"], label: int, step: float) -> list[PlaneStep]:
    """Algorithm 1, vote by vote: each moves by `step` times the result."""
    u_hat = votes_of(net, image).dense()[0, :, label]
    plane, longest = plane_of(u_hat), u_hat.norm(dim=1).topk(min(SHOWN, len(u_hat))).indices
    steps = []
    for _ in range(ITERATIONS):
        v = squash(u_hat.sum(0))
        steps.append(PlaneStep(u_hat[longest] @ plane, torch.ones(len(longest)), v @ plane, v.norm().item()))
        u_hat = u_hat + step * v
    return steps


def draw_iterations(
    net: CapsNet, image: Float[Tensor, "1 c h w"], label: int, source: str, name: str = "iterations"
) -> Drawing:
    """Three rows of the same votes: dynamic routing, Algorithm 1 as printed, and with step 1/I."""
    lower = net.capsules[-2]
    rows = {
        "dynamic": dynamic_steps(net, image, label),
        "adaptive, step 1": adaptive_steps(net, image, label, 1.0),
        "adaptive, step 1/I": adaptive_steps(net, image, label, 1 / lower),
    }
    caption = (
        f"The {min(SHOWN, lower)} longest of {lower:,} votes for the true class (arrows; darker: larger coupling "
        "coefficient) and the capsule v that they make (thick), in the plane of their sum and their largest further "
        f"variation. Scales differ between rows and directions. {source}"
    )
    with new_figure(6.6, 6.0, caption) as figure:
        grid = figure.subplots(len(rows), ITERATIONS, sharex="row", sharey="row")
        for panels, (routing, steps) in zip(grid, rows.items(), strict=True):
            for iteration, (axes, now) in enumerate(zip(panels, steps, strict=True)):
                heaviest = max(float(step.weights.max()) for step in steps)
                shades = [(COLOURS[0], 0.15 + 0.7 * weight / heaviest) for weight in now.weights.tolist()]
                _draw_arrows(axes, now.votes.tolist(), shades, 0.006)
                _draw_arrows(axes, [now.v.tolist()], [(COLOURS[1], 1.0)], 0.02)
                points = zip(*now.votes.tolist(), now.v.tolist(), (0, 0), strict=True)
                axes.plot(*points, ".", ms=1.5, color=GREY, zorder=4)
                axes.set_title(f"{routing}, iteration {iteration + 1}\n‖v‖ = {now.length:.3g}")
                axes.margins(0.08)
                axes.tick_params(labelsize=7)
    return Drawing(name, "Both routings' iterations, from real votes", caption, figure)


def _draw_arrows(axes: Any, ends: list[list[float]], colours: list[tuple[str, float]], width: float) -> None:
    """From the origin to these points; `width` as a share of the panel's."""
    xs, ys = zip(*ends, strict=True)
    start = [0.0] * len(ends)
    whole = {"angles": "xy", "scale_units": "xy", "scale": 1}
    axes.quiver(start, start, xs, ys, color=colours, width=width, headwidth=3.5, headlength=4.5, zorder=3, **whole)
