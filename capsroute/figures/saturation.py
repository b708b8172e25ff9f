"""What the iterations of Algorithm 1 do to lengths: with step 1 and many lower capsules they rush to 1."""

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.figures.drawing import COLOURS, GREY, Drawing, new_figure
from capsroute.figures.inside import votes_of
from capsroute.models import CapsNet
from capsroute.nonlinearity import lengths
from capsroute.routing import RoutingStep
from capsroute.routing.adaptive import Adaptive

ITERATIONS = 5


def lengths_by_iteration(
    net: CapsNet, images: Float[Tensor, "b c h w"], step: float, iterations: int = ITERATIONS
) -> tuple[Float[Tensor, "r n"], list[float]]:
    """All class capsules' lengths after each iteration, and the λ that the iterations so far amount to."""
    rows: list[Tensor] = []
    sums: list[Tensor] = []

    def keep(now: RoutingStep) -> None:
        rows.append(lengths(now.v).flatten())
        sums.append(lengths(now.s))

    with torch.no_grad():
        Adaptive(iterations=iterations, step=step)(votes_of(net, images), keep)
    first = sums[0].sum().clamp(min=1e-30)
    return torch.stack(rows), [(later.sum() / first).item() for later in sums]


def draw_saturation(net: CapsNet, images: Float[Tensor, "b c h w"], source: str, name: str = "saturation") -> Drawing:
    """The distribution of lengths per iteration, as printed (step 1) and with step 1/I."""
    lower = net.capsules[-2]
    caption = (
        f"Lengths of the {net.classes} class capsules of {len(images)} test images after each iteration of "
        f"Algorithm 1 on the same votes of {lower:,} lower capsules; below, the λ of Algorithm 2 that the iterations "
        f"amount to (the mean factor of the sums). {source}"
    )
    with new_figure(6.6, 3.2, caption) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (label, step) in zip(panels, (("step 1", 1.0), (f"step 1/I = 1/{lower}", 1 / lower)), strict=True):
            rows, factors = lengths_by_iteration(net, images, step)
            bodies = axes.violinplot([row.tolist() for row in rows], showmedians=True, widths=0.8)
            for part in bodies["bodies"]:
                part.set_facecolor(COLOURS[0])
            for line in ("cmins", "cmaxes", "cbars", "cmedians"):
                bodies[line].set_color(COLOURS[1] if line == "cmedians" else GREY)
                bodies[line].set_linewidth(1)
            ticks = [f"{number + 1}\nλ={factor:.3g}" for number, factor in enumerate(factors)]
            axes.set_xticks(range(1, len(ticks) + 1), ticks)
            axes.set_xlabel("iterations")
            axes.set_title(label)
            axes.set_ylim(-0.02, 1.02)
        panels[0].set_ylabel("length of class capsules")
    return Drawing(name, "What Algorithm 1's iterations do to lengths", caption, figure)
