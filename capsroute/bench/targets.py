"""What the library promises of its speed, as ratios within one run, and whether this run bears it out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Target:
    """A promise: `value` is to be at most, or at least, `bound`."""

    name: str
    value: float
    bound: float
    at_least: bool

    @property
    def met(self) -> bool:
        """Whether it holds."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def to_json(self) -> dict[str, Any]:
        """As results have it."""
        told = f"{'at least' if self.at_least else 'at most'} {self.bound:g}"
        return {"name": self.name, "value": round(self.value, 4), "wanted": told, "met": self.met}


def check_targets(result: dict[str, Any]) -> list[Target]:
    """Every promise that the result says something about."""
    return [*_layers(result["layers"]), *_memory(result["memory"]), *_nets(result["nets"]), *_scaling(result)]


def _layers(rows: list[dict[str, Any]]) -> Iterator[Target]:
    for row in rows:
        name = f"{row['routing']}, {row['size']}"
        if row["routing"] == "adaptive-lambda":
            yield Target(f"{name}: times the bare products", row["ours"]["ms"] / row["bare"]["ms"], 1.3, False)
        if row["routing"] == "adaptive":
            (other,) = [o for o in rows if o["routing"] == "adaptive-lambda" and o["size"] == row["size"]]
            yield Target(f"{name}: times adaptive-lambda", row["ours"]["ms"] / other["ours"]["ms"], 1.1, False)
        if "float32" in row:
            faster = row["float32"]["dense"]["ms"] / row["float32"]["ours"]["ms"]
            wanted = 8 if row["upper"] > 100 else 4
            yield Target(f"{name}, float32: dense form's time over ours", faster, wanted, True)
            compiled = row["float32"].get("compiled_dense")
            if compiled:
                faster = compiled["ms"] / row["float32"]["ours"]["ms"]
                yield Target(f"{name}, float32: compiled dense form's time over ours", faster, 2, True)


def _memory(memory: dict[str, float]) -> Iterator[Target]:
    share = memory["dynamic_ours_mb"] / memory["dynamic_dense_mb"]
    yield Target("dynamic, J = 256, float32: extra memory, share of the dense form's", share, 1 / 8, False)
    times = memory["paper-3_training_mb"] / memory["paper-3_needed_mb"]
    yield Target("paper-3 training: memory, times what must be kept", times, 1.3, False)


def _nets(rows: list[dict[str, Any]]) -> Iterator[Target]:
    for row in rows:
        if row["routing"] != "adaptive-lambda":
            continue
        name = f"{row['net']}, {row['precision']}"
        if "step" in row:
            wanted = 0.75 if row["preset"] == "paper-2" else 0.6
            yield Target(f"{name}: training step, share of the limit", row["step_share_of_limit"], wanted, True)
        if "capsule_part" in row and row["preset"] == "paper-2":
            share = row["capsule_part"]["ms"] / row["step"]["ms"]
            yield Target(f"{name}: capsule part of the step", share, 0.05, False)
        if "inference" in row:
            share = row["inference_share_of_limit"]
            yield Target(f"{name}: inference at batch 256, share of the limit", share, 0.8, True)


def _scaling(result: dict[str, Any]) -> Iterator[Target]:
    for row in result["scaling"]:
        yield Target(f"{row['routing']}: slope of time against {row['grows']}", row["slope"], 1.1, False)
