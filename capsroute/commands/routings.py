"""`capsroute routings`."""

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

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
