"""One's own images: ROOT/train/<class>/*.png or .jpg, and the same under ROOT/test."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from capsroute.data.formats import Images, Labels
from capsroute.data.progress import Progress, no_progress
from capsroute.errors import DataError, InputError

SUFFIXES = (".png", ".jpg", ".jpeg")
DEFAULT_SIDE = 32
LEAST_SIDE, MOST_SIDE = 8, 1024
# A file may declare any size in its header; a photograph of 64 megapixels is large, more is a decompression bomb.
MOST_PIXELS = 64 << 20
IGNORED = ("Thumbs.db", "desktop.ini")


@dataclass(frozen=True)
class FolderShape:
    """What all images of a folder are brought to: `side` by `side` pixels, 1 or 3 channels."""

    side: int
    channels: int


def class_names(root: Path, split: str) -> tuple[str, ...]:
    """The classes of a folder: the subfolders of `train`, sorted; those of another split must be among them."""
    classes = _subfolders(root / "train")
    if split != "train":
        strange = [name for name in _subfolders(root / split) if name not in classes]
        if strange:
            raise DataError(f"{root / split}: class {strange[0]!r} is not among those of {root / 'train'}: {classes}")
    return classes


def choose_shape(root: Path, side: int | None) -> FolderShape:
    """The shape for all splits, from the training images' headers: their common size, else 32; grey if all are."""
    from PIL import Image

    if side is not None and not LEAST_SIDE <= side <= MOST_SIDE:
        raise InputError(f"image_size={side} must lie between {LEAST_SIDE} and {MOST_SIDE}")
    sizes, grey = set(), True
    for path, _ in _files(root, "train", class_names(root, "train")):
        with _opened(path) as image:
            sizes.add(image.size)
            grey = grey and image.mode in ("1", "L", "I", "I;16")
    width, height = sizes.pop() if len(sizes) == 1 else (DEFAULT_SIDE, DEFAULT_SIDE)
    usual = width if width == height and LEAST_SIDE <= width <= MOST_SIDE else DEFAULT_SIDE
    assert Image  # imported here, so that only folders of images need Pillow
    return FolderShape(side or usual, 1 if grey else 3)


def read_folder(
    root: Path, split: str, shape: FolderShape, classes: tuple[str, ...], progress: Progress = no_progress
) -> tuple[Images, Labels]:
    """The images of a split, resized with Pillow's bilinear filter (which averages when it shrinks).

    Transparent pixels count as black, and a camera's orientation mark is obeyed.
    """
    files = _files(root, split, classes)
    images = np.empty((len(files), shape.channels, shape.side, shape.side), np.uint8)
    labels = np.empty(len(files), np.int64)
    for number, (path, label) in enumerate(files):
        images[number] = read_image(path, shape.channels, (shape.side, shape.side))
        labels[number] = label
        progress(f"reading {split} images", number + 1, len(files))
    return images, labels


def read_image(path: Path, channels: int, size: tuple[int, int]) -> Images:
    """One image file as [channels, height, width] of this size, as `read_folder` says."""
    from PIL import Image, ImageOps

    with _opened(path) as opened:
        try:
            image = ImageOps.exif_transpose(opened)
            if image.mode == "I;16":  # sixteen bits of grey; Pillow's own conversion would clip them
                image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
            if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
                layer = image.convert("RGBA")
                image = Image.new("RGBA", layer.size, (0, 0, 0, 255))
                image.alpha_composite(layer)
            image = image.convert("L" if channels == 1 else "RGB")
            image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
        except (OSError, ValueError, SyntaxError, EOFError) as error:
            raise DataError(f"{path}: a damaged image ({error})") from error
    return np.asarray(image).reshape(*size, channels).transpose(2, 0, 1)


def _opened(path: Path):  # type: ignore[no-untyped-def]  # Pillow is imported late
    """The image at `path`, its header read and its size accepted, its pixels not yet decoded."""
    import warnings

    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limit below is stricter
            image = Image.open(path, formats=("PNG", "JPEG"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: not a readable PNG or JPEG image ({error})") from error
    width, height = image.size
    if width * height > MOST_PIXELS:
        image.close()
        raise DataError(f"{path}: {width}x{height} pixels, over the limit of {MOST_PIXELS >> 20} megapixels")
    return image


def _subfolders(folder: Path) -> tuple[str, ...]:
    if not folder.is_dir():
        raise DataError(
            f"{folder}: no such folder; images belong in {folder.parent}/train/<class>/ and .../test/<class>/"
        )
    names = tuple(sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and entry.name[0] != "."))
    if not names:
        raise DataError(f"{folder}: has no class folders; images belong in {folder}/<class>/*.png or .jpg")
    return names


def _files(root: Path, split: str, classes: tuple[str, ...]) -> list[tuple[Path, int]]:
    files: list[tuple[Path, int]] = []
    present = _subfolders(root / split)
    for label, name in enumerate(classes):
        if name not in present:
            continue
        folder = root / split / name
        entries = sorted(entry for entry in folder.iterdir() if entry.name[0] != "." and entry.name not in IGNORED)
        for entry in entries:
            if not entry.is_file() or entry.suffix.lower() not in SUFFIXES:
                raise DataError(f"{entry}: not a .png or .jpg file; a class folder holds images only")
            files.append((entry, label))
        if not entries:
            raise DataError(f"{folder}: the class {name!r} has no images")
    return files
