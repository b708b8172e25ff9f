"""One training step: plainly, or recorded once as a CUDA graph and replayed."""

from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from capsroute.averaging import WeightAverage
from capsroute.data.batches import Batches, Pick
from capsroute.losses import margin_loss, reconstruction_loss
from capsroute.models import CapsNet, Decoder
from capsroute.stats import EpochStats

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# Steps before recording: the optimiser makes its state and the libraries choose their algorithms in the first ones.
STEPS_BEFORE_RECORDING = 3


class Objective(nn.Module):
    """The net, and beside it the decoder if there is one, with the loss of a batch."""

    def __init__(self, net: CapsNet, decoder: Decoder | None) -> None:
        super().__init__()
        self.net, self.decoder = net, decoder

    def forward(self, images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        capsules = self.net(images)
        loss = margin_loss(capsules, targets)
        if self.decoder is not None:
            loss = loss + reconstruction_loss(self.decoder(capsules, targets), images)
        return capsules, loss


class TrainingStep:
    """Gather, forward, backward, update, count: nothing in it waits for the device."""

    def __init__(
        self,
        fabric: "Fabric",
        objective: Any,  # the wrapped `Objective`
        net: CapsNet,
        optimizer: Any,  # the wrapped one
        batches: Batches,
        stats: EpochStats,
        average: WeightAverage | None,
        clip: float,
    ) -> None:
        self.fabric, self.objective, self.net, self.optimizer = fabric, objective, net, optimizer
        self.batches, self.stats, self.average, self.clip = batches, stats, average, clip

    def __call__(self, pick: Pick, weight: float) -> Float64[Tensor, "4"]:
        """Loss; smallest, largest entry and norm of Conv1's gradient; all still on the device.

        `weight` multiplies the loss: 1, but for a last batch that its processes do not share evenly.
        """
        images, targets = self.batches.serve(pick)
        capsules, loss = self.objective(images, targets)
        self.fabric.backward(loss * weight)
        gradient = self._first_gradient()
        if self.clip:
            # A gradient that is no number is found with the loss, and there without waiting for the device.
            self.fabric.clip_gradients(self.objective, self.optimizer, max_norm=self.clip, error_if_nonfinite=False)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.average is not None:
            self.average.update()
        self.stats.add(capsules, targets, loss.detach(), gradient)
        return torch.cat([loss.detach().double()[None], gradient.double()])

    def _first_gradient(self) -> Tensor:
        grad = self.net.stem[0].weight.grad
        assert isinstance(grad, Tensor)
        return torch.stack([grad.min(), grad.max(), grad.norm()]).detach()


class RecordedStep:
    """A step as one CUDA graph, launched at once: some hundred kernels of a few microseconds starve a fast GPU.

    Only whole batches are replayed; others, and the first few, run plainly. They are all steps of the training.
    """

    def __init__(self, step: TrainingStep, batch_size: int) -> None:
        self.step = step
        device = step.batches.images.device
        self.pick = Pick(
            torch.zeros(batch_size, dtype=torch.int64, device=device),
            torch.zeros(batch_size, 3, dtype=torch.int64, device=device),
        )
        self.graph: torch.cuda.CUDAGraph | None = None
        self.report = torch.zeros(4, dtype=torch.float64, device=device)
        self.plain_steps = 0

    def __call__(self, pick: Pick, weight: float) -> Float64[Tensor, "4"]:
        """As `TrainingStep`."""
        if len(pick.chosen) != len(self.pick.chosen) or weight != 1:
            return self.step(pick, weight)
        if self.plain_steps < STEPS_BEFORE_RECORDING:
            self.plain_steps += 1
            return self._aside(pick)
        self.pick.chosen.copy_(pick.chosen)
        self.pick.views.copy_(pick.views)
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):  # recorded, not run
                self.report = self.step(self.pick, 1)
        self.graph.replay()
        return self.report.clone()

    def _aside(self, pick: Pick) -> Tensor:
        """On another stream, as what precedes a recording must be."""
        stream, current = torch.cuda.Stream(), torch.cuda.current_stream()
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            report = self.step(pick, 1)
        current.wait_stream(stream)
        return report


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate; where it is a tensor on the device, in place, as a recorded step reads it there."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate
