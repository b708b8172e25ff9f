"""The benchmark's own arithmetic, and that it tells no times of wrong results. No test here asserts a time."""

import json

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from capsroute import CapsNet, CapsuleLayer, margin_loss
from capsroute.bench.dense import DenseVotes
from capsroute.bench.layers import BATCH, LayerCase, LayerSize
from capsroute.bench.memory import needed_for_training_mb
from capsroute.bench.scaling import slope
from capsroute.bench.targets import Target, check_targets
from capsroute.bench.timing import time_all
from capsroute.bench.work import (
    LARGE,
    forward_products,
    layer_products,
    milliseconds_at_limit,
    training_products,
)
from capsroute.errors import CapsrouteError
from capsroute.models import parameter_count
from capsroute.routing import ROUTINGS
from capsroute.votes import Votes

SMALL = LayerSize(20, 5, 4, 6)


def counted(job):
    with FlopCounterMode(display=False) as counter:
        job()
    return counter.get_total_flops() // 2  # multiply-adds


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32)])
@pytest.mark.parametrize("preset", ["paper-2", "paper-3", "small"])
def test_multiply_adds_are_those_that_torch_counts(preset, shape):
    net = CapsNet.from_preset(preset, in_shape=shape, **({"capsules": (144, 10)} if preset == "small" else {}))
    images, targets = torch.rand(2, *shape), torch.tensor([3, 1])
    with torch.no_grad():
        assert counted(lambda: net(images)) == forward_products(net, 2)
    assert counted(lambda: margin_loss(net(images), targets).backward()) == training_products(net, 2)


def test_a_layers_multiply_adds():
    layer = CapsuleLayer(7, 3, 4, 5)
    assert counted(lambda: layer(torch.rand(2, 7, 4))) == layer_products(layer, 2) == 2 * 7 * 4 * 3 * 5


def test_the_limit_is_the_large_products_rate():
    assert milliseconds_at_limit(2 * LARGE**3, 10.0) == 20.0


@pytest.mark.parametrize("routing", list(ROUTINGS))
def test_every_routing_runs_on_a_table_and_agrees(routing):
    case = LayerCase(routing, SMALL, torch.float32, "cpu")
    case.refuse_difference()
    u = case.u[:2].detach()
    plain, table = Votes(u, case.layer.weight), DenseVotes(u, case.layer.weight)
    assert table.table.shape == (2, SMALL.lower, SMALL.upper, SMALL.out_dim)
    torch.testing.assert_close(plain.sum(), table.sum())


def test_no_times_are_told_of_a_wrong_result(monkeypatch):
    case = LayerCase("adaptive-lambda", SMALL, torch.float32, "cpu")
    right = DenseVotes.sum
    monkeypatch.setattr(DenseVotes, "sum", lambda votes: 1.01 * right(votes))
    with pytest.raises(CapsrouteError, match="differ from the dense form's"):
        case.refuse_difference()


def test_a_wrong_gradient_is_found_too(monkeypatch):
    case = LayerCase("dynamic", SMALL, torch.float32, "cpu")
    right = DenseVotes.mix
    monkeypatch.setattr(DenseVotes, "mix", lambda votes, c: right(votes, c).detach() + 0 * votes.table.sum())
    with pytest.raises(CapsrouteError, match="gradients of u"):
        case.refuse_difference()


def test_jobs_take_turns():
    order = []
    timings = time_all({name: lambda name=name: order.append(name) for name in "ab"}, repeats=3, device="cpu")
    assert order == list("ab") * 4  # once to warm up
    assert timings["a"].repeats == 3
    assert timings["a"].low <= timings["a"].median <= timings["a"].high


def test_slopes():
    assert slope([1, 2, 4, 8], [3, 6, 12, 24]) == pytest.approx(1)
    assert slope([1, 2, 4], [5, 20, 80]) == pytest.approx(2)


def test_what_training_must_keep():
    net = CapsNet.from_preset("paper-2")
    features, maps = BATCH * 256 * 20 * 20, BATCH * 1152 * 8
    expected = (4 * 4 * parameter_count(net) + 2 * (features + maps)) / 2**20
    assert needed_for_training_mb(net, torch.bfloat16) == pytest.approx(expected)


def test_targets_are_met_or_missed():
    assert Target("", 1.2, 1.3, at_least=False).met
    assert not Target("", 1.4, 1.3, at_least=False).met
    assert Target("", 1.4, 1.3, at_least=True).met


def test_targets_of_a_result():
    ms = {"ms": 4.0}
    layer = {"size": "s", "upper": 10, "ours": ms, "bare": {"ms": 2.0}}
    result = {
        "layers": [
            {**layer, "routing": "adaptive-lambda"},
            {**layer, "routing": "adaptive", "ours": {"ms": 4.2}},
            {**layer, "routing": "dynamic", "float32": {"ours": ms, "dense": {"ms": 20.0}}},
        ],
        "memory": {
            "dynamic_ours_mb": 1.0,
            "dynamic_dense_mb": 10.0,
            "paper-3_training_mb": 12.0,
            "paper-3_needed_mb": 10.0,
        },
        "nets": [
            {
                "net": "n",
                "preset": "paper-2",
                "routing": "adaptive-lambda",
                "precision": "bf16",
                "step": {"ms": 100.0},
                "step_share_of_limit": 0.7,
                "capsule_part": {"ms": 4.0},
                "inference": ms,
                "inference_share_of_limit": 0.9,
            }
        ],
        "scaling": [{"routing": "dynamic", "grows": "I", "slope": 1.2}],
    }
    rows = [target.to_json() for target in check_targets(json.loads(json.dumps(result)))]
    assert [(row["value"], row["met"]) for row in rows] == [
        (2.0, False),  # times the bare products
        (1.05, True),  # adaptive against adaptive-lambda
        (5.0, True),  # dense over ours
        (0.1, True),  # memory of dynamic routing
        (1.2, True),  # memory of training
        (0.7, False),  # step
        (0.04, True),  # capsule part
        (0.9, True),  # inference
        (1.2, False),  # slope
    ]
