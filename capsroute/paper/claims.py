"""What the paper says of its tables, checked by rule on the measured ones."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from capsroute.paper.cells import CHANCE, COLUMNS, DEPTHS, TABLE_1_LAMBDA, Setting, cells_of
from capsroute.paper.plan import ARA, FASHION, dra
from capsroute.paper.tables import Results
from capsroute.sweeps.records import Measured

HOLDS, FAILS, OPEN = "holds", "does not hold", "not enough runs"
ENOUGH_RUNS = 3
ERRORS = 2.0  # a difference counts from so many standard errors on


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, and what the measurements say to it."""

    claim: str
    verdict: str  # one of HOLDS, FAILS, OPEN
    numbers: str


def check_claims(results: Results) -> list[Verdict]:
    """Every claim that the measured settings say something about."""
    return [*_adaptive_beats_dynamic(results), *_deeper_is_better(results), *_dynamic_dies(results), *_small(results)]


def at_chance(measured: Measured) -> bool:
    """Whether the net tells nothing: within three points of what guessing gives."""
    return measured.mean < CHANCE + 3


def compare(claim: str, better: Measured, worse: Measured) -> Verdict:
    """Whether one mean is above another by more than the spread between seeds explains."""
    difference = better.mean - worse.mean
    numbers = f"{better.text()} against {worse.text()}: {difference:+.2f}"
    if min(better.count, worse.count) < ENOUGH_RUNS:
        return Verdict(claim, OPEN, f"{numbers}; at least {ENOUGH_RUNS} seeds of each are needed")
    error = math.sqrt(better.std**2 / better.count + worse.std**2 / worse.count)
    numbers += f", standard error {error:.2f}"
    if abs(difference) <= ERRORS * error:
        return Verdict(claim, OPEN, f"{numbers}; within the spread of the seeds")
    return Verdict(claim, HOLDS if difference > 0 else FAILS, numbers)


def _adaptive_beats_dynamic(results: Results) -> Iterator[Verdict]:
    for title, dataset in COLUMNS.items():
        adaptive = results.get(Setting(dataset, 2, ARA, TABLE_1_LAMBDA))
        dynamic = results.get(Setting(dataset, 2, "dynamic"))
        if adaptive and dynamic:
            yield compare(f"{title}: ARA is at least as good as DRA", adaptive, dynamic)


def _deeper_is_better(results: Results) -> Iterator[Verdict]:
    for table, title in (("table2", "F-MNIST"), ("table3", "CIFAR-10")):
        for first in [cell for cell in cells_of(table) if cell.setting.layers == 2]:
            setting = first.setting
            for fewer, more in pairwise(DEPTHS):
                shallow = results.get(Setting(setting.dataset, fewer, ARA, setting.lam))
                deep = results.get(Setting(setting.dataset, more, ARA, setting.lam))
                if shallow and deep:
                    yield compare(f"{title}, {first.column}: {more} layers are as good as {fewer}", deep, shallow)


def _dynamic_dies(results: Results) -> Iterator[Verdict]:
    for layers in (3, 4):
        stacked = results.get(dra(layers))
        if stacked:
            states = ", ".join(record.state for record in stacked.records)
            dead = at_chance(stacked) or stacked.states == ["collapsed"]
            yield Verdict(
                f"{FASHION}: DRA in {layers} layers collapses",
                HOLDS if dead else FAILS,
                f"{stacked.text()}, chance is {CHANCE:.0f}; {states}",
            )


def _small(results: Results) -> Iterator[Verdict]:
    by_lambda: dict[float, dict[int, Measured]] = {}
    for cell in cells_of("table4"):
        measured = results.get(cell.setting)
        if measured and cell.setting.lam is not None:
            by_lambda.setdefault(cell.setting.lam, {})[cell.setting.layers] = measured
    both = {lam: depths for lam, depths in by_lambda.items() if 2 in depths and len(depths) > 1}
    if not both:
        return
    numbers = []
    as_claimed = against = False
    for lam, depths in both.items():
        shallow = at_chance(depths[2])
        deep = [at_chance(measured) for layers, measured in depths.items() if layers > 2]
        as_claimed = as_claimed or (not shallow and all(deep))
        against = against or (shallow and not all(deep))
        accuracies = ", ".join(f"{layers} layers {measured.mean:.1f}" for layers, measured in sorted(depths.items()))
        numbers.append(f"λ={lam:g}: {accuracies}")
    verdict = FAILS if against else HOLDS if as_claimed else OPEN
    yield Verdict("CIFAR-10: small λ collapses deep nets before shallow ones", verdict, "; ".join(numbers))
