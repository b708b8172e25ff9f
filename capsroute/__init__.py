"""Capsule networks with every routing behind one small interface."""

from capsroute.data import DATASETS, load_dataset
from capsroute.errors import CapsrouteError, DataError, InputError
from capsroute.layers import CapsuleLayer, PrimaryCapsules
from capsroute.losses import margin_loss, reconstruction_loss
from capsroute.models import CapsNet, Decoder
from capsroute.nonlinearity import lengths, squash
from capsroute.routing import ROUTINGS, Routing, RoutingStep, create_routing, list_routings
from capsroute.votes import Votes

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
    "Votes",
    "create_routing",
    "lengths",
    "list_routings",
    "load_dataset",
    "margin_loss",
    "reconstruction_loss",
    "squash",
]
