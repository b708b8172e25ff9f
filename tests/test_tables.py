"""The paper's tables, filled, and the forms that they are written in."""

import csv
import io
import re

import pytest
from paper_runs import fake_plan, measured, record, records_for

from capsroute.paper.cells import CELLS
from capsroute.paper.plan import FIGURE_SETTINGS, SMALL_LAMBDA, TARGETS, dra
from capsroute.paper.report import as_csv, as_latex, as_markdown
from capsroute.paper.run import make_report, records_of, runs_to_do
from capsroute.paper.tables import NOTHING, FilledCell, collect, fill_tables

NOTE = "Quick profile: a note."


@pytest.fixture
def whole(monkeypatch, tmp_path):
    """The plan for all cells, and results of it: 50 %, and a point more for each seed."""
    plan = fake_plan(monkeypatch, tmp_path)
    return plan, collect(plan, records_for(plan, lambda setting, seed: 50.0 + seed))


def cell_of(tables, table, row, column):
    (found,) = [filled.cells[row, column] for filled in tables if filled.name == table]
    return found


def test_a_plan_has_each_setting_once_for_each_seed(whole):
    plan, _ = whole
    assert len(plan.runs) == 3 * 43  # 42 settings of the tables, and dynamic routing in three layers for a figure
    assert len({run.job.folder for run in plan.runs}) == len(plan.runs)
    assert len(plan.cells()) == 44
    assert [run.seed for run in plan.runs] == [0] * 43 + [1] * 43 + [2] * 43  # tables fill evenly
    kept = {run.job.config.keep for run in plan.runs if run.setting in FIGURE_SETTINGS and run.seed == 0}
    assert kept == {"net"}
    assert {run.job.config.keep for run in plan.runs if run.setting not in FIGURE_SETTINGS} == {"result"}


@pytest.mark.parametrize(("target", "runs", "cells"), [("glance", 6, 5), ("figures", 5, 5), ("table1", 8, 8)])
def test_other_targets(monkeypatch, tmp_path, target, runs, cells):
    plan = fake_plan(monkeypatch, tmp_path, target, seeds=1)
    assert len(plan.runs) == runs
    assert len(plan.cells()) == cells
    assert SMALL_LAMBDA in TARGETS["glance"]


def test_a_filled_cell_has_mean_deviation_and_difference(whole):
    plan, results = whole
    tables = fill_tables(plan, results)
    assert [len(table.cells) for table in tables] == [8, 12, 12, 12]
    one = cell_of(tables, "table1", "DRA", "CIFAR-10")
    assert one.ours == "51.00 ± 1.00 (n=3)"
    assert one.difference == "-25.05"  # from 76.05
    assert one.note == ""
    assert cell_of(tables, "table4", "4 layers", "λ=0.00001").difference == "+40.94"
    assert {filled.ours for table in tables for filled in table.cells.values()} == {one.ours}


def test_records_of_other_configurations_do_not_count(monkeypatch, tmp_path):
    """Seeds beyond the plan's, other epochs, other profiles: other names."""
    plan = fake_plan(monkeypatch, tmp_path, seeds=1)
    longer = fake_plan(monkeypatch, tmp_path, seeds=1, profile="paper")
    assert collect(plan, records_for(longer)) == {}
    assert len(collect(plan, records_for(longer) + records_for(plan))) == 43


def test_an_empty_cell_says_why(monkeypatch, tmp_path):
    plan = fake_plan(monkeypatch, tmp_path, missing=("svhn",))
    results = collect(plan, [one for one in records_for(plan) if "cifar10" not in one.name])
    tables = fill_tables(plan, results)
    absent = cell_of(tables, "table1", "ARA", "SVHN")
    assert (absent.ours, absent.difference) == (NOTHING, NOTHING)
    assert absent.note == "no data: capsroute data fetch svhn, or --data-dir FOLDER where it is"
    assert cell_of(tables, "table1", "ARA", "CIFAR-10").note == "no finished run"
    assert cell_of(tables, "table1", "ARA", "MNIST").ours == "50.00 ± 0.00 (n=3)"


def test_a_cell_tells_the_states_of_its_nets():
    runs = measured(10.0, 10.2)
    runs.records[1].result["state"] = "collapsed"
    assert FilledCell(CELLS[0], runs, "").note == "collapsed"


