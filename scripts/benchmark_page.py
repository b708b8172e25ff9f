"""The tables and the figure of docs/benchmark.md, from results/bench/speed.json: `python scripts/benchmark_page.py`."""

import json
from pathlib import Path

from page_tables import fill_page

from capsroute.bench.tables import SECTIONS, memory_text, section, where
from capsroute.figures.growth import draw_growth

ROOT = Path(__file__).parents[1]
PAGE, FIGURES = ROOT / "docs" / "benchmark.md", ROOT / "docs" / "figures"
RESULT = json.loads((ROOT / "results" / "bench" / "speed.json").read_text())
TABLES = {
    "where": lambda: where(RESULT),
    **{
        name: lambda title=title: section(RESULT, title)
        for name, (title, _) in zip(("layers", "nets", "targets"), SECTIONS, strict=True)
    },
    "memory": lambda: memory_text(RESULT),
}

if __name__ == "__main__":
    fill_page(PAGE, TABLES)
    hardware = RESULT["hardware"]
    draw_growth(RESULT["scaling"], f"{hardware['cpu']}, {hardware['threads']} threads, {RESULT['precision']}.").save(
        FIGURES
    )
