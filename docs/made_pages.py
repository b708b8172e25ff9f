"""Pages that are made from the code: one for each routing, the command line, the first quarter of an hour."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

from capsroute.cli import COMMANDS
from capsroute.routing import ROUTINGS, RoutingEntry, routing_options

MADE = "made"  # folder for them, which git ignores
TUTORIAL_RUN = ["--dataset", "sample", "--preset", "small", "--epochs", "3", "--schedule", "one-cycle", "--lr", "0.003"]


def make_pages(docs: Path) -> None:
    """Write them all, and the figures of the tutorial."""
    made = docs / MADE
    made.mkdir(exist_ok=True)
    for entry in ROUTINGS.values():
        (made / f"routing-{entry.name}.md").write_text(routing_page(entry))
    (made / "commands.md").write_text(commands_page())
    _train_for_tutorial(made)


def routing_page(entry: RoutingEntry) -> str:
    """Equation, paper, options, cost, use, and the reference code."""
    module = sys.modules[entry.make.__module__]
    about = inspect.getdoc(module) or ""
    options = "\n".join(f"- `{name}={default!r}`" for name, default in routing_options(entry.name).items())
    return f"""# {entry.title}

`routing="{entry.name}"`: `{entry.equation}`

- **Paper:** {entry.paper}. <{entry.link}>
- **Cost:** {entry.cost}
- **Use:** {entry.advice}
- **Coupling coefficients:** {"yes" if entry.has_coefficients else "none"}

Options, with their defaults:

{options}

## In words

```text
{about}
```

## The code

```python
{inspect.getsource(entry.make)}```

## The reference

What the code above is tested against, in values and gradients: the paper's pseudo-code with plain loops, on the table
of votes.

```python
{inspect.getsource(module.reference)}```
"""


def commands_page() -> str:
    """What `--help` prints of every command."""
    parts = ["# Commands", "Every command exits with 2 and one sentence if it cannot do what was asked."]
    for name in COMMANDS:
        text = _run([name, "--help"], COLUMNS="100")
        parts.append(f"## capsroute {name}\n\n```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def _train_for_tutorial(made: Path) -> None:
    """The tutorial's run, and the figures of it; not again while they are there."""
    run = made / "first"
    if not (run / "result.json").is_file():
        _run(["train", *TUTORIAL_RUN, "--out", str(run), "--quiet", *(["--resume"] if run.exists() else [])])
    _run(["figures", str(run), "--out", str(made / "figures"), "--quiet"])
    _run(["evaluate", str(run), "--figure", str(made / "figures" / "confusion.png")])


def _run(words: list[str], **variables: str) -> str:
    script = "import sys; from capsroute.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    if done.returncode:
        raise RuntimeError(f"capsroute {' '.join(words)}: {done.stderr}")
    return done.stdout
