"""What the page shows, as HTML with SVG in it: scales to any width, follows the page's colours, says what it shows."""

import math
from collections.abc import Sequence
from html import escape

import numpy as np
import torch
from jaxtyping import Float, Float64, UInt8
from torch import Tensor

from capsroute.explorer.dimensions import OFFSETS
from capsroute.explorer.evidence import Cell, Evidence
from capsroute.explorer.pictures import image_url, png_url
from capsroute.figures.drawing import COLOURS
from capsroute.figures.iterations import PlaneStep

BLUE, ORANGE, GREEN = COLOURS[:3]
PANEL = 150  # units of a panel in the plane


def picture(pixels: UInt8[np.ndarray, "c h w"], told: str) -> str:
    """The image that is looked at."""
    _, height, width = pixels.shape
    return (
        f'<figure class="cr-picture"><img src="{image_url(pixels)}" alt="{escape(told)}" '
        f'style="aspect-ratio: {width} / {height}"><figcaption>{escape(told)}</figcaption></figure>'
    )


def length_bars(lengths: Sequence[float], classes: Sequence[str], truth: int | None, caption: str) -> str:
    """The class capsules' lengths, with prediction and true class."""
    longest = max(range(len(lengths)), key=lambda label: lengths[label])
    rows = []
    for label, (name, length) in enumerate(zip(classes, lengths, strict=True)):
        marks = [word for word, holds in (("prediction", label == longest), ("true", label == truth)) if holds]
        kind = "right" if label == longest == truth else "longest" if label == longest else "true" if marks else ""
        rows.append(
            f'<tr class="{kind}"><th scope="row">{escape(name)}{"".join(f" <b>{mark}</b>" for mark in marks)}</th>'
            f'<td class="bar"><span style="width: {100 * min(1.0, length):.1f}%"></span></td><td>{length:.3f}</td></tr>'
        )
    return f'<table class="cr-bars"><caption>{escape(caption)}</caption><tbody>{"".join(rows)}</tbody></table>'


def plane(steps: Sequence[PlaneStep], class_name: str, lower: int) -> str:
    """A panel for each iteration. The circle is of length 1; votes are drawn larger, all alike."""
    farthest = max(float(step.votes.norm(dim=1).max()) for step in steps)
    scale = 0.9 / max(farthest, 1e-30)
    panels = []
    for number, step in enumerate(steps):
        ends = [_point(x * scale, y * scale) for x, y in step.votes.tolist()]
        arrows = "".join(
            f'<line x1="75" y1="75" x2="{x}" y2="{y}" opacity="{0.12 + 0.75 * weight:.2f}"/>'
            f'<circle cx="{x}" cy="{y}" r="1.4" opacity="{0.2 + 0.8 * weight:.2f}"/>'
            for (x, y), weight in zip(ends, step.weights.tolist(), strict=True)
        )
        x, y = _point(*step.v.tolist())
        told = f"iteration {number + 1}: length of v {step.length:.3f}"
        panels.append(
            f'<figure><svg viewBox="0 0 {PANEL} {PANEL}" role="img" aria-label="{told}">'
            f'<circle class="unit" cx="75" cy="75" r="70"/>'
            f'<g stroke="{BLUE}" fill="{BLUE}" stroke-width="0.8">{arrows}</g>'
            f'<line x1="75" y1="75" x2="{x}" y2="{y}" stroke="{ORANGE}" stroke-width="3.5" stroke-linecap="round"/>'
            f'<circle cx="{x}" cy="{y}" r="4" fill="{ORANGE}"/></svg>'
            f"<figcaption>iteration {number + 1}<br>‖v‖ = {step.length:.3f}</figcaption></figure>"
        )
    note = (
        f"{len(steps[0].votes)} longest of {lower:,} votes for {escape(class_name)} (blue, drawn {scale:.3g} times as "
        "long; fainter: smaller coefficient) and the capsule v (orange; the circle is length 1), in the plane of the "
        "votes' sum, to the right, and their largest further variation."
    )
    return f'<div class="cr-panels">{"".join(panels)}</div><p class="cr-note">{note}</p>'


