"""Every cell of the paper's tables, with the number that is printed in it."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

# Capsule layers -> preset, and the capsules of each layer as the paper prints them.
DEPTHS: MappingProxyType[int, str] = MappingProxyType({2: "paper-2", 3: "paper-3", 4: "paper-4"})
LAYERS: MappingProxyType[int, str] = MappingProxyType({2: "[1152, 10]", 3: "[1152, 256, 10]", 4: "[1152, 256, 32, 10]"})
# Table 1 gives no λ; its CIFAR-10 and Fashion-MNIST cells are those of λ = 3 in the other tables.
TABLE_1_LAMBDA = 3.0
CHANCE = 10.0  # percent, of ten classes


@dataclass(frozen=True)
class Setting:
    """What a cell is about: the runs of two cells with the same setting are the same runs."""

    dataset: str
    layers: int
    routing: str
    lam: float | None = None

    @property
    def name(self) -> str:
        """For folders and tables of progress."""
        lam = "" if self.lam is None else f"-lam{self.lam:g}"
        return f"{self.dataset}-{self.layers}layers-{self.routing}{lam}"

    @property
    def title(self) -> str:
        """For a reader."""
        return f"{self.dataset}, {self.layers} layers, {self.how}"

    @property
    def how(self) -> str:
        """Its routing, as the paper calls it."""
        return "DRA" if self.routing == "dynamic" else f"ARA λ={self.lam:g}"

    def options(self) -> dict[str, Any]:
        """Of `TrainConfig`."""
        lam = {} if self.lam is None else {"lam": f"{self.lam:g}"}
        return {"dataset": self.dataset, "preset": DEPTHS[self.layers], "routing": self.routing, **lam}


@dataclass(frozen=True)
class Cell:
    """A cell of a table: where it stands, what it is about, and the accuracy in percent that is printed."""

    table: str
    row: str
    column: str
    setting: Setting
    printed: float


TITLES: MappingProxyType[str, str] = MappingProxyType(
    {
        "table1": "Dynamic routing (DRA) and adaptive routing (ARA, read as λ=3), two capsule layers",
        "table2": "Adaptive routing by depth and λ, Fashion-MNIST",
        "table3": "Adaptive routing by depth and λ, CIFAR-10",
        "table4": "Adaptive routing with small λ, CIFAR-10",
    }
)
COLUMNS = MappingProxyType({"CIFAR-10": "cifar10", "SVHN": "svhn", "F-MNIST": "fashion-mnist", "MNIST": "mnist"})

_TABLE_1 = {"DRA": (76.05, 93.65, 93.02, 99.65), "ARA": (78.41, 94.27, 93.07, 99.65)}
_BY_LAMBDA: dict[str, tuple[str, tuple[float, ...], dict[int, tuple[float, ...]]]] = {
    "table2": (
        "fashion-mnist",
        (1, 2, 3, 4),
        {2: (92.78, 93.23, 93.07, 92.96), 3: (93.54, 93.63, 93.39, 93.38), 4: (93.61, 93.71, 93.57, 93.41)},
    ),
    "table3": (
        "cifar10",
        (1, 2, 3, 4),
        {2: (78.24, 77.97, 78.41, 78.34), 3: (78.41, 78.01, 78.66, 78.44), 4: (78.42, 78.13, 78.68, 78.50)},
    ),
    "table4": (
        "cifar10",
        (0.1, 0.001, 0.0001, 0.00001),
        {2: (77.24, 69.25, 10.58, 10.42), 3: (10.23, 10.01, 10.22, 10.12), 4: (10.18, 10.15, 10.02, 10.06)},
    ),
}


def _table_1() -> list[Cell]:
    settings = {
        "DRA": lambda dataset: Setting(dataset, 2, "dynamic"),
        "ARA": lambda dataset: Setting(dataset, 2, "adaptive-lambda", TABLE_1_LAMBDA),
    }
    return [
        Cell("table1", row, column, settings[row](dataset), printed)
        for row, numbers in _TABLE_1.items()
        for (column, dataset), printed in zip(COLUMNS.items(), numbers, strict=True)
    ]


def _by_lambda(table: str) -> list[Cell]:
    dataset, lams, rows = _BY_LAMBDA[table]
    return [
        Cell(table, f"{layers} layers", f"λ={_decimal(lam)}", Setting(dataset, layers, "adaptive-lambda", lam), printed)
        for layers, numbers in rows.items()
        for lam, printed in zip(lams, numbers, strict=True)
    ]


def _decimal(number: float) -> str:
    return f"{number:.5f}".rstrip("0").rstrip(".")


CELLS: tuple[Cell, ...] = (*_table_1(), *_by_lambda("table2"), *_by_lambda("table3"), *_by_lambda("table4"))


def cells_of(table: str) -> list[Cell]:
    """The cells of a table, row by row."""
    return [cell for cell in CELLS if cell.table == table]


def distinct_settings(cells: tuple[Cell, ...] | list[Cell] = CELLS) -> list[Setting]:
    """What the cells are about, each once, in their order."""
    return list(dict.fromkeys(cell.setting for cell in cells))