def test_the_sample_stands_in_for_fashion_mnist(monkeypatch, tmp_path):
    plan = fake_plan(monkeypatch, tmp_path, "table2", missing=("fashion-mnist",), seeds=1)
    assert plan.stand_ins == {"fashion-mnist": "sample"}
    assert {run.job.config.dataset for run in plan.runs} == {"sample"}
    assert all(run.job.folder.name.startswith("sample-") for run in plan.runs)
    report, _ = make_report(plan, records_for(plan), tmp_path / "report", [], "the command")
    assert "the sample of Fashion-MNIST, 6,000 training and 1,000 test images, stands in" in report.note()
    assert len(report.tables[0].cells) == 12
    assert all(filled.measured for filled in report.tables[0].cells.values())


def test_runs_elsewhere_are_done(monkeypatch, tmp_path):
    plan = fake_plan(monkeypatch, tmp_path, seeds=1)
    records = records_for(plan)
    elsewhere = [record(1.0, name="another run"), *records[10:]]
    assert [run.job.folder.name for run in runs_to_do(plan, elsewhere)] == [one.name for one in records[:10]]
    assert runs_to_do(plan, records) == []
    assert records_of(plan, elsewhere) == records[10:]


def test_records_from_elsewhere_count_without_the_data(monkeypatch, tmp_path):
    """They were made where the data is; here the report is enough."""
    records = records_for(fake_plan(monkeypatch, tmp_path, "table1", seeds=1))
    here = fake_plan(
        monkeypatch, tmp_path, "table1", missing=("svhn", "mnist", "fashion-mnist"), seeds=1, finished=records
    )
    assert here.missing == {}
    assert here.stand_ins == {}
    assert len(collect(here, records)) == 8
    some = [one for one in records if not one.name.startswith(("svhn-2layers-dynamic", "fashion-mnist-2layers-dyn"))]
    here = fake_plan(monkeypatch, tmp_path, "table1", missing=("svhn", "fashion-mnist"), seeds=1, finished=some)
    tables = fill_tables(here, collect(here, some))
    assert cell_of(tables, "table1", "ARA", "SVHN").ours == "50.00 (n=1)"
    assert cell_of(tables, "table1", "DRA", "SVHN").note.startswith("no data: capsroute data fetch svhn")
    assert cell_of(tables, "table1", "ARA", "F-MNIST").ours == "50.00 (n=1)"
    # The sample's accuracy is no neighbour for the whole dataset's.
    assert cell_of(tables, "table1", "DRA", "F-MNIST").note.startswith("no data: capsroute data fetch fashion-mnist")
    assert here.stand_ins == {}


def test_csv_has_a_row_for_each_cell(whole):
    plan, results = whole
    table = fill_tables(plan, results)[3]
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert len(rows) == 12
    assert rows[0] == {
        "row": "2 layers",
        "column": "λ=0.1",
        "accuracy": "51.0000",
        "std": "1.0000",
        "runs": "3",
        "paper": "77.24",
        "difference": "-26.24",
        "note": "",
    }


def test_csv_of_empty_and_single_cells(monkeypatch, tmp_path):
    plan = fake_plan(monkeypatch, tmp_path, "table1", missing=("svhn",), seeds=1)
    table = fill_tables(plan, collect(plan, records_for(plan)))[0]
    rows = {(row["row"], row["column"]): row for row in csv.DictReader(io.StringIO(as_csv(table)))}
    assert rows["DRA", "SVHN"]["accuracy"] == rows["DRA", "SVHN"]["std"] == rows["DRA", "SVHN"]["difference"] == ""
    assert rows["DRA", "SVHN"]["runs"] == "0"
    assert rows["DRA", "MNIST"]["accuracy"] == "50.0000"
    assert rows["DRA", "MNIST"]["std"] == ""


def test_markdown_has_as_many_cells_in_each_row(whole):
    plan, results = whole
    for table in fill_tables(plan, results):
        lines = [line for line in as_markdown(table, NOTE).splitlines() if line.startswith("|")]
        assert len(lines) == 2 + len(table.rows)
        assert {line.count("|") for line in lines} == {len(table.columns) + 2}
        assert set(lines[1]) == {"|", "-"}
        assert as_markdown(table, NOTE).endswith(NOTE)
    assert "51.00 ± 1.00 (n=3)<br>paper 76.05, -25.05" in as_markdown(fill_tables(plan, results)[0], NOTE)


