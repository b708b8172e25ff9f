"""Dynamic routing: coupling coefficients by agreement.

Sabour, Frosst, Hinton: Dynamic Routing Between Capsules, 2017. https://arxiv.org/abs/1710.09829

    b_ij = 0
    repeat r times:
        c_ij = exp(b_ij) / Σ_j exp(b_ij)
        s_j  = Σ_i c_ij û_ij
        v_j  = squash(s_j)
        b_ij = b_ij + û_ij · v_j

Each lower capsule shares itself out among the upper ones, so coefficients start at 1/J and the gradient through a
layer is scaled by them: stacked layers starve.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.errors import require_flag, require_whole
from capsroute.nonlinearity import squash
from capsroute.routing.base import Observer, Routing, RoutingEntry, literal_squash, observe, squashed_length
from capsroute.votes import Votes, softmax_over_upper_


class Dynamic(Routing):
    """`iterations` passes; with `detach` only the last one carries gradients, as in the original."""

    def __init__(self, iterations: int = 3, detach: bool = True, out_caps: int | None = None) -> None:
        super().__init__()
        self.iterations = require_whole("iterations", iterations)
        self.detach = require_flag("detach", detach)

    def forward(self, votes: Votes, observer: Observer | None = None) -> Float[Tensor, "b j d"]:
        last = self.iterations - 1
        earlier = votes.detach() if self.detach and last else votes
        s = earlier.sum() / votes.upper  # b = 0: every c is 1/J
        v = squash(s)
        if observer is not None:
            observe(observer, 0, s.new_full((len(s), votes.lower, votes.upper), 1 / votes.upper), s, v)
        total = v  # of all passes: agreement is linear in v, so b = û · Σ v, and no logits need be kept
        for iteration in range(1, self.iterations):
            c = softmax_over_upper_(earlier.agreement(total))
            s = (votes if iteration == last else earlier).mix(c)
            v = squash(s)
            total = total + v
            observe(observer, iteration, c, s, v)
        return v

    def expected_length(self, norm: float, lower: int, upper: int) -> float:
        return squashed_length(norm / upper)  # coefficients of 1/J, from which random votes hardly move them

    def reference(self, u_hat: Float[Tensor, "b i j d"]) -> Float[Tensor, "b j d"]:
        return reference(u_hat, self.iterations, self.detach)

    def extra_repr(self) -> str:
        return f"iterations={self.iterations}, detach={self.detach}"


def reference(u_hat: Float[Tensor, "b i j d"], iterations: int, detach: bool) -> Float[Tensor, "b j d"]:
    """The procedure as printed, capsule by capsule."""
    samples, lower, upper, _ = u_hat.shape
    result = []
    for sample in range(samples):
        b = [u_hat.new_zeros(upper) for _ in range(lower)]
        for iteration in range(iterations):
            last = iteration == iterations - 1
            votes = u_hat[sample].detach() if detach and not last else u_hat[sample]
            c = [torch.exp(b[i]) / torch.exp(b[i]).sum() for i in range(lower)]
            v = []
            for j in range(upper):
                s_j = sum((c[i][j] * votes[i, j] for i in range(lower)), start=torch.zeros_like(votes[0, j]))
                v.append(literal_squash(s_j))
            b = [b[i] + torch.stack([votes[i, j] @ v[j] for j in range(upper)]) for i in range(lower)]
        result.append(torch.stack(v))
    return torch.stack(result)


ENTRY = RoutingEntry(
    name="dynamic",
    make=Dynamic,
    title="Dynamic routing",
    paper="Sabour, Frosst, Hinton: Dynamic Routing Between Capsules, 2017",
    link="https://arxiv.org/abs/1710.09829",
    equation="r times: c = softmax_j(b); v = squash(Σ_i c û); b += û·v",
    cost="2r - 1 products, and b·i·j coefficients per pass",
    advice="the baseline; two capsule layers, not more",
    has_coefficients=True,
    full_gradient={"detach": False},
    variants=({"iterations": 1}, {"iterations": 2}, {"detach": False}, {"iterations": 4, "detach": False}),
)
