"""Parts of a training split: a smaller one, and one held out."""

import dataclasses

import torch
from jaxtyping import Int64
from torch import Tensor

from capsroute.config import TrainConfig
from capsroute.data.files import Dataset, load_dataset
from capsroute.errors import InputError

SPLIT_SEED = 0  # the same images are held out whatever the run's seed


def load_splits(config: TrainConfig) -> tuple[Dataset, Dataset, str]:
    """What to train on, what to evaluate on, and what to call the latter."""

    def load(split: str) -> Dataset:
        return load_dataset(
            config.dataset, config.data_dir, split, offline=config.offline or None, image_size=config.image_size
        )

    train = load("train")
    if config.holdout:
        train, held = split_off(train, config.holdout)
        test, name = held, "held-out training images"
    else:
        test, name = load("test"), "the test split"
    return limit_per_class(train, config.limit), test, name


def limit_per_class(dataset: Dataset, limit: int | None) -> Dataset:
    """The first images of each class, `limit` in all, of each class as many give or take one; all if it is None."""
    if limit is None or limit >= len(dataset):
        return dataset
    rank = torch.empty_like(dataset.labels)  # of each image among those of its class
    for label in range(len(dataset.classes)):
        mine = dataset.labels == label
        rank[mine] = torch.arange(int(mine.sum()))
    chosen = torch.argsort(rank, stable=True)[:limit].sort().values
    return _part(dataset, chosen, f"{limit:,} of its {len(dataset):,} images")


def split_off(dataset: Dataset, count: int) -> tuple[Dataset, Dataset]:
    """The dataset without `count` images drawn by lot, and these."""
    if not 0 < count < len(dataset):
        raise InputError(f"holdout={count} must leave some of the {len(dataset):,} training images to train on")
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(SPLIT_SEED))
    held, kept = order[:count].sort().values, order[count:].sort().values
    return (
        _part(dataset, kept, f"without {count:,} held-out images"),
        _part(dataset, held, f"{count:,} held-out training images"),
    )


def _part(dataset: Dataset, chosen: Int64[Tensor, " n"], which: str) -> Dataset:
    return dataclasses.replace(
        dataset,
        title=f"{dataset.title} ({which})",
        images=dataset.images[chosen],
        labels=dataset.labels[chosen],
    )
