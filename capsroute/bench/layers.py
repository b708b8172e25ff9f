"""Capsule layers: this library's, the ordinary form on a table of votes, and the bare products."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from capsroute.bench.dense import DenseVotes
from capsroute.bench.work import autocast
from capsroute.errors import CapsrouteError
from capsroute.layers import CapsuleLayer
from capsroute.routing import ROUTINGS

BATCH = 128
# Compared on so many samples before anything is timed: enough to tell two forms apart, and quick.
COMPARED = 3
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.05, torch.float16: 0.02}  # of the largest entry


@dataclass(frozen=True)
class LayerSize:
    """Lower and upper capsules and their dimensions."""

    lower: int
    upper: int
    in_dim: int
    out_dim: int

    @property
    def name(self) -> str:
        """As tables show it."""
        return f"{self.lower} x {self.in_dim}-D -> {self.upper} x {self.out_dim}-D"


SIZES = (LayerSize(1152, 10, 8, 16), LayerSize(1152, 256, 8, 8), LayerSize(256, 32, 8, 8), LayerSize(2048, 10, 8, 16))


class LayerCase:
    """One routing at one size, in all its forms, on the same input."""

    def __init__(self, routing: str, size: LayerSize, dtype: torch.dtype, device: str) -> None:
        self.routing, self.size, self.dtype, self.device = routing, size, dtype, device
        generator = torch.Generator().manual_seed(0)
        self.layer = CapsuleLayer(size.lower, size.upper, size.in_dim, size.out_dim, routing)
        self.layer.weight.data.normal_(std=0.05, generator=generator)
        self.layer.to(device)
        self.u = torch.randn(BATCH, size.lower, size.in_dim, generator=generator).to(device).requires_grad_()
        # What a loss would send back.
        self.upstream = torch.randn(BATCH, size.upper, size.out_dim, generator=generator).to(device)
        self._compiled: Callable[[Tensor], Tensor] | None = None

    def ours(self, u: Tensor) -> Tensor:
        """The layer."""
        result: Tensor = self.layer(u)
        return result

    def dense(self, u: Tensor) -> Tensor:
        """The same routing on a table of all votes."""
        result: Tensor = self.layer.routing(DenseVotes(u, self.layer.weight))
        return result

    def compiled_dense(self, u: Tensor) -> Tensor:
        """That, compiled."""
        if self._compiled is None:
            self._compiled = torch.compile(self.dense, dynamic=False)
        return self._compiled(u)

    def bare(self, u: Tensor) -> Tensor:
        """Nothing but the product of u and W: what every form of λ routing consists of."""
        return (u.flatten(1) @ self.layer.weight.flatten(2).flatten(0, 1)).unflatten(1, (-1, self.size.out_dim))

    def forward(self, form: Callable[[Tensor], Tensor]) -> Callable[[], object]:
        """A job: forward only."""

        def job() -> None:
            with torch.no_grad(), autocast(self.device, self.dtype):
                form(self.u)

        return job

    def training(self, form: Callable[[Tensor], Tensor]) -> Callable[[], object]:
        """A job: forward and backward, to the input and the weights."""
        return lambda: self.gradients(form, self.u, self.upstream)

    def gradients(self, form: Callable[[Tensor], Tensor], u: Tensor, upstream: Tensor) -> tuple[Tensor, ...]:
        """The gradients by u and W."""
        with autocast(self.device, self.dtype):
            v = form(u)
        return torch.autograd.grad(v, (u, self.layer.weight), upstream.to(v.dtype))

    def refuse_difference(self) -> None:
        """A `CapsrouteError` if our form and the dense one differ in values or gradients: no time is told then."""
        u, upstream = self.u[:COMPARED].detach().requires_grad_(), self.upstream[:COMPARED]
        with torch.no_grad(), autocast(self.device, self.dtype):
            pairs = [("values", self.ours(u), self.dense(u))]
        both = zip(self.gradients(self.ours, u, upstream), self.gradients(self.dense, u, upstream), strict=True)
        pairs += [(f"gradients of {name}", *pair) for name, pair in zip("uW", both, strict=True)]
        for what, mine, plain in pairs:
            difference = (mine.float() - plain.float()).abs().max().item()
            allowed = TOLERANCE[self.dtype] * plain.float().abs().max().item()
            if not difference <= allowed:
                raise CapsrouteError(
                    f"{self.routing}, {self.size.name}: {what} differ from the dense form's by {difference:.2g} where "
                    f"{allowed:.2g} is allowed; no times are reported of a wrong result"
                )


def layer_cases(dtype: torch.dtype, device: str) -> list[LayerCase]:
    """Every routing at every size."""
    return [LayerCase(routing, size, dtype, device) for size in SIZES for routing in ROUTINGS]
