"""Interleaved timing: whatever disturbs the machine disturbs all alike."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from capsroute.hardware import wait_for

WARMUPS = 1
LONG_SECONDS = 1.0  # what takes longer is repeated less often
LEAST_REPEATS = 2


@dataclass(frozen=True)
class Timing:
    """Repeats of one thing, in milliseconds."""

    median: float
    low: float  # the fastest
    high: float  # the slowest
    repeats: int

    def to_json(self) -> dict[str, float]:
        """As results have it."""
        return {
            "ms": round(self.median, 4),
            "fastest_ms": round(self.low, 4),
            "slowest_ms": round(self.high, 4),
            "repeats": self.repeats,
        }


def time_all(jobs: Mapping[str, Callable[[], object]], repeats: int, device: str) -> dict[str, Timing]:
    """Run all jobs in turn, `repeats` times over; those that take long fewer times."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    first: dict[str, float] = {}
    for name, job in jobs.items():
        for _ in range(WARMUPS):
            first[name] = _seconds(job, device)
    gc.collect()
    for number in range(repeats):
        for name, job in jobs.items():
            if number >= LEAST_REPEATS and first[name] * number > LONG_SECONDS * LEAST_REPEATS:
                continue
            seconds[name].append(_seconds(job, device))
    return {
        name: Timing(1e3 * statistics.median(taken), 1e3 * min(taken), 1e3 * max(taken), len(taken))
        for name, taken in seconds.items()
    }


def _seconds(job: Callable[[], object], device: str) -> float:
    wait_for(device)
    began = time.perf_counter()
    job()
    wait_for(device)
    return time.perf_counter() - began
