"""Which runs a reproduction needs: the settings of its target, times the seeds of its profile."""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capsroute.data.files import SPLITS, find_split
from capsroute.data.table import DATASETS
from capsroute.paper.cells import TABLE_1_LAMBDA, TITLES, Cell, Setting, cells_of, distinct_settings
from capsroute.paper.profiles import Profile
from capsroute.sweeps.jobs import Job, make_job

FASHION, SAMPLE = "fashion-mnist", "sample"
ARA = "adaptive-lambda"


def ara(layers: int, lam: float = TABLE_1_LAMBDA) -> Setting:
    """Adaptive routing on Fashion-MNIST."""
    return Setting(FASHION, layers, ARA, lam)


def dra(layers: int) -> Setting:
    """Dynamic routing on Fashion-MNIST."""
    return Setting(FASHION, layers, "dynamic")


# Figures show these runs: both routings in two layers, dynamic routing stacked, adaptive routing stacked.
FIGURE_SETTINGS = (ara(2), dra(2), ara(3), ara(4), dra(3))
SMALL_LAMBDA = ara(3, 0.001)
TARGETS: Mapping[str, tuple[Setting, ...]] = {
    # The paper at a glance: Table 1's Fashion-MNIST column, each depth once, both ways of collapsing, all figures.
    "glance": (*FIGURE_SETTINGS, SMALL_LAMBDA),
    "figures": FIGURE_SETTINGS,
    **{table: tuple(distinct_settings(cells_of(table))) for table in TITLES},
    "all": tuple(dict.fromkeys([*distinct_settings(), *FIGURE_SETTINGS])),
}


# At a glance, nets that are dead from their first step: under a profile that has a shorter training for them, that.
DEAD_AT_A_GLANCE: Mapping[str, tuple[Setting, ...]] = {"glance": (dra(3), SMALL_LAMBDA)}


@dataclass(frozen=True)
class Run:
    """A run of the plan: what it is about and the job that does it."""

    setting: Setting
    seed: int
    job: Job


@dataclass(frozen=True)
class Plan:
    """What a reproduction does, and what it cannot do for want of data."""

    target: str
    profile: Profile
    runs: tuple[Run, ...]
    missing: Mapping[str, str]  # dataset -> how to get it
    stand_ins: Mapping[str, str]  # dataset -> what is used in its place

    @property
    def text(self) -> str:
        """How its runs are trained, for tables and captions."""
        shortened = self.profile.options_if_dead and self.target in DEAD_AT_A_GLANCE
        return self.profile.text + (f"; {self.profile.text_if_dead}" if shortened else "")

    def cells(self) -> list[Cell]:
        """The cells of the tables that this plan is about: its table's, or all that its settings stand in."""
        if self.target in TITLES:
            return cells_of(self.target)
        settings = set(TARGETS[self.target])
        return [cell for table in TITLES for cell in cells_of(table) if cell.setting in settings]

    def runs_of(self, setting: Setting) -> list[Run]:
        """The runs of a setting, by seed."""
        return [run for run in self.runs if run.setting == setting]


def make_plan(
    target: str,
    profile: Profile,
    seeds: int,
    store: Path,
    data_dir: Path | None,
    options: dict[str, Any],
    finished: Collection[str] = (),
) -> Plan:
    """The plan for a target; `options` are further ones of `TrainConfig`, for every run.

    Runs that are finished, in the store or, by their names, elsewhere, are part of it whether their data is here or
    not. Where Fashion-MNIST is not on this machine, its sample stands in for it, and everything made so says so; but
    not beside finished runs on all of it, whose accuracies are others.
    """
    missing: dict[str, str] = {}
    stand_ins: dict[str, str] = {}
    runs: list[Run] = []
    settings = TARGETS[target]

    def run_of(setting: Setting, seed: int, dataset: str) -> Run:
        shown = dataclasses.replace(setting, dataset=dataset)
        kept = "net" if seed == 0 and setting in FIGURE_SETTINGS else "result"  # figures look into these nets
        own: dict[str, Any] = {"seed": seed, "data_dir": data_dir, "keep": kept}
        if setting in DEAD_AT_A_GLANCE.get(target, ()):
            own |= profile.options_if_dead
        chosen = {**profile.options_for(setting.dataset), **shown.options(), **options, **own}
        return Run(setting, seed, make_job(store / profile.name, shown.name, shown.title, chosen))

    for dataset in dict.fromkeys(setting.dataset for setting in settings):
        pairs = [(setting, seed) for setting in settings if setting.dataset == dataset for seed in range(seeds)]
        mine = [run_of(setting, seed, dataset) for setting, seed in pairs]
        if not is_here(dataset, data_dir):
            done = [run for run in mine if run.job.done or run.job.folder.name in finished]
            if dataset == FASHION and not done:
                stand_ins[dataset] = SAMPLE
                mine = [run_of(setting, seed, SAMPLE) for setting, seed in pairs]
            elif len(done) < len(mine):
                missing[dataset] = f"capsroute data fetch {dataset}, or --data-dir FOLDER where it is"
                mine = done
        runs += mine
    # A seed of everything before a second seed of anything, so that the tables fill evenly; else in the target's order.
    runs.sort(key=lambda run: (run.seed, settings.index(run.setting)))
    return Plan(target, profile, tuple(runs), missing, stand_ins)


def is_here(dataset: str, data_dir: Path | None) -> bool:
    """Whether both splits of a named dataset are on this machine."""
    return all(find_split(DATASETS[dataset], data_dir, split) for split in SPLITS)
