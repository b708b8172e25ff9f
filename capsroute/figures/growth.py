"""Time against size on a log-log scale: whether cost grows as the work grows."""

from typing import Any

from capsroute.figures.drawing import COLOURS, GREY, LINES, MARKERS, Drawing, new_figure


def draw_growth(rows: list[dict[str, Any]], source: str, name: str = "growth") -> Drawing:
    """A panel for each thing that grows, a line for each routing, its slope in the legend."""
    axes_names = list(dict.fromkeys(row["grows"] for row in rows))
    caption = (
        "Milliseconds of a forward and backward pass while one size grows and the others stay; dotted: proportional. "
        f"In brackets the slope of the line that fits best. {source}"
    )
    with new_figure(2.4 * len(axes_names), 2.8, caption) as figure:
        panels = figure.subplots(1, len(axes_names), squeeze=False)[0]
        for axes, grows in zip(panels, axes_names, strict=True):
            here = [row for row in rows if row["grows"] == grows]
            for number, row in enumerate(here):
                style = {"color": COLOURS[number], "marker": MARKERS[number], "linestyle": LINES[number]}
                axes.plot(
                    row["sizes"], row["ms"], markersize=4, label=f"{row['routing']} ({row['slope']:.2f})", **style
                )
            sizes = here[0]["sizes"]
            least = min(row["ms"][0] for row in here)
            axes.plot(sizes, [least * size / sizes[0] for size in sizes], ":", color=GREY, linewidth=1)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xticks(sizes, [str(size) for size in sizes])
            axes.minorticks_off()
            axes.set_title("capsule layers" if grows == "depth" else grows)
            axes.legend(loc="upper left", fontsize=6.5)
            axes.set_ylim(top=axes.get_ylim()[1] * 4)
        panels[0].set_ylabel("milliseconds")
    return Drawing(name, "Time against size", caption, figure)
