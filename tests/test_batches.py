import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capsroute import InputError
from capsroute.data.batches import Batches


def arrays(count=50, shape=(3, 7, 9)):
    return torch.randint(0, 256, (count, *shape), dtype=torch.uint8), torch.arange(count)


def by_hand(image, dy, dx):
    """The image seen from (dy, dx), zeros where there is none."""
    out = torch.zeros_like(image)
    _, height, width = image.shape
    for y in range(height):
        for x in range(width):
            if 0 <= y + dy < height and 0 <= x + dx < width:
                out[:, y, x] = image[:, y + dy, x + dx]
    return out


@given(st.integers(0, 4), st.integers(0, 10_000))
def test_each_sample_is_shifted_by_its_own_offset(shift, seed):
    images, labels = arrays(6)
    batches = Batches(images, labels, 6, shift=shift, seed=seed)
    ((batch, chosen),) = batches.epoch(3)
    _, views = batches._draw(3)
    for got, label, offset in zip(batch, chosen, views[:, :2] - shift, strict=True):
        torch.testing.assert_close(got * 255, by_hand(images[label].float(), *offset.tolist()))


def test_batches_are_floats_from_0_to_1_and_channels_last():
    images, labels = arrays()
    batch, _ = next(Batches(images, labels, 16, shuffle=False).epoch())
    assert batch.dtype == torch.float32
    assert batch.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(batch, images[:16].float() / 255)


def test_every_image_is_served_once_an_epoch_in_an_order_of_its_own():
    images, labels = arrays()
    batches = Batches(images, labels, 16, shift=2)
    assert len(batches) == 4
    orders = [torch.cat([chosen for _, chosen in batches.epoch(epoch)]) for epoch in (0, 1, 1)]
    assert orders[0].sort().values.tolist() == list(range(50))
    assert not torch.equal(orders[0], orders[1])
    assert torch.equal(orders[1], orders[2])
    other = torch.cat([chosen for _, chosen in Batches(images, labels, 16, seed=1).epoch(0)])
    assert not torch.equal(orders[0], other)


def test_an_epoch_can_start_in_the_middle():
    images, labels = arrays()
    batches = Batches(images, labels, 16, shift=2)
    whole, rest = list(batches.epoch(5)), list(batches.epoch(5, start=2))
    assert len(rest) == 2
    for (image, label), (again, label_again) in zip(whole[2:], rest, strict=True):
        assert torch.equal(image, again)
        assert torch.equal(label, label_again)


@pytest.mark.parametrize("world", [1, 2, 4])
def test_processes_share_the_same_batches(world):
    images, labels = arrays()
    alone = list(Batches(images, labels, 16, shift=2).epoch(1))
    shares = [list(Batches(images, labels, 16, shift=2, rank=rank, world=world).epoch(1)) for rank in range(world)]
    for number, (batch, chosen) in enumerate(alone):
        together = {int(label): image for share in shares for image, label in zip(*share[number], strict=True)}
        assert sorted(together) == sorted(chosen.tolist())
        for image, label in zip(batch, chosen, strict=True):
            assert torch.equal(together[int(label)], image)


def test_unshuffled_batches_are_not_shifted():
    images, labels = arrays()
    batch, chosen = next(Batches(images, labels, 50, shift=2, shuffle=False).epoch(7))
    assert chosen.tolist() == list(range(50))
    torch.testing.assert_close(batch, images.float() / 255)


def test_every_other_image_is_mirrored_by_lot():
    images, labels = arrays(400)
    for shift in (0, 1):
        ((batch, chosen),) = Batches(images, labels, 400, shift=shift, flip=True).epoch(2)
        batches = Batches(images, labels, 400, shift=shift, flip=True)
        order, views = batches._draw(2)
        assert torch.equal(order, chosen)
        assert 0.4 < views[:, 2].float().mean() < 0.6
        for got, label, (row, column, mirrored) in zip(batch, chosen, views.tolist(), strict=True):
            expected = by_hand(images[label].float(), row - shift, column - shift)
            torch.testing.assert_close(got * 255, expected.flip(2) if mirrored else expected)


def test_a_shift_may_shrink_with_the_epochs():
    images, labels = arrays()
    batches = Batches(images, labels, 50, shift=3, shift_at=lambda epoch: 3 - epoch)
    reaches = [(batches._draw(epoch)[1][:, :2] - 3).abs().max().item() for epoch in range(4)]
    assert reaches == [3, 2, 1, 0]


def test_mirroring_leaves_order_and_shifts_alone():
    images, labels = arrays()
    plain, mirrored = (Batches(images, labels, 16, shift=2, flip=flip)._draw(1) for flip in (False, True))
    assert torch.equal(plain[0], mirrored[0])
    assert torch.equal(plain[1][:, :2], mirrored[1][:, :2])


@pytest.mark.gpu
def test_the_same_batches_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    images, labels = arrays()
    for (here, _), (there, _) in zip(
        Batches(images, labels, 16, shift=2).epoch(),
        Batches(images, labels, 16, shift=2, device="cuda").epoch(),
        strict=True,
    ):
        assert torch.equal(here, there.cpu())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"shift": -1}, "shift=-1"),
        ({"shift": 99}, "shift=99 must be at most 16"),
        ({"batch_size": 15, "world": 2}, "multiple of the 2 processes"),
    ],
)
def test_bad_options_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        Batches(*arrays(), **options)


def test_as_many_labels_as_images(no_shape_checks):
    images, labels = arrays()
    with pytest.raises(InputError, match="50 images and 49 labels"):
        Batches(images, labels[1:])
