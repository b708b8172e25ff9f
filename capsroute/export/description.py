"""What an exported net says of itself: what to feed it, what its outputs mean, where it comes from."""

from pathlib import Path
from typing import Any

from capsroute import __version__
from capsroute.layers import CapsuleLayer
from capsroute.models import CapsNet
from capsroute.predicting import FORMAT


def describe(net: CapsNet, meta: dict[str, Any]) -> dict[str, Any]:
    """The description of a net, as JSON has it, from the net and what was saved with it."""
    channels, height, width = net.in_shape
    return {
        "format": FORMAT,
        "version": __version__,
        "classes": class_names(meta, net.classes),
        "preprocessing": {
            "shape": [channels, height, width],
            "mode": "L" if channels == 1 else "RGB",
            "resize": "bilinear",  # Pillow's, which averages when it shrinks
            "divide_by": 255,
        },
        "outputs": {"capsules": [net.classes, net.dims[-1]], "lengths": [net.classes]},
        "routing": [
            {"name": layer.routing_name, "options": layer.routing.extra_repr()}
            for layer in net.layers
            if isinstance(layer, CapsuleLayer)
        ],
        "net": net.config,
        "dataset": meta.get("dataset"),
        "accuracy": meta.get("accuracy"),
        "evaluated_on": meta.get("evaluated_on"),
    }


def class_names(meta: dict[str, Any], classes: int) -> list[str]:
    """The classes' names, or else their numbers."""
    names = (meta.get("dataset") or {}).get("classes")
    return names if names and len(names) == classes else [str(label) for label in range(classes)]


def kept_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """What a finished run saves with its net, of all that a checkpoint has."""
    kept: dict[str, Any] = {name: meta[name] for name in ("dataset", "accuracy", "evaluated_on") if name in meta}
    config = meta.get("config", {})
    return {**kept, "config": {name: config[name] for name in ("dataset", "image_size") if name in config}}


def public_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """The same without paths of this machine, for a net that goes elsewhere."""
    kept = kept_meta(meta)
    if kept["config"].get("dataset"):
        kept["config"]["dataset"] = Path(kept["config"]["dataset"]).name
    return kept
