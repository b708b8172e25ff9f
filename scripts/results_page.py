"""The tables and figures of docs/results.md, from the records in results/: `python scripts/results_page.py`."""

from pathlib import Path

from page_tables import fill_page

from capsroute.figures.drawing import Drawing
from capsroute.figures.gradients import draw_gradients
from capsroute.paper.accuracy import draw_accuracy
from capsroute.paper.cells import TITLES
from capsroute.paper.claims import check_claims
from capsroute.paper.plan import TARGETS, Plan, Run, ara, dra
from capsroute.paper.profiles import PROFILES
from capsroute.paper.report import as_markdown, table_note
from capsroute.paper.tables import Results, collect, fill_tables
from capsroute.sweeps.jobs import make_job
from capsroute.sweeps.records import Measured, Record, load_records

ROOT = Path(__file__).parents[1]
PAGE, FIGURES = ROOT / "docs" / "results.md", ROOT / "docs" / "figures"
PROFILE = PROFILES["quick"]
SEEDS = 3


def plan_of_everything() -> Plan:
    """The runs of all tables and figures, whatever data is on this machine."""
    runs = [
        Run(setting, seed, make_job(Path("store"), setting.name, setting.title, options))
        for setting in TARGETS["all"]
        for seed in range(SEEDS)
        for options in [{**PROFILE.options_for(setting.dataset), **setting.options(), "seed": seed}]
    ]
    return Plan("all", PROFILE, tuple(runs), {}, {})


PLAN = plan_of_everything()
RECORDS: list[Record] = load_records(ROOT / "results" / "quick.jsonl")
RESULTS: Results = collect(PLAN, RECORDS)


def paper_table(name: str) -> str:
    """One of the paper's tables, ours beside theirs."""
    (filled,) = [table for table in fill_tables(PLAN, RESULTS) if table.name == name]
    # Without its heading: the page has its own.
    return as_markdown(filled, table_note(PLAN)).split("\n", 2)[2]


def claims() -> str:
    """Every claim with its verdict."""
    rows = [f"| {one.claim} | **{one.verdict}** | {one.numbers} |" for one in check_claims(RESULTS)]
    return "\n".join(["| claim of the paper | verdict | numbers |", "|---|---|---|", *rows])


def accuracy_by_epochs() -> str:
    """The two-layer net on all of Fashion-MNIST by the recipe of the profile `short`."""
    rows = []
    for record in sorted(load_records(ROOT / "results" / "accuracy.jsonl"), key=lambda one: one.result["epochs"]):
        result = record.result
        where = result["hardware"]["gpus"][0] if result["device"] == "cuda" else result["hardware"]["cpu"]
        cells = [str(result["epochs"]), f"{record.accuracy:.2f}", f"{result['wall_s'] / 60:.1f}", where]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(["| epochs | accuracy | minutes of training | on |", "|---|---|---|---|", *rows])


def recipe() -> str:
    """The search for the profile `short`: what was changed, and what held-out images say."""
    rows = []
    usual = {"shift": 1, "lam": "2", "epochs": 16}
    for record in load_records(ROOT / "results" / "recipe.jsonl"):
        skipped = ("dataset", "holdout", "schedule")
        config = {name: value for name, value in record.config.items() if name not in skipped}
        changed = {name: value for name, value in config.items() if usual.get(name) != value}
        told = ", ".join(f"{name} {value}" for name, value in changed.items()) or "as stated"
        rows.append((record.accuracy, told))
    lines = [f"| {told} | {accuracy:.2f} |" for accuracy, told in sorted(rows, reverse=True)]
    return "\n".join(["| change | held-out accuracy |", "|---|---|", *lines])


def draw_all() -> list[Drawing]:
    """Accuracy against λ and depth, and the gradient's range under both routings."""
    source = PROFILE.text[0].upper() + PROFILE.text[1:] + ", Fashion-MNIST, seed 0."
    drawings = [draw_accuracy(RESULTS, f"{PROFILE.text[0].upper()}{PROFILE.text[1:]}.", "results-accuracy")]
    for settings, title, name in (
        ((dra(2), dra(3)), "Dynamic routing: range of Conv1's gradient", "results-gradients-dynamic"),
        ((ara(2), ara(3), ara(4)), "Adaptive routing: range of Conv1's gradient", "results-gradients-adaptive"),
    ):
        runs = {f"{one.layers} layers": _first(RESULTS[one]) for one in settings}
        drawings.append(draw_gradients(runs, title, source, name))
    return [drawing for drawing in drawings if drawing is not None]


def _first(measured: Measured) -> Record:
    return min(measured.records, key=lambda record: record.seed)


TABLES = {
    **{name: lambda name=name: paper_table(name) for name in TITLES},
    "claims": claims,
    "accuracy": accuracy_by_epochs,
    "recipe": recipe,
}

if __name__ == "__main__":
    fill_page(PAGE, TABLES)
    for drawing in draw_all():
        drawing.save(FIGURES)
