"""What the page shows now."""

from collections.abc import Callable
from dataclasses import dataclass

from capsroute.explorer.opening import Exhibit
from capsroute.explorer.training import PageTraining


@dataclass
class Stage:
    """A trained net, or one that is to be trained first; the same for everybody, and replaced once: by its training."""

    exhibit: Exhibit
    training: PageTraining | None = None
    finish: Callable[[], Exhibit] | None = None  # opens what was trained
    trained: bool = True
