"""`capsroute figures`."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from tyro.conf import Positional

from capsroute.errors import InputError, require_whole


@dataclass(frozen=True)
class Figures:
    """Draw finished runs, as SVG and PNG: net, coupling coefficients, routing iterations, lengths, Conv1's gradient.

    The paper's own figures, over several runs, come with `capsroute reproduce figures`.
    """

    runs: Positional[tuple[Path, ...]]
    """Run folders."""
    out: Path | None = None
    """Folder for the figures, with one of its own for each run; figures/ in each run's folder, if not given."""
    data_dir: Path | None = None
    """Folder to look for the datasets in first."""
    images: int = 200
    """How many test images the figures look at."""
    quiet: bool = False
    """Print nothing but errors."""

    def run(self) -> None:
        from capsroute.figures.of_run import draw_run

        if not self.runs:
            raise InputError("name at least one run folder: capsroute figures RUN ...")
        require_whole("images", self.images)
        console = Console(highlight=False, soft_wrap=True)
        for folder in self.runs:
            place = folder / "figures" if self.out is None else self.out / folder.resolve().name
            for drawing in draw_run(folder, self.data_dir, self.images):
                paths = drawing.save(place)
                if not self.quiet:
                    console.print(f"{drawing.title}: {', '.join(map(str, paths))}", markup=False)
