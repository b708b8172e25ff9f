"""The command line: finds the command, runs it, and turns what a user got wrong into one sentence."""

import io
import os
import signal
import sys
from functools import reduce
from importlib import import_module
from operator import or_
from types import MappingProxyType
from typing import Annotated, Any

import tyro
from tyro.conf import subcommand

from capsroute import __version__
from capsroute.errors import CapsrouteError

# Each command's module and class. Only the one that is run is imported: some need torch, and some must do without.
COMMANDS = MappingProxyType(
    {
        "train": ("train", "Train"),
        "evaluate": ("results", "Evaluate"),
        "predict": ("results", "Predict"),
        "diagnose": ("diagnose", "Diagnose"),
        "export": ("export", "Export"),
        "explore": ("explore", "Explore"),
        "reproduce": ("reproduce", "Reproduce"),
        "figures": ("figures", "Figures"),
        "sweep": ("sweep", "Sweep"),
        "bench": ("bench", "Bench"),
        "data": ("data", "Data"),
        "routings": ("routings", "Routings"),
    }
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 2 after a mistake of the user's, 128 + the signal after one."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no λ gets a question mark, not a traceback
    if arguments == ["--version"]:
        print(f"capsroute {__version__}")
        return 0
    try:
        _parsed(arguments).run()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:  # before or after what saves its work first
        print("capsroute: stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    except CapsrouteError as error:
        print(f"capsroute: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _parsed(arguments: list[str]) -> Any:
    """The command with its options; without one that is known, all of them for tyro to list."""
    name = arguments[0] if arguments else ""
    options: dict[str, Any] = {"config": (tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes)}
    if name in COMMANDS:
        if name == "train":
            from capsroute.commands.train import saved_options

            options["default"] = saved_options(arguments)
        return tyro.cli(_class(name), prog=f"capsroute {name}", args=arguments[1:], **options)
    every: Any = reduce(or_, (Annotated[_class(known), subcommand(known)] for known in COMMANDS))
    about = "Capsule networks, with every routing behind one small interface."
    return tyro.cli(every, prog="capsroute", description=about, args=arguments, **options)


def _class(name: str) -> Any:
    module, kind = COMMANDS[name]
    return getattr(import_module(f"capsroute.commands.{module}"), kind)
