"""How much a reproduction spends: named sets of training options, kept here and nowhere else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Profile:
    """A set of options of `TrainConfig`, and how often each run is repeated."""

    name: str
    text: str  # for the tables that are made with it
    seeds: int
    options: Mapping[str, Any]
    by_dataset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # what differs there
    # Of nets that are dead from their first step, where only that is to be shown; and in words.
    options_if_dead: Mapping[str, Any] = field(default_factory=dict)
    text_if_dead: str = ""

    def options_for(self, dataset: str) -> dict[str, Any]:
        """The options of a run on this dataset."""
        return {**self.options, **self.by_dataset.get(dataset, {})}


SHRINKING_SHIFT: Mapping[str, Any] = MappingProxyType({"shift": 2, "shift_end": 0})

PROFILES: MappingProxyType[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile(
                "quick",
                "quick profile: 6,000 training images, 3 epochs, a one-cycle schedule",
                seeds=1,
                options={"limit": 6_000, "epochs": 3, "schedule": "one-cycle"},
                options_if_dead={"epochs": 1},
                text_if_dead="1 epoch for nets that are dead from their first step",
            ),
            Profile(
                "short",
                "short profile: all training images, 15 epochs, a one-cycle schedule, averaged weights, weight decay "
                "0.03; on the two MNISTs a shift of up to 2 pixels that shrinks to none",
                seeds=3,
                # Chosen on held-out images of Fashion-MNIST: scripts/recipe_runs.sh, results/recipe.jsonl.
                options={"epochs": 15, "schedule": "one-cycle", "weight_decay": 0.03, "ema": 0.998},
                by_dataset={"fashion-mnist": SHRINKING_SHIFT, "mnist": SHRINKING_SHIFT},
            ),
            Profile(
                "paper",
                "paper profile: all training images, 150 epochs, the paper's schedule, 200 warm-up steps",
                seeds=3,
                options={},
            ),
        )
    }
)
