"""Capsule networks with every routing behind one small interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capsroute.config import TrainConfig
    from capsroute.data import DATASETS, load_dataset
    from capsroute.errors import CapsrouteError, DataError, InputError
    from capsroute.head import CapsuleHead
    from capsroute.initialization import init_lengths_
    from capsroute.layers import CapsuleLayer, PrimaryCapsules
    from capsroute.losses import margin_loss, reconstruction_loss
    from capsroute.models import CapsNet, Decoder
    from capsroute.nonlinearity import lengths, squash
    from capsroute.routing import ROUTINGS, Routing, RoutingStep, create_routing, list_routings
    from capsroute.saving import load
    from capsroute.training import fit
    from capsroute.votes import Votes

__version__ = "0.1.0"

__all__ = [
    "DATASETS",
    "ROUTINGS",
    "CapsNet",
    "CapsrouteError",
    "CapsuleHead",
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

# Where each public name comes from. It is imported when first asked for: an exported net is used without torch, which
# takes seconds to import, and who only builds layers needs nothing of what trains.
_MODULES = {
    "config": ("TrainConfig",),
    "data": ("DATASETS", "load_dataset"),
    "errors": ("CapsrouteError", "DataError", "InputError"),
    "head": ("CapsuleHead",),
    "initialization": ("init_lengths_",),
    "layers": ("CapsuleLayer", "PrimaryCapsules"),
    "losses": ("margin_loss", "reconstruction_loss"),
    "models": ("CapsNet", "Decoder"),
    "nonlinearity": ("lengths", "squash"),
    "routing": ("ROUTINGS", "Routing", "RoutingStep", "create_routing", "list_routings"),
    "saving": ("load",),
    "training": ("fit",),
    "votes": ("Votes",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, from its module; a module of the package, by its own."""
    if name in _HOMES:
        value = getattr(import_module(f"capsroute.{_HOMES[name]}"), name)
        globals()[name] = value  # so that this is asked once
        return value
    if name in _MODULES:
        return import_module(f"capsroute.{name}")
    raise AttributeError(f"module 'capsroute' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
