"""Adaptive routing without iteration: the sum of the votes, amplified.

Ren, Shang, He: Adaptive Routing Between Capsules, 2019, Algorithm 2. https://arxiv.org/abs/1911.08119

    v_j = squash(λ Σ_i û_ij)

The gradient through a layer is scaled by λ, where dynamic routing scales it by coefficients of 1/J and less. λ may be
trained: as exp(θ), which stays positive and moves by factors.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capsroute.errors import InputError
from capsroute.routing.base import Observer, Routing, RoutingEntry, literal_squash, observe
from capsroute.squash import squash
from capsroute.votes import Votes

LEARNED = ("learned", "learned-per-capsule")


class AdaptiveLambda(Routing):
    """`lam` is a positive number, "learned" (one per layer) or "learned-per-capsule"; those start at `lam_start`."""

    def __init__(self, lam: float | str = 1.0, lam_start: float = 1.0, out_caps: int | None = None) -> None:
        super().__init__()
        self.lam = lam
        self.log_lam: Tensor | None = None
        if isinstance(lam, str) and lam in LEARNED:
            start = math.log(_positive("lam_start", lam_start))
            if lam == "learned-per-capsule":
                if out_caps is None:
                    raise InputError("lam='learned-per-capsule' needs out_caps, the number of upper capsules")
                shape: tuple[int, ...] = (out_caps, 1)
            else:
                shape = ()
            self.log_lam = nn.Parameter(torch.full(shape, start))
        else:
            self.lam = _positive("lam", lam)

    def forward(self, votes: Votes, observer: Observer | None = None) -> Float[Tensor, "b j d"]:
        s = self.factor() * votes.sum()
        v = squash(s)
        observe(observer, 0, None, s, v)
        return v

    def factor(self) -> Float[Tensor, "*per_capsule"] | float:
        """λ as it is now: a number, or a tensor that broadcasts over [b, j, d]."""
        # Within ±80 the exponential neither vanishes nor overflows in float32, however far training pushed θ.
        return self.log_lam.clamp(-80, 80).exp() if self.log_lam is not None else float(self.lam)

    def reference(self, u_hat: Float[Tensor, "b i j d"]) -> Float[Tensor, "b j d"]:
        return reference(u_hat, self.factor())

    def extra_repr(self) -> str:
        if self.log_lam is None:
            return f"lam={self.lam:g}"
        low, high = self.log_lam.min().exp().item(), self.log_lam.max().exp().item()
        return f"lam={self.lam}, now {low:.4g}" + ("" if low == high else f" to {high:.4g}")


def reference(u_hat: Float[Tensor, "b i j d"], lam: Tensor | float) -> Float[Tensor, "b j d"]:
    """Algorithm 2 as printed, capsule by capsule; `lam` a number or one for each j."""
    samples, lower, upper, _ = u_hat.shape
    per_capsule = lam * u_hat.new_ones(upper, 1)
    result = []
    for sample in range(samples):
        v = []
        for j in range(upper):
            s_j = sum((u_hat[sample, i, j] for i in range(lower)), start=torch.zeros_like(u_hat[0, 0, j]))
            v.append(literal_squash(per_capsule[j] * s_j))
        result.append(torch.stack(v))
    return torch.stack(result)


def _positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        choices = f", or one of {', '.join(map(repr, LEARNED))}" if name == "lam" else ""
        raise InputError(f"{name}={value!r} must be a positive, finite number{choices}")
    return float(value)


ENTRY = RoutingEntry(
    name="adaptive-lambda",
    make=AdaptiveLambda,
    title="Adaptive routing without iteration (Algorithm 2)",
    paper="Ren, Shang, He: Adaptive Routing Between Capsules, 2019",
    link="https://arxiv.org/abs/1911.08119",
    equation="v = squash(λ Σ_i û)",
    cost="1 product",
    advice="the default; stacks",
    has_coefficients=False,
    variants=(
        {"lam": 0.3},
        {"lam": 4},
        {"lam": "learned", "lam_start": 2.5},
        {"lam": "learned-per-capsule", "lam_start": 0.7},
    ),
)
