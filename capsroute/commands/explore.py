"""`capsroute explore`."""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from capsroute.commands.run_data import dataset_of, refuse_other_shape
from capsroute.errors import InputError

if TYPE_CHECKING:
    from capsroute.explorer.opening import Exhibit
    from capsroute.explorer.stage import Stage


@dataclass(frozen=True)
class Explore:
    """Open a page on a trained net: predictions, routings side by side, evidence, dimensions, depth (extra [explore]).

    Without a run the page offers to train a small one on the sample, and keeps it. It is served to this machine only.
    """

    run_folder: Positional[Path | None] = None
    """A run folder, a final.safetensors, a checkpoint, or an exported folder."""
    out: Path = Path("runs/explorer")
    """Without a run: where the one that the page trains is kept."""
    port: int | None = None
    """Port of 127.0.0.1; a free one from 7860 on, if not given."""
    no_browser: bool = False
    """Only print the address; a browser is opened where there is a display."""
    dataset: str | None = None
    """Dataset to take images from; the one it was trained on, if not given."""
    data_dir: Path | None = None
    """Folder to look for the dataset in first."""
    split: str = "test"
    """test or train."""
    offline: bool = False
    """Never download."""

    def run(self) -> None:
        from capsroute.explorer.server import require_gradio, serving

        if self.port is not None and not 1 <= self.port <= 65535:
            raise InputError(f"--port {self.port} must lie between 1 and 65535")
        require_gradio()
        stage = self._stage()
        with serving(stage, self.port) as address:
            print(f"{address}  (stop with Ctrl-C)", flush=True)
            if not self.no_browser and has_display():
                import webbrowser

                webbrowser.open(address)
            try:
                while True:
                    time.sleep(3600)
            except KeyboardInterrupt:
                print()
            finally:
                if stage.training is not None:
                    stage.training.stop()

    def _stage(self) -> "Stage":
        from capsroute.explorer.stage import Stage
        from capsroute.explorer.training import PageTraining, recipe, untrained_exhibit
        from capsroute.run import RESULT

        if self.run_folder is not None:
            return Stage(self._exhibit(self.run_folder))
        if (self.out.expanduser() / RESULT).is_file():
            return Stage(self._exhibit(self.out))
        config = recipe(self.out)
        return Stage(untrained_exhibit(config), PageTraining(config), lambda: self._exhibit(self.out), trained=False)

    def _exhibit(self, run: Path) -> "Exhibit":
        from capsroute.explorer.opening import open_exhibit
        from capsroute.saving import load_all

        loaded = load_all(run)
        dataset = dataset_of(self, loaded[2])
        refuse_other_shape(loaded[0].in_shape, loaded[0].classes, dataset)
        return open_exhibit(run, dataset, loaded)


def has_display() -> bool:
    """Whether a browser that is opened would be seen by somebody here."""
    if "SSH_CONNECTION" in os.environ:
        return False
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
