"""The benchmark: everything measured in one run, on one machine, as a JSON object."""

import shutil
from collections.abc import Callable
from typing import Any

import torch

from capsroute.bench.layers import BATCH, SIZES, LayerCase, layer_cases
from capsroute.bench.memory import needed_for_training_mb, peak_mb
from capsroute.bench.nets import DEPTHS, INFERENCE_BATCH, PAPER_NETS, SHAPES, NetCase
from capsroute.bench.scaling import measure_scaling
from capsroute.bench.targets import check_targets
from capsroute.bench.timing import Timing, time_all
from capsroute.bench.work import (
    LARGE,
    forward_products,
    large_product,
    layer_products,
    milliseconds_at_limit,
    training_products,
)
from capsroute.models import CapsNet
from capsroute.provenance import provenance
from capsroute.routing import ROUTINGS

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
BASELINE = "dynamic"  # the routing that everybody writes on a table of votes
LATENCY_REPEATS = 5  # times as many: one image is quick
Say = Callable[[str], None]


def run_benchmark(device: str, precision: str, repeats: int, say: Say) -> dict[str, Any]:
    """Layers, nets, memory and scaling; the rates and ratios; and which targets they meet."""
    dtype = DTYPES[precision]
    result: dict[str, Any] = {**provenance(), "device": device, "precision": precision, "repeats": repeats}
    say("checking results against the dense form")
    for case in layer_cases(dtype, device):
        case.refuse_difference()
    say("layers")
    result["layers"] = _layers(dtype, device, repeats)
    say("dynamic routing against its dense form in float32, eager and compiled")
    _add_float32(result["layers"], device, repeats)
    say("nets")
    result["nets"] = _nets(precision, device, repeats)
    if precision != "fp32":
        result["nets"] += _nets("fp32", device, repeats, inference_only=True)
    say("memory, in processes of their own")
    result["memory"] = _memory(dtype, device)
    say("growth")
    result["scaling"] = measure_scaling(dtype, device, repeats)
    result["targets"] = [target.to_json() for target in check_targets(result)]
    return result


def _layers(dtype: torch.dtype, device: str, repeats: int) -> list[dict[str, Any]]:
    rows = []
    for size in SIZES:
        cases = {routing: LayerCase(routing, size, dtype, device) for routing in ROUTINGS}
        any_case = next(iter(cases.values()))
        jobs: dict[str, Callable[[], object]] = {"large": large_product(device, dtype)}
        for routing, case in cases.items():
            jobs |= {
                f"{routing} ours forward": case.forward(case.ours),
                f"{routing} ours": case.training(case.ours),
                f"{routing} dense forward": case.forward(case.dense),
                f"{routing} dense": case.training(case.dense),
            }
        jobs["bare forward"] = any_case.forward(any_case.bare)
        jobs["bare"] = any_case.training(any_case.bare)
        timings = time_all(jobs, repeats, device)
        products = layer_products(any_case.layer, BATCH)
        for routing in cases:
            row: dict[str, Any] = {"routing": routing, "size": size.name, "lower": size.lower, "upper": size.upper}
            row["bare"] = timings["bare"].to_json()
            row["bare_forward"] = timings["bare forward"].to_json()
            for form in ("ours", "dense"):
                row[form] = timings[f"{routing} {form}"].to_json()
                row[f"{form}_forward"] = timings[f"{routing} {form} forward"].to_json()
            row["dense_over_ours"] = _ratio(timings[f"{routing} dense"], timings[f"{routing} ours"])
            limit = milliseconds_at_limit(3 * products, timings["large"].median)
            row["share_of_limit"] = round(limit / timings[f"{routing} ours"].median, 4)
            rows.append(row)
    return rows


def _add_float32(rows: list[dict[str, Any]], device: str, repeats: int) -> None:
    """What the ordinary way costs in the ordinary precision, for the baseline at its two sizes with 1152 capsules."""
    compiles = shutil.which("c++") is not None or shutil.which("g++") is not None
    for size in SIZES[:2]:
        case = LayerCase(BASELINE, size, torch.float32, device)
        case.refuse_difference()
        jobs = {"ours": case.training(case.ours), "dense": case.training(case.dense)}
        if compiles:
            jobs["compiled_dense"] = case.training(case.compiled_dense)
        timings = time_all(jobs, repeats, device)
        (row,) = [row for row in rows if row["routing"] == BASELINE and row["size"] == size.name]
        row["float32"] = {name: timing.to_json() for name, timing in timings.items()}


def _nets(precision: str, device: str, repeats: int, inference_only: bool = False) -> list[dict[str, Any]]:
    rows = []
    dtype = DTYPES[precision]
    for shape in SHAPES:
        for preset in PAPER_NETS[:1] if inference_only else PAPER_NETS:
            cases = {
                routing: NetCase(preset, routing, shape, dtype, device)
                for routing in (ROUTINGS if not inference_only else ["adaptive-lambda"])
            }
            jobs: dict[str, Callable[[], object]] = {"large": large_product(device, dtype)}
            for routing, case in cases.items():
                if not inference_only:
                    jobs[f"{routing} step"] = case.step
                    jobs[f"{routing} forward"] = case.forward()
            plain = cases["adaptive-lambda"]
            if not inference_only:
                jobs["capsule part"] = plain.capsule_part()
            if preset == PAPER_NETS[0]:
                jobs["inference"] = plain.forward(INFERENCE_BATCH)
                jobs["one image"] = plain.forward(1)
            timings = time_all(jobs, repeats, device)
            rows += [_net_row(case, precision, timings) for case in cases.values()]
    return rows


def _net_row(case: NetCase, precision: str, timings: dict[str, Timing]) -> dict[str, Any]:
    large = timings["large"].median
    row: dict[str, Any] = {"net": case.name, "preset": case.preset, "routing": case.routing, "precision": precision}
    if f"{case.routing} step" in timings:
        step = timings[f"{case.routing} step"]
        row |= {"step": step.to_json(), "forward": timings[f"{case.routing} forward"].to_json()}
        limit = milliseconds_at_limit(training_products(case.net, BATCH), large)
        row["step_share_of_limit"] = round(limit / step.median, 4)
    if case.routing == "adaptive-lambda":
        if "capsule part" in timings:
            row["capsule_part"] = timings["capsule part"].to_json()
        if "inference" in timings:
            limit = milliseconds_at_limit(forward_products(case.net, INFERENCE_BATCH), large)
            row["inference"] = timings["inference"].to_json()
            row["inference_share_of_limit"] = round(limit / timings["inference"].median, 4)
            row["one_image"] = timings["one image"].to_json()
    row["large_product_gflops"] = round(2e-6 * LARGE**3 / large, 1)
    return row


def _memory(dtype: torch.dtype, device: str) -> dict[str, float]:
    stacks = {f"stack_of_{depth}_training_mb": peak_mb("stack", str(depth), dtype, device) for depth in DEPTHS}
    return {
        "dynamic_ours_mb": peak_mb("ours", f"{BASELINE}/1", torch.float32, device),
        "dynamic_dense_mb": peak_mb("dense", f"{BASELINE}/1", torch.float32, device),
        "paper-3_training_mb": peak_mb("net", "paper-3", dtype, device),
        **stacks,
        "paper-3_needed_mb": round(needed_for_training_mb(CapsNet.from_preset("paper-3"), dtype), 1),
    }


def _ratio(slow: Timing, fast: Timing) -> float:
    return round(slow.median / fast.median, 3)
