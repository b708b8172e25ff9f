"""The command line: finds the command, runs it, and turns what a user got wrong into one sentence."""

import io
import os
import signal
import sys
from typing import Annotated, Any

import tyro
from tyro.conf import subcommand

from capsroute import __version__
from capsroute.commands.data import Data
from capsroute.commands.figures import Figures
from capsroute.commands.reproduce import Reproduce
from capsroute.commands.results import Diagnose, Evaluate, Predict
from capsroute.commands.routings import Routings
from capsroute.commands.sweep import Sweep
from capsroute.commands.train import Train, saved_options
from capsroute.errors import CapsrouteError


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
        command: Any = tyro.cli(
            _commands(arguments),
            prog="capsroute",
            description="Capsule networks, with every routing behind one small interface.",
            args=arguments,
            config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes),
        )
        command.run()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except CapsrouteError as error:
        print(f"capsroute: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _commands(arguments: list[str]) -> Any:
    return (
        Annotated[Train, subcommand("train", default=saved_options(arguments))]
        | Annotated[Evaluate, subcommand("evaluate")]
        | Annotated[Predict, subcommand("predict")]
        | Annotated[Diagnose, subcommand("diagnose")]
        | Annotated[Reproduce, subcommand("reproduce")]
        | Annotated[Figures, subcommand("figures")]
        | Annotated[Sweep, subcommand("sweep")]
        | Annotated[Data, subcommand("data")]
        | Annotated[Routings, subcommand("routings")]
    )
