"""The figures of a reproduction, from its finished runs and the nets that they kept."""

from collections.abc import Iterator
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
from capsroute.paper.plan import Plan, Run, ara, dra
from capsroute.paper.tables import Results
from capsroute.saving import FINAL, load_all


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
    dynamic = _kept(plan, dra(2))
    if dynamic is not None:
        images, labels = _images(dynamic.run)
        yield draw_couplings(dynamic.net, images, labels, dynamic.source)
        yield draw_iterations(dynamic.net, images[:1], int(labels[0]), dynamic.source)
    for settings, title, name in (
        ((dra(2), dra(3)), "Dynamic routing: range of Conv1's gradient", "gradients-dynamic"),
        ((ara(2), ara(3), ara(4)), "Adaptive routing: range of Conv1's gradient", "gradients-adaptive"),
    ):
        runs = {
            f"{setting.layers} layers": results[setting].records[0]
            for setting in settings
            if setting in results and results[setting].records[0].gradient
        }
        if runs:
            yield draw_gradients(runs, title, _source(plan, settings[0]), name)
    adaptive = _kept(plan, ara(2))
    if adaptive is not None:
        yield draw_saturation(adaptive.net, _images(adaptive.run)[0], adaptive.source)
    accuracy = draw_accuracy(results, _profile_text(plan))
    if accuracy is not None:
        yield accuracy


def _profile_text(plan: Plan) -> str:
    return plan.profile.text[0].upper() + plan.profile.text[1:] + "."


def _source(plan: Plan, setting: Setting) -> str:
    runs = plan.runs_of(setting)
    what = runs[0].job.title if runs else setting.title
    return f"{what}, seed 0. {_profile_text(plan)}"


def _kept(plan: Plan, setting: Setting) -> Kept | None:
    """The net that the first run of a setting kept, and where it is from."""
    for run in plan.runs_of(setting)[:1]:
        if (run.job.folder / FINAL).is_file():
            return Kept(load_all(run.job.folder / FINAL)[0], _source(plan, setting), run)
    return None


def _images(run: Run) -> tuple[torch.Tensor, torch.Tensor]:
    config = run.job.config
    dataset = load_dataset(config.dataset, config.data_dir, "test", offline=True)
    return dataset.images[:IMAGES].float() / 255, dataset.labels[:IMAGES]


def save_all(drawings: Iterator[Drawing], folder: Path) -> list[Drawing]:
    """Write each drawing as it is made, and keep them for the report."""
    kept = []
    for drawing in drawings:
        drawing.save(folder)
        kept.append(drawing)
    return kept
