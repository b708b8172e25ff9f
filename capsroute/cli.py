"""The command line: finds the command, runs it, and turns what a user got wrong into one sentence."""

import io
import sys
from typing import Annotated

import tyro
from tyro.conf import subcommand

from capsroute import __version__
from capsroute.commands.data import Data
from capsroute.commands.routings import Routings
from capsroute.errors import CapsrouteError

Command = Annotated[Routings, subcommand("routings")] | Annotated[Data, subcommand("data")]


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 2 after a mistake of the user's."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no λ gets a question mark, not a traceback
    if arguments == ["--version"]:
        print(f"capsroute {__version__}")
        return 0
    command = tyro.cli(
        Command,
        prog="capsroute",
        description="Capsule networks, with every routing behind one small interface.",
        args=arguments,
        config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes),
    )
    try:
        command.run()
    except CapsrouteError as error:
        print(f"capsroute: {error}", file=sys.stderr)
        return 2
    return 0
