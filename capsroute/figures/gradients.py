"""The range of Conv1's gradient over training: whether what the capsules learn reaches the first layer."""

from collections.abc import Mapping

from capsroute.figures.drawing import COLOURS, LINES, Drawing, new_figure
from capsroute.sweeps.records import Record

LINEAR_BELOW = 1e-8  # the scale is logarithmic above, on both sides of zero


def draw_gradients(runs: Mapping[str, Record], title: str, source: str, name: str) -> Drawing:
    """Smallest to largest entry of Conv1's gradient in each stretch of steps; a panel and a line for each run."""
    caption = (
        "Smallest and largest entry of the gradient of Conv1's weights over the steps of training (filled), and its "
        f"norm; logarithmic on both sides of ±{LINEAR_BELOW:g}. {source}"
    )
    with new_figure(6.6, 3.3, caption) as figure:
        panels = figure.subplots(1, 2, width_ratios=(3, 2))
        for number, (label, record) in enumerate(runs.items()):
            steps, low, high, norm = zip(*record.gradient, strict=True)
            colour, style = COLOURS[number % len(COLOURS)], LINES[number % len(LINES)]
            panels[0].fill_between(steps, low, high, color=colour, alpha=0.3, linewidth=0)
            panels[0].plot(steps, low, color=colour, linestyle=style, linewidth=0.8)
            panels[0].plot(steps, high, color=colour, linestyle=style, linewidth=0.8, label=label)
            floored = [max(value, 1e-38) for value in norm]
            panels[1].plot(steps, floored, color=colour, linestyle=style, linewidth=1.1, label=label)
        panels[0].set_yscale("symlog", linthresh=LINEAR_BELOW)
        panels[0].set_yticks([sign * 10.0**power for power in (-7, -5, -3, -1) for sign in (-1, 1)] + [0])
        panels[0].minorticks_off()
        panels[0].set_title("range of the entries")
        panels[1].set_yscale("log")
        panels[1].set_title("norm")
        for axes in panels:
            axes.set_xlabel("step")
        panels[1].legend(loc="best")
    return Drawing(name, title, caption, figure)
