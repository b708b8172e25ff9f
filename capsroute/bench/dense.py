"""The ordinary way of writing a routing: on a table of all votes."""

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.votes import Votes


class DenseVotes(Votes):
    """The same questions, answered from the table û[b,i,j,d], as einsums in whatever precision it has."""

    def __init__(self, u: Float[Tensor, "b i k"], weight: Float[Tensor, "i k j d"]) -> None:
        super().__init__(u, weight)
        self.table = self.dense()

    def sum(self) -> Float[Tensor, "b j d"]:
        """Σ_i û, reading the table once."""
        return self.table.sum(1, dtype=torch.float32)

    def mix(self, c: Float[Tensor, "b i j"]) -> Float[Tensor, "b j d"]:
        """Σ_i c û."""
        return torch.einsum("bij,bijd->bjd", c.to(self.table.dtype), self.table).float()

    def agreement(self, v: Float[Tensor, "b j d"]) -> Float[Tensor, "b i j"]:
        """û · v."""
        return torch.einsum("bijd,bjd->bij", self.table, v.to(self.table.dtype)).float()

    def detach(self) -> "DenseVotes":
        """The same table, outside the graph."""
        votes = DenseVotes.__new__(DenseVotes)
        votes.u, votes.weight, votes.table = self.u.detach(), self.weight.detach(), self.table.detach()
        return votes
