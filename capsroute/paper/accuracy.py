"""Accuracy against λ, a line for each depth: ours, and what the paper prints."""

import math

from capsroute.figures.drawing import COLOURS, GREY, MARKERS, Drawing, new_figure
from capsroute.paper.cells import CHANCE, DEPTHS, LAYERS, cells_of
from capsroute.paper.tables import Results

PANELS = (("table2", "Fashion-MNIST"), ("table3", "CIFAR-10"), ("table4", "CIFAR-10, small λ"))


def draw_accuracy(results: Results, source: str, name: str = "accuracy") -> Drawing | None:
    """Tables 2 to 4 as lines; None if nothing of them was measured."""
    shown = [(table, title) for table, title in PANELS if any(cell.setting in results for cell in cells_of(table))]
    if not shown:
        return None
    caption = (
        "Test accuracy against λ for each number of capsule layers: filled, measured here (bars: deviation between "
        f"seeds); hollow and dashed, as the paper prints it. {source}"
    )
    with new_figure(2.2 + 2.4 * len(shown), 3.2, caption) as figure:
        panels = figure.subplots(1, len(shown), squeeze=False)[0]
        for axes, (table, title) in zip(panels, shown, strict=True):
            for number, layers in enumerate(DEPTHS):
                cells = [cell for cell in cells_of(table) if cell.setting.layers == layers]
                place = {cell.column: position for position, cell in enumerate(cells)}
                style = {"color": COLOURS[number], "marker": MARKERS[number], "markersize": 4}
                printed = [cell.printed for cell in cells]
                axes.plot(list(place.values()), printed, mfc="white", linestyle="--", linewidth=0.8, **style)
                ours = [(place[cell.column], results[cell.setting]) for cell in cells if cell.setting in results]
                if ours:
                    axes.errorbar(
                        [position for position, _ in ours],
                        [measured.mean for _, measured in ours],
                        [0 if math.isnan(measured.std) else measured.std for _, measured in ours],
                        capsize=2,
                        label=f"{layers} layers {LAYERS[layers]}",
                        **style,
                    )
            axes.set_xticks(range(len(place)), [column.removeprefix("λ=") for column in place])
            axes.set_xlabel("λ")
            axes.set_title(title)
            if table == "table4":
                axes.axhline(CHANCE, color=GREY, linewidth=0.8)
                axes.set_ylim(bottom=0)
                below = {"xytext": (0, -8), "textcoords": "offset points", "va": "top"}
                axes.annotate("chance", (0, CHANCE), fontsize=7, color=GREY, **below)
        panels[0].set_ylabel("accuracy in percent")
        handles, labels = max((axes.get_legend_handles_labels() for axes in panels), key=lambda both: len(both[1]))
        figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=7.5)
    return Drawing(name, "Accuracy against λ and depth", caption, figure)
