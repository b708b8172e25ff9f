"""What all figures share: colours that the colour-blind tell apart, a caption that says where it is from, saving."""

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capsroute.checkpoint import write_atomically
from capsroute.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's, without the yellow, which does not print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v")
GREY = "#666666"
FORMATS = ("svg", "png")
STYLE: Any = {  # its type is the list of all keys there are
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "svg.hashsalt": "capsroute",  # the same figure is the same file
}
CAPTION_INCHES = 0.17  # per line


@dataclass(frozen=True)
class Drawing:
    """A finished figure: a name for its files, a title, and a caption with run, data and profile."""

    name: str
    title: str
    caption: str
    figure: "Figure"
    _made: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)  # drawn once for file and page

    def content(self, suffix: str) -> bytes:
        """The figure, with its caption below, as a file of this format."""
        if suffix in self._made:
            return self._made[suffix]
        import matplotlib as mpl

        buffer = io.BytesIO()
        with mpl.rc_context(STYLE):
            metadata = {"Date": None} if suffix == "svg" else {}
            self.figure.savefig(buffer, format=suffix, dpi=160, metadata=metadata, facecolor="white")
        self.figure.set_layout_engine("none")  # everything has its place now; finding it takes longer than drawing
        return self._made.setdefault(suffix, buffer.getvalue())

    def save(self, folder: Path) -> list[Path]:
        """Write it as SVG and PNG."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{folder}: cannot be made ({error.strerror or error})") from error
        paths = [folder / f"{self.name}.{suffix}" for suffix in FORMATS]
        for path in paths:
            write_atomically(path, self.content(path.suffix[1:]))
        return paths


@contextmanager
def new_figure(width: float, height: float, caption: str) -> Iterator["Figure"]:
    """A figure of so many inches in the house's style, with room for its caption below."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    lines = textwrap.wrap(caption, int(width * 17))
    foot = CAPTION_INCHES * (len(lines) + 0.6)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height + foot), layout="constrained")
        engine = figure.get_layout_engine()
        assert isinstance(engine, ConstrainedLayoutEngine)
        engine.set(rect=(0, foot / (height + foot), 1, height / (height + foot)))
        figure.text(0.01, 0.01, "\n".join(lines), fontsize=7.5, color=GREY, va="bottom", ha="left")
        yield figure
