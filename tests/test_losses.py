import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capsroute import InputError, margin_loss, reconstruction_loss

batches = st.integers(1, 5).flatmap(
    lambda j: st.lists(
        st.tuples(st.lists(st.floats(0, 1), min_size=j, max_size=j), st.integers(0, j - 1)), min_size=1, max_size=6
    )
)


def by_hand(length, target):
    total = 0.0
    for j, x in enumerate(length):
        total += max(0.0, 0.9 - x) ** 2 if j == target else 0.5 * max(0.0, x - 0.1) ** 2
    return total


@given(batches)
def test_margin_loss_equals_the_formula(batch):
    lengths, targets = zip(*batch, strict=True)
    capsules = torch.zeros(len(batch), len(lengths[0]), 3, dtype=torch.float64)
    capsules[:, :, 1] = torch.tensor(lengths, dtype=torch.float64)
    numbers = torch.tensor(targets)
    expected = sum(map(by_hand, lengths, targets)) / len(batch)
    loss = margin_loss(capsules, numbers)
    assert loss.item() == pytest.approx(expected, abs=1e-12)
    rows = torch.nn.functional.one_hot(numbers, capsules.shape[1])
    assert torch.equal(margin_loss(capsules, rows), loss)
    assert torch.equal(margin_loss(capsules, rows.double()), loss)


def test_margin_loss_is_zero_within_the_margins_and_its_gradient_is_finite_at_zero():
    capsules = torch.tensor([[[0.95, 0.0], [0.05, 0.0]]], requires_grad=True)
    assert margin_loss(capsules, torch.tensor([0])) == 0
    zero = torch.zeros(2, 3, 4, requires_grad=True)
    margin_loss(zero, torch.tensor([0, 2])).backward()
    assert torch.isfinite(zero.grad).all()


def test_losses_of_low_precision_run_in_float32():
    capsules = torch.rand(3, 4, 8).bfloat16()
    assert margin_loss(capsules, torch.tensor([0, 1, 2])).dtype == torch.float32


def test_empty_batches_cost_nothing():
    assert margin_loss(torch.zeros(0, 10, 16), torch.zeros(0, dtype=torch.long)) == 0
    assert reconstruction_loss(torch.zeros(0, 1, 2, 2), torch.zeros(0, 1, 2, 2)) == 0


def test_reconstruction_loss_wants_equal_shapes(no_shape_checks):
    with pytest.raises(InputError, match=r"images must have shape \[2, 1, 4, 4\], got \[2, 4, 4\]"):
        reconstruction_loss(torch.rand(2, 1, 4, 4), torch.rand(2, 4, 4))


def test_small_integer_types_do_not_wrap():
    targets = torch.tensor([1, 255], dtype=torch.uint8)
    capsules = torch.rand(2, 300, 3)
    assert torch.equal(margin_loss(capsules, targets), margin_loss(capsules, targets.long()))


def test_reconstruction_loss_is_the_scaled_sum_of_squares():
    images, guess = torch.rand(3, 1, 4, 4), torch.rand(3, 1, 4, 4)
    expected = 0.0005 * sum(((guess[n] - images[n]) ** 2).sum() for n in range(3)) / 3
    torch.testing.assert_close(reconstruction_loss(guess, images), expected)


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        (torch.tensor([0, 10]), r"0 to 9 for 10 class capsules; targets\[1\] is 10"),
        (torch.tensor([-1, 3]), "0 to 9 for 10 class capsules"),
        (torch.tensor([0.0, 1.0]), r"integers, got torch.float32; use targets.long\(\)"),
        (torch.tensor([1, 2, 3]), r"shape \[2\] or one-hot rows of shape \[2, 10\], got shape \[3\]"),
        (torch.full((2, 10), 0.5), r"must be zeros and ones; targets\[0\] is \[0.5,"),
        ([0, 1], "must be a tensor, got a list"),
    ],
    ids=["too-large", "negative", "floats", "too-many", "not-one-hot", "list"],
)
def test_bad_targets_are_refused(targets, sentence, no_shape_checks):
    with pytest.raises(InputError, match=sentence):
        margin_loss(torch.rand(2, 10, 16), targets)
