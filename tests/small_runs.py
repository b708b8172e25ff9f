"""A dataset and options with which a training run takes a second, and ways to run the command on them."""

import os
import pathlib
import subprocess
import sys

import numpy as np

COMMAND = str(pathlib.Path(sys.executable).with_name("capsroute"))


def write_dataset(folder):
    """An .npz of 20x20 images of four classes that a net can tell apart: a bright quarter each."""
    generator = np.random.default_rng(0)
    arrays = {}
    for split, count in (("train", 96), ("test", 40)):
        labels = np.arange(count) % 4
        images = generator.integers(0, 120, (count, 20, 20), dtype=np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[10 * (label // 2) :][:10, 10 * (label % 2) :][:, :10] += 120
        arrays |= {f"x_{split}": images, f"y_{split}": labels}
    path = folder / "quarters.npz"
    np.savez(path, **arrays)
    return path


def options(dataset, out, /, **changes):
    """Of `TrainConfig`, for a run of 3 epochs of 6 steps."""
    return {
        "dataset": str(dataset),
        "preset": "small",
        "primary_stride": 1,
        "epochs": 3,
        "batch_size": 16,
        "warmup": 4,
        "shift": 1,
        "precision": "fp32",
        "device": "cpu",
        "out": out,
        "quiet": True,
    } | changes


def arguments(dataset, out, /, **changes):
    """The same as a command line."""
    words = ["train"]
    for name, value in options(dataset, out, **changes).items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words += [flag] if value else []
        else:
            words += [flag, *(map(str, value) if isinstance(value, tuple) else [str(value)])]
    return words


def environment(**changes):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CAPSROUTE")}
    return kept | {"OMP_NUM_THREADS": "1"} | changes


def run(words, **variables):
    return subprocess.run(
        [COMMAND, *map(str, words)], env=environment(**variables), capture_output=True, text=True, check=False
    )