def heat_map(coefficients: Float[Tensor, "i j"], classes: Sequence[str]) -> str:
    """Coupling coefficients of the last iteration: a row for each class, a column for each lower capsule."""
    lower, upper = coefficients.shape
    even = 1 / upper
    away = coefficients.T.double() - even
    most = max(float(away.abs().max()), 1e-30)
    url = png_url(_diverging((away / most).numpy()))
    row, left, width = 15, 82, 278
    names = "".join(
        f'<text x="{left - 5}" y="{row * number + 11}" text-anchor="end">{escape(_short(name))}</text>'
        for number, name in enumerate(classes)
    )
    low, high = float(coefficients.min()), float(coefficients.max())
    told = (
        f"Coupling coefficients of the last iteration, {lower:,} lower capsules from left to right: from {low:.4g} to "
        f"{high:.4g}. White is an even share, {even:.3g}; orange more, blue less, fullest {most:.2g} away from it."
    )
    return (
        f'<figure class="cr-wide"><svg viewBox="0 0 {left + width} {row * upper}" role="img" aria-label="{told}">'
        f'{names}<image href="{url}" x="{left}" y="0" width="{width}" height="{row * upper}" '
        f'preserveAspectRatio="none" style="image-rendering: pixelated"/></svg><figcaption>{told}</figcaption></figure>'
    )


def evidence_over_image(
    pixels: UInt8[np.ndarray, "c h w"], cells: Sequence[Cell], values: Float[Tensor, " places"], told: str
) -> str:
    """What each place adds to the length (orange) or takes from it (blue), over the image."""
    _, height, width = pixels.shape
    most = max(float(values.abs().max()), 1e-30)
    marks = "".join(
        f'<rect x="{cell.x - cell.size / 2:g}" y="{cell.y - cell.size / 2:g}" width="{cell.size:g}" '
        f'height="{cell.size:g}" fill="{ORANGE if value >= 0 else BLUE}" opacity="{0.85 * abs(value) / most:.3f}">'
        f"<title>{value:+.4f}</title></rect>"
        for cell, value in zip(cells, values.tolist(), strict=True)
    )
    left, top = min(cell.x - cell.size / 2 for cell in cells), min(cell.y - cell.size / 2 for cell in cells)
    right, low = max(cell.x + cell.size / 2 for cell in cells), max(cell.y + cell.size / 2 for cell in cells)
    return (
        f'<svg class="cr-over" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(told)}">'
        f'<image href="{image_url(pixels)}" width="{width}" height="{height}" style="image-rendering: pixelated"/>'
        f'{marks}<rect class="edge" x="{left:g}" y="{top:g}" width="{right - left:g}" height="{low - top:g}"/></svg>'
    )


def evidence_bars(found: Evidence) -> str:
    """Every lower capsule's contribution, the largest first."""
    values = found.contributions.sort(descending=True).values.tolist()
    step = 360 / len(values)
    high, low = max(values[0], 0.0), min(values[-1], 0.0)
    scale = 80 / max(high - low, 1e-30)
    axis = 2 + scale * high
    bars = "".join(
        f'<rect x="{number * step:.2f}" y="{axis - scale * max(0.0, value):.2f}" width="{max(0.4, 0.85 * step):.2f}" '
        f'height="{scale * abs(value):.2f}" fill="{ORANGE if value >= 0 else BLUE}"/>'
        for number, value in enumerate(values)
    )
    above = sum(value for value in values if value > 0)
    told = (
        f"{len(values):,} lower capsules, the largest contribution first: from {values[0]:+.3g} to {values[-1]:+.3g}. "
        f"Those for it add {above:.4g}, those against it {sum(values) - above:.4g}."
    )
    return (
        f'<figure class="cr-wide"><svg viewBox="0 0 360 84" role="img" aria-label="{told}">{bars}'
        f'<line class="axis" x1="0" y1="{axis:.2f}" x2="360" y2="{axis:.2f}"/></svg>'
        f"<figcaption>{told}</figcaption></figure>"
    )


def evidence_sum(found: Evidence, name: str) -> str:
    """The sum, in numbers."""
    total = found.contributions.double().sum().item()
    if not found.exact:
        return (
            f"<p>Under this routing the sum s for {escape(name)} is no multiple of its votes' sum: nothing to show.</p>"
        )
    return (
        f'<p class="cr-sum">Contributions û·v̂ to <b>{escape(name)}</b>: they sum to <b>{total:.5g}</b>; times '
        f"<b>{found.factor:.4g}</b> by the routing is ‖s‖ = <b>{found.norm:.5g}</b>; squashed, the length "
        f"<b>{found.length:.5g}</b>.</p>"
    )


def reconstruction(image: Float[Tensor, "c h w"], told: str) -> str:
    """What the decoder makes of a capsule."""
    return picture(_to_pixels(image), told)


