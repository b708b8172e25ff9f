"""The tables and figures of docs/depth.md, from the records in results/depth: `python scripts/depth_page.py`."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from page_tables import fill_page

from capsroute.figures.drawing import COLOURS, GREY, LINES, MARKERS, Drawing, new_figure
from capsroute.sweeps.records import Measured, Record, load_records

ROOT = Path(__file__).parents[1]
RECORDS, PAGE, FIGURES = ROOT / "results" / "depth", ROOT / "docs" / "depth.md", ROOT / "docs" / "figures"
DATASETS = {"fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
ROUTINGS = {"dynamic": "dynamic", "1": "λ = 1", "2": "λ = 2", "3": "λ = 3", "learned": "λ learned"}
CHANCE = 10.0
SOURCE = "12,800 training images, 5 epochs, one-cycle; accuracy on the test split after the last epoch"

Key = tuple[Any, ...]


def read(name: str) -> list[Record]:
    """The records of one sweep."""
    return load_records(RECORDS / f"{name}.jsonl")


def grouped(records: Iterable[Record], key: Callable[[Record], Key]) -> dict[Key, Measured]:
    """Runs that differ in their seed only, by what they are about."""
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return {name: Measured(tuple(group)) for name, group in groups.items()}


def depth_of(record: Record) -> int:
    """Layers of capsules, the primary ones included."""
    return len(record.config["capsules"]) if "capsules" in record.config else 2


def init_of(record: Record) -> str:
    """The start."""
    return str(record.config.get("init", "normal"))


def routing_of(record: Record) -> str:
    """dynamic, or λ."""
    return "dynamic" if record.config.get("routing") == "dynamic" else str(record.config["lam"])


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In Markdown."""
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def cell(measured: Measured | None) -> str:
    """Accuracy; in italics where the net is dead or saturated in every run."""
    if measured is None:
        return "–"
    spread = f" ± {measured.std:.1f}" if measured.count > 1 else ""
    told = f"{measured.mean:.1f}{spread}"
    return f"*{told}*" if all(record.state != "ok" for record in measured.records) else told


def depth_table(name: str, routings: Sequence[str]) -> str:
    """A row for each start and routing, a column for each depth."""
    results = grouped(read(name), lambda record: (init_of(record), routing_of(record), depth_of(record)))
    depths = sorted({depth for _, _, depth in results})
    rows = [
        [init, ROUTINGS[routing], *(cell(results.get((init, routing, depth))) for depth in depths)]
        for init in ("normal", "length")
        for routing in routings
    ]
    return table(["start", "routing", *map(str, depths)], rows)


def residual_table() -> str:
    """With and without shortcuts, λ = 1 from `length`."""
    rows = []
    for data, title in DATASETS.items():
        for kind, name in (("plain", f"depth-small-{data}"), ("residual", f"residual-small-{data}")):
            chosen = [r for r in read(name) if init_of(r) == "length" and routing_of(r) == "1"]
            results = grouped(chosen, lambda record: (depth_of(record),))
            rows.append([title, kind, *(cell(results.get((depth,))) for depth in (4, 6, 8, 12, 16))])
    return table(["dataset", "stack", "4", "6", "8", "12", "16"], rows)


def lambda_table() -> str:
    """λ from 3 down to 0.00001, by start and depth, CIFAR-10."""
    records = [*read("lambda-small-cifar10"), *read("depth-small-cifar10")]
    usual = [r for r in records if routing_of(r) not in ("dynamic", "learned") and depth_of(r) <= 4]
    results = grouped(usual, lambda record: (init_of(record), depth_of(record), float(routing_of(record))))
    lams = sorted({lam for _, _, lam in results}, reverse=True)
    rows = [
        [init, str(depth), *(cell(results.get((init, depth, lam))) for lam in lams)]
        for init in ("normal", "length")
        for depth in (2, 3, 4)
    ]
    return table(["start", "layers", *(f"λ = {lam:.5f}".rstrip("0").rstrip(".") for lam in lams)], rows)


def step_table() -> str:
    """Algorithm 1 by iterations and step."""
    results = grouped(
        read("step-small-fashion-mnist"),
        lambda record: (record.config.get("step", 1.0), record.config.get("iterations", 3)),
    )
    rows = [
        [label, *(cell(results.get((step, iterations))) for iterations in (1, 2, 3))]
        for label, step in (("1 (the paper's)", 1.0), ("1/I = 1/144", 0.00694))
    ]
    return table(["step", "1 iteration", "2 iterations", "3 iterations"], rows)


def deep_table() -> str:
    """Six capsule layers: held-out images choose, the test split is told."""

    def key(record: Record) -> Key:
        config = record.config
        name = config.get("dataset", "fashion-mnist")
        return name, config.get("stem", "paper"), bool(config.get("flip")), bool(config.get("residual"))

    held, test = grouped(read("held-deep"), key), grouped(read("test-deep"), key)
    rows = []
    for name, stem, flip, residual in sorted(held, key=str):
        what = f"{stem} stem" + (", mirrored" if flip else "") + (", residual" if residual else "")
        place = (name, stem, flip, residual)
        epochs = str(held[place].records[0].result["epochs"])
        told = f"{test[place].mean:.2f}" if place in test else "–"
        rows.append([DATASETS[name], what, epochs, f"{held[place].mean:.2f}", told])
    return table(["dataset", "net", "epochs", "held-out images", "test split"], rows)


def draw_depth() -> Drawing:
    """Accuracy against depth, a panel for each dataset and start."""
    caption = (
        "Accuracy in percent against the number of capsule layers, small net [144, 32, …, 10], mean and deviation of "
        f"three seeds; grey: chance. {SOURCE}."
    )
    with new_figure(7.6, 5.2, caption) as figure:
        grid = figure.subplots(2, 2, sharex=True, sharey="row")
        for panels, (data, title) in zip(grid, DATASETS.items(), strict=True):
            results = grouped(read(f"depth-small-{data}"), lambda r: (init_of(r), routing_of(r), depth_of(r)))
            for axes, init in zip(panels, ("normal", "length"), strict=True):
                for number, routing in enumerate(ROUTINGS):
                    points = sorted((k[2], m) for k, m in results.items() if k[:2] == (init, routing))
                    axes.errorbar(
                        [depth for depth, _ in points],
                        [measured.mean for _, measured in points],
                        [measured.std for _, measured in points],
                        color=COLOURS[number],
                        marker=MARKERS[number],
                        linestyle=LINES[number % len(LINES)],
                        markersize=4,
                        capsize=2,
                        label=ROUTINGS[routing],
                    )
                axes.axhline(CHANCE, color=GREY, linewidth=0.8)
                axes.set_title(f"{title}, init {init}")
                axes.set_xticks([2, 3, 4, 6, 8, 12, 16])
            panels[0].set_ylabel("accuracy")
        for axes in grid[-1]:
            axes.set_xlabel("capsule layers")
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return Drawing("depth-accuracy", "Accuracy against depth", caption, figure)


TABLES: dict[str, Callable[[], str]] = {
    "small-fashion-mnist": lambda: depth_table("depth-small-fashion-mnist", list(ROUTINGS)),
    "small-cifar10": lambda: depth_table("depth-small-cifar10", list(ROUTINGS)),
    "wide-fashion-mnist": lambda: depth_table("depth-paper-fashion-mnist", ["dynamic", "1"]),
    "residual": residual_table,
    "lambda": lambda_table,
    "step": step_table,
    "deep": deep_table,
}


if __name__ == "__main__":
    fill_page(PAGE, TABLES)
    draw_depth().save(FIGURES)
