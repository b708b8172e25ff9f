"""The model card of an exported folder: what the net is, what it can do, and where it fails."""

import shlex
from pathlib import Path
from typing import Any

from capsroute.config import TrainConfig
from capsroute.data.table import DATASETS
from capsroute.routing import ROUTINGS
from capsroute.sweeps.records import Measured, Record

PAPER_EPOCHS = TrainConfig.epochs
WORST = 3  # classes that are told

STATES = {
    "saturated": "The net ended **saturated**: every class capsule of every sample is longer than 0.9, so that lengths "
    "tell nothing apart.",
    "collapsed": "The net ended **collapsed**: its first convolution receives no gradient, or its class capsules have "
    "no length; it has not learned.",
}


def model_card(title: str, description: dict[str, Any], record: Record | None, measured: Measured | None) -> str:
    """The card as Markdown. `record` is of the run whose weights these are, `measured` of it and its other seeds."""
    dataset = description["dataset"] or {}
    routings = list(dict.fromkeys(layer["name"] for layer in description["routing"]))
    head = ["---", "library_name: capsroute", "pipeline_tag: image-classification", "tags:", "- capsule-network"]
    channels, height, width = description["preprocessing"]["shape"]
    capsules = " → ".join(map(str, description["net"]["capsules"]))
    sections = [
        "\n".join([*head, *(f"- {name}" for name in routings), "---"]),
        f"# {title}",
        f"A capsule net for {len(description['classes'])} classes of images of {channels} x {height} x {width}: "
        f"capsules {capsules}, routing {', '.join(routings)}.",
        "## Use",
        "```python\nimport capsroute\n\n"
        'net = capsroute.load("path/to/this/folder")  # or CapsNet.from_pretrained("owner/name") from a hub\n'
        "lengths = capsroute.lengths(net(images))  # images: float32, "
        f"[b, {channels}, {height}, {width}], from 0 to 1\n```",
        "`capsroute predict path/to/this/folder image.png` reads images of any size and brings them to the net's. "
        "Class lengths lie between 0 and 1; they are no probabilities and do not sum to 1.",
        "Classes, in order: " + ", ".join(description["classes"]) + ".",
        "## Accuracy",
        _accuracy(description, record, measured),
        "## Known failures",
        "\n".join(f"- {line}" for line in _failures(description, record, measured)),
        "## Data",
        _data(dataset),
        "## Routing",
        "\n".join(_routing_lines(description["routing"])),
    ]
    if record is not None:
        sections += ["## How it was made", f"```sh\n{command(record)}\n```", _origin(record)]
    return "\n\n".join(sections) + "\n"


def command(record: Record) -> str:
    """The command that makes the run, with every option that is not at its default."""
    words = ["capsroute", "train"]
    for name, value in record.config.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
        elif isinstance(value, list | tuple):
            words += [flag, *map(str, value)]
        else:
            words += [flag, Path(value).name if name == "dataset" else str(value)]
    return shlex.join(words)


def _accuracy(description: dict[str, Any], record: Record | None, measured: Measured | None) -> str:
    if description["accuracy"] is None:
        return "Not measured: the run was not finished."
    where = description["evaluated_on"] or "an unnamed split"
    text = f"**{100 * description['accuracy']:.2f} %** on {where}, of the last epoch: nothing was chosen on it."
    if measured is not None and measured.count > 1 and record is not None:
        seeds = ", ".join(str(other.seed) for other in measured.records)
        text += (
            f" Over seeds {seeds}: **{measured.text()}**, mean and standard deviation; these weights are of seed "
            f"{record.seed}."
        )
    else:
        text += " One run; how much it varies from seed to seed is not known here."
    return text


def _failures(description: dict[str, Any], record: Record | None, measured: Measured | None) -> list[str]:
    dataset, lines = description["dataset"] or {}, []
    if record is None:
        lines.append("The run's record was not at hand, so its state and its accuracy by class are not known.")
    else:
        lines += [STATES[record.state]] if record.state in STATES else []
        by_class = sorted(zip(record.result["per_class_accuracy"], description["classes"], strict=True))
        told = ", ".join(f"{name} {100 * accuracy:.1f} %" for accuracy, name in by_class[:WORST])
        lines.append(f"The classes that it gets wrong most often: {told}.")
        epochs = int(record.result["epochs"])
        if epochs < PAPER_EPOCHS:
            lines.append(
                f"A short run: {epochs} epoch{'s' if epochs > 1 else ''}, where the paper's recipe has {PAPER_EPOCHS}."
            )
        if record.config.get("limit"):
            lines.append(f"Trained on only {dataset.get('train_count', record.config['limit']):,} images.")
        if record.config.get("holdout"):
            lines.append("Judged on held-out training images, not on the test split.")
    if measured is not None and (states := [state for state in measured.states if state in STATES]):
        ended = sum(other.state in STATES for other in measured.records)
        lines.append(f"Of {measured.count} seeds, {ended} ended {' or '.join(states)}.")
    if dataset.get("name") == "sample":
        lines.append("Trained on the small sample inside the package: its accuracy says nothing of the full dataset.")
    if dataset and not dataset.get("verified"):
        lines.append("The training data is not known to be an official dataset's.")
    lines.append("Images of anything else than its classes are given one of them all the same.")
    return lines


def _data(dataset: dict[str, Any]) -> str:
    if not dataset:
        return "Not recorded."
    text = f"{dataset['title']}, {dataset['train_count']:,} training images."
    info = DATASETS.get(dataset["name"])
    if info is None:
        return text + " Its licence is not known to this library; whoever made the dataset can tell."
    return (
        f"{text} Licence of the dataset: {info.licence}. {info.citation}. {info.homepage}\n\n"
        "The weights are made from it; whether its licence reaches them is for whoever shares them to judge."
    )


def _routing_lines(layers: list[dict[str, str]]) -> list[str]:
    lines = [
        f"- capsule layer {number + 1}: {layer['name']} ({layer['options']})" for number, layer in enumerate(layers)
    ]
    for name in dict.fromkeys(layer["name"] for layer in layers):
        entry = ROUTINGS[name]
        lines += ["", f"{entry.title}, {entry.equation}. {entry.paper}, {entry.link}"]
    return lines


def _origin(record: Record) -> str:
    commit, versions = record.result.get("commit") or {}, record.result.get("versions") or {}
    dirty = ", from a tree that differed from it" if commit.get("dirty") else ""
    at = f"commit {commit['id']}{dirty}" if commit.get("id") else "an installed package"
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"Made at {at}, with {told}; {record.result['device']}, {record.result['precision']}."
