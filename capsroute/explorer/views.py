"""What each part of the page shows of one picture: from an exhibit and a visitor's choices to HTML. No state."""

import base64
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from capsroute.explorer import drawing
from capsroute.explorer.dimensions import dimension_grid, reconstruct
from capsroute.explorer.evidence import by_place, evidence_of, places_of
from capsroute.explorer.opening import Exhibit
from capsroute.explorer.plane import plane_steps
from capsroute.explorer.rerouting import AS_TRAINED, LayerPass, make_routings, route
from capsroute.nonlinearity import lengths
from capsroute.routing import ROUTINGS

PREDICTED = -1  # in place of a class: the one with the longest capsule
NO_DECODER = (
    "This run has no decoder, so there is nothing to draw capsules with. Train one beside the net: "
    "capsroute train ... --reconstruct"
)
_LAYERS_LOCK = threading.Lock()  # looked at once, whoever asks first


@dataclass(frozen=True)
class Picked:
    """The picture that a visitor looks at; of bytes, because the page tells by its hash whether it changed."""

    content: bytes
    shape: tuple[int, int, int]
    label: int | None
    told: str

    @classmethod
    def of(cls, pixels: UInt8[np.ndarray, "c h w"], label: int | None, told: str) -> "Picked":
        """From pixels."""
        channels, height, width = pixels.shape
        return cls(np.ascontiguousarray(pixels).tobytes(), (channels, height, width), label, told)

    @property
    def pixels(self) -> UInt8[np.ndarray, "c h w"]:
        """As they came."""
        return np.frombuffer(self.content, np.uint8).reshape(self.shape)

    def batch(self) -> Float[Tensor, "1 c h w"]:
        """As the net takes it."""
        return torch.from_numpy(self.pixels.astype(np.float32) / 255)[None]


def from_dataset(exhibit: Exhibit, index: int) -> Picked:
    """A test image."""
    data = exhibit.dataset
    index = min(max(0, index), len(data) - 1)
    label = int(data.labels[index])
    return Picked.of(data.images[index].numpy(), label, f"{data.split} image {index}: {data.classes[label]}")


def class_layer(exhibit: Exhibit, picked: Picked, routing: str, values: Mapping[str, float]) -> LayerPass:
    """The last capsule layer under this routing."""
    return route(exhibit.net, picked.batch(), make_routings(exhibit.net, routing, values))[-1]


def chosen(layer: LayerPass, wanted: int) -> int:
    """The class to look at."""
    return wanted if wanted != PREDICTED else int(lengths(layer.v)[0].argmax())


def bars(exhibit: Exhibit, picked: Picked, layer: LayerPass, caption: str) -> str:
    """Lengths of the class capsules."""
    return drawing.length_bars(lengths(layer.v)[0].tolist(), exhibit.dataset.classes, picked.label, caption)


def overview(exhibit: Exhibit, picked: Picked) -> tuple[str, str]:
    """The picture, and the net's verdict as it was trained."""
    layer = class_layer(exhibit, picked, AS_TRAINED, {})
    return drawing.picture(picked.pixels, picked.told), bars(exhibit, picked, layer, "Lengths of the class capsules")


def routed(exhibit: Exhibit, picked: Picked, wanted: int, routing: str, values: Mapping[str, float]) -> str:
    """The same weights under a routing: lengths, iterations, coefficients."""
    layer = class_layer(exhibit, picked, routing, values)
    name = exhibit.net.config["routing"][-1] if routing == AS_TRAINED else routing
    entry, label = ROUTINGS[name], chosen(layer, wanted)
    classes = exhibit.dataset.classes
    steps = plane_steps(layer, label, entry.moves_votes)
    parts = [
        bars(exhibit, picked, layer, f"{name}: {entry.equation}"),
        drawing.plane(steps, classes[label], layer.votes.lower),
    ]
    coefficients = layer.steps[-1].coefficients
    if coefficients is not None:
        parts.append(drawing.heat_map(coefficients[0], classes))
    return "".join(parts)


