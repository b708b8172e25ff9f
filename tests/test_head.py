import pytest
import torch

from capsroute import ROUTINGS, CapsuleHead, InputError, lengths, list_routings, margin_loss, squash

SHAPES = [48, (48,), (5, 24), (16, 3, 4)]
each_shape = pytest.mark.parametrize("in_shape", SHAPES, ids=str)


def features_for(head, samples=3):
    return torch.randn(samples, *head.in_shape)


@each_shape
@pytest.mark.parametrize("name", list_routings())
def test_every_routing_gives_class_capsules_and_gradients(name, in_shape):
    for options in ({}, *ROUTINGS[name].variants):
        head = CapsuleHead(in_shape, 4, class_dim=6, hidden=(7,), routing=name, **options)
        for layer in head.layers:
            torch.nn.init.normal_(layer.weight, std=0.3)
        features = features_for(head).requires_grad_()
        capsules = head(features)
        assert capsules.shape == (3, 4, 6)
        margin_loss(capsules, torch.tensor([0, 3, 1])).backward()
        for tensor in (features, *head.parameters()):
            assert torch.isfinite(tensor.grad).all()
            assert tensor.grad.abs().sum() > 0


@each_shape
@pytest.mark.parametrize("name", list_routings())
def test_a_batch_of_one_equals_its_row_and_an_empty_batch_works(name, in_shape):
    head = CapsuleHead(in_shape, 4, routing=name)
    for layer in head.layers:
        torch.nn.init.normal_(layer.weight, std=0.3)
    features = features_for(head, 6)
    assert lengths(head(features)).max() > 0.01
    torch.testing.assert_close(head(features[2:3]), head(features)[2:3], rtol=1e-4, atol=1e-6)
    assert head(features[:0]).shape == (0, 4, 16)


def test_a_lower_capsule_is_the_channels_of_one_position():
    head = CapsuleHead((16, 3, 4), 5, primary_dim=8)
    features = features_for(head)
    lower = head.primary(features)
    assert lower.shape == (3, 3 * 4 * 2, 8)
    for y, x, group in [(0, 0, 0), (1, 3, 1), (2, 2, 0)]:
        expected = squash(features[:, group * 8 : group * 8 + 8, y, x])
        torch.testing.assert_close(lower[:, (y * 4 + x) * 2 + group], expected)


def test_a_lower_capsule_is_the_features_of_one_token():
    head = CapsuleHead((5, 24), 4, primary_dim=12)
    features = features_for(head)
    torch.testing.assert_close(head.primary(features)[:, 3 * 2 + 1], squash(features[:, 3, 12:]))


@pytest.mark.parametrize("in_shape", [50, (5, 50), (50, 3, 4)], ids=str)
def test_a_projection_makes_any_width_fit(in_shape):
    head = CapsuleHead(in_shape, 4, project=16)
    assert head.project.in_features == 50
    assert head(features_for(head)).shape == (3, 4, 16)
    position = {50: (slice(None),), (5, 50): (slice(None), 3), (50, 3, 4): (slice(None), slice(None), 1, 2)}[in_shape]
    number = {50: 0, (5, 50): 3, (50, 3, 4): 6}[in_shape]
    features = features_for(head)
    expected = squash(head.project(features[position])[:, :8])
    torch.testing.assert_close(head.primary(features)[:, 2 * number], expected)


def test_layers_dimensions_and_routings_are_those_asked_for():
    head = CapsuleHead(
        (32, 2, 2), 3, hidden=(9, 5), hidden_dim=6, class_dim=7, routing=["adaptive", "dynamic", "dynamic"]
    )
    assert head.capsules == (16, 9, 5, 3)
    assert head.dims == (8, 6, 6, 7)
    assert [layer.routing_name for layer in head.layers] == ["adaptive", "dynamic", "dynamic"]
    mixed = CapsuleHead(32, 3, hidden=(9,), routing=["dynamic", "adaptive-lambda"], iterations=2, lam=2.5)
    assert mixed.layers[0].routing.iterations == 2
    assert mixed.layers[1].routing.lam == 2.5
    shown = repr(head)
    assert "32 channels x 2 height x 2 width -> 16 x 8-D" in shown
    assert "16 x 8-D -> 9 x 6-D" in shown


def test_a_head_learns():
    generator = torch.Generator().manual_seed(0)
    targets = torch.arange(64) % 4
    features = torch.randn(64, 24, generator=generator) * 0.5 + 2 * torch.nn.functional.one_hot(targets, 24)
    head = CapsuleHead(24, 4)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        margin_loss(head(features), targets).backward()
        optimizer.step()
    assert (lengths(head(features)).argmax(1) == targets).float().mean() > 0.95


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"in_shape": 50}, "a width of 50 does not divide .* primary_dim=8; use primary_dim=2 or 5 or 10 or 25, or"),
        ({"in_shape": (50, 7, 7)}, "or project=48 or 56$"),
        ({"in_shape": 5}, "primary_dim=8; use primary_dim=5, or project=8$"),
        ({"project": 20}, "project=20 does not divide .* use primary_dim=2 or 4 or 5 or 10, or project=16 or 24"),
        ({"in_shape": (2, 3, 4, 5)}, r"in_shape=\(2, 3, 4, 5\) must be \(features,\), \(tokens, features\) or"),
        ({"in_shape": 0}, "in_shape=0 must be a whole number"),
        ({"classes": 0}, "classes=0 must be a whole number"),
        ({"hidden": 32}, r"hidden=32 must be a list, such as \(32,\)"),
        ({"routing": "dynamics"}, "unknown routing 'dynamics'; did you mean 'dynamic'"),
        ({"routing": ["dynamic", "dynamic"]}, "names 2 routings for 1 capsule layers"),
        ({"lamb": 2}, "neither the head nor its routing .adaptive-lambda. has 'lamb'; did you mean 'lam'"),
        ({"primarydim": 2}, "has 'primarydim'; did you mean 'primary_dim'"),
    ],
    ids=lambda value: None if isinstance(value, dict) else "",
)
def test_impossible_heads_are_refused(arguments, sentence, no_shape_checks):
    with pytest.raises(InputError, match=sentence):
        CapsuleHead(**{"in_shape": 48, "classes": 4} | arguments)


@each_shape
def test_wrong_features_are_refused(in_shape, no_shape_checks):
    head = CapsuleHead(in_shape, 4)
    with pytest.raises(InputError, match=r"features must have shape \[b, .*build the head with the in_shape"):
        head(torch.zeros(3, *head.in_shape, 2))
    with pytest.raises(InputError, match=r"features must have shape"):
        head(torch.zeros(3, *head.in_shape[:-1], head.in_shape[-1] + 1))
