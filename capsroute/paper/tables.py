"""The paper's tables, filled: ours beside what is printed."""

from collections.abc import Mapping
from dataclasses import dataclass

from capsroute.paper.cells import TITLES, Cell, Setting
from capsroute.paper.plan import Plan
from capsroute.sweeps.records import Measured, Record

NOTHING = "–"


Results = Mapping[Setting, Measured]


@dataclass(frozen=True)
class FilledCell:
    """A cell as reports show it."""

    cell: Cell
    measured: Measured | None
    why_empty: str  # where there is no run

    @property
    def ours(self) -> str:
        """What was measured, or a dash."""
        return NOTHING if self.measured is None else self.measured.text()

    @property
    def difference(self) -> str:
        """From the printed number, with its sign."""
        return NOTHING if self.measured is None else f"{self.measured.mean - self.cell.printed:+.2f}"

    @property
    def note(self) -> str:
        """Why it is empty, or what state its nets ended in."""
        return self.why_empty if self.measured is None else ", ".join(self.measured.states)


@dataclass(frozen=True)
class FilledTable:
    """A table as reports show it."""

    name: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], FilledCell]


def collect(plan: Plan, records: list[Record]) -> Results:
    """What was measured of each setting of the plan: records count for the very configurations that it names."""
    by_name = {record.name: record for record in records}
    results = {}
    for setting in dict.fromkeys(run.setting for run in plan.runs):
        found = [by_name[name] for run in plan.runs_of(setting) if (name := run.job.folder.name) in by_name]
        if found:
            results[setting] = Measured(tuple(found))
    return results


def fill_tables(plan: Plan, results: Results) -> list[FilledTable]:
    """The tables that the plan has cells of, with these cells."""
    tables = []
    for name, title in TITLES.items():
        cells = [cell for cell in plan.cells() if cell.table == name]
        if not cells:
            continue
        filled = {
            (cell.row, cell.column): FilledCell(cell, results.get(cell.setting), _why_empty(plan, cell))
            for cell in cells
        }
        rows = tuple(dict.fromkeys(cell.row for cell in cells))
        columns = tuple(dict.fromkeys(cell.column for cell in cells))
        tables.append(FilledTable(name, title, rows, columns, filled))
    return tables


def _why_empty(plan: Plan, cell: Cell) -> str:
    way = plan.missing.get(cell.setting.dataset)
    return f"no data: {way}" if way else "no finished run"