def dimensions(exhibit: Exhibit, picked: Picked, wanted: int, offsets: Sequence[float]) -> str:
    """The reconstruction with the sliders as they are."""
    if exhibit.decoder is None:
        return drawing.alert(NO_DECODER)
    layer = class_layer(exhibit, picked, AS_TRAINED, {})
    label = chosen(layer, wanted)
    name = exhibit.dataset.classes[label]
    told = f"reconstruction from the capsule {name}, of length {float(lengths(layer.v)[0, label]):.3f}"
    moved = sum(offset != 0 for offset in offsets)
    told += f", {moved} dimension{'s' if moved > 1 else ''} moved" if moved else ""
    return drawing.reconstruction(reconstruct(exhibit.decoder, layer.v, label, offsets), told)


def grid(exhibit: Exhibit, picked: Picked, wanted: int) -> str:
    """Every dimension from -0.25 to 0.25."""
    if exhibit.decoder is None:
        return ""
    layer = class_layer(exhibit, picked, AS_TRAINED, {})
    return drawing.dimension_rows(dimension_grid(exhibit.decoder, layer.v, chosen(layer, wanted)))


def evidence(exhibit: Exhibit, picked: Picked, wanted: int) -> str:
    """Where the length comes from."""
    net = exhibit.net
    layer = class_layer(exhibit, picked, AS_TRAINED, {})
    label = chosen(layer, wanted)
    found, name = evidence_of(layer, label), exhibit.dataset.classes[label]
    if not found.exact:
        return drawing.evidence_sum(found, name)
    places, side = places_of(net), drawing.evidence_bars(found)
    if places is None:
        note = (
            f'<p class="cr-note">The class capsules of this net are made from {layer.votes.lower} hidden capsules, '
            "which have no place in the image.</p>"
        )
        return drawing.evidence_sum(found, name) + note + side
    values = by_place(net, found.contributions)
    over = drawing.evidence_over_image(picked.pixels, places, values, f"evidence for {name} over the image")
    note = (
        '<p class="cr-note">Orange adds to the length, blue takes from it. A square is the centre of what the primary '
        f"capsules at that place see, which is more of the image; their {net.config['primary_groups']} groups are "
        "summed. Point at a square for its number.</p>"
    )
    return f'<div class="cr-two"><div>{over}{note}</div><div>{drawing.evidence_sum(found, name)}{side}</div></div>'


def depth(exhibit: Exhibit) -> str:
    """Lengths and gradients by layer."""
    with _LAYERS_LOCK:
        reports = exhibit.layers
    rows = [
        (
            report.name,
            "–" if report.length_mean is None else f"{report.length_mean:.3f}",
            "–" if report.length_min is None else f"{report.length_min:.2g} to {report.length_max:.2g}",
            "–" if report.own_share is None else f"{report.own_share:.0%}",
            f"{report.gradient_norm:.2e}",
        )
        for report in reports
    ]
    headings = ("layer", "mean length", "min to max", "image's own", "gradient norm")
    return drawing.table(
        headings, rows, "By layer, on the first test images: lengths, and gradients of the margin loss"
    )


def metrics(exhibit: Exhibit) -> str:
    """The run's measurements, as curves, a table and a file to keep."""
    rows = exhibit.rows
    if not rows:
        return drawing.alert("There is no metrics.csv beside this net; name a run folder to see one.")
    parts = [
        '<div class="cr-two">',
        drawing.lines(
            {"training": _column(rows, "train_accuracy"), rows[-1]["evaluated_on"]: _column(rows, "accuracy")},
            "Accuracy over the epochs",
        ),
        drawing.lines(
            {"training": _column(rows, "train_loss"), "evaluation": _column(rows, "loss")}, "Loss over the epochs"
        ),
        "</div>",
        drawing.table(list(rows[0]), [list(row.values()) for row in rows], "metrics.csv, a row an epoch"),
    ]
    url = "data:text/csv;base64," + base64.b64encode(exhibit.metrics.encode()).decode()
    parts.append(f'<p><a download="metrics.csv" href="{url}">Save metrics.csv</a></p>')
    return "".join(parts)


def _column(rows: Sequence[Mapping[str, str]], name: str) -> list[float]:
    values = []
    for row in rows:
        try:
            values.append(float(row[name]))
        except (KeyError, TypeError, ValueError):
            values.append(float("nan"))
    return values
