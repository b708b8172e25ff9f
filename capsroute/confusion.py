"""A confusion matrix as a figure."""

from pathlib import Path

from capsroute.errors import DataError, InputError
from capsroute.evaluation import Evaluation


def draw_confusion(result: Evaluation, classes: tuple[str, ...], title: str, out: Path) -> None:
    """Save the shares of each true class that were predicted as each class."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    if out.suffix not in (".png", ".svg", ".pdf"):
        raise InputError(f"--figure {out}: must end in .png, .svg or .pdf")
    share = result.confusion / result.confusion.sum(1, keepdim=True).clamp(min=1)
    side = 2.2 + 0.48 * len(classes)
    figure, axes = plt.subplots(figsize=(side, side), dpi=150, layout="constrained")
    axes.imshow(share.sqrt(), cmap="Blues", vmin=0, vmax=1)  # the root, so that rare mistakes show
    places = range(len(classes))
    axes.set_xticks(places, classes, rotation=45, ha="right")
    axes.set_yticks(places, classes)
    axes.set_xlabel("predicted (percent of each true class)")
    axes.set_ylabel("true")
    axes.set_title(f"{title}: {result.accuracy:.2%} of {int(result.confusion.sum()):,}", fontsize=10)
    for row in places:
        for column in places:
            if share[row, column] >= 0.005:
                colour = "white" if share[row, column] > 0.35 else "black"
                text = f"{100 * share[row, column]:.0f}"
                axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=8)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out)
    except OSError as error:
        raise DataError(f"{out}: cannot be written ({error.strerror or error})") from error
    finally:
        plt.close(figure)
