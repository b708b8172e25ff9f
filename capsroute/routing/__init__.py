"""The table of routings, and how to make one by name. A new routing is one file here and one line in `ROUTINGS`."""

import inspect
from types import MappingProxyType
from typing import Any

from capsroute.errors import InputError, nearest
from capsroute.routing import adaptive, adaptive_lambda, dynamic
from capsroute.routing.base import Observer, Routing, RoutingEntry, RoutingStep

ROUTINGS: MappingProxyType[str, RoutingEntry] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            dynamic.ENTRY,
            adaptive.ENTRY,
            adaptive_lambda.ENTRY,
        )
    }
)


def list_routings() -> list[str]:
    """The names that `create_routing` and `CapsuleLayer` take."""
    return list(ROUTINGS)


def find_routing(name: str) -> RoutingEntry:
    """The entry of that name, or an `InputError` with the nearest one."""
    if not isinstance(name, str) or name not in ROUTINGS:
        raise InputError(f"unknown routing {name!r}; {nearest(str(name), ROUTINGS)}")
    return ROUTINGS[name]


def routing_options(name: str) -> dict[str, Any]:
    """The options of a routing with their defaults."""
    parameters = inspect.signature(find_routing(name).make).parameters
    return {key: parameter.default for key, parameter in parameters.items() if key != "out_caps"}


def create_routing(name: str, *, out_caps: int | None = None, **options: Any) -> Routing:
    """The routing of that name with these options (`iterations=`, `step=`, `lam=`, ...).

    `out_caps`, the number of upper capsules, is needed only by options that hold a value for each of them.
    """
    entry, known = find_routing(name), routing_options(name)
    for option in options:
        if option not in known:
            raise InputError(f"routing {name!r} has no option {option!r}; {nearest(option, known)}")
    return entry.make(out_caps=out_caps, **options)


__all__ = [
    "ROUTINGS",
    "Observer",
    "Routing",
    "RoutingEntry",
    "RoutingStep",
    "create_routing",
    "find_routing",
    "list_routings",
    "routing_options",
]
