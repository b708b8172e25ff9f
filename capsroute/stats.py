"""What a training epoch adds up, on the device, without waiting for it."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from capsroute.nonlinearity import lengths

SATURATED_LENGTH = 0.9  # every class capsule longer than this all through an epoch: nothing is told apart
COLLAPSED_LENGTH = 1e-3  # none longer than this
COLLAPSED_GRADIENT = 1e-10  # Conv1's gradient never larger than this: it does not learn


class EpochStats:
    """Sums and extremes over an epoch's steps so far."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.sums = torch.zeros(5, dtype=torch.float64, device=device)
        # longest and shortest class capsule (negated) and largest norm of Conv1's gradient
        self.most = torch.full((3,), -torch.inf, dtype=torch.float64, device=device)

    def clear(self) -> None:
        """Start anew, in the same memory."""
        self.sums.zero_()
        self.most.fill_(-torch.inf)

    @torch.no_grad()
    def add(
        self,
        class_capsules: Float[Tensor, "b j d"],
        targets: Int64[Tensor, " b"],
        loss: Float[Tensor, ""],
        gradient: Float[Tensor, "3"],
    ) -> None:
        """Count one batch."""
        length = lengths(class_capsules)
        count = len(targets)
        true = length.gather(1, targets[:, None]).sum()
        self.sums += torch.stack(
            [
                loss.double() * count,
                (length.argmax(1) == targets).sum().double(),
                torch.full_like(true, count).double(),
                true.double(),
                (length.sum() - true).double() / max(1, length.shape[1] - 1),
            ]
        )
        if count:
            seen = torch.stack([length.max(), -length.min(), gradient[2]]).double()
            torch.maximum(self.most, seen, out=self.most)

    def summary(self) -> dict[str, float]:
        """The epoch as `metrics.csv` has it."""
        loss, right, count, true, others = self.sums.tolist()
        longest, shortest, gradient = self.most.tolist()
        total = max(count, 1.0)
        return {
            "train_loss": loss / total,
            "train_accuracy": right / total,
            "true_length": true / total,
            "other_length": others / total,
            "longest": longest,
            "shortest": -shortest,
            "conv1_gradient": gradient,
        }


def state_of(row: dict[str, float]) -> str:
    """What an epoch's summary says of the net: saturated, collapsed or ok."""
    if row["shortest"] > SATURATED_LENGTH:
        return "saturated"
    if row["longest"] < COLLAPSED_LENGTH or row["conv1_gradient"] < COLLAPSED_GRADIENT:
        return "collapsed"
    return "ok"
