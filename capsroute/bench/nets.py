"""Whole nets: a training step, a forward pass, and what the capsules take of a step."""

from collections.abc import Callable

import torch
from torch import Tensor

from capsroute.bench.work import autocast
from capsroute.losses import margin_loss
from capsroute.models import CapsNet

BATCH = 128
INFERENCE_BATCH = 256
SHAPES = ((1, 28, 28), (3, 32, 32))
PAPER_NETS = ("paper-2", "paper-3", "paper-4")
DEPTHS = (2, 4, 8, 16)  # of small stacks
HIDDEN = 64


def stack_of(depth: int) -> tuple[int, ...]:
    """The capsules of a small net with so many capsule layers."""
    return (144, *[HIDDEN] * (depth - 2), 10)


class NetCase:
    """A net and a batch of random images, as training holds them."""

    def __init__(
        self,
        preset: str,
        routing: str,
        in_shape: tuple[int, int, int],
        dtype: torch.dtype,
        device: str,
        capsules: tuple[int, ...] | None = None,
    ) -> None:
        self.preset, self.routing, self.in_shape, self.dtype, self.device = preset, routing, in_shape, dtype, device
        torch.manual_seed(0)
        given = {} if capsules is None else {"capsules": capsules}
        self.net = CapsNet.from_preset(preset, in_shape=in_shape, routing=routing, **given).channels_last_().to(device)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), fused=device in ("cpu", "cuda"))
        self.images = self._images(BATCH)
        self.targets = torch.arange(BATCH, device=device) % self.net.classes

    @property
    def name(self) -> str:
        """As tables show it."""
        return f"{self.preset}, {self.in_shape[1]}x{self.in_shape[2]}x{self.in_shape[0]}"

    def _images(self, count: int) -> Tensor:
        images = torch.rand(count, *self.in_shape, device=self.device)
        return images.contiguous(memory_format=torch.channels_last)

    def step(self) -> None:
        """A training step, optimiser included."""
        with autocast(self.device, self.dtype):
            capsules = self.net(self.images)
            loss = margin_loss(capsules, self.targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def forward(self, batch: int = BATCH) -> Callable[[], object]:
        """A job: the net on images, without gradients."""
        images = self.images if batch == BATCH else self._images(batch)

        def job() -> None:
            with torch.inference_mode(), autocast(self.device, self.dtype):
                self.net(images)

        return job

    def capsule_part(self) -> Callable[[], object]:
        """A job: all of a step but its convolutions and optimiser: squashes, layers, loss, and their backward."""
        with torch.no_grad(), autocast(self.device, self.dtype):
            maps = self.net.primary.conv(self.net.stem(self.images))
        maps = maps.detach().requires_grad_()
        weights = list(self.net.layers.parameters())

        def job() -> None:
            with autocast(self.device, self.dtype):
                u = self.net.primary.capsules_of(maps)
                for layer in self.net.layers:
                    u = layer(u)
                loss = margin_loss(u, self.targets)
            torch.autograd.grad(loss, [maps, *weights])

        return job
