"""Capsule networks with every routing behind one small interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from capsroute.data import DATASETS, load_dataset
from capsroute.errors import CapsrouteError, DataError, InputError
from capsroute.initialization import init_lengths_
from capsroute.layers import CapsuleLayer, PrimaryCapsules
from capsroute.losses import margin_loss, reconstruction_loss
from capsroute.models import CapsNet, Decoder
from capsroute.nonlinearity import lengths, squash
from capsroute.routing import ROUTINGS, Routing, RoutingStep, create_routing, list_routings
from capsroute.votes import Votes

if TYPE_CHECKING:
    from capsroute.config import TrainConfig
    from capsroute.saving import load
    from capsroute.training import fit


def __getattr__(name: str) -> Any:
    """What trains and loads, imported when first asked for: it brings in far more than the layers do."""
    if name in ("TrainConfig", "fit", "load"):
        module = {"TrainConfig": "config", "fit": "training", "load": "saving"}[name]
        return getattr(import_module(f"capsroute.{module}"), name)
    raise AttributeError(f"module 'capsroute' has no attribute {name!r}")


__version__ = "0.1.0"

__all__ = [
    "DATASETS",
    "ROUTINGS",
    "CapsNet",
    "CapsrouteError",
    "CapsuleLayer",
    "DataError",
    "Decoder",
    "InputError",
    "PrimaryCapsules",
    "Routing",
    "RoutingStep",
    "TrainConfig",
    "Votes",
    "create_routing",
    "fit",
    "init_lengths_",
    "lengths",
    "list_routings",
    "load",
    "load_dataset",
    "margin_loss",
    "reconstruction_loss",
    "squash",
]
