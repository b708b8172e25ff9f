"""What must hold for every routing in the table. Nothing here names one."""

import itertools
import os
import pathlib
import subprocess
import sys

import pytest
import torch
from allocations import Allocations
from torch import nn

from capsroute import ROUTINGS, CapsNet, CapsuleLayer, InputError, create_routing, list_routings, margin_loss
from capsroute.routing import routing_options
from capsroute.votes import Votes

CASES = [(entry.name, dict(options)) for entry in ROUTINGS.values() for options in ({}, *entry.variants)]
# b, i, j, k, d
SIZES = [(1, 1, 1, 1, 1), (2, 3, 5, 4, 3), (1, 100, 3, 2, 5), (3, 1, 63, 8, 1), (2, 63, 4, 1, 7), (1, 7, 32, 3, 2)]


def case_id(case):
    name, options = case
    return "-".join([name, *(f"{key}={value}" for key, value in options.items())])


def size_id(size):
    return "x".join(map(str, size))


each_case = pytest.mark.parametrize("case", CASES, ids=case_id)
each_routing = pytest.mark.parametrize("name", list_routings())


def make(case, size=(2, 3, 5, 4, 3), dtype=torch.float64, scale=1.0):
    """A layer and lower capsules whose votes are neither tiny nor huge."""
    b, i, j, k, d = size
    name, options = case
    layer = CapsuleLayer(i, j, k, d, name, **options).to(dtype)
    with torch.no_grad():
        layer.weight.normal_(std=scale / (i * k) ** 0.5)
    return layer, torch.randn(b, i, k, dtype=dtype).requires_grad_()


def dense_votes(u, weight):
    return torch.einsum("bik,ikjd->bijd", u, weight)


def value_and_gradients(function, leaves):
    value = function()
    probe = torch.linspace(-1, 1, value.numel(), dtype=value.dtype).view_as(value)
    return value, torch.autograd.grad((value * probe).sum(), leaves)


def assert_same(one, other, tolerance):
    torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@each_case
@pytest.mark.parametrize("size", SIZES, ids=size_id)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)], ids=["f64", "f32"])
def test_value_and_gradients_equal_the_reference(case, size, dtype, tolerance):
    layer, u = make(case, size, dtype)
    leaves = [u, *layer.parameters()]
    fast = value_and_gradients(lambda: layer(u), leaves)
    literal = value_and_gradients(lambda: layer.routing.reference(dense_votes(u, layer.weight)), leaves)
    assert_same(fast, literal, tolerance)


@each_case
def test_many_blocks_equal_the_reference(case, monkeypatch):
    monkeypatch.setattr("capsroute.votes.BLOCK_ELEMENTS", 64)
    monkeypatch.setattr("capsroute.votes.BLOCK_UPPER", 3)
    layer, u = make(case, (3, 11, 7, 4, 5))
    leaves = [u, *layer.parameters()]
    fast = value_and_gradients(lambda: layer(u), leaves)
    literal = value_and_gradients(lambda: layer.routing.reference(dense_votes(u, layer.weight)), leaves)
    assert_same(fast, literal, 1e-9)


@each_case
def test_first_and_second_gradients_equal_finite_differences(case):
    name, options = case
    options = options | ROUTINGS[name].full_gradient  # differences would see what is kept out on purpose
    layer, u = make((name, options), (2, 3, 2, 2, 3))
    parameters = dict(layer.named_parameters())

    def function(u, *values):
        return torch.func.functional_call(layer, dict(zip(parameters, values, strict=True)), (u,))

    assert torch.autograd.gradcheck(function, (u, *parameters.values()))
    assert torch.autograd.gradgradcheck(function, (u, *parameters.values()))


@each_case
def test_autocast_is_close_and_returns_float32(case):
    layer, u = make(case, (4, 63, 10, 8, 16), torch.float32)
    value, gradients = value_and_gradients(lambda: layer(u), [u, layer.weight])
    with torch.autocast("cpu", torch.bfloat16):
        low_value, low_gradients = value_and_gradients(lambda: layer(u), [u, layer.weight])
    assert low_value.dtype == torch.float32
    assert (low_value - value).abs().max() < 0.02
    for low, full in zip(low_gradients, gradients, strict=True):
        assert low.dtype == torch.float32
        assert (low - full).norm() < 0.03 * full.norm()


@each_case
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
def test_low_precision_modules_work_without_autocast(case, dtype):
    layer, u = make(case, (4, 20, 5, 8, 16), torch.float32)
    expected = layer(u)
    low = layer.to(dtype)(u.to(dtype))
    assert low.dtype == dtype
    assert_same(low.float(), expected, 0.02)


@each_case
def test_order_of_lower_capsules_does_not_matter(case):
    layer, u = make(case, (3, 20, 6, 4, 5))
    expected = layer(u)
    order = torch.randperm(20)
    with torch.no_grad():
        layer.weight.copy_(layer.weight[order])
    assert_same(layer(u[:, order]), expected, 1e-12)


@each_case
def test_order_of_upper_capsules_is_kept(case):
    layer, u = make(case, (3, 20, 6, 4, 5))
    expected = layer(u)
    order = torch.randperm(6)
    with torch.no_grad():
        layer.weight.copy_(layer.weight[:, :, order])
    assert_same(layer(u), expected[:, order], 1e-12)


@each_case
def test_a_sample_does_not_depend_on_its_batch(case):
    layer, u = make(case, (128, 40, 10, 8, 16), torch.float32)
    whole = layer(u)
    for row in (0, 77, 127):
        assert_same(layer(u[row : row + 1]), whole[row : row + 1], 1e-5)


