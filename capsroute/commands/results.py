"""`capsroute evaluate` and `capsroute predict`: what a trained net does."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from capsroute.commands.run_data import dataset_of, refuse_other_shape
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
        dataset = dataset_of(self, meta)
        refuse_other_shape(net.in_shape, net.classes, dataset)
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
