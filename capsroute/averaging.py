"""An exponential moving average of a module's weights: steadier than the last step's."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """Weights averaged over steps, w̄ = Σ_t (1 - decay) decay^(T - t) w_t / (1 - decay^T).

    The sum and its weight are kept apart, so that the first steps count in full and nothing depends on the start.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self.parameters = [parameter.data for parameter in module.parameters()]
        self.sums = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.weight = torch.zeros((), dtype=torch.float64, device=self.parameters[0].device)

    @torch.no_grad()
    def update(self) -> None:
        """Count the weights as they are now."""
        torch._foreach_lerp_(self.sums, self.parameters, 1 - self.decay)
        self.weight.lerp_(torch.ones_like(self.weight), 1 - self.decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The module with its averaged weights; with its own again afterwards."""
        if not self.weight.item():  # before the first step
            yield
            return
        own = [parameter.clone() for parameter in self.parameters]
        self._fill([total / self.weight.to(total.dtype) for total in self.sums])
        try:
            yield
        finally:
            self._fill(own)

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint keeps."""
        return {"weight": self.weight, **{str(number): total for number, total in enumerate(self.sums)}}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """As it was when `state()` was taken."""
        self.weight.copy_(state["weight"])
        for number, total in enumerate(self.sums):
            total.copy_(state[str(number)])

    @torch.no_grad()
    def _fill(self, values: list[Tensor]) -> None:
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.copy_(value)
