"""Peak memory of a job, from a fresh process of its own: `python -m capsroute.bench.memory KIND NAME DTYPE DEVICE`.

KIND is `ours` or `dense` (a layer's forward and backward pass, beyond its input, weights and their gradients), `net`
(all that training steps of a net take: weights, gradients, optimiser, activations) or `stack` (the same for a small net
of so many capsule layers).
"""

import contextlib
import json
import resource
import subprocess
import sys
from pathlib import Path

import torch

from capsroute.bench.layers import SIZES, LayerCase
from capsroute.bench.nets import BATCH, NetCase, stack_of
from capsroute.errors import CapsrouteError
from capsroute.hardware import wait_for
from capsroute.memory import keep_freed_memory
from capsroute.models import CapsNet, parameter_count

MB = 2**20


def peak_mb(kind: str, name: str, dtype: torch.dtype, device: str) -> float:
    """Megabytes, measured in a process of its own; `name` is a preset, a depth, or `routing/number of the size`."""
    words = [sys.executable, "-m", "capsroute.bench.memory", kind, name, str(dtype).removeprefix("torch."), device]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise CapsrouteError(f"the memory of {kind} {name} could not be measured: {reason}")
    return float(json.loads(done.stdout)["peak_mb"])


def needed_for_training_mb(net: CapsNet, dtype: torch.dtype) -> float:
    """Weights, gradients, Adam's two moments, and what the convolutions must keep for their backward passes."""
    config = net.config
    side = net.in_shape[1] - config["stem_kernel"] + 1
    features = BATCH * config["stem_channels"] * side * side
    maps = BATCH * net.capsules[0] * net.dims[0]
    size = torch.empty((), dtype=dtype).element_size()
    return (16 * parameter_count(net) + size * (features + maps)) / MB


def _measure(kind: str, name: str, dtype: torch.dtype, device: str) -> float:
    if kind in ("net", "stack"):
        before = _resident(device)
        preset, capsules = (name, None) if kind == "net" else ("small", stack_of(int(name)))
        case = NetCase(preset, "adaptive-lambda", (1, 28, 28), dtype, device, capsules)
        for _ in range(3):
            case.step()
        return _peak(device) - before
    routing, number = name.split("/")
    layer = LayerCase(routing, SIZES[int(number)], dtype, device)
    form = layer.ours if kind == "ours" else layer.dense
    layer.gradients(form, layer.u[:1].detach().requires_grad_(), layer.upstream[:1])  # libraries set themselves up
    kept = [torch.zeros_like(layer.u), torch.zeros_like(layer.layer.weight)]  # as large as the results
    before = _resident(device)
    del kept
    layer.gradients(form, layer.u, layer.upstream)
    return _peak(device) - before


def _resident(device: str) -> float:
    """Now, and the peak is counted from here."""
    wait_for(device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated() / MB
    with contextlib.suppress(OSError):  # else the peak so far stays, which is at most that of starting up
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak(device: str) -> float:
    wait_for(device)
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / MB
    return _status("VmHWM")


def _status(name: str) -> float:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    kind, name, dtype, device = sys.argv[1:]
    if kind in ("net", "stack"):
        keep_freed_memory()  # as training does
    print(json.dumps({"peak_mb": round(_measure(kind, name, getattr(torch, dtype), device), 1)}))
