"""`capsroute diagnose`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from capsroute.commands.run_data import dataset_of, refuse_other_shape
from capsroute.errors import InputError, require_whole
from capsroute.models import PRESETS


@dataclass(frozen=True)
class Diagnose:
    """Look inside a net: lengths and gradient norms by layer, coupling coefficients, effective λ.

    With --depth-scan a net before its training, under every start and routing: whether it will train, and if not why.
    """

    run_folder: Positional[Path | None] = None
    """A run folder, a final.safetensors, or a checkpoint; with --depth-scan only its net's shape counts."""
    depth_scan: bool = False
    """Scan an untrained net: the run's, or the one of --preset and --capsules."""
    preset: Literal[tuple(PRESETS)] = "small"  # type: ignore[valid-type]  # the table is the one list
    """With --depth-scan and no run: the net."""
    capsules: tuple[int, ...] | None = None
    """With --depth-scan and no run: capsules of each layer, primary first; the preset's, if not given."""
    lam: float | None = None
    """With --depth-scan: λ of the routings that have it; their own, if not given."""
    out: Path | None = None
    """With --depth-scan: draw the signals through the layers into this folder, as SVG and PNG."""
    dataset: str | None = None
    """Dataset to take the batch from; the one it was trained on, or the sample, if not given."""
    data_dir: Path | None = None
    """Folder to look for the dataset in first."""
    split: str = "test"
    """test or train."""
    batch_size: int = 128
    """Images in the batch, the first ones of the split."""
    json: bool = False
    """Print JSON instead of a table."""
    offline: bool = False
    """Never download."""

    def run(self) -> None:
        require_whole("batch_size", self.batch_size)
        if self.depth_scan:
            self._scan()
        else:
            self._look_inside()

    def _scan(self) -> None:
        from capsroute.depth_scan import scan
        from capsroute.figures.depth_scan import draw_depth_scan
        from capsroute.routing import ROUTINGS, routing_options

        shape, dataset = self._shape_and_data()
        images = dataset.images[: self.batch_size].float() / 255
        having = [name for name in ROUTINGS if "lam" in routing_options(name)]
        options: dict[str, dict[str, Any]] = {} if self.lam is None else {name: {"lam": self.lam} for name in having}
        scans = list(scan(shape, options, images, dataset.labels[: self.batch_size]))
        if self.json:
            print(json.dumps([one.to_json() for one in scans], indent=2, ensure_ascii=False))
        else:
            console = Console(highlight=False, soft_wrap=True)
            capsules = " ".join(map(str, shape["capsules"]))
            console.print(f"capsules {capsules}; {len(images)} images of {dataset.title}", markup=False)
            for one in scans:
                console.print(one.sentence(), markup=False)
        if self.out is not None:
            source = f"Capsules {[*shape['capsules']]}, {len(images)} images of {dataset.title}."
            paths = draw_depth_scan(scans, source).save(self.out)
            if not self.json:
                console.print(f"figure: {', '.join(map(str, paths))}", markup=False)

    def _shape_and_data(self) -> tuple[dict[str, Any], Any]:
        """Arguments of `CapsNet`, but for the routing, and images to look at."""
        from capsroute.models import CapsNet
        from capsroute.routing import ROUTINGS, routing_options
        from capsroute.saving import load_all

        if self.run_folder is not None:
            net, _, meta = load_all(self.run_folder)
            dataset = dataset_of(self, meta)
            refuse_other_shape(net.in_shape, net.classes, dataset)
            shape = dict(net.config)
        else:
            dataset = dataset_of(self, {"dataset": {"name": "sample"}})
            given: dict[str, Any] = {} if self.capsules is None else {"capsules": self.capsules}
            shape = dict(CapsNet.from_preset(self.preset, in_shape=dataset.shape, **given).config)
            if shape["capsules"][-1] != len(dataset.classes):
                raise InputError(f"capsules={shape['capsules']} must end in {len(dataset.classes)}, one for each class")
        of_routings = {option for name in ROUTINGS for option in routing_options(name)}
        return {name: value for name, value in shape.items() if name not in of_routings}, dataset

    def _look_inside(self) -> None:
        from capsroute.diagnosis import diagnose
        from capsroute.saving import load_all

        if self.run_folder is None:
            raise InputError("name a run: capsroute diagnose RUN; or scan a net before training with --depth-scan")
        net, _, meta = load_all(self.run_folder)
        dataset = dataset_of(self, meta)
        refuse_other_shape(net.in_shape, net.classes, dataset)
        images = dataset.images[: self.batch_size].float() / 255
        reports = diagnose(net, images, dataset.labels[: self.batch_size])
        if self.json:
            print(json.dumps([report.to_json() for report in reports], indent=2, ensure_ascii=False))
            return
        table = Table(title=f"{dataset.title}, {self.split}, {len(images)} images")
        for heading in ("layer", "length (range)", "own share", "gradient", "routing"):
            table.add_column(heading, justify="left" if heading in ("layer", "routing") else "right")
        for report in reports:
            notes = []
            if report.coefficients is not None:
                c = report.coefficients
                notes.append(f"c {c['min']:.2g} to {c['max']:.2g}, 1/J {c['one_over_j']:.2g}")
                notes.append(f"largest share {c['mean_largest_share']:.2g}")
            if report.effective_lambda is not None:
                notes.append("effective λ " + ", ".join(f"{value:.3g}" for value in report.effective_lambda))
            bare = report.length_mean is None
            table.add_row(
                report.name,
                "" if bare else f"{report.length_mean:.3g} ({report.length_min:.2g}-{report.length_max:.2g})",
                "" if report.own_share is None else f"{report.own_share:.0%}",
                f"{report.gradient_norm:.2e}",
                "\n".join(notes),
            )
        Console().print(table)
