"""Batches on the device: gathered, shifted, scaled and laid out channels-last by a few operations."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812  # its usual name
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from capsroute.errors import InputError, require_whole

MOST_SHIFT = 16


class Pick(NamedTuple):
    """A batch yet to be gathered: which images, and how each is seen."""

    chosen: Int64[Tensor, " b"]
    views: Int64[Tensor, "b 3"]  # row and column of the offset into the padded image, and 1 where mirrored


class Batches:
    """All images as uint8 on the device, served as float batches.

    With `shuffle`, epoch e has an order of its own, and with `shift` p each sample an offset of up to p pixels either
    way, zero padded; `shift_at(e)` may make p smaller with the epoch. With `flip`, every other image is mirrored, left
    to right, by lot. All of it comes from (seed, epoch) alone, drawn on the CPU: the same batches on every device, and
    with `world` processes each serves its share (`rank`) of the same ones.
    """

    def __init__(
        self,
        images: UInt8[Tensor, "n c h w"],
        labels: Int64[Tensor, " n"],
        batch_size: int = 128,
        *,
        shift: int = 0,
        shift_at: Callable[[int], int] | None = None,
        flip: bool = False,
        shuffle: bool = True,
        seed: int = 0,
        device: torch.device | str = "cpu",
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.batch_size = require_whole("batch_size", batch_size)
        self.shift = require_whole("shift", shift, least=0)
        if self.shift > MOST_SHIFT:
            raise InputError(f"shift={shift} must be at most {MOST_SHIFT} pixels")
        if batch_size % world:
            raise InputError(f"batch_size={batch_size} must be a multiple of the {world} processes that share it")
        if len(images) != len(labels):
            raise InputError(f"{len(images)} images and {len(labels)} labels: there must be as many of each")
        self.shift_at, self.flip = shift_at or (lambda epoch: self.shift), flip
        self.shuffle, self.seed, self.rank, self.world = shuffle, seed, rank, world
        self.height, self.width = images.shape[2:]
        # Channels innermost and the padding already there: a shifted batch is then one gather.
        padded = F.pad(images, (self.shift,) * 4).permute(0, 2, 3, 1).contiguous()
        self.images = padded.to(device)  # [n, h + 2p, w + 2p, c]
        self.labels = labels.to(device)

    def __len__(self) -> int:
        """Batches per epoch; the last one may be smaller."""
        return -(-len(self.labels) // self.batch_size)

    def epoch(self, number: int = 0, start: int = 0) -> Iterator[tuple[Float[Tensor, "b c h w"], Int64[Tensor, " b"]]]:
        """The batches of an epoch, from batch `start` on; of each this process's share."""
        for pick in self.picks(number, start):
            yield self.serve(pick)

    def picks(self, number: int = 0, start: int = 0) -> Iterator[Pick]:
        """The same, not yet gathered: a program that is recorded once wants the gathering in the record."""
        order, views = self._draw(number)
        # The whole epoch moves at once: a copy for each batch would have the device wait for the host.
        device, parts = self.images.device, []
        for first in range(start * self.batch_size, len(order), self.batch_size):
            # The batch dealt out among the processes; where it does not divide, the first ones have one more.
            parts.append(torch.arange(first, min(first + self.batch_size, len(order)))[self.rank :: self.world])
        if not parts:
            return
        sizes, mine = [len(part) for part in parts], torch.cat(parts)
        yield from map(Pick, order[mine].to(device).split(sizes), views[mine].to(device).split(sizes))

    def serve(self, pick: Pick) -> tuple[Float[Tensor, "b c h w"], Int64[Tensor, " b"]]:
        """Images and labels: floats from 0 to 1, channels-last, each image seen as its view says."""
        device, (row, column, mirrored) = self.images.device, pick.views.unbind(1)
        rows = row[:, None] + torch.arange(self.height, device=device)  # [b, h]
        across = torch.arange(self.width, device=device)
        if self.flip:
            across = torch.where(mirrored[:, None] == 1, self.width - 1 - across, across)
        columns = column[:, None] + across  # [b, w]
        batch = self.images[pick.chosen[:, None, None], rows[:, :, None], columns[:, None, :]]  # [b, h, w, c]
        return batch.permute(0, 3, 1, 2).to(torch.float32).mul_(1 / 255), self.labels[pick.chosen]

    def _draw(self, number: int) -> tuple[Int64[Tensor, " n"], Int64[Tensor, "n 3"]]:
        """Order and views of an epoch; an offset of `shift` is the image as it is."""
        count = len(self.labels)
        generator = torch.Generator().manual_seed(_mixed(self.seed, number))
        order = torch.randperm(count, generator=generator) if self.shuffle else torch.arange(count)
        offsets, mirrored = torch.full((count, 2), self.shift), torch.zeros(count, 1, dtype=torch.int64)
        if self.shuffle and self.shift:
            reach = min(self.shift, self.shift_at(number))
            offsets += torch.randint(-reach, reach + 1, (count, 2), generator=generator)
        if self.shuffle and self.flip:
            mirrored = torch.randint(0, 2, (count, 1), generator=generator)
        return order, torch.cat([offsets, mirrored], dim=1)


def _mixed(seed: int, epoch: int) -> int:
    """A seed for (seed, epoch) such that neighbours of either have nothing in common."""
    mixed = (seed * 0x9E3779B97F4A7C15 + epoch * 0xBF58476D1CE4E5B9 + 1) % (1 << 64)
    mixed = (mixed ^ (mixed >> 31)) * 0x94D049BB133111EB % (1 << 64)
    return (mixed ^ (mixed >> 29)) % (1 << 63)
