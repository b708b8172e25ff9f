"""Signals through an untrained net: lengths forwards, gradients backwards, and what images have in common."""

from collections.abc import Sequence

from capsroute.depth_scan import Scan
from capsroute.figures.drawing import COLOURS, GREY, LINES, MARKERS, Drawing, new_figure
from capsroute.stats import COLLAPSED_GRADIENT

LEAST = 1e-30  # zero has no place on a logarithmic scale: drawn here
ROWS = (
    ("mean length", "length_mean", "log"),
    ("gradient norm", "gradient_norm", "log"),
    ("each image's own share", "own_share", "linear"),
)


def draw_depth_scan(scans: Sequence[Scan], source: str, name: str = "depth-scan") -> Drawing:
    """A column for each start, a line for each routing."""
    inits = list(dict.fromkeys(scan.init for scan in scans))
    caption = (
        "An untrained net, layer by layer (first Conv1, then the primary capsules, then each layer of capsules); "
        "gradients are those of the layer's weights. "
        f"Lengths and gradients below {LEAST:g} are drawn there; grey, the gradient below which nothing was ever "
        "learned. Each image's own share: 0, all images give the same capsules; 1, they have nothing in common. "
        f"{source}"
    )
    with new_figure(2.6 * len(inits) + 0.6, 6.0, caption) as figure:
        grid = figure.subplots(len(ROWS), len(inits), sharex=True, sharey="row", squeeze=False)
        for panels, (title, field, scale) in zip(grid, ROWS, strict=True):
            for axes, init in zip(panels, inits, strict=True):
                for number, one in enumerate(each for each in scans if each.init == init):
                    points = [
                        (place, max(value, LEAST) if scale == "log" else value)
                        for place, report in enumerate(one.reports)
                        if (value := getattr(report, field)) is not None
                    ]
                    style = {"color": COLOURS[number], "marker": MARKERS[number], "linestyle": LINES[number]}
                    axes.plot(*zip(*points, strict=True), markersize=3.5, label=one.routing, **style)
                axes.set_yscale(scale)
                if field == "gradient_norm":
                    axes.axhline(COLLAPSED_GRADIENT, color=GREY, linewidth=0.8)
                if scale == "linear":
                    axes.set_ylim(0, 1.05)
            panels[0].set_ylabel(title)
        for axes, init in zip(grid[0], inits, strict=True):
            axes.set_title(f"init {init}")
        for axes in grid[-1]:
            axes.set_xlabel("layer")
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return Drawing(name, "Signals through the net before training", caption, figure)
