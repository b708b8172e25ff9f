"""The largest coupling coefficients towards the true class: most are near 1/J, which is what starves stacked layers."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from capsroute.figures.drawing import COLOURS, GREY, LINES, Drawing, new_figure
from capsroute.figures.inside import votes_of
from capsroute.models import CapsNet
from capsroute.routing import RoutingStep
from capsroute.routing.dynamic import Dynamic

SHOWN = 50


def largest_couplings(
    net: CapsNet, images: Float[Tensor, "b c h w"], labels: Int64[Tensor, " b"], iterations: int = 3
) -> Float[Tensor, "r b n"]:
    """Of each image and iteration the largest c_ij towards the true class of the class layer, in falling order."""
    steps: list[Tensor] = []

    def keep(step: RoutingStep) -> None:
        assert step.coefficients is not None
        towards = step.coefficients[torch.arange(len(labels)), :, labels]  # [b, i]
        steps.append(towards.topk(min(SHOWN, towards.shape[1]), dim=1).values)

    with torch.no_grad():
        Dynamic(iterations=iterations)(votes_of(net, images), keep)
    return torch.stack(steps)


def draw_couplings(
    net: CapsNet, images: Float[Tensor, "b c h w"], labels: Int64[Tensor, " b"], source: str, name: str = "couplings"
) -> Drawing:
    """Mean over the images of each rank's coefficient, per iteration, with the line at 1/J."""
    largest = largest_couplings(net, images, labels)
    even = 1 / net.classes
    caption = (
        f"The {largest.shape[2]} largest of {net.capsules[-2]:,} coupling coefficients towards the true class: mean "
        f"over {len(images)} test images, and where 80 % of them lie. {source}"
    )
    with new_figure(6.2, 3.4, caption) as figure:
        axes = figure.subplots()
        ranks = range(1, largest.shape[2] + 1)
        for iteration, values in enumerate(largest):
            low, high = values.quantile(0.1, 0), values.quantile(0.9, 0)
            colour = COLOURS[iteration % len(COLOURS)]
            axes.fill_between(ranks, low, high, color=colour, alpha=0.15, linewidth=0)
            style = LINES[iteration % len(LINES)]
            axes.plot(ranks, values.mean(0), color=colour, linestyle=style, label=f"iteration {iteration + 1}")
        axes.axhline(even, color=GREY, linewidth=0.8)
        axes.annotate(f"1/J = {even:g}", (ranks[-1], even), (0, -3), textcoords="offset points", ha="right", va="top")
        axes.set_ylim(0, max(axes.get_ylim()[1], 2 * even))  # room for the legend where nothing is above the line
        axes.set_xlim(1, ranks[-1])
        axes.set_xlabel("rank of the coefficient")
        axes.set_ylabel("coupling coefficient")
        axes.legend(loc="upper right")
    return Drawing(name, "Largest coupling coefficients towards the true class", caption, figure)
