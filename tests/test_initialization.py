import pytest
import torch

from capsroute import CapsNet, InputError, init_lengths_, lengths, list_routings, load_dataset, margin_loss
from capsroute.diagnosis import dead_net_warning, diagnose
from capsroute.initialization import STARTS, init_closed_
from capsroute.routing import ROUTINGS


@pytest.fixture(scope="module")
def data():
    dataset = load_dataset("sample")
    return dataset.images[:64].float() / 255, dataset.labels[:64]


def stack(depth, routing="adaptive-lambda", **options):
    """A small net of `depth` layers of capsules, the primary ones and the classes counted."""
    torch.manual_seed(0)
    return CapsNet.from_preset("small", capsules=(144, *(64,) * (depth - 2), 10), routing=routing, **options)


def mean_lengths(net, images):
    """Of each layer's capsules, after the last iteration."""
    found = {}
    hook = net.primary.register_forward_hook(lambda *call: found.update({-1: lengths(call[2]).mean().item()}))
    net(images, lambda layer, step: found.update({layer: lengths(step.v).mean().item()}))
    hook.remove()
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize("depth", [2, 5, 16])
def test_lengths_are_as_wanted_at_any_depth(data, depth):
    net = init_lengths_(stack(depth), data[0])
    *hidden, classes = mean_lengths(net, data[0])
    assert hidden == pytest.approx([0.5] * (depth - 1), abs=0.005)
    assert classes == pytest.approx(0.2, abs=0.005)


def conv1_gradient(net, data):
    return diagnose(net, *data)[0].gradient_norm


def test_sixteen_layers_start_alive_for_all_images(data):
    shallow, deep = (init_lengths_(stack(depth), data[0]) for depth in (2, 16))
    other = load_dataset("sample", split="test")
    unseen = other.images[:64].float() / 255, other.labels[:64]
    assert all(0.3 <= length <= 0.7 for length in mean_lengths(deep, unseen[0])[:-1])
    ratio = conv1_gradient(deep, unseen) / conv1_gradient(shallow, unseen)
    assert 1 / 30 < ratio < 30


@pytest.mark.parametrize("depth", [5, 8])
def test_the_normal_start_is_reported_dead_where_it_is(data, depth):
    images = (data[0] * 255).byte()
    assert "dead at step 0" in dead_net_warning(stack(depth), images, data[1], "normal")
    assert "--init length" in dead_net_warning(stack(depth), images, data[1], "normal")
    assert dead_net_warning(init_lengths_(stack(depth), data[0]), images, data[1], "length") is None
    assert dead_net_warning(stack(2), images, data[1], "normal") is None


def test_twelve_layers_learn(data):
    net = init_lengths_(stack(12), data[0])
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    losses = []
    for _ in range(30):
        loss = margin_loss(net(data[0]), data[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0], losses


@pytest.mark.parametrize("start", ["length", "length-closed"])
@pytest.mark.parametrize("name", list_routings())
def test_every_routing_and_its_variants_start_as_wanted(data, name, start):
    for options in ({}, *ROUTINGS[name].variants):
        net = STARTS[start](stack(3, name, **options), data[0])
        primary, hidden, classes = mean_lengths(net, data[0])
        if start == "length":
            assert [primary, hidden, classes] == pytest.approx([0.5, 0.5, 0.2], abs=0.005)
        else:  # votes taken to be independent, which neighbours' are not: iterations that amplify, amplify that too
            assert primary == pytest.approx(0.5, abs=0.1)
            assert 0.05 < hidden < 0.95
            assert 0.02 < classes < 0.95


def test_the_closed_form_is_close_for_lambda_routing(data):
    net = init_closed_(stack(16, lam=3.0), seed=0)
    *hidden, classes = mean_lengths(net, data[0])
    assert all(0.4 < length < 0.6 for length in hidden)
    assert 0.1 < classes < 0.3


def test_the_same_images_give_the_same_weights(data):
    one, two = (init_lengths_(stack(4), data[0]).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_it_starts_where_lambda_is_learned_residual_or_in_a_resnet(data):
    net = init_lengths_(stack(6, lam="learned-per-capsule", lam_start=3.0, residual=True), data[0])
    assert [round(length, 1) for length in mean_lengths(net, data[0])] == [0.5] * 5 + [0.2]
    net = init_lengths_(CapsNet((1, 28, 28), (None, 16, 10), stem="resnet", stem_channels=16), data[0])
    assert [round(length, 1) for length in mean_lengths(net.eval(), data[0])] == [0.5, 0.5, 0.2]


def test_a_training_net_stays_one(data):
    assert init_lengths_(stack(2).train(), data[0]).training
    assert not init_lengths_(stack(2).eval(), data[0]).training


@pytest.mark.parametrize("wanted", [0, 1, float("nan"), "long"])
def test_lengths_that_no_capsule_can_have_are_refused(data, wanted, no_shape_checks):
    with pytest.raises(InputError, match="hidden="):
        init_lengths_(stack(2), data[0], hidden=wanted)
    with pytest.raises(InputError, match="classes="):
        init_closed_(stack(2), classes=wanted)


def test_no_images_and_dark_ones_are_refused(data):
    with pytest.raises(InputError, match="at least one image"):
        init_lengths_(stack(2), data[0][:0])
    net = stack(2)
    net.primary.conv.weight.data.zero_()
    net.primary.conv.bias.data.zero_()
    with pytest.raises(InputError, match="primary capsules: no scale"):
        init_lengths_(net, data[0])
