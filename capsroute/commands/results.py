"""`capsroute evaluate`, `capsroute predict`, `capsroute diagnose`: what a trained net does."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from capsroute.errors import InputError, require_whole


@dataclass(frozen=True)
class Evaluate:
    """Evaluate a run's net on a test split: accuracy, by class, confusion."""

    run_folder: Positional[Path]
    """A run folder, a final.safetensors, or a checkpoint."""
    dataset: str | None = None
    """Another dataset with the same classes and image shape; the one it was trained on, if not given."""
    data_dir: Path | None = None
    """Folder to look for the dataset in first."""
    split: str = "test"
    """test or train."""
    figure: Path | None = None
    """Draw the confusion matrix here: .png, .svg or .pdf."""
    json: bool = False
    """Print JSON instead of a table."""
    offline: bool = False
    """Never download."""

    def run(self) -> None:
        from capsroute.data.batches import Batches
        from capsroute.evaluation import evaluate
        from capsroute.saving import load_all

        net, _, meta = load_all(self.run_folder)
        dataset = _dataset(self, meta)
        _refuse_other_shape(net.in_shape, net.classes, dataset)
        result = evaluate(net, Batches(dataset.images, dataset.labels, 256, shuffle=False), net.classes)
        if self.figure is not None:
            from capsroute.confusion import draw_confusion

            draw_confusion(result, dataset.classes, f"{dataset.title}, {self.split}", self.figure)
        if self.json:
            told = {"dataset": dataset.title, "split": self.split, "classes": list(dataset.classes), **result.to_json()}
            print(json.dumps(told, indent=2, ensure_ascii=False))
            return
        table = Table(title=f"{dataset.title}, {self.split}: {result.accuracy:.2%} of {len(dataset):,}")
        table.add_column("class")
        table.add_column("accuracy", justify="right")
        table.add_column("most often taken for")
        for label, (name, accuracy) in enumerate(zip(dataset.classes, result.per_class(), strict=True)):
            others = result.confusion[label].clone()
            others[label] = 0
            worst = int(others.argmax())
            mistaken = f"{dataset.classes[worst]} ({int(others[worst])})" if others[worst] else "-"
            table.add_row(name, f"{accuracy:.2%}", mistaken)
        Console().print(table)


@dataclass(frozen=True)
class Predict:
    """Classify images of one's own, of any size: the class capsules' lengths."""

    run_folder: Positional[Path]
    """A run folder, a final.safetensors, a checkpoint, an exported folder, .pt2 or .onnx; with --onnx, an image."""
    images: Positional[tuple[Path, ...]]
    """PNG or JPEG files."""
    onnx: Path | None = None
    """Take this exported .onnx file in place of a run: all that is named beside it are images. Needs no torch."""
    top: int = 3
    """How many classes to show."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        from capsroute.predicting import open_classifier, predict

        source, images = self.run_folder, self.images
        if self.onnx is not None:
            source, images = self.onnx, (self.run_folder, *self.images)
            if source.suffix != ".onnx":
                raise InputError(f"--onnx {source}: must end in .onnx, as exported files do")
        if not images:
            raise InputError("name at least one image: capsroute predict RUN image.png ...")
        require_whole("top", self.top)
        classifier = open_classifier(source)
        rows: list[dict[str, Any]] = []
        for path, row in zip(images, predict(classifier, images), strict=True):
            order = (-row).argsort(kind="stable")[: self.top].tolist()
            told = [{"class": classifier.classes[label], "length": round(float(row[label]), 6)} for label in order]
            rows.append({"image": str(path), "prediction": told[0]["class"], "lengths": told})
        if self.json:
            print(json.dumps(rows, indent=2, ensure_ascii=False))
            return
        table = Table()
        table.add_column("image", overflow="fold")
        table.add_column("class")
        table.add_column("length", justify="right")
        for entry in rows:
            for number, told in enumerate(entry["lengths"]):
                table.add_row("" if number else entry["image"], told["class"], f"{told['length']:.3f}")
        Console().print(table)


@dataclass(frozen=True)
class Diagnose:
    """Look inside a trained net: lengths and gradient norms by layer, coupling coefficients, effective λ."""

    run_folder: Positional[Path]
    """A run folder, a final.safetensors, or a checkpoint."""
    dataset: str | None = None
    """Dataset to take the batch from; the one it was trained on, if not given."""
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
        from capsroute.diagnosis import diagnose
        from capsroute.saving import load_all

        require_whole("batch_size", self.batch_size)
        net, _, meta = load_all(self.run_folder)
        dataset = _dataset(self, meta)
        _refuse_other_shape(net.in_shape, net.classes, dataset)
        images = dataset.images[: self.batch_size].float() / 255
        reports = diagnose(net, images, dataset.labels[: self.batch_size])
        if self.json:
            print(json.dumps([report.to_json() for report in reports], indent=2, ensure_ascii=False))
            return
        table = Table(title=f"{dataset.title}, {self.split}, {len(images)} images")
        for heading in ("layer", "length mean", "min to max", "gradient norm", "routing"):
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
                "" if bare else f"{report.length_mean:.3g}",
                "" if bare else f"{report.length_min:.2g} to {report.length_max:.2g}",
                f"{report.gradient_norm:.2e}",
                "\n".join(notes),
            )
        Console().print(table)


def _dataset(command: Evaluate | Diagnose, meta: dict[str, Any]) -> Any:
    """The dataset that the command names, or else the one of the run."""
    from capsroute.data.files import load_dataset

    config = meta.get("config", {})
    name = command.dataset or config.get("dataset") or meta.get("dataset", {}).get("name")
    if not name:
        raise InputError(f"{command.run_folder} does not say what it was trained on; give --dataset")
    folder = command.data_dir or config.get("data_dir")
    size = config.get("image_size")
    return load_dataset(name, folder, command.split, offline=command.offline or None, image_size=size)


def _refuse_other_shape(in_shape: tuple[int, int, int], classes: int, dataset: Any) -> None:
    if dataset.shape != in_shape or len(dataset.classes) != classes:
        raise InputError(
            f"the net takes images of {in_shape} in {classes} classes; {dataset.title} has {dataset.shape} in "
            f"{len(dataset.classes)}"
        )