def test_latex_is_a_whole_tabular(whole):
    plan, results = whole
    for table in fill_tables(plan, results):
        text = as_latex(table, "100 % of it.")
        body = [line for line in text.splitlines() if not line.startswith("%")]
        assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == 1
        assert text.isascii()
        assert body[0] == "\\begin{tabular}{l" + "c" * len(table.columns) + "}"
        rows = [line for line in body if line.endswith("\\\\")]
        assert len(rows) == 1 + 2 * len(table.rows)
        assert {row.count("&") for row in rows} == {len(table.columns)}
        assert all(line.startswith(("\\begin", "\\end", "\\hline")) or line in rows for line in body)
        assert text.count("{") == text.count("}")
        assert text.count("$") % 2 == 0
    assert "51.00 $\\pm$ 1.00 (n=3)" in as_latex(fill_tables(plan, results)[0], NOTE)
    assert "(76.05)" in as_latex(fill_tables(plan, results)[0], NOTE)


def test_report_writes_every_form(whole, tmp_path):
    plan, _ = whole
    failures = [("cifar10, 2 layers, DRA, seed 0", "no | space\nleft <here>")]
    report, page = make_report(plan, records_for(plan), tmp_path / "report", failures, "capsroute reproduce <all>")
    for number in (1, 2, 3, 4):
        for ending in ("csv", "md", "tex"):
            assert (tmp_path / f"report/table{number}.{ending}").stat().st_size > 200
    text, markup = (tmp_path / "report/report.md").read_text(), page.read_text()
    for part in ("50.00 ± 0.00 (n=3)", "76.05", report.note(), "Claims of the paper", "Machines", "129 runs"):
        assert part in text
        assert part in markup
    assert "fashion-mnist, 3 layers, DRA [1152, 256, 10]" in text  # in no table
    assert re.findall(r"<h2>(Table \d): ", markup) == ["Table 1", "Table 2", "Table 3", "Table 4"]
    assert "capsroute reproduce &lt;all&gt;" in markup
    assert "left &lt;here&gt;" in markup
    assert "- cifar10, 2 layers, DRA, seed 0: no | space left <here>\n" in text
    assert {drawing.name for drawing in report.drawings} == {"gradients-dynamic", "gradients-adaptive", "accuracy"}
    for drawing in report.drawings:
        assert (tmp_path / f"report/figures/{drawing.name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"figures/{drawing.name}.svg" in text
        assert "profile" in drawing.caption.lower()


def test_a_figures_caption_names_the_runs_that_it_shows(monkeypatch, tmp_path):
    """Here the first seed failed, and dynamic routing was only run in three layers."""
    plan = fake_plan(monkeypatch, tmp_path, "figures", seeds=2)
    chosen = [one for one in records_for(plan) if one.seed == 1 and "2layers-dynamic" not in one.name]
    report, _ = make_report(plan, chosen, tmp_path / "report", [], "the command")
    captions = {drawing.name: drawing.caption for drawing in report.drawings}
    assert "DRA in 3 layers, seed 1." in captions["gradients-dynamic"]
    assert "ARA λ=3 in 2, 3 and 4 layers, seed 1." in captions["gradients-adaptive"]
    assert "fashion-mnist" in captions["gradients-adaptive"]


def test_a_table_without_a_run(monkeypatch, tmp_path):
    plan = fake_plan(monkeypatch, tmp_path, "table3")
    (table,) = fill_tables(plan, {})
    assert {filled.ours for filled in table.cells.values()} == {NOTHING}
    assert {filled.note for filled in table.cells.values()} == {"no finished run"}


def test_dead_nets_train_for_one_epoch_at_a_glance_and_the_text_says_so(monkeypatch, tmp_path):
    glance, everything = (fake_plan(monkeypatch, tmp_path, target, seeds=1) for target in ("glance", "all"))
    assert {run.setting: run.job.config.epochs for run in glance.runs} == {
        setting: 1 if setting in (dra(3), SMALL_LAMBDA) else 3 for setting in TARGETS["glance"]
    }
    assert {run.job.config.epochs for run in everything.runs} == {3}
    assert "1 epoch for nets that are dead" in glance.text
    assert "dead" not in everything.text
