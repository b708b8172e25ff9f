"""The command line: one dataclass per command, whose fields are its options."""

import io
import sys
from dataclasses import dataclass

import tyro
from rich.console import Console
from rich.table import Table

from capsroute import __version__
from capsroute.errors import CapsrouteError
from capsroute.routing import ROUTINGS, routing_options


@dataclass(frozen=True)
class Routings:
    """List the routings: options with their defaults, equation, cost and paper."""

    def run(self) -> None:
        table = Table(title="Routings", show_lines=True)
        table.add_column("name and options", no_wrap=True)
        table.add_column("equation, cost, use", ratio=3)
        table.add_column("paper", min_width=32)
        for entry in ROUTINGS.values():
            options = [f"  {key}={value!r}" for key, value in routing_options(entry.name).items()]
            table.add_row(
                "\n".join([entry.name, *options]),
                f"{entry.equation}\ncost: {entry.cost}\nuse: {entry.advice}",
                f"{entry.paper}\n{entry.link}",
            )
        Console().print(table)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 2 after a mistake of the user's."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no λ gets a question mark, not a traceback
    if arguments == ["--version"]:
        print(f"capsroute {__version__}")
        return 0
    command = tyro.extras.subcommand_cli_from_dict(
        {"routings": Routings}, prog="capsroute", description="Capsule networks.", args=arguments
    )
    try:
        command.run()
    except CapsrouteError as error:
        print(f"capsroute: {error}", file=sys.stderr)
        return 2
    return 0
