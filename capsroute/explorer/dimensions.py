"""What the dimensions of a class capsule mean: reconstructions as they move (Sabour et al., figure 4)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.models import Decoder

OFFSETS = tuple(round(-0.25 + 0.05 * number, 2) for number in range(11))


@torch.no_grad()
def reconstruct(
    decoder: Decoder, capsules: Float[Tensor, "1 j d"], label: int, offsets: Sequence[float] = ()
) -> Float[Tensor, "c h w"]:
    """The image of this class capsule, each of its dimensions moved by so much."""
    moved = capsules.clone()
    if offsets:
        moved[0, label] += torch.tensor(offsets, dtype=capsules.dtype)
    return decoder(moved, torch.tensor([label]))[0]


@torch.no_grad()
def dimension_grid(decoder: Decoder, capsules: Float[Tensor, "1 j d"], label: int) -> Float[Tensor, "d offsets c h w"]:
    """A row for each dimension, moved by each of `OFFSETS`."""
    dims = capsules.shape[2]
    moved = capsules.repeat(dims * len(OFFSETS), 1, 1)
    shifts = torch.tensor(OFFSETS, dtype=capsules.dtype)
    moved[:, label] += torch.einsum("de,o->doe", torch.eye(dims, dtype=capsules.dtype), shifts).flatten(0, 1)
    images = decoder(moved, torch.full((len(moved),), label))
    return images.unflatten(0, (dims, len(OFFSETS)))
