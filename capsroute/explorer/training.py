"""Training a net for the page, where no run was named: `small` with a decoder, on the sample inside the package."""

import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from capsroute.config import TrainConfig
from capsroute.data.files import load_dataset
from capsroute.display import Display
from capsroute.errors import CapsrouteError, InterruptedRunError
from capsroute.explorer.opening import Exhibit
from capsroute.models import Decoder
from capsroute.run import CONFIG

STOP_SECONDS = 20
RECIPE: dict[str, Any] = {
    "dataset": "sample",
    "preset": "small",
    "reconstruct": True,
    "epochs": 6,
    "schedule": "one-cycle",
    "lr": 0.003,
    "device": "cpu",
    "quiet": True,
}


def recipe(folder: Path) -> TrainConfig:
    """The configuration of the page's own run; what an earlier sitting left in the folder is taken up."""
    return TrainConfig(**RECIPE, out=folder, resume=(folder.expanduser() / CONFIG).is_file())


class PageTraining(Display):
    """A run in a thread of its own, which any number of visitors may start and watch."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.share = 0.0  # of the way
        self.line = ""
        self.error = ""
        self._steps_per_epoch = 1
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def start(self) -> None:
        """Start, unless it runs already."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self.error, self.line, self.share = "", "getting ready", 0.0
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End it at its next word, and wait: a program that ends in the midst of a step is aborted. Epochs are kept."""
        self._stopping = True
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self._thread is not None and self._thread.is_alive()

    def step(self, epoch: int, step: int, line: str) -> None:
        if self._stopping:
            raise InterruptedRunError(signal.SIGINT, str(self.config.folder()))
        self.share = (epoch + step / self._steps_per_epoch) / self.config.epochs
        self.line = f"epoch {epoch + 1} of {self.config.epochs}: {line}"

    def epoch(self, row: dict[str, Any], line: str) -> None:
        self.share = row["epoch"] / self.config.epochs
        self.line = line

    def _display(self, epochs: int, steps_per_epoch: int) -> Display:
        self._steps_per_epoch = steps_per_epoch
        return self

    def _run(self) -> None:
        from capsroute.training import fit

        try:
            fit(replace(self.config, resume=recipe(self.config.folder()).resume), self._display)
            self.share = 1.0
        except CapsrouteError as error:
            self.error = str(error)
        except Exception as error:  # a thread's last word: the page would wait for ever
            self.error = f"the training stopped: {type(error).__name__}: {error}"


def untrained_exhibit(config: TrainConfig) -> Exhibit:
    """What the page is built for until the run is there: a net of the same form."""
    data = load_dataset(config.dataset, split="test")
    net = config.make_net(data.shape, len(data.classes))
    decoder = Decoder(len(data.classes), net.dims[-1], data.shape)
    return Exhibit(net.eval(), decoder, data, "no net yet", "")
