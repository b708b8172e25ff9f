"""Whether cost grows as the work grows: times over one size at a time, and their slope on a log-log scale."""

import math
from collections.abc import Mapping
from typing import Any

import torch

from capsroute.bench.layers import LayerSize
from capsroute.bench.nets import DEPTHS, NetCase, stack_of
from capsroute.bench.timing import time_all
from capsroute.bench.work import autocast
from capsroute.layers import CapsuleLayer
from capsroute.routing import ROUTINGS

BASE = LayerSize(576, 32, 8, 16)
BASE_BATCH = 128
GROWN: Mapping[str, tuple[int, ...]] = {
    "I": (288, 576, 1152, 2304),
    "J": (16, 32, 64, 128),
    "D": (8, 16, 32, 64),
    "batch": (64, 128, 256, 512),
}


def slope(sizes: list[float], times: list[float]) -> float:
    """Of the line through (log size, log time) that fits best."""
    x, y = [math.log(size) for size in sizes], [math.log(time) for time in times]
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    rise = sum((one - middle_x) * (other - middle_y) for one, other in zip(x, y, strict=True))
    return rise / sum((one - middle_x) ** 2 for one in x)


def measure_scaling(dtype: torch.dtype, device: str, repeats: int) -> list[dict[str, Any]]:
    """A row for each routing and what grows: sizes, slope, and milliseconds.

    Of a layer those of a forward and backward pass
    and of a stack those of a training step.
    """
    jobs = {}
    for routing in ROUTINGS:
        for axis, sizes in GROWN.items():
            for size in sizes:
                jobs[routing, axis, size] = _layer_job(routing, axis, size, dtype, device)
        for depth in DEPTHS:
            jobs[routing, "depth", depth] = _stack_job(routing, depth, dtype, device)
    names = {f"{routing} {axis} {size}": (routing, axis, size) for routing, axis, size in jobs}
    timings = time_all({name: jobs[key] for name, key in names.items()}, repeats, device)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for name, (routing, axis, size) in names.items():
        row = rows.setdefault((routing, axis), {"routing": routing, "grows": axis, "sizes": [], "ms": []})
        row["sizes"].append(size)
        row["ms"].append(round(timings[name].median, 3))
    return [{**row, "slope": round(slope(row["sizes"], row["ms"]), 3)} for row in rows.values()]


def _layer_job(routing: str, axis: str, size: int, dtype: torch.dtype, device: str) -> Any:
    lower = size if axis == "I" else BASE.lower
    upper = size if axis == "J" else BASE.upper
    out_dim = size if axis == "D" else BASE.out_dim
    batch = size if axis == "batch" else BASE_BATCH
    layer = CapsuleLayer(lower, upper, BASE.in_dim, out_dim, routing).to(device)
    u = torch.randn(batch, lower, BASE.in_dim, device=device).requires_grad_()

    def job() -> None:
        with autocast(device, dtype):
            v = layer(u)
        torch.autograd.grad(v.sum(), (u, layer.weight))

    return job


def _stack_job(routing: str, depth: int, dtype: torch.dtype, device: str) -> Any:
    case = NetCase("small", routing, (1, 28, 28), dtype, device, stack_of(depth))
    return case.step
