"""Each claim's rule on results that bear it out, that contradict it, and that decide nothing."""

import pytest
from paper_runs import around, as_printed, measured

from capsroute.paper.cells import CELLS, CHANCE, Setting, cells_of
from capsroute.paper.claims import AS_GOOD, FAILS, HOLDS, OPEN, check_claims, compare
from capsroute.paper.plan import ARA, dra


def verdicts(results, part):
    """What the rules say of the claims that have this in their text."""
    found = {v.claim: v.verdict for v in check_claims(results) if part in v.claim}
    assert found, part
    return found


def only(results, part):
    (verdict,) = verdicts(results, part).values()
    return verdict


def table_1(dataset, adaptive, dynamic):
    return {Setting(dataset, 2, ARA, 3.0): adaptive, Setting(dataset, 2, "dynamic"): dynamic}


def test_the_papers_own_numbers_bear_its_claims_out():
    told = check_claims(as_printed(CELLS))
    assert len(told) == 4 + 16 + 1  # ARA and DRA by dataset, depth by λ, small λ; no deep DRA in the tables
    assert {v.verdict for v in told} == {HOLDS}
    assert all(v.numbers for v in told)


def test_nothing_measured_nothing_claimed():
    assert check_claims({}) == []


@pytest.mark.parametrize(
    ("dataset", "title"),
    [("cifar10", "CIFAR-10"), ("svhn", "SVHN"), ("fashion-mnist", "F-MNIST"), ("mnist", "MNIST")],
)
@pytest.mark.parametrize(
    ("adaptive", "dynamic", "verdict"),
    [
        (around(78), around(76), HOLDS),
        (around(76), around(78), FAILS),
        (measured(78, 78.1), measured(76, 76.1), OPEN),  # two seeds
        (around(78), measured(76), OPEN),
        (around(76, 3.0), around(78, 3.0), OPEN),  # seeds differ by more than the routings
    ],
)
def test_adaptive_against_dynamic(dataset, title, adaptive, dynamic, verdict):
    assert only(table_1(dataset, adaptive, dynamic), f"{title}: ARA") == verdict


@pytest.mark.parametrize(("shallow", "deep", "verdict"), [(80, 82, HOLDS), (82, 80, FAILS), (None, 82, None)])
def test_deeper_against_shallower_for_each_lambda(shallow, deep, verdict):
    for dataset, title in (("fashion-mnist", "F-MNIST"), ("cifar10", "CIFAR-10")):
        for lam in (1, 2, 3, 4):
            results = {Setting(dataset, 3, ARA, lam): around(deep)}
            if shallow is None:
                assert not [v for v in check_claims(results) if "layers are as good" in v.claim]
                continue
            results |= {Setting(dataset, 2, ARA, lam): around(shallow), Setting(dataset, 4, ARA, lam): measured(deep)}
            assert verdicts(results, "layers are as good") == {
                f"{title}, λ={lam}: 3 layers are as good as 2": verdict,
                f"{title}, λ={lam}: 4 layers are as good as 3": OPEN,  # one run
            }


@pytest.mark.parametrize(
    ("better", "worse", "verdict"),
    [
        (around(93.00, 0.01), around(93.00, 0.01), HOLDS),  # equal is as good
        (around(93.00, 0.01), around(93.05, 0.01), HOLDS),  # lower by less than counts
        (around(92.80, 0.01), around(93.00, 0.01), FAILS),  # lower by more, and by more than the seeds explain
        (around(92.95, 0.01), around(93.00, 0.20), OPEN),  # could be either
        (measured(93, 93, 93), measured(93, 93, 93), HOLDS),  # no spread at all
        (measured(92, 92, 92), measured(93, 93, 93), FAILS),
        (around(10.0), around(10.0), OPEN),  # two dead nets are not as good as each other
        (around(10.0), around(80.0), FAILS),
        (around(80.0), around(10.0), HOLDS),
    ],
)
def test_as_good_as(better, worse, verdict):
    told = compare("the claim", better, worse)
    assert told.verdict == verdict
    assert told.claim == "the claim"
    assert f"{better.mean - worse.mean:+.2f}" in told.numbers


def test_more_runs_decide_what_three_leave_open():
    """Between equals, too: else "not enough runs" would be said for ever."""
    equal = [93.0 - 0.2, 93.0, 93.0 + 0.2]
    assert compare("", measured(*equal), measured(*equal)).verdict == OPEN
    assert compare("", measured(*equal * 10), measured(*equal * 10)).verdict == HOLDS
    lower = [accuracy - 3 * AS_GOOD for accuracy in equal]
    assert compare("", measured(*lower), measured(*equal)).verdict == OPEN
    assert compare("", measured(*lower * 10), measured(*equal * 10)).verdict == FAILS


@pytest.mark.parametrize("layers", [3, 4])
@pytest.mark.parametrize(
    ("stacked", "verdict"),
    [
        (around(CHANCE), HOLDS),
        (measured(10.4), HOLDS),  # a net that is dead once needs no average
        (measured(19.0, 18.0, 20.0, state="collapsed"), HOLDS),
        (around(80.0), FAILS),
        (measured(10.0, 80.0, 80.0), OPEN),  # some die
    ],
)
def test_stacked_dynamic_routing_collapses(layers, stacked, verdict):
    assert only({dra(layers): stacked}, f"DRA in {layers} layers") == verdict


def test_one_collapsed_run_of_three_is_no_collapse():
    mixed = measured(10.0, 80.0, 81.0)
    mixed.records[0].result["state"] = "collapsed"
    assert only({dra(3): mixed}, "DRA in 3 layers") == OPEN


def table_4(**accuracies):
    """A row for each depth, a number for each λ; None is a cell without runs."""
    rows = {int(name[-1]): numbers for name, numbers in accuracies.items()}
    cells = cells_of("table4")
    return {
        cell.setting: around(numbers[place])
        for layers, numbers in rows.items()
        for place, cell in enumerate(cell for cell in cells if cell.setting.layers == layers)
        if place < len(numbers) and numbers[place] is not None
    }


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ({"layers2": (77, 69, 10, 10), "layers3": (10, 10, 10, 10), "layers4": (10, 10, 10, 10)}, HOLDS),
        ({"layers2": (77, 69, 60, 10), "layers3": (70, 60, 10, 10), "layers4": (70, 10, 10, 10)}, HOLDS),
        ({"layers2": (77, 69), "layers3": (10, 10)}, HOLDS),
        ({"layers2": (10, 10, 10, 10), "layers3": (70, 10, 10, 10)}, FAILS),
        ({"layers2": (77, 10), "layers3": (10, 10), "layers4": (70, 10)}, FAILS),  # 4 layers outlive 3
        ({"layers2": (77, 69, 60, 50), "layers3": (77, 69, 60, 50), "layers4": (77, 69, 60, 50)}, OPEN),
        ({"layers2": (10, 10, 10, 10), "layers3": (10, 10, 10, 10)}, OPEN),
        ({"layers2": (77, None), "layers3": (None, 10)}, OPEN),  # no λ of which two depths are known
    ],
)
def test_small_lambda_collapses_deep_nets_first(rows, verdict):
    results = table_4(**rows)
    if rows["layers2"] == (77, None):
        assert not [v for v in check_claims(results) if "small λ" in v.claim]
    else:
        assert only(results, "small λ") == verdict
