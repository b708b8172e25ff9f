"""Iterations in the plane: lower capsules' votes, and the capsule that they make."""

import torch

from capsroute.explorer.rerouting import LayerPass
from capsroute.figures.iterations import SHOWN, PlaneStep, plane_of


@torch.no_grad()
def plane_steps(layer: LayerPass, label: int, votes_move: bool) -> list[PlaneStep]:
    """The longest votes for this capsule, in the plane of their sum and their largest further variation.

    Their weights are from 0 to 1.
    Where a routing moves votes (`votes_move`), it moves all alike, by what s gained over their sum, divided by I.
    """
    u_hat = torch.einsum("ik,ikd->id", layer.votes.u[0], layer.votes.weight[:, :, label])
    plane, total = plane_of(u_hat), u_hat.sum(0)
    longest = u_hat.norm(dim=1).topk(min(SHOWN, len(u_hat))).indices
    largest = max(
        (float(step.coefficients[0, :, label].max()) for step in layer.steps if step.coefficients is not None),
        default=1.0,
    )
    steps = []
    for step in layer.steps:
        moved = (step.s[0, label] - total) / layer.votes.lower if votes_move else torch.zeros_like(total)
        weights = torch.ones(len(longest))
        if step.coefficients is not None:
            weights = step.coefficients[0, longest, label].float() / max(largest, 1e-30)
        v = step.v[0, label]
        steps.append(PlaneStep((u_hat[longest] + moved) @ plane, weights, v @ plane, v.norm().item()))
    return steps
