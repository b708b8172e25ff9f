"""The figures of a reproduction, from its finished runs and the nets that they kept."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import torch

from capsroute.data.files import load_dataset
from capsroute.figures.architecture import draw_architecture
from capsroute.figures.couplings import draw_couplings
from capsroute.figures.drawing import Drawing
from capsroute.figures.gradients import draw_gradients
from capsroute.figures.iterations import draw_iterations
from capsroute.figures.of_run import IMAGES
from capsroute.figures.saturation import draw_saturation
from capsroute.models import CapsNet
from capsroute.paper.accuracy import draw_accuracy
from capsroute.paper.cells import Setting
from capsroute.paper.plan import Plan, Run, ara, dra, is_here
from capsroute.paper.tables import Results
from capsroute.saving import FINAL, load_all
from capsroute.sweeps.records import Record, read_run


class Kept(NamedTuple):
    """A net that a run kept, and what a caption says of it."""

    net: CapsNet
    source: str
    run: Run


def draw_all(plan: Plan, results: Results) -> Iterator[Drawing]:
    """Every figure for which there is what it shows."""
    for layers in (2, 4):
        kept = _kept(plan, ara(layers))
        if kept is not None:
            yield draw_architecture(kept.net, kept.source, f"architecture-{layers}")
    dynamic = _kept_with_images(plan, dra(2))
    if dynamic is not None:
        kept, images, labels = dynamic
        yield draw_couplings(kept.net, images, labels, kept.source)
        yield draw_iterations(kept.net, images[:1], int(labels[0]), kept.source)
    for settings, title, name in (
        ((dra(2), dra(3)), "Dynamic routing: range of Conv1's gradient", "gradients-dynamic"),
        ((ara(2), ara(3), ara(4)), "Adaptive routing: range of Conv1's gradient", "gradients-adaptive"),
    ):
        runs = {
            setting: results[setting].records[0]
            for setting in settings
            if setting in results and results[setting].records[0].gradient
        }
        if runs:
            shown = {f"{setting.layers} layers": record for setting, record in runs.items()}
            yield draw_gradients(shown, title, _source(plan, runs), name)
    adaptive = _kept_with_images(plan, ara(2))
    if adaptive is not None:
        kept, images, _ = adaptive
        yield draw_saturation(kept.net, images, kept.source)
    accuracy = draw_accuracy(results, _profile_text(plan))
    if accuracy is not None:
        yield accuracy


def _profile_text(plan: Plan) -> str:
    return plan.text[0].upper() + plan.text[1:] + "."


def _source(plan: Plan, runs: Mapping[Setting, Record]) -> str:
    """What a caption says of runs that differ in their depth, and of how they were made."""
    first = next(iter(runs))
    dataset = plan.runs_of(first)[0].job.config.dataset
    layers = _listed(setting.layers for setting in runs)
    seeds = _listed(dict.fromkeys(record.seed for record in runs.values()))
    return f"{dataset}, {first.how} in {layers} layers, seed {seeds}. {_profile_text(plan)}"


def _listed(numbers: Iterable[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}" if others else last


def _kept(plan: Plan, setting: Setting) -> Kept | None:
    """The net that the first run of a setting kept, and where it is from."""
    for run in plan.runs_of(setting)[:1]:
        record = read_run(run.job.folder)
        if record is not None and (run.job.folder / FINAL).is_file():
            return Kept(load_all(run.job.folder / FINAL)[0], _source(plan, {setting: record}), run)
    return None


def _kept_with_images(plan: Plan, setting: Setting) -> tuple[Kept, torch.Tensor, torch.Tensor] | None:
    """The same with test images and labels, if they are on this machine, as they need not be in a shared store."""
    kept = _kept(plan, setting)
    if kept is None:
        return None
    config = kept.run.job.config
    if not is_here(config.dataset, config.data_dir):
        return None
    dataset = load_dataset(config.dataset, config.data_dir, "test", offline=True)
    return kept, dataset.images[:IMAGES].float() / 255, dataset.labels[:IMAGES]


def save_all(drawings: Iterator[Drawing], folder: Path) -> list[Drawing]:
    """Write each drawing as it is made, and keep them for the report."""
    kept = []
    for drawing in drawings:
        drawing.save(folder)
        kept.append(drawing)
    return kept