def dimension_rows(grid: Float[Tensor, "d offsets c h w"]) -> str:
    """The classic grid: a row for each dimension."""
    dims, offsets, channels, height, width = grid.shape
    sheet = grid.permute(2, 0, 3, 1, 4).reshape(channels, dims * height, offsets * width)
    left, side = 22, 338 / offsets
    tall = side * height / width
    numbers = "".join(
        f'<text x="{left - 5}" y="{tall * (row + 0.5) + 16:.1f}" text-anchor="end">{row + 1}</text>'
        for row in range(dims)
    )
    heads = "".join(
        f'<text x="{left + side * (column + 0.5):.1f}" y="9" text-anchor="middle">{offset:+.2f}</text>'
        for column, offset in enumerate(OFFSETS)
        if column % 5 == 0
    )
    told = f"reconstructions with each of the {dims} dimensions moved from {OFFSETS[0]} to {OFFSETS[-1]}"
    return (
        f'<figure class="cr-wide"><svg viewBox="0 0 360 {tall * dims + 12:.1f}" role="img" aria-label="{told}">'
        f'{numbers}{heads}<image href="{image_url(_to_pixels(sheet))}" x="{left}" y="12" width="{side * offsets:.1f}" '
        f'height="{tall * dims:.1f}" preserveAspectRatio="none"/></svg><figcaption>A row for each dimension, moved by '
        f"{OFFSETS[0]} on the left to +{OFFSETS[-1]} on the right.</figcaption></figure>"
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """A table that scrolls by itself where it is too wide."""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="cr-scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="cr-table">'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def lines(series: dict[str, Sequence[float]], caption: str) -> str:
    """Curves over the epochs, from the first."""
    values = [value for curve in series.values() for value in curve if math.isfinite(value)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = (high - low) * 0.05 or 0.05
    low, high = low - room, high + room
    drawn, key = [], []
    for number, (name, curve) in enumerate(series.items()):
        points = [
            (42 + 308 * (at / max(1, len(curve) - 1)), 8 + 104 * (high - value) / (high - low))
            for at, value in enumerate(curve)
            if math.isfinite(value)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points) if len(points) < 40 else ""
        colour = COLOURS[number]
        drawn.append(
            f'<g fill="{colour}" stroke="{colour}"><polyline points="{path}" fill="none" stroke-width="1.8"/>{dots}</g>'
        )
        key.append(f'<span style="color: {colour}">●</span> {escape(name)}')
    ticks = "".join(
        f'<text x="36" y="{12 + 104 * part:.0f}" text-anchor="end">{high - (high - low) * part:.3g}</text>'
        for part in (0, 0.5, 1)
    )
    epochs = max(len(curve) for curve in series.values())
    ticks += f'<text x="42" y="126">1</text><text x="350" y="126" text-anchor="end">epoch {epochs}</text>'
    return (
        f'<figure class="cr-wide"><svg viewBox="0 0 360 130" role="img" aria-label="{escape(caption)}">'
        f'<path class="axis" d="M42 4V112H354" fill="none"/>{ticks}{"".join(drawn)}</svg>'
        f"<figcaption>{escape(caption)}: {' '.join(key)}</figcaption></figure>"
    )


def alert(message: str) -> str:
    """A sentence that the visitor is to see; empty clears it."""
    return f'<p class="cr-alert" role="alert">{escape(message)}</p>' if message else ""


def progress(share: float, line: str) -> str:
    """How far a training is."""
    return (
        f'<progress max="1" value="{share:.3f}" aria-label="training">{share:.0%}</progress>'
        f'<p class="cr-note" role="status">{share:.0%}. {escape(line)}</p>'
    )


def _diverging(values: Float64[np.ndarray, "j i"]) -> UInt8[np.ndarray, "j i 3"]:
    """From -1, blue, over white to 1, orange."""
    ends = {
        sign: np.array([int(code[at : at + 2], 16) for at in (1, 3, 5)]) for sign, code in ((1, ORANGE), (-1, BLUE))
    }
    share = np.abs(values)[:, :, None]
    ink = np.where(values[:, :, None] > 0, ends[1], ends[-1])
    return np.round(255 + (ink - 255) * share).astype(np.uint8)


def _to_pixels(image: Float[Tensor, "c h w"]) -> UInt8[np.ndarray, "c h w"]:
    return (image.clamp(0, 1) * 255).round().to(torch.uint8).numpy()


def _point(x: float, y: float) -> tuple[float, float]:
    """From the plane to a panel: the circle of length 1 has radius 70."""
    return round(75 + 70 * x, 1), round(75 - 70 * y, 1)


def _short(name: str) -> str:
    return name if len(name) <= 14 else name[:13] + "…"
