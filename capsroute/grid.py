"""How many primary capsules an image gives, and the stride for a wanted number."""

import math
import sys
from collections.abc import Sequence

from capsroute.errors import InputError, require_whole
from capsroute.stems import Stem

# Tried first for the stride that gives the wanted number of capsules: 2 at 28x28, 3 at 32x32. Then all others.
STRIDES = (2, 3, 1)
LARGEST_SIDE = 256  # how far a refusal looks for an image size that would do


class PrimaryGrid:
    """An image after the stem and the primary convolution: positions times groups."""

    def __init__(
        self, in_shape: tuple[int, int, int], stem: Stem, stem_kernel: int, primary_kernel: int, groups: int
    ) -> None:
        self.in_shape, self.groups, self.stem = in_shape, groups, stem
        self.kernels = require_whole("stem_kernel", stem_kernel), require_whole("primary_kernel", primary_kernel)
        least = self.least = next(side for side in range(1, sys.maxsize) if self._positions(side, 1) > 0)
        if min(in_shape[1:]) < least:
            raise InputError(
                f"in_shape={in_shape}: {stem_kernel}x{stem_kernel} and {primary_kernel}x{primary_kernel} convolutions "
                f"need images of at least {least}x{least}; use larger images or smaller kernels"
            )

    def count(self, stride: int, size: tuple[int, int] | None = None) -> int:
        """Capsules at this stride, for images of `size` (of the net's own size, if not given)."""
        return math.prod(self._positions(side, stride) for side in (size or self.in_shape[1:])) * self.groups

    def _positions(self, side: int, stride: int) -> int:
        return (self.stem.side(side, self.kernels[0]) - self.kernels[1]) // stride + 1

    def choose(self, capsules: Sequence[int | None], stride: int | None) -> tuple[int, int]:
        """The stride, and the number of primary capsules that it gives."""
        wanted = capsules[0]
        if stride is not None:
            require_whole("primary_stride", stride)
        if wanted is None:
            stride = stride or STRIDES[0]
            return stride, self.count(stride)
        require_whole("capsules", wanted)
        fitting = [candidate for candidate in self._strides() if self.count(candidate) == wanted]
        if stride in fitting or (stride is None and fitting):
            return stride or fitting[0], wanted
        raise InputError(self._refusal(capsules, stride, fitting))

    def _strides(self) -> list[int]:
        return [*STRIDES, *range(len(STRIDES) + 1, max(self.in_shape[1:]))]

    def _refusal(self, capsules: Sequence[int | None], stride: int | None, fitting: list[int]) -> str:
        _, height, width = self.in_shape
        wanted, rest = capsules[0], ", ".join(map(str, capsules[1:]))
        at = f" at primary_stride={stride}" if stride else ""
        strides = sorted({1, 2, 3, 4, stride or 1})
        gives = ", ".join(f"{self.count(candidate)} at stride {candidate}" for candidate in strides)
        return (
            f"capsules={tuple(capsules)}: {self.groups} groups on a {height}x{width} image give no {wanted} primary "
            f"capsules{at}, but {gives}; {self._remedy(int(wanted or 0), stride, fitting)}or let the image decide: "
            f"capsules=(None, {rest})"
        )

    def _remedy(self, wanted: int, stride: int | None, fitting: list[int]) -> str:
        if fitting:
            return f"use primary_stride={fitting[0]}, "
        if wanted % self.groups:
            return f"use a multiple of primary_groups={self.groups}, "
        for candidate in (stride,) if stride else STRIDES[:2]:
            for side in range(LARGEST_SIDE, self.least - 1, -1):
                if self.count(candidate, (side, side)) == wanted:
                    return f"use images of {side}x{side} at stride {candidate}, "
        return ""
