"""What the page is about: a net, its test images, and what its run wrote down."""

import copy
import csv
import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from capsroute.data.files import Dataset
from capsroute.diagnosis import LayerReport, diagnose
from capsroute.errors import DataError, InputError
from capsroute.models import CapsNet, Decoder
from capsroute.run import METRICS

PROBED = 64  # images over which layers are looked at
MOST_METRICS = 4 << 20  # bytes; a row an epoch, so thousands of epochs


@dataclass(frozen=True)
class Exhibit:
    """A trained net with what it is shown with; the same for all visitors, and changed by none."""

    net: CapsNet
    decoder: Decoder | None
    dataset: Dataset
    title: str
    metrics: str  # the content of metrics.csv; empty where there is none

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        """The run's measurements, an epoch each."""
        return list(csv.DictReader(io.StringIO(self.metrics)))

    @cached_property
    def layers(self) -> list[LayerReport]:
        """Lengths and gradients by layer, on the first test images."""
        images = self.dataset.images[:PROBED].float() / 255
        # Of a copy: looking sets hooks, which would catch the images of other visitors too.
        return diagnose(copy.deepcopy(self.net), images, self.dataset.labels[:PROBED])


def open_exhibit(run: Path, dataset: Dataset, loaded: tuple[CapsNet, Decoder | None, dict[str, Any]]) -> Exhibit:
    """The exhibit of a run, whose net was `loaded` with `saving.load_all`."""
    net, decoder, meta = loaded
    if "accuracy" in meta:
        told = f"{meta['accuracy']:.2%} on {meta.get('evaluated_on', 'its test images')}"
    else:
        told = "not finished, or not measured"
    return Exhibit(net.eval(), decoder, dataset, f"{dataset.title}: {told}", read_metrics(run))


def read_metrics(run: Path) -> str:
    """The content of a run's `metrics.csv`; empty where it has none."""
    file = run.expanduser() / METRICS
    if not file.is_file():
        return ""
    try:
        if file.stat().st_size > MOST_METRICS:
            raise DataError(f"{file}: larger than {MOST_METRICS >> 20} MB, which are no measurements of a run")
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from error


def pick(dataset: Dataset, label: int | None, number: int) -> int:
    """The index of the `number`-th image of a class, or of all; round and round."""
    if label is None:
        return number % len(dataset)
    having = torch.nonzero(dataset.labels == label).flatten()
    if not len(having):
        raise InputError(f"no test image is of class {dataset.classes[label]}")
    return int(having[number % len(having)])
