"""The margin loss on lengths, and the reconstruction loss of the decoder."""

import torch
from jaxtyping import Float, Integer, Shaped
from torch import Tensor

from capsroute.errors import InputError, require_tensor
from capsroute.nonlinearity import lengths

# Class numbers, or one row of zeros and ones a sample.
Targets = Integer[Tensor, " b"] | Shaped[Tensor, "b j"]


def margin_loss(
    class_capsules: Float[Tensor, "b j d"],
    targets: Targets,
    positive: float = 0.9,
    negative: float = 0.1,
    absent: float = 0.5,
) -> Float[Tensor, ""]:
    """Mean over samples of Σ_j T_j max(0, 0.9 - ‖v_j‖)² + 0.5 (1 - T_j) max(0, ‖v_j‖ - 0.1)².

    `targets` are class numbers, or one row of zeros and ones a sample. The loss of an empty batch is zero.
    """
    length = lengths(require_tensor("class_capsules", class_capsules, ("b", "j", "d")))
    present = one_hot(targets, length.shape[0], length.shape[1]).to(length)
    short = (positive - length).clamp(min=0).square()
    long = (length - negative).clamp(min=0).square()
    return (present * short + absent * (1 - present) * long).sum() / max(length.shape[0], 1)


def reconstruction_loss(
    reconstruction: Float[Tensor, "b c h w"], images: Float[Tensor, "b c h w"], weight: float = 0.0005
) -> Float[Tensor, ""]:
    """0.0005 · the sum over pixels of squared errors, averaged over samples."""
    require_tensor("images", images, tuple(reconstruction.shape))
    wide = torch.promote_types(images.dtype, torch.float32)
    error = reconstruction.to(wide) - images.to(wide)
    return weight * error.square().sum() / max(images.shape[0], 1)


def one_hot(targets: Tensor, samples: int, classes: int) -> Tensor:
    """T as [b, j], from class numbers [b] or from T itself; everything else is refused.

    Values are checked at once on a CPU; on an accelerator, and in compiled code, by an assertion on the device.
    """
    if not isinstance(targets, Tensor):
        raise InputError(f"targets must be a tensor, got a {type(targets).__name__}; use torch.as_tensor(targets)")
    if targets.shape == (samples, classes):
        _refuse_any((targets != 0) & (targets != 1), targets, "one-hot targets must be zeros and ones")
        return targets
    if targets.shape != (samples,):
        raise InputError(
            f"targets must be class numbers of shape [{samples}] or one-hot rows of shape [{samples}, {classes}], "
            f"got shape {list(targets.shape)}"
        )
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        raise InputError(f"class numbers must be integers, got {targets.dtype}; use targets.long()")
    numbers = targets.long()
    outside = (numbers < 0) | (numbers >= classes)
    _refuse_any(outside, numbers, f"targets must lie in 0 to {classes - 1} for {classes} class capsules")
    return numbers[:, None] == torch.arange(classes, device=targets.device)


def _refuse_any(wrong: Tensor, values: Tensor, rule: str) -> None:
    # Reading a value off an accelerator would stall each step, so there the check runs on the device and aborts there.
    if wrong.device.type == "cpu" and not torch.compiler.is_compiling():
        if wrong.any():
            sample = int(wrong.nonzero()[0, 0])
            raise InputError(f"{rule}; targets[{sample}] is {values[sample].tolist()}")
    elif wrong.device.type in ("cpu", "cuda"):
        torch._assert_async(~wrong.any(), rule)
