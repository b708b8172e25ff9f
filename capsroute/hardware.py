"""What to compute on, and how exactly."""

import logging
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from capsroute.config import TrainConfig
from capsroute.errors import InputError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

FABRIC_PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}
BF16_CPU_FLAGS = ("avx512_bf16", "amx_bf16")


class Choice(NamedTuple):
    """A device and a precision, and why."""

    device: str
    precision: str
    reason: str


def choose(device: str, precision: str) -> Choice:
    """The device and the precision that "auto" stands for; what this machine does not have is refused."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        device = next(name for name in ("cuda", "mps", "cpu") if available[name])
    if not available.get(device, False):
        here = [name for name, there in available.items() if there]
        raise InputError(f"--device {device} is not on this machine, which has {', '.join(here)}")
    if precision != "auto":
        if precision == "fp16" and device == "cpu":
            raise InputError("--precision fp16 needs a GPU; use bf16 or fp32 on a CPU")
        return Choice(device, precision, "as asked")
    if device == "cuda" and torch.cuda.get_device_capability() >= (8, 0):
        return Choice(device, "bf16", "the GPU multiplies bf16")
    if device == "cpu" and cpu_multiplies_bf16():
        return Choice(device, "bf16", "the CPU multiplies bf16")
    return Choice(device, "fp32", f"this {device} does not multiply bf16")


def cpu_multiplies_bf16() -> bool:
    """Whether the processor has instructions for bf16 products."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return any(flag in flags for flag in BF16_CPU_FLAGS)


def wait_for(device: str) -> None:
    """Until the device has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def is_main_process() -> bool:
    """Whether this is the process that writes and prints; true where there is only one."""
    return all(int(os.environ.get(name, 0)) == 0 for name in ("RANK", "LOCAL_RANK", "NODE_RANK"))


def records_steps(config: TrainConfig, choice: Choice, device: str, processes: int) -> bool:
    """Whether training steps are recorded as a CUDA graph."""
    able = device == "cuda" and processes == 1 and not config.compile and choice.precision != "fp16"
    if config.cuda_graphs and not able:
        raise InputError("--cuda-graphs needs one CUDA device, bf16 or fp32, and no --compile; leave it out")
    return able if config.cuda_graphs is None else config.cuda_graphs


def make_fabric(config: TrainConfig, choice: Choice) -> "Fabric":
    """Fabric for this run, not yet launched; under torchrun with as many processes as that started."""
    from lightning_fabric import Fabric

    for name in ("lightning.fabric", "lightning_fabric", "lightning_fabric.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.WARNING)  # what it says there, the run says itself

    local = int(os.environ.get("LOCAL_WORLD_SIZE", config.devices))
    nodes = int(os.environ.get("WORLD_SIZE", local)) // local if "LOCAL_WORLD_SIZE" in os.environ else 1
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*srun.*"
        )  # advice for clusters that this machine may not be part of
        return Fabric(
            accelerator=choice.device,
            devices=local,
            num_nodes=nodes,
            strategy="ddp" if local * nodes > 1 else "auto",
            precision=FABRIC_PRECISION[choice.precision],  # type: ignore[arg-type]  # one of the strings it takes
        )
