"""That an exported net gives what the net gives, on real images, one at a time and several."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # its usual name
from jaxtyping import Float
from torch import Tensor, nn

from capsroute.data.files import Dataset, load_dataset
from capsroute.errors import CapsrouteError, DataError
from capsroute.models import CapsNet
from capsroute.nonlinearity import lengths

BATCHES = (1, 7)
TOLERANCE = 1e-4
# The tolerance is of the largest length where that is small, so that an untrained net is checked too; down to here.
LEAST_LENGTH = 1e-6

Outputs = tuple[Tensor, Tensor]


class Classifier(nn.Module):
    """A net as it is exported: from images to class capsules and their lengths."""

    def __init__(self, net: CapsNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Float[Tensor, "b c h w"]) -> tuple[Float[Tensor, "b j d"], Float[Tensor, "b j"]]:
        capsules = self.net(images)
        return capsules, lengths(capsules)

    def example(self) -> Float[Tensor, "2 c h w"]:
        """Images to trace with; blank, as some formats keep them."""
        return torch.zeros(2, *self.net.in_shape)


def images_for(net: CapsNet, meta: dict[str, Any]) -> tuple[Float[Tensor, "n c h w"], str]:
    """Images to check with, and where they are from: the run's test split if it is here, else the embedded sample."""
    config = meta.get("config", {})
    dataset: Dataset | None = None
    if config.get("dataset"):
        try:
            folder, size = config.get("data_dir"), config.get("image_size")
            dataset = load_dataset(config["dataset"], folder, "test", offline=True, image_size=size)
        except CapsrouteError:
            pass  # elsewhere than where it was trained
    if dataset is None or dataset.shape != net.in_shape or not len(dataset):
        dataset = load_dataset("sample", split="test")
    chosen = torch.arange(sum(BATCHES)) % len(dataset)
    images = dataset.images[chosen].float() / 255
    if dataset.shape != net.in_shape:
        channels, height, width = net.in_shape
        images = F.interpolate(images, (height, width), mode="bilinear", antialias=True).clamp(0, 1)
        images = images[:, torch.arange(channels) % images.shape[1]]
    return images, dataset.title


@torch.no_grad()
def largest_difference(
    classifier: Classifier, exported: Callable[[Tensor], Outputs], images: Float[Tensor, "n c h w"]
) -> float:
    """The largest difference of any output; a `DataError` if one is beyond the tolerance."""
    largest = 0.0
    for batch in images.split(BATCHES):
        expected = classifier(batch)
        bound = TOLERANCE * max(LEAST_LENGTH, expected[1].max().item())
        for name, ours, theirs in zip(("class capsules", "lengths"), expected, exported(batch), strict=True):
            if ours.shape != theirs.shape:
                raise DataError(f"the exported net gives {name} of {list(theirs.shape)}, the net {list(ours.shape)}")
            difference = (ours - theirs).abs().max().item()
            if not difference <= bound:  # nor if it is no number
                raise DataError(
                    f"the exported net's {name} differ from the net's by {difference:.1e} on a batch of {len(batch)}, "
                    f"more than {bound:.1e}; nothing was written"
                )
            largest = max(largest, difference)
    return largest


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """Without the exporter's remarks on packages that are not there and on its own future."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
