"""How well a net does on a split."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from capsroute.data.batches import Batches
from capsroute.losses import margin_loss
from capsroute.nonlinearity import lengths

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class Evaluation:
    """Counts of (true class, predicted class), and the mean margin loss."""

    confusion: Int64[Tensor, "j j"]
    loss: float

    @property
    def accuracy(self) -> float:
        """The share of right predictions."""
        return self.confusion.diagonal().sum().item() / max(1, self.confusion.sum().item())

    def per_class(self) -> list[float]:
        """The share of right predictions of each true class."""
        return (self.confusion.diagonal().double() / self.confusion.sum(1).clamp(min=1)).tolist()

    def to_json(self) -> dict[str, Any]:
        """As `result.json` has it."""
        return {
            "accuracy": self.accuracy,
            "loss": self.loss,
            "count": int(self.confusion.sum()),
            "per_class_accuracy": self.per_class(),
            "confusion": self.confusion.tolist(),
        }


@torch.no_grad()
def evaluate(net: nn.Module, batches: Batches, classes: int, fabric: "Fabric | None" = None) -> Evaluation:
    """The net on all batches, in the fabric's precision; with several processes, each on its share."""
    device = batches.images.device
    confusion = torch.zeros(classes * classes, dtype=torch.int64, device=device)
    loss = torch.zeros((), dtype=torch.float64, device=device)
    was_training = net.training
    net.eval()
    for images, targets in batches.epoch():
        with nullcontext() if fabric is None else fabric.autocast():
            capsules = net(images)
        confusion += torch.bincount(targets * classes + lengths(capsules).argmax(1), minlength=classes * classes)
        loss += margin_loss(capsules, targets).double() * len(targets)
    net.train(was_training)
    if fabric is not None and fabric.world_size > 1:
        confusion = fabric.all_reduce(confusion, reduce_op="sum")  # type: ignore[assignment]
        loss = fabric.all_reduce(loss, reduce_op="sum")  # type: ignore[assignment]
    return Evaluation(confusion.view(classes, classes).cpu(), loss.item() / max(1, int(confusion.sum())))
