"""Dynamic routing's coefficients and its own options."""

import pytest
import torch

from capsroute import CapsuleLayer, InputError, create_routing
from capsroute.votes import Votes


@pytest.mark.parametrize("detach", [True, False])
def test_coefficients_share_each_lower_capsule_out_and_weigh_the_votes(detach):
    layer = CapsuleLayer(20, 6, 4, 5, "dynamic", iterations=4, detach=detach).double()
    u = torch.randn(3, 20, 4, dtype=torch.float64)
    steps = []
    layer(u, steps.append)
    votes = Votes(u, layer.weight).dense()
    assert (steps[0].coefficients == 1 / 6).all()
    for step in steps:
        torch.testing.assert_close(step.coefficients.sum(2), torch.ones(3, 20, dtype=torch.float64))
        torch.testing.assert_close(step.s, torch.einsum("bij,bijd->bjd", step.coefficients, votes).detach())


def test_detach_changes_gradients_and_not_values():
    kept, let_through = (CapsuleLayer(20, 6, 4, 5, "dynamic", detach=detach) for detach in (True, False))
    torch.nn.init.normal_(kept.weight)
    let_through.weight = torch.nn.Parameter(kept.weight.detach().clone())
    u = torch.randn(3, 20, 4)
    values = [layer(u) for layer in (kept, let_through)]
    torch.testing.assert_close(*values)
    gradients = [
        torch.autograd.grad(v.sum(), layer.weight)[0] for v, layer in zip(values, (kept, let_through), strict=True)
    ]
    assert not torch.allclose(*gradients)


@pytest.mark.parametrize("detach", ["False", None, 1])
def test_a_flag_must_be_true_or_false(detach, no_shape_checks):
    with pytest.raises(InputError, match=r"detach=.* must be True or False"):
        create_routing("dynamic", detach=detach)
