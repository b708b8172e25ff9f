import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capsroute import lengths, squash

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
finite = st.floats(-1e30, 1e30, allow_nan=False)
vectors = st.lists(st.lists(finite, min_size=3, max_size=3), min_size=1, max_size=5)


def literal(s):
    norm = s.norm(dim=-1, keepdim=True)
    return norm**2 / (1 + norm**2) * s / norm


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_equals_the_formula(dim):
    s = torch.randn(4, 5, 6, dtype=torch.float64, requires_grad=True)
    expected = literal(s.movedim(dim, -1)).movedim(-1, dim)
    torch.testing.assert_close(squash(s, dim), expected)
    probe = torch.randn_like(s)
    torch.testing.assert_close(
        torch.autograd.grad(squash(s, dim), s, probe), torch.autograd.grad(expected, s, probe), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("value", [0.0, 1e-45, 1e-30, 1e-8, 1.0, 1e8, 1e19, 1e30])
def test_value_and_gradient_are_finite(dtype, value):
    s = torch.full((2, 3), value, dtype=torch.float64).to(dtype).requires_grad_()  # float16: infinite from 1e8 on
    v = squash(s)
    v.sum().backward()
    assert v.dtype == dtype
    assert torch.isfinite(v).all()
    assert torch.isfinite(s.grad).all()
    if value >= 1e8:
        torch.testing.assert_close(v.float().norm(dim=1), torch.ones(2), rtol=0.01, atol=0)


@given(vectors)
def test_shortens_and_keeps_the_direction(rows):
    s = torch.tensor(rows, dtype=torch.float32)
    v = squash(s)
    assert (lengths(v[None]) <= 1 + 1e-6).all()
    assert torch.isfinite(v).all()
    assert (torch.sign(v) * torch.sign(s) >= 0).all()
    exact = literal(s.double())
    torch.testing.assert_close(v.double(), exact.nan_to_num(), rtol=1e-5, atol=1e-30)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_longer_vectors_stay_longer(one, other):
    short, long = sorted((one, other))
    direction = torch.tensor([0.6, -0.8], dtype=torch.float64)
    assert squash(short * direction).norm() <= squash(long * direction).norm()
    expected = short**2 / (1 + short**2)
    assert math.isclose(squash(short * direction).norm().item(), expected, rel_tol=1e-12)


@given(vectors)
def test_lengths_are_norms_and_finite(rows):
    capsules = torch.tensor([rows], dtype=torch.float32, requires_grad=True)
    result = lengths(capsules)
    result.sum().backward()
    assert torch.isfinite(result).all()
    assert torch.isfinite(capsules.grad).all()
    torch.testing.assert_close(result.double(), capsules.double().norm(dim=2), rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_lengths_of_low_precision_come_in_float32(dtype):
    assert lengths(torch.ones(1, 2, 4, dtype=dtype)).dtype == torch.float32


def test_second_derivative_is_finite_and_right():
    s = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(squash, s)
