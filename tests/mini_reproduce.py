"""The paper in miniature: `python mini_reproduce.py ...` is `capsroute reproduce ...` with a profile "mini", nets of a
few capsules, and official datasets of a few images, which `python mini_reproduce.py write FOLDER` makes.

Processes that the command starts import this file again, and so have the same small world.
"""

import sys
from pathlib import Path

import capsroute.data.formats
from capsroute.data.table import DATASETS
from capsroute.models import PRESETS
from capsroute.paper import profiles

TRAIN, TEST = 100, 20
# As the paper's nets, layer for layer, on as many positions of one group.
CAPSULES = {"paper-2": (36, 10), "paper-3": (36, 12, 10), "paper-4": (36, 12, 10, 10)}
MINI = profiles.Profile(
    "mini",
    "mini profile: 60 training images, 2 epochs, nets of 36 primary capsules",
    seeds=1,
    options={"limit": 60, "epochs": 2, "batch_size": 20, "warmup": 2, "checkpoint_every": "0.001m"},
)


def shrink():
    """Everything that the command knows, in place: it has been imported by name in many modules."""
    for name, capsules in CAPSULES.items():
        PRESETS[name].update(capsules=capsules, stem_channels=4, primary_groups=1)
    for info in DATASETS.values():
        if info.family != "sample":
            info.counts.update(train=TRAIN, test=TEST)
            info.content.clear()  # nobody knows these pixels
    capsroute.data.formats.CIFAR_PER_FILE = TEST
    profiles.PROFILES = {**profiles.PROFILES, MINI.name: MINI}


def write_datasets(folder):
    """In the official formats, each image a bright row where its class says."""
    import numpy as np

    for name, info in DATASETS.items():
        if info.family == "sample":
            continue
        place = folder / name
        place.mkdir(parents=True)
        for number, (split, count) in enumerate((("train", TRAIN), ("test", TEST))):
            labels = np.arange(count) % 10
            images = np.random.default_rng(number).integers(0, 80, (count, *info.shape), dtype=np.uint8)
            for image, label in zip(images, labels, strict=True):
                image[:, 2 * label + 4 : 2 * label + 6] = 250
            WRITERS[info.family](place, split, images, labels)


def _write_idx(place, split, images, labels):
    from data_files import write_idx  # not above: the processes of the command need none of it, and start sooner

    prefix = "train" if split == "train" else "t10k"
    write_idx(place / f"{prefix}-images-idx3-ubyte.gz", images[:, 0])
    write_idx(place / f"{prefix}-labels-idx1-ubyte.gz", labels)


def _write_cifar(place, split, images, labels):
    from data_files import cifar_records

    names = [f"data_batch_{number}" for number in range(1, 6)] if split == "train" else ["test_batch"]
    per_file = len(images) // len(names)
    for number, name in enumerate(names):
        mine = slice(number * per_file, (number + 1) * per_file)
        (place / f"{name}.bin").write_bytes(cifar_records(images[mine], labels[mine]))


def _write_svhn(place, split, images, labels):
    from data_files import write_svhn

    write_svhn(place / f"{split}_32x32.mat", images, labels)


WRITERS = {"idx": _write_idx, "cifar": _write_cifar, "svhn": _write_svhn}

if __name__ in ("__main__", "__mp_main__"):  # a process that the first one starts has the second name
    shrink()

if __name__ == "__main__":
    from capsroute.cli import main

    if sys.argv[1] == "write":
        sys.exit(write_datasets(Path(sys.argv[2])))
    sys.exit(main(["reproduce", *sys.argv[1:]]))
