"""Grids of training options as jobs: every combination of the values, times the seeds."""

import contextlib
import dataclasses
import io
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tyro

from capsroute.config import TrainConfig
from capsroute.errors import InputError, nearest
from capsroute.sweeps.jobs import Job, make_job

# Options that a sweep gives to its runs itself, and the one that it counts.
OWN = ("out", "resume", "quiet", "seed")
SEPARATOR, WITHIN = ",", "x"  # between values; within one, as in capsules=1152x10
ANOTHER = "/"  # between grids
LONGEST_NAME = 120  # of a folder, before seed and hash


@dataclasses.dataclass(frozen=True)
class Axis:
    """An option and the values that it takes, as they were written."""

    name: str
    values: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Combination:
    """One value of each option, in words, and its jobs: one for each seed."""

    varied: dict[str, str]  # the options in which combinations differ
    jobs: tuple[Job, ...]


def read_grids(words: Sequence[str]) -> list[list[Axis]]:
    """`lam=1,2 epochs=3` as one grid; after a `/`, further grids, each on top of the first or in place of its values.

    So `lr=1e-3 ema=0 / lr=3e-4,3e-3 / ema=0.99,0.999` tries one change at a time.
    """
    groups: list[list[str]] = [[]]
    for word in words:
        if word == ANOTHER:
            groups.append([])
        else:
            groups[-1].append(word)
    first, *others = [_read_axes(group) for group in groups]
    grids = [first]
    for axes in others:
        changed = [axis.name for axis in axes]
        grids.append([axis for axis in first if axis.name not in changed] + axes)
    return grids


def make_combinations(grids: Sequence[Sequence[Axis]], seeds: int, store: Path) -> list[Combination]:
    """Every combination of every grid, each once."""
    chosen: list[dict[str, str]] = []
    for axes in grids:
        for values in itertools.product(*(axis.values for axis in axes)):
            one = {axis.name: value for axis, value in zip(axes, values, strict=True)}
            if one not in chosen:
                chosen.append(one)
    names = dict.fromkeys(name for one in chosen for name in one)
    differing = [name for name in names if len({one.get(name) for one in chosen}) > 1]
    return [_combination({name: one[name] for name in differing if name in one}, one, seeds, store) for one in chosen]


def _combination(varied: dict[str, str], chosen: dict[str, str], seeds: int, store: Path) -> Combination:
    options = _parsed(chosen)
    title = ", ".join(f"{name}={value}" for name, value in varied.items()) or "the run"
    name = "-".join(f"{name}={Path(value).name}" for name, value in varied.items())[:LONGEST_NAME] or "run"
    jobs = (make_job(store, name, title, {**options, "seed": seed}) for seed in range(seeds))
    return Combination(varied, tuple(map(_found_again, jobs)))


def _found_again(job: Job) -> Job:
    """The job in the folder that it has under another name, from a grid in which other options were varied."""
    if job.folder.exists():
        return job
    ending = job.folder.name[job.folder.name.rindex("-seed") :]
    for folder in sorted(job.folder.parent.glob(f"*{ending}")):
        return dataclasses.replace(job, config=dataclasses.replace(job.config, out=folder))
    return job


def _read_axes(words: Sequence[str]) -> list[Axis]:
    known = [field.name for field in dataclasses.fields(TrainConfig) if field.name not in OWN]
    axes: list[Axis] = []
    for word in words:
        name, equals, values = word.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if not equals or not values:
            raise InputError(f"--grid {word}: write an option and its values, like lam=1,2,3")
        if name in OWN:
            raise InputError(f"--grid {word}: the sweep itself decides {name}; use --store, --seeds or --quiet")
        if name not in known:
            raise InputError(f"--grid {word}: a training run has no option {name!r}; {nearest(name, known)}")
        if name in [axis.name for axis in axes]:
            raise InputError(f"--grid {word}: {name} is given twice; write all its values in one word")
        axis = Axis(name, tuple(value.strip() for value in values.split(SEPARATOR)))
        if not all(axis.values):
            raise InputError(f"--grid {word}: a value is missing beside a comma")
        axes.append(axis)
    return axes


def _parsed(chosen: dict[str, str]) -> dict[str, Any]:
    """The values as the command line of `capsroute train` would read them."""
    words: list[str] = []
    hints = {field.name: field.type for field in dataclasses.fields(TrainConfig)}
    for name, value in chosen.items():
        flag = "--" + name.replace("_", "-")
        if hints[name] is bool and value.lower() in ("true", "false"):
            words.append(flag if value.lower() == "true" else flag.replace("--", "--no-", 1))
        elif value.lower() in ("true", "false", "none"):  # of options that are none of the two if not given
            words += [flag, value.capitalize()]
        else:
            words += [flag, *(value.split(WITHIN) if "tuple" in str(hints[name]) else [value])]
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
            config = tyro.cli(TrainConfig, args=words, config=(tyro.conf.OmitArgPrefixes,))
    except SystemExit as error:
        written = " ".join(f"{name}={value}" for name, value in chosen.items())
        lines = (line.strip("│╭╮╰╯─ ") for line in told.getvalue().splitlines())
        reason = " ".join(line for line in lines if line.strip("-") and "help" not in line)
        raise InputError(f"--grid {written}: not what `capsroute train` takes ({reason})") from error
    return {name: getattr(config, name) for name in chosen}
