"""What the paper says of its tables, checked by rule on the measured ones."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from capsroute.paper.cells import CHANCE, COLUMNS, DEPTHS, TABLE_1_LAMBDA, Setting, cells_of
from capsroute.paper.plan import ARA, dra
from capsroute.paper.tables import Results
from capsroute.sweeps.records import Measured

HOLDS, FAILS, OPEN = "holds", "does not hold", "not enough runs"
ENOUGH_RUNS = 3
DEAD_BELOW = CHANCE + 3
ERRORS = 2.0  # a difference is known to so many standard errors
# Percent. Nets that are equally good would never be found so if any difference counted, however many runs there were;
# so the claim "as good as" is about less than this, ten of ten thousand test images, chosen before any run.
AS_GOOD = 0.1


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
    return measured.mean < DEAD_BELOW


def compare(claim: str, better: Measured, worse: Measured) -> Verdict:
    """Whether one mean is as high as another, or lower, by more than the spread between seeds explains."""
    difference = better.mean - worse.mean
    numbers = f"{better.text()} against {worse.text()}: {difference:+.2f}"
    if at_chance(better) and at_chance(worse):
        return Verdict(claim, OPEN, f"{numbers}; neither net tells more than guessing does")
    if min(better.count, worse.count) < ENOUGH_RUNS:
        return Verdict(claim, OPEN, f"{numbers}; at least {ENOUGH_RUNS} seeds of each are needed")
    margin = ERRORS * math.sqrt(better.std**2 / better.count + worse.std**2 / worse.count)
    numbers += f", give or take {margin:.2f}"
    if difference - margin >= -AS_GOOD:
        return Verdict(claim, HOLDS, numbers)
    if difference + margin < -AS_GOOD:
        return Verdict(claim, FAILS, numbers)
    return Verdict(claim, OPEN, f"{numbers}; within the spread of the seeds")


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
            dead = [record.state == "collapsed" or record.accuracy < DEAD_BELOW for record in stacked.records]
            states = ", ".join(record.state for record in stacked.records)
            yield Verdict(
                f"F-MNIST: DRA in {layers} layers collapses",
                HOLDS if all(dead) else OPEN if any(dead) else FAILS,
                f"{stacked.text()}, chance is {CHANCE:.0f}; {states}",
            )


def _small(results: Results) -> Iterator[Verdict]:
    by_lambda: dict[str, dict[int, Measured]] = {}
    for cell in cells_of("table4"):  # by rows: of each λ the shallowest first
        measured = results.get(cell.setting)
        if measured:
            by_lambda.setdefault(cell.column, {})[cell.setting.layers] = measured
    comparable = {column: depths for column, depths in by_lambda.items() if len(depths) > 1}
    if not comparable:
        return
    numbers = []
    deep_first = shallow_first = False
    for column, depths in comparable.items():
        dead = [at_chance(measured) for measured in depths.values()]
        deep_first = deep_first or any(after and not before for before, after in combinations(dead, 2))
        shallow_first = shallow_first or any(before and not after for before, after in combinations(dead, 2))
        accuracies = ", ".join(f"{layers} layers {measured.mean:.1f}" for layers, measured in depths.items())
        numbers.append(f"{column}: {accuracies}")
    verdict = FAILS if shallow_first else HOLDS if deep_first else OPEN
    yield Verdict("CIFAR-10: small λ collapses deep nets before shallow ones", verdict, "; ".join(numbers))
