"""Time to accuracy: the paper's two-layer net on all of Fashion-MNIST, by the recipe of the profile `short`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capsroute.paper.profiles import PROFILES
from capsroute.run import RESULT, read_json
from capsroute.sweeps.jobs import make_job
from capsroute.training import fit

DATASET = "fashion-mnist"
LAMBDA = "2"  # Table 2's best of two layers


@dataclass(frozen=True)
class Reached:
    """What a run came to, and how long it trained."""

    seed: int
    accuracy: float  # in percent, on the test split after the last epoch
    epochs: int
    minutes: float


def measure_accuracy(store: Path, epochs: int, seed: int, options: dict[str, Any], quiet: bool) -> Reached:
    """Train, or go on training, one run in the store."""
    recipe = {**PROFILES["short"].options_for(DATASET), **options, "epochs": epochs, "seed": seed}
    settings = {"dataset": DATASET, "preset": "paper-2", "lam": LAMBDA, "keep": "result", "quiet": quiet}
    job = make_job(store, f"{DATASET}-{epochs}epochs", "", {**settings, **recipe})
    if not job.done:
        fit(job.resumable())
    result = read_json(job.folder / RESULT)
    return Reached(seed, 100 * result["accuracy"], result["epochs"], result["wall_s"] / 60)
