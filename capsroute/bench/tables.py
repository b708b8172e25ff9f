"""The benchmark as tables on a screen and in Markdown."""

from typing import Any

from rich.table import Table

Rows = list[list[str]]


def layer_rows(result: dict[str, Any]) -> tuple[list[str], Rows]:
    """Headings and a row for each layer and routing."""
    headings = ["layer", "routing", "ours", "dense form", "dense/ours", "bare products", "share of limit"]
    rows = [
        [
            row["size"],
            row["routing"],
            _ms(row["ours"]),
            _ms(row["dense"]),
            f"{row['dense_over_ours']:.1f}",
            _ms(row["bare"]),
            f"{row['share_of_limit']:.0%}",
        ]
        for row in result["layers"]
    ]
    return headings, rows


def net_rows(result: dict[str, Any]) -> tuple[list[str], Rows]:
    """Headings and a row for each net and routing."""
    headings = ["net", "routing", "precision", "step", "share of limit", "forward", "batch of 256", "one image"]
    rows = [
        [
            row["net"],
            row["routing"],
            row["precision"],
            _ms(row.get("step")),
            f"{row['step_share_of_limit']:.0%}" if "step" in row else "–",
            _ms(row.get("forward")),
            f"{_ms(row['inference'])} ({row['inference_share_of_limit']:.0%})" if "inference" in row else "–",
            _ms(row.get("one_image")),
        ]
        for row in result["nets"]
    ]
    return headings, rows


def target_rows(result: dict[str, Any]) -> tuple[list[str], Rows]:
    """Headings and a row for each promise."""
    rows = [
        [row["name"], f"{row['value']:.3g}", row["wanted"], "met" if row["met"] else "missed"]
        for row in result["targets"]
    ]
    return ["ratio", "measured", "wanted", ""], rows


SECTIONS = (
    ("Capsule layers, forward and backward, batch 128", layer_rows),
    ("Nets, batch 128", net_rows),
    ("Targets", target_rows),
)


def as_tables(result: dict[str, Any]) -> list[Table]:
    """For the screen."""
    tables = []
    for title, make in SECTIONS:
        headings, rows = make(result)
        table = Table(title=title)
        for number, heading in enumerate(headings):
            table.add_column(heading, justify="left" if number < 1 else "right")
        for row in rows:
            table.add_row(*row)
        tables.append(table)
    return tables


def as_markdown(result: dict[str, Any]) -> str:
    """For a page: where it was measured, the tables, and memory."""
    return "\n\n".join([where(result), *(section(result, title) for title, _ in SECTIONS), memory_text(result)]) + "\n"


def where(result: dict[str, Any]) -> str:
    """On what, and with what."""
    hardware, known = result["hardware"], result["commit"]
    machine = (
        ", ".join(hardware["gpus"]) if result["device"] == "cuda" else f"{hardware['cpu']}, {hardware['cores']} cores"
    )
    commit = (known["id"] or "unknown")[:12] + (" with changes" if known["dirty"] else "")
    return (
        f"Made by `{result['command']}` on {machine}, torch {result['versions']['torch']}, commit {commit}, "
        f"{result['precision']} unless stated. Milliseconds: medians, with the fastest and the slowest repeat."
    )


def section(result: dict[str, Any], title: str) -> str:
    """One of the tables, under its title."""
    headings, rows = dict(SECTIONS)[title](result)
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return f"## {title}\n\n" + "\n".join(lines)


def memory_text(result: dict[str, Any]) -> str:
    """Peaks of fresh processes, in words."""
    memory = {name: f"{value:.0f} MB" for name, value in result["memory"].items()}
    stacks = ", ".join(
        f"{name.split('_')[2]} layers {told}" for name, told in memory.items() if name.startswith("stack_of_")
    )
    return (
        f"Dynamic routing at 1152 → 256 capsules in float32 takes {memory['dynamic_ours_mb']} beyond its input and "
        f"results, its dense form {memory['dynamic_dense_mb']}. Training `paper-3` takes "
        f"{memory['paper-3_training_mb']}, of which {memory['paper-3_needed_mb']} are weights, gradients, Adam's "
        f"moments and the convolutions' activations. Training a small stack takes, by its depth: {stacks}."
    )


def _ms(timing: dict[str, float] | None) -> str:
    if timing is None:
        return "–"
    digits = 1 if timing["ms"] >= 10 else 2
    return f"{timing['ms']:.{digits}f} ({timing['fastest_ms']:.{digits}f}-{timing['slowest_ms']:.{digits}f})"
