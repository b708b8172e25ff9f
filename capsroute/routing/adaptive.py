"""Adaptive routing: every vote moves towards the result.

Ren, Shang, He: Adaptive Routing Between Capsules, 2019, Algorithm 1. https://arxiv.org/abs/1911.08119

    repeat r times:
        s_j  = Σ_i û_ij
        v_j  = squash(s_j)
        û_ij = û_ij + step · v_j          (step = 1 in the paper)

Every vote for j moves by the same v_j, so the next sum is s_j + step · I · v_j exactly, I being the number of lower
capsules: the iteration needs the first sum and nothing else. It also follows that v_j keeps the direction of s_j and
that only its length changes. With step = 1 and a thousand lower capsules, two iterations bring almost every length
close to 1 (mean 0.30 -> 0.99999 on random weights); step = 1/I keeps the iteration gentle.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.errors import require_number, require_whole
from capsroute.nonlinearity import squash
from capsroute.routing.base import Observer, Routing, RoutingEntry, literal_squash, observe, squashed_length
from capsroute.votes import Votes


class Adaptive(Routing):
    """`iterations` passes of Algorithm 1, every vote moving by `step` times the result (1 is the paper's)."""

    def __init__(self, iterations: int = 3, step: float = 1.0, out_caps: int | None = None) -> None:
        super().__init__()
        self.iterations = require_whole("iterations", iterations)
        self.step = require_number("step", step, 0, 1e30, "; 1 is the paper's")

    def forward(self, votes: Votes, observer: Observer | None = None) -> Float[Tensor, "b j d"]:
        s = votes.sum()
        v = squash(s)
        observe(observer, 0, None, s, v)
        for iteration in range(1, self.iterations):
            s = s + self.step * votes.lower * v
            v = squash(s)
            observe(observer, iteration, None, s, v)
        return v

    def expected_length(self, norm: float, lower: int, upper: int) -> float:
        for _ in range(1, self.iterations):
            norm += self.step * lower * squashed_length(norm)
        return squashed_length(norm)

    def reference(self, u_hat: Float[Tensor, "b i j d"]) -> Float[Tensor, "b j d"]:
        return reference(u_hat, self.iterations, self.step)

    def extra_repr(self) -> str:
        return f"iterations={self.iterations}, step={self.step:g}"


def reference(u_hat: Float[Tensor, "b i j d"], iterations: int, step: float = 1.0) -> Float[Tensor, "b j d"]:
    """Algorithm 1 as printed, every vote moved on its own."""
    samples, lower, upper, _ = u_hat.shape
    result = []
    for sample in range(samples):
        votes = [[u_hat[sample, i, j] for j in range(upper)] for i in range(lower)]
        for _ in range(iterations):
            v = []
            for j in range(upper):
                s_j = sum((votes[i][j] for i in range(lower)), start=torch.zeros_like(votes[0][j]))
                v.append(literal_squash(s_j))
            votes = [[votes[i][j] + step * v[j] for j in range(upper)] for i in range(lower)]
        result.append(torch.stack(v))
    return torch.stack(result)


ENTRY = RoutingEntry(
    name="adaptive",
    make=Adaptive,
    title="Adaptive routing (Algorithm 1)",
    paper="Ren, Shang, He: Adaptive Routing Between Capsules, 2019",
    link="https://arxiv.org/abs/1911.08119",
    equation="s = Σ_i û; r - 1 times: s += step·I·squash(s); v = squash(s)",
    cost="1 product, whatever r",
    advice="to study the iteration; with many lower capsules set step to 1/I",
    has_coefficients=False,
    moves_votes=True,
    variants=({"iterations": 1}, {"iterations": 2}, {"iterations": 3, "step": 0.01}),
)
