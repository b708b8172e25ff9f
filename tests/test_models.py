import pathlib
import subprocess
import sys

import pytest
import torch

from capsroute import CapsNet, Decoder, InputError, list_routings
from capsroute.models import PRESETS, parameter_count


@pytest.mark.parametrize("in_shape", [(1, 28, 28), (3, 32, 32)], ids=["28", "32"])
@pytest.mark.parametrize("preset", PRESETS)
def test_presets_have_the_stated_capsules(preset, in_shape):
    net = CapsNet.from_preset(preset, in_shape=in_shape)
    stated = {"paper-2": (1152, 10), "paper-3": (1152, 256, 10), "paper-4": (1152, 256, 32, 10), "small": (144, 10)}
    assert net.capsules == stated[preset]
    assert net.dims == (8,) * (len(net.capsules) - 1) + (16,)
    assert net.primary.conv.stride == ((2, 2) if in_shape[1] == 28 else (3, 3))
    assert net(torch.rand(2, *in_shape)).shape == (2, 10, 16)


def test_any_stride_that_gives_the_count_is_found():
    assert CapsNet((3, 48, 48)).primary.conv.stride == (6, 6)


def test_small_is_small():
    assert parameter_count(CapsNet.from_preset("small")) < 500_000


def test_a_stride_of_ones_own_takes_what_the_image_gives():
    assert CapsNet.from_preset("paper-2", in_shape=(3, 32, 32), primary_stride=2).capsules == (2048, 10)
    assert CapsNet((3, 32, 32), (2048, 10)).primary.conv.stride == (2, 2)


def test_any_depth_size_and_mixture_of_routings():
    net = CapsNet(
        (2, 17, 23),
        (None, 7, 5, 5, 4),
        (3, 4, 2, 6, 5),
        ["adaptive", "dynamic", "adaptive-lambda", "adaptive-lambda"],
        stem_channels=6,
        stem_kernel=4,
        primary_groups=2,
        primary_kernel=3,
        iterations=2,
        lam=3.0,
    )
    assert net(torch.rand(3, 2, 17, 23)).shape == (3, 4, 5)
    assert [layer.routing_name for layer in net.layers] == list(net.config["routing"])
    assert net.layers[0].routing.iterations == net.layers[1].routing.iterations == 2
    assert net.layers[3].routing.lam == 3.0


@pytest.mark.parametrize("name", list_routings())
def test_config_makes_the_same_net_again(name):
    net = CapsNet.from_preset("small", routing=name)
    again = CapsNet(**net.config)
    again.load_state_dict(net.state_dict())
    images = torch.rand(2, 1, 28, 28)
    assert torch.equal(again(images), net(images))


def test_a_batch_of_one_equals_its_row_and_an_empty_batch_works():
    net = CapsNet.from_preset("small")
    images = torch.rand(16, 1, 28, 28)
    torch.testing.assert_close(net(images[5:6]), net(images)[5:6], rtol=1e-4, atol=1e-6)
    assert net(images[:0]).shape == (0, 10, 16)


def test_repr_tells_shape_parameters_and_routing_of_each_layer():
    shown = repr(CapsNet.from_preset("paper-3", lam=2))
    for part in ("1 x 28 x 28 -> 10 classes", "256 x 20 x 20", "1152 x 8-D", "256 x 8-D", "10 x 16-D", "18,874,368"):
        assert part in shown
    assert shown.count("adaptive-lambda (lam=2)") == 2
    net = CapsNet.from_preset("small")
    net.decoder = Decoder(10, 16)
    assert "decoder" in repr(net)


def test_observer_sees_every_layer():
    seen = []
    net = CapsNet(
        (1, 28, 28), (None, 12, 10), routing=["dynamic", "adaptive-lambda"], primary_groups=2, stem_channels=8
    )
    net(torch.rand(2, 1, 28, 28), lambda layer, step: seen.append((layer, step.iteration, tuple(step.v.shape))))
    assert seen == [(0, n, (2, 12, 8)) for n in range(3)] + [(1, 0, (2, 10, 16))]


