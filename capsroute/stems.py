"""What turns an image into the feature maps that primary capsules are made of.

"paper" is the one wide convolution of the capsule papers. "resnet" is a small residual net, 3 x 3 throughout, for
images that one convolution does not understand; 2.8 million parameters at 256 channels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from jaxtyping import Float
from torch import Tensor, nn

from capsroute.convolution import Convolution
from capsroute.errors import InputError, nearest


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut (He et al. 2015): relu(x + f(x))."""

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.shortcut = nn.Sequential()
        if stride > 1 or in_channels != channels:
            self.shortcut.append(nn.Conv2d(in_channels, channels, 1, stride, bias=False))
            self.shortcut.append(nn.BatchNorm2d(channels))

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c2 h2 w2"]:
        return nn.functional.relu(self.body(x) + self.shortcut(x))


@dataclass(frozen=True)
class Stem:
    """A row of the table of stems; all that differs between them, code aside, is a field here."""

    make: Callable[[int, int, int], nn.Sequential]  # from image channels, feature channels, kernel
    side: Callable[[int, int], int]  # of the feature maps, from the image's side and the kernel
    stride: int  # pixels of the image from one feature to the next
    kernel: int  # of the first convolution
    primary_kernel: int
    text: str


def _paper(in_channels: int, channels: int, kernel: int) -> nn.Sequential:
    return nn.Sequential(Convolution(in_channels, channels, kernel), nn.ReLU(inplace=True))


def _resnet(in_channels: int, channels: int, kernel: int) -> nn.Sequential:
    if channels % 4:
        raise InputError(
            f"stem_channels={channels} must be a multiple of 4 for stem='resnet', which doubles them twice"
        )
    first, second = channels // 4, channels // 2
    return nn.Sequential(
        nn.Conv2d(in_channels, first, kernel, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(first),
        nn.ReLU(),
        ResidualBlock(first, first, 1),
        ResidualBlock(first, first, 1),
        ResidualBlock(first, second, 2),
        ResidualBlock(second, second, 1),
        ResidualBlock(second, channels, 2),
        ResidualBlock(channels, channels, 1),
    )


STEMS: MappingProxyType[str, Stem] = MappingProxyType(
    {
        "paper": Stem(_paper, lambda side, kernel: side - kernel + 1, 1, 9, 9, "convolution {kernel}x{kernel}, ReLU"),
        "resnet": Stem(
            _resnet,
            lambda side, kernel: -(-(side + 1 - kernel % 2) // 4),
            4,
            3,
            3,
            "residual, {kernel}x{kernel} first, six blocks",
        ),
    }
)


def find_stem(name: str) -> Stem:
    """The stem of that name, or an `InputError` with the nearest one."""
    if not isinstance(name, str) or name not in STEMS:
        raise InputError(f"unknown stem {name!r}; {nearest(str(name), STEMS)}")
    return STEMS[name]
