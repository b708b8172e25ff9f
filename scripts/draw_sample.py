"""Draw the embedded sample of Fashion-MNIST from the official files: `python scripts/draw_sample.py FOLDER`.

600 training and 100 test images of each class, without replacement, in the official order; pixels as they are.
"""

import sys
from pathlib import Path

import numpy as np

from capsroute.data.files import load_dataset
from capsroute.data.sample import ARCHIVE

SEED = 20191119
PER_CLASS = {"train": 600, "test": 100}


def draw(root: str) -> None:
    """Write the archive beside its reader."""
    generator = np.random.default_rng(SEED)
    arrays: dict[str, np.ndarray] = {}
    for split, count in PER_CLASS.items():
        full = load_dataset("fashion-mnist", root, split, offline=True)
        labels = full.labels.numpy()
        drawn = [generator.choice(np.flatnonzero(labels == label), count, replace=False) for label in range(10)]
        order = np.sort(np.concatenate(drawn))
        arrays[f"images_{split}"] = full.images.numpy()[order, 0]
        arrays[f"labels_{split}"] = labels[order].astype(np.uint8)
        arrays[f"positions_{split}"] = order.astype(np.uint16)
    np.savez_compressed(ARCHIVE, allow_pickle=False, **arrays)
    print(f"{ARCHIVE}: {Path(ARCHIVE).stat().st_size:,} bytes")


if __name__ == "__main__":
    draw(*sys.argv[1:])
