"""A contact sheet: a row of images for each class, with its name."""

from pathlib import Path

import numpy as np

from capsroute.data.files import Dataset
from capsroute.errors import DataError, InputError, require_whole

MOST_ROWS = 40


def contact_sheet(dataset: Dataset, out: Path, columns: int = 12) -> None:
    """Save the first `columns` images of each class as PNG, SVG or PDF, by the ending of `out`."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    require_whole("columns", columns)
    if out.suffix not in (".png", ".svg", ".pdf"):
        raise InputError(f"--out {out}: must end in .png, .svg or .pdf")
    channels, height, width = dataset.shape
    classes = list(enumerate(dataset.classes))[:MOST_ROWS]
    labels = dataset.labels.numpy()
    gap = 2
    sheet = np.full((len(classes) * (height + gap) - gap, columns * (width + gap) - gap, channels), 255, np.uint8)
    for row, (label, _) in enumerate(classes):
        for column, index in enumerate(np.flatnonzero(labels == label)[:columns]):
            top, left = row * (height + gap), column * (width + gap)
            sheet[top : top + height, left : left + width] = dataset.images[index].permute(1, 2, 0).numpy()
    figure_height = 0.45 * len(classes) + 0.6
    figure, axes = plt.subplots(
        figsize=(figure_height * sheet.shape[1] / sheet.shape[0] + 1.6, figure_height), dpi=150, layout="constrained"
    )
    axes.imshow(sheet.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axes.set_yticks([row * (height + gap) + height / 2 for row in range(len(classes))], [name for _, name in classes])
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    more = f", {len(classes)} of {len(dataset.classes)} classes" if len(classes) < len(dataset.classes) else ""
    axes.set_title(f"{dataset.title}, {dataset.split}: {len(dataset):,} images of {height}x{width}{more}", fontsize=10)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, bbox_inches="tight")
    except OSError as error:
        raise DataError(f"{out}: cannot be written ({error})") from error
    finally:
        plt.close(figure)
