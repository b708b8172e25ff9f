"""Class lengths for image files of any size."""

from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.data.folders import read_image
from capsroute.models import CapsNet
from capsroute.nonlinearity import lengths

BATCH = 64


@torch.no_grad()
def predict(net: CapsNet, paths: list[Path]) -> Float[Tensor, "n j"]:
    """The class capsules' lengths of each image, brought to the net's shape as training images are."""
    channels, height, width = net.in_shape
    results = []
    for first in range(0, len(paths), BATCH):
        pixels = [torch.tensor(read_image(path, channels, (height, width))) for path in paths[first : first + BATCH]]
        results.append(lengths(net(torch.stack(pixels).float() / 255)))
    return torch.cat(results)
