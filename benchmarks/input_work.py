"""The share of a `paper-2` training step that serving its batch takes: `python benchmarks/input_work.py [OUT.json]`.

Interleaved, so that noise hits both alike; medians. Float32 and, where the CPU has it, bf16 with channels-last.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import torch

from capsroute import CapsNet, load_dataset, margin_loss
from capsroute.data.batches import Batches
from capsroute.provenance import provenance

REPEATS = 9


def measure(dataset_shape: tuple[int, int, int], precision: str) -> dict[str, float]:
    """Milliseconds of a batch and of a step on it, and the share of the one in both."""
    torch.manual_seed(0)
    images = torch.randint(0, 256, (6_000, *dataset_shape), dtype=torch.uint8)
    labels = torch.randint(0, 10, (6_000,))
    net = CapsNet.from_preset("paper-2", in_shape=dataset_shape, lam=2).to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(net.parameters())
    batches = Batches(images, labels, shift=2).epoch()
    serving, stepping = [], []
    for _ in range(REPEATS + 2):
        start = time.perf_counter()
        batch, targets = next(batches)
        served = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = margin_loss(net(batch), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        serving.append((served - start) * 1e3)
        stepping.append((time.perf_counter() - served) * 1e3)
    serve, step = statistics.median(serving[2:]), statistics.median(stepping[2:])
    return {"batch_ms": round(serve, 3), "step_ms": round(step, 1), "share": round(serve / (serve + step), 5)}


def main(out: str | None = None) -> None:
    """Print the shares, and save them with where they were measured."""
    load_dataset("sample")  # a broken installation is told at once
    result = {"command": "python benchmarks/input_work.py", **provenance(), "batch_size": 128, "shift": 2, "runs": {}}
    for shape in ((1, 28, 28), (3, 32, 32)):
        for precision in ("fp32", "bf16"):
            name = f"{'x'.join(map(str, shape))} {precision}"
            result["runs"][name] = measure(shape, precision)
            print(f"{name}: {result['runs'][name]}", flush=True)
    if out:
        Path(out).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
