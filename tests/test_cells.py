"""The list of cells against the paper: read from its source where that is here, and copied by hand."""

import pathlib
import re

import pytest

from capsroute import list_routings
from capsroute.config import TrainConfig
from capsroute.models import PRESETS
from capsroute.paper.cells import CELLS, CHANCE, DEPTHS, LAYERS, TITLES, cells_of, distinct_settings

PAPER = pathlib.Path(__file__).parents[1] / "../shared/paper/adaptive-routing.tex"

# Copied by hand from the printed paper: a table's rows from left to right.
PRINTED = {
    "table1": {
        ("DRA", "CIFAR-10 SVHN F-MNIST MNIST"): "76.05 93.65 93.02 99.65",
        ("ARA", "CIFAR-10 SVHN F-MNIST MNIST"): "78.41 94.27 93.07 99.65",
    },
    "table2": {
        ("2 layers", "λ=1 λ=2 λ=3 λ=4"): "92.78 93.23 93.07 92.96",
        ("3 layers", "λ=1 λ=2 λ=3 λ=4"): "93.54 93.63 93.39 93.38",
        ("4 layers", "λ=1 λ=2 λ=3 λ=4"): "93.61 93.71 93.57 93.41",
    },
    "table3": {
        ("2 layers", "λ=1 λ=2 λ=3 λ=4"): "78.24 77.97 78.41 78.34",
        ("3 layers", "λ=1 λ=2 λ=3 λ=4"): "78.41 78.01 78.66 78.44",
        ("4 layers", "λ=1 λ=2 λ=3 λ=4"): "78.42 78.13 78.68 78.50",
    },
    "table4": {
        ("2 layers", "λ=0.1 λ=0.001 λ=0.0001 λ=0.00001"): "77.24 69.25 10.58 10.42",
        ("3 layers", "λ=0.1 λ=0.001 λ=0.0001 λ=0.00001"): "10.23 10.01 10.22 10.12",
        ("4 layers", "λ=0.1 λ=0.001 λ=0.0001 λ=0.00001"): "10.18 10.15 10.02 10.06",
    },
}


def as_listed():
    return {(cell.table, cell.row, cell.column): cell.printed for cell in CELLS}


def read_tables(source):
    """(table, row, column) -> number, of every tabular of the paper that is not commented out."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith("%")]
    found = {}
    for number, block in enumerate(re.findall(r"\\begin\{tabular\}(.*?)\\end\{tabular\}", "\n".join(lines), re.S), 1):
        columns = []
        for row in block.split("\\hline"):
            name, *entries = [entry.strip().removesuffix("\\\\").strip() for entry in row.split("&")]
            if any("%" in entry for entry in entries):
                numbers = [float(re.search(r"[\d.]+", entry)[0]) for entry in entries]
                row_name = re.sub(r"-layers$", " layers", name)
                found |= {(f"table{number}", row_name, c): n for c, n in zip(columns, numbers, strict=True)}
            elif entries:
                columns = [readable(entry) for entry in entries]
    return found


def readable(heading):
    heading = heading.removeprefix("\\footnotesize{").removeprefix("\\").strip(" }")
    return heading.replace("$\\lambda$", "λ").replace("CIFAR10", "CIFAR-10")


def test_there_are_44_cells_of_42_settings():
    assert len(CELLS) == len(as_listed()) == 44
    assert len(distinct_settings()) == 42


def test_cells_are_those_copied_by_hand():
    printed = {
        (table, row, column): float(number)
        for table, rows in PRINTED.items()
        for (row, columns), numbers in rows.items()
        for column, number in zip(columns.split(), numbers.split(), strict=True)
    }
    assert as_listed() == printed


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's source is not beside this repository")
def test_cells_are_those_of_the_papers_source():
    assert as_listed() == read_tables(PAPER.read_text())


def test_the_two_settings_that_two_tables_share_are_those_of_lambda_3():
    """Whence Table 1 is read as λ = 3: the numbers are printed twice, and are the same."""
    by_setting = {}
    for cell in CELLS:
        by_setting.setdefault(cell.setting, []).append(cell)
    shared = [cells for cells in by_setting.values() if len(cells) > 1]
    assert [[cell.table for cell in cells] for cells in shared] == [["table1", "table3"], ["table1", "table2"]]
    for cells in shared:
        assert len({cell.printed for cell in cells}) == 1
        assert cells[0].setting.lam == 3


def test_tables_are_in_the_order_of_rows_and_columns():
    assert [len(cells_of(table)) for table in TITLES] == [8, 12, 12, 12]
    assert [cell.column for cell in cells_of("table4")[:4]] == ["λ=0.1", "λ=0.001", "λ=0.0001", "λ=0.00001"]
    assert [cell.setting.lam for cell in cells_of("table4")[:4]] == [1e-1, 1e-3, 1e-4, 1e-5]


def test_every_setting_is_a_run_of_the_library():
    names = set()
    for setting in distinct_settings():
        config = TrainConfig(**setting.options())
        names.add(setting.name)
        assert config.dataset == setting.dataset
        assert config.routing in list_routings()
        assert config.routing_options().get("lam") == setting.lam
        net = PRESETS[config.preset]["capsules"]
        assert len(net) == setting.layers
        assert str([*net]) == LAYERS[setting.layers]
    assert len(names) == 42


def test_settings_read_well():
    first, last = distinct_settings()[0], distinct_settings()[-1]
    assert first.title == "cifar10, 2 layers, DRA"
    assert last.title == "cifar10, 4 layers, ARA λ=1e-05"
    assert last.name == "cifar10-4layers-adaptive-lambda-lam1e-05"
    assert tuple(DEPTHS) == tuple(LAYERS) == (2, 3, 4)
    assert CHANCE == 100 / 10
