import pytest
import torch

from capsroute import CapsNet, InputError
from capsroute.models import parameter_count
from capsroute.stems import STEMS


@pytest.mark.parametrize("name", STEMS)
@pytest.mark.parametrize("side", [17, 28, 32, 33])
def test_a_stem_gives_maps_of_the_side_that_its_entry_says(name, side):
    kind = STEMS[name]
    maps = kind.make(3, 8, kind.kernel)(torch.rand(2, 3, side, side))
    assert maps.shape == (2, 8, kind.side(side, kind.kernel), kind.side(side, kind.kernel))


def test_the_residual_stem_is_under_three_million_parameters():
    assert parameter_count(CapsNet((3, 32, 32), (None, 10), stem="resnet").stem) < 3_000_000


def test_its_width_must_be_divisible():
    with pytest.raises(InputError, match="stem_channels=10 must be a multiple of 4"):
        CapsNet((3, 32, 32), (None, 10), stem="resnet", stem_channels=10)


def test_an_unknown_stem_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="unknown stem 'resnt'; did you mean 'resnet'"):
        CapsNet(stem="resnt")


def test_residual_layers_add_what_they_were_given():
    torch.manual_seed(0)
    options = {"in_shape": (1, 20, 20), "capsules": (None, 6, 6, 6, 4), "stem_channels": 8, "primary_groups": 2}
    plain = CapsNet(**options)
    residual = CapsNet(**options, residual=True)
    residual.load_state_dict(plain.state_dict())
    assert [residual.is_residual(number) for number in range(4)] == [False, True, True, False]
    assert not any(plain.is_residual(number) for number in range(4))
    images = torch.rand(2, 1, 20, 20)
    u = residual.layers[0](residual.primary(residual.stem(images)))
    for layer in residual.layers[1:3]:
        u = u + layer(u)
    torch.testing.assert_close(residual(images), residual.layers[3](u))
    assert "residual" in repr(residual)


def test_dropped_capsules_are_whole_and_the_others_make_up_for_them():
    net = CapsNet((1, 20, 20), (None, 4), stem_channels=8, primary_groups=8, drop_capsules=0.25).train()
    u = torch.ones(64, net.capsules[0], 8)
    thinned = net._thinned(u)
    assert thinned.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    assert torch.equal(thinned.amin(2), thinned.amax(2))
    assert (thinned[:, :, 0] == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert torch.equal(net.eval()._thinned(u), u)


@pytest.mark.parametrize("share", [-0.1, 1.0, "most"])
def test_a_share_that_leaves_nothing_is_refused(share, no_shape_checks):
    with pytest.raises(InputError, match="drop_capsules="):
        CapsNet(drop_capsules=share)
