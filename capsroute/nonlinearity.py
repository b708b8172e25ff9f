"""The capsules' non-linearity and their length."""

import torch
from jaxtyping import Float
from torch import Tensor


def squash(s: Float[Tensor, "*any"], dim: int = -1) -> Float[Tensor, "*any"]:
    """(‖s‖² / (1 + ‖s‖²)) · s / ‖s‖: the same direction, a length below 1, quadratic for short vectors.

    Computed in float32 or better, returned in the dtype of `s`. Value and gradient are finite at zero and up to entries
    of 1e30 in every dtype (1e18 on Apple's GPUs, which have no float64); a float16 infinity, which is what an
    overflowed product leaves, counts as the largest float16.
    """
    if s.dtype == torch.float16:
        s = s.clamp(torch.finfo(s.dtype).min, torch.finfo(s.dtype).max)
    n = _norm(s, dim)
    scale = n / (1 + n * n)  # finite in float64 for all that fits in float32; no division by ‖s‖
    return (s * scale.to(torch.promote_types(s.dtype, torch.float32))).to(s.dtype)


def lengths(capsules: Float[Tensor, "b j d"]) -> Float[Tensor, "b j"]:
    """‖v‖ of each capsule, in float32 or better; the gradient at zero is zero."""
    return _norm(capsules, -1).squeeze(-1).to(torch.promote_types(capsules.dtype, torch.float32))


def _norm(s: Tensor, dim: int) -> Tensor:
    # The squares of 1e30 overflow float32, those of 1e-30 vanish. Summing them in float64 cures both and costs, on a
    # CPU, 15 % more than the float32 norm; scaling by the largest entry would cost a second pass.
    wide = torch.float32 if s.device.type == "mps" else torch.float64
    return torch.linalg.vector_norm(s, dim=dim, keepdim=True, dtype=wide)
