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

from capsroute.errors import InputError, require_number, require_whole
from capsroute.nonlinearity import squash
from capsroute.routing.base import Observer, Routing, RoutingEntry, literal_squash, observe, squashed_length
from capsroute.votes import Votes

LEARNED = ("learned", "learned-per-capsule")
# Beyond these, λ times a float32 sum overflows or vanishes.
LEAST, MOST = 1e-30, 1e30


class AdaptiveLambda(Routing):
    """`lam` is a positive number, "learned" (one per layer) or "learned-per-capsule".

    The learned ones start at `lam_start`, which is 1 if not given.
    """

    def __init__(self, lam: float | str = 1.0, lam_start: float | None = None, out_caps: int | None = None) -> None:
        super().__init__()
        self.lam = lam
        self.log_lam: Tensor | None = None
        if isinstance(lam, str) and lam in LEARNED:
            start = 1.0 if lam_start is None else require_number("lam_start", lam_start, LEAST, MOST)
            shape: tuple[int, ...] = ()
            if lam == "learned-per-capsule":
                if out_caps is None:
                    raise InputError("lam='learned-per-capsule' needs out_caps, the number of upper capsules")
                shape = (require_whole("out_caps", out_caps), 1)
            self.log_lam = nn.Parameter(torch.full(shape, math.log(start)))
        else:
            self.lam = require_number("lam", lam, LEAST, MOST, f", or one of {', '.join(map(repr, LEARNED))}")
            if lam_start is not None:
                raise InputError(f"lam_start={lam_start!r} is for a learned λ; with it, give lam='learned'")

    def forward(self, votes: Votes, observer: Observer | None = None) -> Float[Tensor, "b j d"]:
        s = self.factor() * votes.sum()
        v = squash(s)
        observe(observer, 0, None, s, v)
        return v

    def factor(self) -> Float[Tensor, "*per_capsule"] | float:
        """λ as it is now: a number, or a tensor that broadcasts over [b, j, d]."""
        if self.log_lam is None:
            return float(self.lam)
        # In float32 and within the range, however far training pushed θ and whatever the module's dtype.
        theta = self.log_lam.to(torch.promote_types(self.log_lam.dtype, torch.float32))
        return theta.clamp(math.log(LEAST), math.log(MOST)).exp()

    def expected_length(self, norm: float, lower: int, upper: int) -> float:
        factor = torch.as_tensor(self.factor()).double().mean().item()
        return squashed_length(factor * norm)

    def reference(self, u_hat: Float[Tensor, "b i j d"]) -> Float[Tensor, "b j d"]:
        return reference(u_hat, self.factor())

    def extra_repr(self) -> str:
        if self.log_lam is None:
            return f"lam={self.lam:g}"
        if self.log_lam.is_meta:
            return f"lam={self.lam}"
        now = torch.as_tensor(self.factor())
        low, high = now.min().item(), now.max().item()
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