def test_autocast_and_channels_last():
    net = CapsNet.from_preset("small")
    images = torch.rand(8, 1, 28, 28)
    with torch.autocast("cpu", torch.bfloat16):
        low = net.to(memory_format=torch.channels_last)(images.to(memory_format=torch.channels_last))
    assert low.dtype == torch.float32
    assert (low - net(images)).abs().max() < 0.02


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"capsules": (1000, 10)}, r"1152 at stride 2, .*multiple of primary_groups=32, .* capsules=\(None, 10\)"),
        ({"in_shape": (3, 20, 64)}, "give no 1152 primary capsules, but .* use images of 28x28 at stride 2"),
        ({"in_shape": (3, 32, 32), "primary_stride": 2}, "at primary_stride=2, but .* 2048 .* use primary_stride=3"),
        ({"capsules": 1152}, r"capsules=1152 must be a list, such as \(1152, 10\)"),
        ({"capsule": (1152, 10)}, "has 'capsule'; did you mean 'capsules'"),
        ({"iterations": 3}, "has 'iterations'; only dynamic, adaptive has it"),
        ({"in_shape": (1, 12, 28)}, "need images of at least 17x17"),
        ({"in_shape": (28, 28)}, r"\(channels, height, width\)"),
        ({"capsules": (1152,)}, "at least the primary and the class capsules"),
        ({"capsules": (1152, 64, 10), "dims": (8, 16)}, "2 entries and .* has 3"),
        ({"capsules": (1152, 0)}, "capsules=0 must be a whole number"),
        ({"dims": (8, -1)}, "dims=-1 must be a whole number"),
        ({"routing": "dynamics"}, "unknown routing 'dynamics'; did you mean 'dynamic'"),
        ({"routing": ["dynamic", "dynamic"]}, "names 2 routings for 1 capsule layers"),
        ({"iteration": 3, "routing": "dynamic"}, "has 'iteration'; did you mean 'iterations'"),
        ({"lam": 0}, "lam=0 must be a number from 1e-30"),
        ({"primary_stride": 0}, "primary_stride=0"),
    ],
    ids=lambda value: None if isinstance(value, dict) else "",
)
def test_impossible_nets_are_refused(arguments, sentence, no_shape_checks):
    with pytest.raises(InputError, match=sentence):
        CapsNet(**arguments)


def test_unknown_preset_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'paper-2'"):
        CapsNet.from_preset("paper2")


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (torch.zeros(2, 3, 28, 28), r"shape \[b, 1, 28, 28\], got \[2, 3, 28, 28\]"),
        (torch.zeros(1, 28, 28), r"got \[1, 28, 28\]"),
        (torch.zeros(2, 1, 28, 28, dtype=torch.uint8), r"got torch.uint8; use .float\(\) \(and / 255 for images\)"),
        (torch.zeros(2, 1, 28, 28).double(), r"use images.to\(torch.float32\)"),
        ([[0.0]], "must be a tensor of shape .* got a list"),
    ],
    ids=["channels", "no-batch", "integers", "double", "list"],
)
def test_wrong_images_are_refused(images, sentence, no_shape_checks):
    with pytest.raises(InputError, match=sentence):
        CapsNet.from_preset("small")(images)


def test_decoder_sees_the_true_class_or_else_the_longest():
    decoder = Decoder(4, 6, (3, 8, 9))
    capsules = torch.randn(5, 4, 6)
    targets = capsules.norm(dim=2).argmax(1)
    picture = decoder(capsules, targets)
    assert picture.shape == (5, 3, 8, 9)
    assert picture.min() >= 0
    assert picture.max() <= 1
    torch.testing.assert_close(decoder(capsules), picture)
    masked = torch.zeros_like(capsules)
    masked[range(5), targets] = capsules[range(5), targets]
    torch.testing.assert_close(decoder(masked, targets), picture)
    assert not torch.allclose(decoder(capsules, (targets + 1) % 4), picture)


def test_decoder_refuses_other_capsules(no_shape_checks):
    with pytest.raises(InputError, match=r"shape \[b, 4, 6\], got \[5, 3, 6\]"):
        Decoder(4, 6)(torch.zeros(5, 3, 6))


@pytest.mark.parametrize(
    ("preset", "routing", "megabytes"), [("paper-4", "adaptive-lambda", 2500), ("paper-3", "dynamic", 4000)]
)
def test_a_training_step_of_128_fits_in_memory(preset, routing, megabytes):
    script = pathlib.Path(__file__).with_name("step_memory.py")
    done = subprocess.run([sys.executable, script, preset, routing], capture_output=True, text=True, check=True)
    assert int(done.stdout) < megabytes
