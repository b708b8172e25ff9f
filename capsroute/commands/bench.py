"""`capsroute bench`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from tyro.conf import Positional

from capsroute.errors import InputError, require_number, require_whole


@dataclass(frozen=True)
class Bench:
    """Measure speed and memory on this machine: each routing against its dense form and against the machine's limit.

    Every figure is a ratio within this one run, repeats are interleaved, and nothing is reported if a result differs
    from the dense form's. `bench accuracy` measures how long the paper's two-layer net takes to an accuracy.
    """

    what: Positional[Literal["speed", "accuracy"]] = "speed"
    """speed: times, memory, growth. accuracy: minutes of training to --target on Fashion-MNIST."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """cpu, cuda, or auto."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Precision of products; auto is bf16 where the hardware has it."""
    repeats: int = 5
    """How often each thing is timed; what takes more than a second, less often."""
    out: Path | None = None
    """Write the result as JSON here, and beside it as Markdown."""
    target: float = 93.07
    """accuracy: percent on the test split to reach; the paper's two-layer figure, if not given."""
    epochs: int = 15
    """accuracy: epochs of the recipe, that of the profile short."""
    seeds: int = 1
    """accuracy: runs."""
    store: Path = Path("runs/accuracy")
    """accuracy: folder for the runs; finished ones are not done again."""
    data_dir: Path | None = None
    """accuracy: folder to look for the dataset in first."""
    quiet: bool = False
    """Print nothing but errors."""

    def run(self) -> None:
        require_whole("repeats", self.repeats)
        if self.what == "accuracy":
            self._accuracy()
        else:
            self._speed()

    def _speed(self) -> None:
        from capsroute.bench.run import run_benchmark
        from capsroute.bench.tables import as_tables
        from capsroute.hardware import choose
        from capsroute.memory import keep_freed_memory

        choice = choose(self.device, self.precision)
        keep_freed_memory()  # as training does
        console = Console(highlight=False, soft_wrap=True)
        show = (lambda line: None) if self.quiet else (lambda line: console.print(f"{line} ...", markup=False))
        result = {"command": "capsroute bench", **run_benchmark(choice.device, choice.precision, self.repeats, show)}
        if self.out is not None:
            self._save(result)
        if not self.quiet:
            for table in as_tables(result):
                console.print(table)
            met = sum(row["met"] for row in result["targets"])
            console.print(f"{met} of {len(result['targets'])} targets met", markup=False)

    def _save(self, result: dict[str, Any]) -> None:
        from capsroute.bench.tables import as_markdown
        from capsroute.checkpoint import write_atomically
        from capsroute.run import write_json

        assert self.out is not None
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--out {self.out}: its folder cannot be made ({error.strerror or error})") from error
        write_json(self.out, result)
        write_atomically(self.out.with_suffix(".md"), as_markdown(result).encode())

    def _accuracy(self) -> None:
        from capsroute.bench.accuracy import measure_accuracy

        require_number("target", self.target, 0, 100)
        options = {"device": self.device, "precision": self.precision, "data_dir": self.data_dir}
        epochs, seeds = require_whole("epochs", self.epochs), require_whole("seeds", self.seeds)
        rows = [measure_accuracy(self.store, epochs, seed, options, self.quiet) for seed in range(seeds)]
        if self.quiet:
            return
        console = Console(highlight=False, soft_wrap=True)
        for row in rows:
            reached = "reached" if row.accuracy >= self.target else f"{row.accuracy - self.target:+.2f} off"
            console.print(
                f"seed {row.seed}: {row.accuracy:.2f} % after {row.epochs} epochs and {row.minutes:.1f} minutes of "
                f"training; {self.target:g} % {reached}",
                markup=False,
            )
