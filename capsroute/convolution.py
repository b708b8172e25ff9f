"""`nn.Conv2d` without two slow ways that bf16 convolutions take on CPUs.

Profiled (`ONEDNN_VERBOSE=1`, torch 2.13, 2 cores of Zen 5, batch 128), both cured by writing the convolution as the
matrix product that it is:

- Of images with one channel, channels-last and channels-first are the same bytes; PyTorch takes them for the latter,
  and reorders the 26 MB that come out of Conv1 for the next layer, and their gradient back: 18 + 7 ms of a step.
- The weight gradient of the primary convolution runs at half the rate of its forward pass: 105 ms against 57.

In float32 the library's own convolutions are the fastest there is, on GPUs too: they are used as they are.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

# Entries of a patch up to which a convolution is a product with all patches at once: a step holds them all.
PATCH_ENTRIES = 512


class Convolution(nn.Conv2d):
    """`nn.Conv2d` of equal strides and no padding, dilation or groups: the same parameters and values."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride)

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c2 h2 w2"]:
        if torch.compiler.is_compiling() or not _multiplies_bf16_on_cpu(images) or not images.numel():
            return super().forward(images)
        with torch.autocast("cpu", enabled=False):
            images = images.to(torch.bfloat16)
            # The gradient of overlapping patches would be added up in bf16.
            if self.weight[0].numel() <= PATCH_ENTRIES and not images.requires_grad:
                return _product_with_patches(images, self.weight, self.bias, self.stride[0])
            return _WithFastWeightGradient.apply(images, self.weight, self.bias, self.stride[0])


def _multiplies_bf16_on_cpu(images: Tensor) -> bool:
    if images.device.type != "cpu":
        return False
    if torch.is_autocast_enabled("cpu"):
        return torch.get_autocast_dtype("cpu") == torch.bfloat16 and images.dtype != torch.float64
    return images.dtype == torch.bfloat16


def _product_with_patches(images: Tensor, weight: Tensor, bias: Tensor | None, stride: int) -> Tensor:
    """Every patch as a row; the result is channels-last as it comes."""
    kernel = weight.shape[2]
    patches = images.unfold(2, kernel, stride).unfold(3, kernel, stride)  # [b, c, h2, w2, y, x], a view
    rows = patches.permute(0, 2, 3, 1, 4, 5).flatten(3)  # [b, h2, w2, cyx]
    bias = None if bias is None else bias.to(images.dtype)
    return nn.functional.linear(rows, weight.to(images.dtype).flatten(1), bias).permute(0, 3, 1, 2)


class _WithFastWeightGradient(torch.autograd.Function):
    """The library's convolution, whose weight gradient is a product for each row of the kernel."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor | None, stride: int) -> Tensor:
        images = images.contiguous(memory_format=torch.channels_last)
        low = weight.to(images.dtype)
        ctx.save_for_backward(images, weight, bias, low)
        ctx.stride = stride
        return nn.functional.conv2d(images, low, None if bias is None else bias.to(images.dtype), stride)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        images, weight, bias, low = ctx.saved_tensors
        wants_images, wants_weight, wants_bias, _ = ctx.needs_input_grad
        if torch.is_grad_enabled():  # a gradient of this gradient is wanted: the library has that
            low = weight.to(images.dtype)
            wanted = [wants_images, wants_weight, wants_bias]
            of_images, of_weight, of_bias = _library_backward(gradient, images, low, ctx.stride, wanted)
            return of_images, _like(of_weight, weight), _like(of_bias, bias), None
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        of_images = of_weight = of_bias = None
        if wants_images:
            of_images, _, _ = _library_backward(gradient, images, low, ctx.stride, [True, False, False])
        if wants_weight:
            of_weight = _weight_gradient(gradient, images, weight, ctx.stride)
        if wants_bias:
            of_bias = gradient.sum((0, 2, 3), dtype=bias.dtype)
        return of_images, of_weight, of_bias, None


def _library_backward(
    gradient: Tensor, images: Tensor, weight: Tensor, stride: int, wanted: list[bool]
) -> tuple[Tensor | None, ...]:
    sides = [stride, stride], [0, 0], [1, 1]
    result: tuple[Tensor | None, ...] = torch.ops.aten.convolution_backward(
        gradient, images, weight, [weight.shape[0]], *sides, False, [0, 0], 1, wanted
    )
    return result


def _weight_gradient(
    gradient: Float[Tensor, "b c2 h2 w2"],
    images: Float[Tensor, "b c h w"],
    weight: Float[Tensor, "c2 c y x"],
    stride: int,
) -> Float[Tensor, "c2 c y x"]:
    """Σ over samples and positions of gradient ⊗ patch, one row of the kernel at a time.

    In channels-last images such a row of a patch is one stretch of memory, so the rows of all patches (21 MB for the
    paper's) are gathered at the speed of memory: 5 ms of the 63 that all of it takes.
    """
    out_channels, channels, kernel, _ = weight.shape
    batch, _, height, width = gradient.shape
    per_position = gradient.permute(0, 2, 3, 1).reshape(-1, out_channels)  # [bhw, c2]
    in_height, in_width = images.shape[2:]
    line = in_width * channels
    strides = in_height * line, stride * line, stride * channels, 1
    rows = images.new_empty(batch, height, width, kernel * channels)
    result = torch.empty_like(weight, memory_format=torch.channels_last)
    by_row = result.permute(2, 0, 3, 1)  # [y, c2, x, c]
    for y in range(kernel):
        rows.copy_(images.as_strided(rows.shape, strides, images.storage_offset() + y * line))
        product = per_position.t() @ rows.flatten(0, 2)  # [c2, xc]
        by_row[y] = product.unflatten(1, (kernel, channels))
    return result


def _like(gradient: Tensor | None, parameter: Tensor | None) -> Tensor | None:
    return gradient if gradient is None or parameter is None else gradient.to(parameter.dtype)
