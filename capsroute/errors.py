"""What a user can get wrong.

The message of a `CapsrouteError` is one sentence for a person: what, where, what to do. The command line prints it
and exits with status 2; nothing else that the library raises is caught there.
"""

import difflib
import math
import operator
from collections.abc import Iterable
from typing import Any, SupportsFloat, SupportsIndex, TypeVar

Anything = TypeVar("Anything")


class CapsrouteError(Exception):
    """Base of all errors that a user can cause and mend."""

    exit_code = 2


class InputError(CapsrouteError, ValueError):
    """An option or a tensor that cannot be used as given."""


class DataError(CapsrouteError):
    """A dataset that is missing, damaged or not what it says."""


class InterruptedRunError(CapsrouteError):
    """The run was asked to stop, and did so after saving."""

    def __init__(self, number: int, folder: str) -> None:
        super().__init__(f"stopped and saved; go on with: capsroute train --resume --out {folder}")
        self.exit_code = 128 + number


class InterruptedSweepError(CapsrouteError):
    """The sweep was asked to stop; its runs were saved."""

    def __init__(self, number: int, command: str) -> None:
        super().__init__(f"stopped, every run saved; go on with: {command}")
        self.exit_code = 128 + number


class BusyRunError(InputError):
    """The run folder is in another process's hands."""


class DivergedError(CapsrouteError):
    """The loss is no number any more."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, and all of them."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known: {', '.join(known)}"


def require_whole(name: str, value: object, least: int = 1) -> int:
    """`value` as an int of at least `least`, or an `InputError` that names it."""
    if isinstance(value, SupportsIndex) and not isinstance(value, bool) and operator.index(value) >= least:
        return operator.index(value)
    raise InputError(f"{name}={value!r} must be a whole number of at least {least}")


def require_number(name: str, value: object, low: float, high: float, otherwise: str = "") -> float:
    """`value` as a float from `low` to `high`, or an `InputError` that names it and adds `otherwise`."""
    if isinstance(value, SupportsFloat | SupportsIndex) and not isinstance(value, bool | str):
        try:
            number = float(value)
        except (OverflowError, ValueError, RuntimeError):  # a tensor of several, or an int beyond all floats
            number = math.nan
        if low <= number <= high:
            return number
    raise InputError(f"{name}={value!r} must be a number from {low:g} to {high:g}{otherwise}")


def require_flag(name: str, value: object) -> bool:
    """`value` if it is True or False, or an `InputError` that names it."""
    if not isinstance(value, bool):
        raise InputError(f"{name}={value!r} must be True or False")
    return value


def require_sequence(name: str, value: object, example: str) -> tuple[Any, ...]:
    """`value` as a tuple, or an `InputError` that shows an example."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"{name}={value!r} must be a list, such as {example}")
    return tuple(value)


def require_tensor(name: str, value: Anything, shape: tuple[int | str, ...], advice: str = "") -> Anything:
    """`value` if it is a floating-point tensor of this shape, where letters stand for any size; or an `InputError`."""
    from torch import Tensor  # here, so that errors are told without it

    if not isinstance(value, Tensor):
        raise InputError(f"{name} must be a tensor of shape {_brackets(shape)}, got a {type(value).__name__}")
    fits = value.ndim == len(shape) and all(
        isinstance(side, str) or side == size for side, size in zip(shape, value.shape, strict=True)
    )
    if not fits:
        raise InputError(f"{name} must have shape {_brackets(shape)}, got {list(value.shape)}{advice}")
    if not value.is_floating_point():
        raise InputError(f"{name} must be floating-point, got {value.dtype}; use .float() (and / 255 for images)")
    return value


def _brackets(shape: tuple[int | str, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"
