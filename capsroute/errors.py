"""What a user can get wrong.

The message of a `CapsrouteError` is one sentence for a person: what, where, what to do. The command line prints it
and exits with status 2; nothing else that the library raises is caught there.
"""

import difflib
from collections.abc import Iterable


class CapsrouteError(Exception):
    """Base of all errors that a user can cause and mend."""


class InputError(CapsrouteError, ValueError):
    """An option or a tensor that cannot be used as given."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, and all of them."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known: {', '.join(known)}"


def require_whole(name: str, value: object, least: int = 1) -> int:
    """`value` as an int of at least `least`, or an `InputError` that names it."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}={value!r} must be a whole number of at least {least}")
    return value