@each_case
def test_an_empty_batch_gives_an_empty_result(case):
    layer, _ = make(case, dtype=torch.float32)
    v = layer(torch.zeros(0, 3, 4, requires_grad=True))
    assert v.shape == (0, 5, 3)
    v.sum().backward()
    assert not layer.weight.grad.any()


@each_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_zero_input_gives_finite_values_and_gradients(case, dtype):
    layer, _ = make(case, dtype=dtype)
    u = torch.zeros(2, 3, 4, dtype=dtype, requires_grad=True)
    v = layer(u)
    v.sum().backward()
    assert not v.any()
    assert all(torch.isfinite(leaf.grad).all() for leaf in (u, *layer.parameters()))


@each_case
def test_state_dict_round_trip(case):
    layer, u = make(case)
    other, _ = make(case)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(u), layer(u))


@each_case
def test_no_tensor_of_the_size_of_the_votes(case):
    # Few dimensions of lower capsules, many of upper ones and the opposite: neither û nor any block comes near b·i·j·d.
    for b, i, j, k, d in [(32, 96, 12, 4, 16), (32, 96, 12, 8, 8), (48, 32, 40, 8, 4), (64, 200, 10, 8, 16)]:
        layer, u = make(case, (b, i, j, k, d), torch.float32)
        if ROUTINGS[case[0]].needs_table:
            return
        with Allocations() as seen:
            layer(u).square().sum().backward()
        assert seen.largest < b * i * j * d


def test_the_dense_form_is_seen_by_the_watch():
    with Allocations() as seen:
        dense_votes(torch.randn(8, 20, 4), torch.randn(20, 4, 10, 16))
    assert seen.largest >= 8 * 20 * 10 * 16


@each_case
@pytest.mark.parametrize("mode", ["autocast", "half"])
def test_overflowing_float16_products_leave_finite_capsules(case, mode):
    layer, _ = make(case, (2, 200, 4, 8, 16), torch.float32)
    with torch.no_grad():
        layer.weight.normal_(std=200)
    u = torch.ones(2, 200, 8)
    if mode == "half":
        v = layer.half()(u.half())
    else:
        with torch.autocast("cpu", torch.float16):
            v = layer(u)
    assert torch.isfinite(v).all()


@each_case
def test_shapes_can_be_tried_without_memory(case):
    layer, u = make(case)
    layer = layer.to("meta")
    assert layer(u.detach().to("meta")).shape == (2, 5, 3)
    assert repr(layer)


@each_case
def test_observer_sees_every_iteration(case):
    name, options = case
    layer, u = make(case)
    steps = []
    v = layer(u, steps.append)
    iterations = (routing_options(name) | options).get("iterations", 1)
    assert [step.iteration for step in steps] == list(range(iterations))
    assert torch.equal(steps[-1].v, v)
    assert torch.equal(layer(u), v)
    for step in steps:
        assert not any(tensor.requires_grad for tensor in step if isinstance(tensor, torch.Tensor))
        assert step.s.shape == step.v.shape == (2, 5, 3)
        assert (step.coefficients is not None) == ROUTINGS[name].has_coefficients
        if step.coefficients is not None:
            assert step.coefficients.shape == (2, 3, 5)


@each_case
def test_a_net_overfits_64_images(case):
    name, options = case
    images = torch.rand(64, 1, 20, 20)
    targets = torch.arange(64) % 4
    net = CapsNet(
        (1, 20, 20),
        (None, 4),
        (4, 8),
        name,
        stem_channels=16,
        stem_kernel=5,
        primary_groups=4,
        primary_kernel=5,
        **options,
    )
    with torch.no_grad():
        net.layers[0].weight.mul_(4)  # so that all options start from lengths that train within seconds
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(300):
        optimizer.param_groups[0]["lr"] = 2e-3 * min(1.0, (step + 1) / 20)
        capsules = net(images)
        if bool((capsules.norm(dim=2).argmax(1) == targets).all()):
            return
        loss = margin_loss(capsules, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    pytest.fail(f"not all right after 300 steps, loss {loss:.3f}")


@pytest.mark.parametrize("name", list_routings())
def test_compile_and_export_agree_with_eager(name):
    """In a process without run-time checks of shapes, which a compiler would trace."""
    done = subprocess.run(
        [sys.executable, str(pathlib.Path(__file__).with_name("compiled.py")), name],
        env=os.environ | {"CAPSROUTE_NO_SHAPE_CHECKS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@each_routing
def test_options_of_the_entry_are_those_of_the_class(name):
    for options in ROUTINGS[name].variants:
        assert set(options) <= set(routing_options(name))
    assert isinstance(create_routing(name), nn.Module)


@each_routing
def test_unknown_option_is_refused_by_name(name):
    with pytest.raises(InputError, match="has no option 'lamda'"):
        create_routing(name, lamda=1)


@each_routing
def test_options_show_in_the_repr(name):
    shown = repr(create_routing(name))
    for option, value in routing_options(name).items():
        assert value is None or f"{option}={value:g}" in shown or f"{option}={value}" in shown


@each_routing
def test_a_whole_option_of_zero_or_less_is_refused(name, no_shape_checks):
    options = [option for option, default in routing_options(name).items() if type(default) is int]
    for option, value in itertools.product(options, (0, -3, 1.5, True)):
        with pytest.raises(InputError, match=f"{option}={value!r}"):
            create_routing(name, **{option: value})


def test_votes_are_dense_when_asked():
    layer, u = make(CASES[0])
    assert_same(Votes(u, layer.weight).dense(), dense_votes(u, layer.weight), 0)
