"""What the paper's two algorithms have to do with each other, and their own options."""

import math

import pytest
import torch

from capsroute import CapsuleLayer, InputError, create_routing
from capsroute.nonlinearity import lengths
from capsroute.routing import adaptive


def twins(first, second, **sizes):
    one, other = CapsuleLayer(20, 6, 4, 5, first[0], **first[1]), CapsuleLayer(20, 6, 4, 5, second[0], **second[1])
    other.weight = one.weight
    return one, other, torch.randn(3, 20, 4)


def test_one_iteration_is_lambda_one_exactly():
    one, other, u = twins(("adaptive", {"iterations": 1}), ("adaptive-lambda", {"lam": 1.0}))
    assert torch.equal(one(u), other(u))


@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
@pytest.mark.parametrize("step", [1.0, 0.05])
def test_recursion_equals_algorithm_1_on_dense_votes(iterations, step):
    u = torch.randn(2, 30, 4, dtype=torch.float64)
    layer = CapsuleLayer(30, 5, 4, 6, "adaptive", iterations=iterations, step=step).double()
    votes = torch.einsum("bik,ikjd->bijd", u, layer.weight)
    torch.testing.assert_close(layer(u), adaptive.reference(votes, iterations, step), rtol=1e-9, atol=1e-12)


def test_two_iterations_are_an_input_dependent_lambda():
    layer = CapsuleLayer(30, 5, 4, 6, "adaptive", iterations=2).double()
    u = torch.randn(2, 30, 4, dtype=torch.float64)
    steps = []
    v = layer(u, steps.append)
    norm = lengths(steps[0].s)[..., None]
    lam = 1 + 30 * norm / (1 + norm**2)
    squashed = lam * steps[0].s
    n = squashed.norm(dim=2, keepdim=True)
    torch.testing.assert_close(v, n * squashed / (1 + n**2))


def test_iterations_of_step_one_saturate_with_many_lower_capsules():
    layer = CapsuleLayer(1152, 10, 8, 16, "adaptive", iterations=3)
    steps = []
    u = 0.25 * torch.randn(4, 1152, 8)  # lengths of 0.7
    layer(u, steps.append)
    first, last = lengths(steps[0].v).mean(), lengths(steps[-1].v).mean()
    assert first < 0.6
    assert last > 0.9999
    gentle = CapsuleLayer(1152, 10, 8, 16, "adaptive", iterations=3, step=1 / 1152)
    gentle(u, steps.append)
    assert lengths(steps[-1].v).mean() < 0.9


@pytest.mark.parametrize("start", [0.001, 1.0, 3.0])
@pytest.mark.parametrize("lam", ["learned", "learned-per-capsule"])
def test_learned_lambda_starts_where_told_trains_and_stays_positive(lam, start):
    layer = CapsuleLayer(20, 6, 4, 5, lam=lam, lam_start=start)
    fixed = CapsuleLayer(20, 6, 4, 5, lam=start)
    fixed.weight = layer.weight
    u = torch.randn(8, 20, 4)
    torch.testing.assert_close(layer(u), fixed(u), rtol=1e-5, atol=1e-7)
    assert layer.routing.log_lam.numel() == (6 if lam == "learned-per-capsule" else 1)
    optimizer = torch.optim.SGD(layer.routing.parameters(), lr=1e3)
    before = layer.routing.factor().clone()
    for _ in range(20):
        lengths(layer(u)).sum().backward()  # pushes every length, and with it λ, towards zero
        optimizer.step()
    assert (layer.routing.factor() > 0).all()
    assert (layer.routing.factor() != before).all()


@pytest.mark.parametrize("lam", [0, -1.0, 1e39, 10**400, math.inf, math.nan, "lerned", True])
def test_a_lambda_that_is_no_positive_number_is_refused(lam, no_shape_checks):
    with pytest.raises(
        InputError, match=r"must be a number from 1e-30 to 1e\+30, or one of 'learned', 'learned-per-caps"
    ):
        create_routing("adaptive-lambda", lam=lam)


def test_a_bad_start_is_refused():
    with pytest.raises(InputError, match="lam_start=0"):
        create_routing("adaptive-lambda", lam="learned", lam_start=0)
    with pytest.raises(InputError, match="lam_start=2 is for a learned λ"):
        create_routing("adaptive-lambda", lam=1.0, lam_start=2)


def test_learned_lambda_stays_positive_and_finite_in_half_precision():
    layer = CapsuleLayer(20, 6, 4, 5, lam="learned").half()
    for theta in (-60000.0, 60000.0):
        torch.nn.init.constant_(layer.routing.log_lam, theta)
        assert 0 < layer.routing.factor() < math.inf
        assert torch.isfinite(layer(torch.zeros(2, 20, 4, dtype=torch.float16))).all()


@pytest.mark.parametrize("step", [-0.1, math.inf, math.nan])
def test_a_bad_step_is_refused(step):
    with pytest.raises(InputError, match=r"step=.* must be a number from 0 to 1e\+30"):
        create_routing("adaptive", step=step)


def test_a_value_per_capsule_needs_their_number():
    with pytest.raises(InputError, match="needs out_caps"):
        create_routing("adaptive-lambda", lam="learned-per-capsule")
