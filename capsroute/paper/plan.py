"""Which runs a reproduction needs: the settings of its target, times the seeds of its profile."""

import dataclasses
from collections.abc import Mapping
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

    def cells(self) -> list[Cell]:
        """The cells of the tables that this plan is about."""
        settings = set(TARGETS[self.target])
        return [cell for table in TITLES for cell in cells_of(table) if cell.setting in settings]

    def runs_of(self, setting: Setting) -> list[Run]:
        """The runs of a setting, by seed."""
        return [run for run in self.runs if run.setting == setting]


def make_plan(
    target: str, profile: Profile, seeds: int, store: Path, data_dir: Path | None, options: dict[str, Any]
) -> Plan:
    """The plan for a target; `options` are further ones of `TrainConfig`, for every run.

    Where Fashion-MNIST is not on this machine, its sample stands in for it, and everything made so says so.
    """
    missing: dict[str, str] = {}
    stand_ins: dict[str, str] = {}
    runs = []
    for setting in TARGETS[target]:
        dataset = _available(setting.dataset, data_dir, missing, stand_ins)
        if dataset is None:
            continue
        for seed in range(seeds):
            shown = dataclasses.replace(setting, dataset=dataset)
            kept = "net" if seed == 0 and setting in FIGURE_SETTINGS else "result"  # figures look into these nets
            job = make_job(
                store / profile.name,
                shown.name,
                shown.title,
                {
                    **profile.options_for(setting.dataset),
                    **shown.options(),
                    **options,
                    "seed": seed,
                    "data_dir": data_dir,
                    "keep": kept,
                },
            )
            runs.append(Run(setting, seed, job))
    # A seed of everything before a second seed of anything: the tables fill evenly.
    runs.sort(key=lambda run: run.seed)
    return Plan(target, profile, tuple(runs), missing, stand_ins)


def _available(dataset: str, data_dir: Path | None, missing: dict[str, str], stand_ins: dict[str, str]) -> str | None:
    if all(find_split(DATASETS[dataset], data_dir, split) for split in SPLITS):
        return dataset
    if dataset == FASHION:
        stand_ins[dataset] = SAMPLE
        return SAMPLE
    missing[dataset] = f"capsroute data fetch {dataset}, or --data-dir FOLDER where it is"
    return None
