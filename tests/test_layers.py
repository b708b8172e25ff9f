import numpy as np
import pytest
import torch

from capsroute import CapsuleLayer, InputError, PrimaryCapsules, squash
from capsroute.layers import WEIGHT_STD


def test_a_primary_capsule_is_the_channels_of_one_position():
    primary = PrimaryCapsules(3, groups=4, dim=5, kernel_size=3, stride=2)
    features = torch.randn(2, 3, 9, 11)
    maps = primary.conv(features)  # [b, 20, 4, 5]
    capsules = primary(features)
    assert capsules.shape == (2, 4 * 5 * 4, 5)
    for y, x, group in [(0, 0, 0), (1, 3, 2), (3, 4, 3)]:
        expected = squash(maps[:, group * 5 : group * 5 + 5, y, x])
        torch.testing.assert_close(capsules[:, (y * 5 + x) * 4 + group], expected)


def test_channels_last_features_give_the_same_capsules():
    primary = PrimaryCapsules(3, 4, 5, 3, 2)
    features = torch.randn(2, 3, 9, 9)
    torch.testing.assert_close(primary(features.to(memory_format=torch.channels_last)), primary(features))


def test_weight_has_the_stated_axes_and_spread():
    layer = CapsuleLayer(in_caps=50, out_caps=10, in_dim=8, out_dim=16)
    assert layer.weight.shape == (50, 8, 10, 16)
    assert layer.weight.std().item() == pytest.approx(WEIGHT_STD, rel=0.03)
    assert layer(torch.randn(3, 50, 8)).shape == (3, 10, 16)


def test_repr_tells_shapes_and_routing():
    shown = repr(CapsuleLayer(50, 10, 8, 16, "adaptive-lambda", lam=2))
    assert "50 x 8-D -> 10 x 16-D" in shown
    assert "lam=2" in shown


@pytest.mark.parametrize("shape", [(2, 49, 8), (2, 50, 7), (50, 8), (2, 1, 50, 8)], ids=str)
def test_wrong_capsules_are_refused(shape, no_shape_checks):
    with pytest.raises(InputError, match=r"u must have shape \[b, 50, 8\], got \["):
        CapsuleLayer(50, 10, 8, 16)(torch.zeros(shape))


def test_wrong_features_are_refused(no_shape_checks):
    with pytest.raises(InputError, match=r"features must have shape \[b, 3, h, w\], got \[2, 4, 9, 9\]"):
        PrimaryCapsules(3, 4, 5, 3, 2)(torch.zeros(2, 4, 9, 9))


@pytest.mark.parametrize("name", ["in_caps", "out_caps", "in_dim", "out_dim"])
def test_sizes_below_one_are_refused_by_name(name):
    sizes = {"in_caps": 5, "out_caps": 4, "in_dim": 3, "out_dim": 2} | {name: 0}
    with pytest.raises(InputError, match=f"{name}=0 must be a whole number of at least 1"):
        CapsuleLayer(**sizes)


def test_features_smaller_than_the_kernel_are_refused():
    with pytest.raises(InputError, match="2x9 are smaller than the kernel, 3x3"):
        PrimaryCapsules(3, 4, 5, 3, 2)(torch.zeros(2, 3, 2, 9))


def test_numpy_numbers_are_numbers(no_shape_checks):
    layer = CapsuleLayer(np.int64(5), np.int32(4), 3, 2, "adaptive", iterations=np.int64(2), step=np.float32(0.5))
    assert layer.weight.shape == (5, 3, 4, 2)
    assert layer.routing.step == 0.5
