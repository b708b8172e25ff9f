"""How many primary capsules an image gives, and the stride for a wanted number."""

import math
from collections.abc import Sequence

from capsroute.errors import InputError, require_whole

# Tried in this order for the stride that gives the wanted number of capsules: 2 at 28x28, 3 at 32x32.
STRIDES = (2, 3, 1, 4)
LARGEST_SIDE = 256  # how far a refusal looks for an image size that would do


class PrimaryGrid:
    """An image after the stem's convolution (stride 1) and the primary one: positions times groups."""

    def __init__(self, in_shape: tuple[int, int, int], stem_kernel: int, primary_kernel: int, groups: int) -> None:
        self.in_shape, self.groups = in_shape, groups
        self.kernels = require_whole("stem_kernel", stem_kernel), require_whole("primary_kernel", primary_kernel)
        least = sum(self.kernels) - 1
        if min(in_shape[1:]) < least:
            raise InputError(
                f"in_shape={in_shape}: {stem_kernel}x{stem_kernel} and {primary_kernel}x{primary_kernel} convolutions "
                f"need images of at least {least}x{least}; use larger images or smaller kernels"
            )

    def count(self, stride: int, size: tuple[int, int] | None = None) -> int:
        """Capsules at this stride, for images of `size` (of the net's own size, if not given)."""
        sides = [(side - self.kernels[0] + 1 - self.kernels[1]) // stride + 1 for side in (size or self.in_shape[1:])]
        return math.prod(sides) * self.groups

    def choose(self, capsules: Sequence[int | None], stride: int | None) -> tuple[int, int]:
        """The stride, and the number of primary capsules that it gives."""
        wanted = capsules[0]
        if stride is not None:
            require_whole("primary_stride", stride)
        if wanted is None:
            stride = stride or STRIDES[0]
            return stride, self.count(stride)
        require_whole("capsules", wanted)
        for candidate in STRIDES if stride is None else (stride,):
            if self.count(candidate) == wanted:
                return candidate, wanted
        raise InputError(self._refusal(capsules, stride))

    def _refusal(self, capsules: Sequence[int | None], stride: int | None) -> str:
        _, height, width = self.in_shape
        at = f" with primary_stride={stride}" if stride else ""
        gives = ", ".join(f"{self.count(s)} at stride {s}" for s in sorted({*STRIDES, stride or STRIDES[0]}))
        sides = [
            (side, s)
            for s in ((stride,) if stride else STRIDES[:2])
            for side in range(LARGEST_SIDE, sum(self.kernels) - 2, -1)
            if self.count(s, (side, side)) == capsules[0]
        ]
        remedy = ""
        if sides:
            side, s = sides[0]
            remedy = f"images of {side}x{side} at stride {s} would give {capsules[0]}; "
        rest = ", ".join(map(str, capsules[1:]))
        return (
            f"capsules={tuple(capsules)}: a {height}x{width} image in {self.groups} groups{at} cannot give "
            f"{capsules[0]} primary capsules; it gives {gives}; {remedy}"
            f"capsules=(None, {rest}) takes what the image gives"
        )
