"""`Convolution` against `nn.Conv2d`: the same numbers, whichever way they are computed."""

import pytest
import torch
from torch import Tensor, nn

from capsroute.convolution import PATCH_ENTRIES, Convolution

# Input channels, kernel, stride, side: few entries a patch (a product with all patches) and many (row by row).
SHAPES = [(1, 9, 1, 28), (3, 9, 1, 32), (3, 3, 2, 11), (64, 9, 2, 20), (64, 9, 3, 24), (128, 3, 1, 5), (57, 3, 2, 7)]


def _both(channels: int, kernel: int, stride: int, side: int) -> tuple[Convolution, nn.Conv2d, Tensor]:
    torch.manual_seed(0)
    ours = Convolution(channels, 16, kernel, stride)
    plain = nn.Conv2d(channels, 16, kernel, stride)
    plain.load_state_dict(ours.state_dict())
    return ours, plain, torch.randn(5, channels, side, side)


def _run(layer: nn.Module, images: Tensor, low: bool) -> list[Tensor]:
    images = images.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        result = layer(images)
    # Weights of the sum that differ everywhere, so that no entry can stand in for another.
    ramp = torch.linspace(-1, 1, result.numel()).view(result.shape)
    wanted = [images, *layer.parameters()]
    return [result.float(), *torch.autograd.grad((result.float() * ramp).sum(), wanted)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["first", "last"])
def test_bf16_is_as_near_to_float32_as_the_librarys(shape: tuple[int, ...], layout: torch.memory_format) -> None:
    ours, plain, images = _both(*shape)
    images = images.to(memory_format=layout)
    exact = _run(plain, images, low=False)
    for got, usual, wanted in zip(_run(ours, images, low=True), _run(plain, images, low=True), exact, strict=True):
        assert got.shape == wanted.shape
        allowed = 1.5 * (usual - wanted).norm() + 1e-3 * wanted.norm()
        assert (got - wanted).norm() <= allowed


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[3]], ids=str)
def test_gradients_keep_the_parameters_dtype(shape: tuple[int, ...]) -> None:
    ours, _, images = _both(*shape)
    assert {gradient.dtype for gradient in _run(ours, images, low=True)} == {torch.float32}
    assert {gradient.dtype for gradient in _run(ours.bfloat16(), images.bfloat16(), low=False)[1:]} == {torch.bfloat16}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_other_precisions_are_the_librarys_own(dtype: torch.dtype) -> None:
    ours, plain, images = _both(*SHAPES[3])
    ours, plain, images = ours.to(dtype), plain.to(dtype), images.to(dtype)
    assert torch.equal(ours(images), plain(images))


def test_a_gradient_of_the_gradient() -> None:
    ours, plain, images = _both(*SHAPES[3])
    results = []
    for layer in (ours, plain):
        with torch.autocast("cpu", torch.bfloat16):
            loss = layer(images).float().square().mean()
        (first,) = torch.autograd.grad(loss, layer.weight, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), layer.weight)
        results.append(second)
    assert (results[0] - results[1]).norm() < 0.02 * results[1].norm()


def test_patches_have_no_limit_on_the_first_convolution_of_the_paper() -> None:
    assert max(channels * kernel**2 for channels, kernel, *_ in SHAPES[:3]) <= PATCH_ENTRIES < 64 * 81


def test_an_empty_batch_and_no_bias() -> None:
    ours, _, images = _both(*SHAPES[3])
    with torch.autocast("cpu", torch.bfloat16):
        assert ours(images[:0]).shape == (0, 16, 6, 6)
    ours.bias = None
    assert len(_run(ours, images, low=True)) == 3
