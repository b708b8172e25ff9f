"""Where and with what a result was made."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from capsroute import __version__

PACKAGES = ("numpy", "lightning-fabric", "safetensors")
COMMIT_VARIABLE = "CAPSROUTE_COMMIT"
UNKNOWN: dict[str, Any] = {"id": None, "dirty": None}


def provenance() -> dict[str, Any]:
    """Commit and whether the tree differs from it, versions, hardware; what every result carries."""
    return {"commit": commit(), "versions": versions(), "hardware": hardware()}


def commit() -> dict[str, Any]:
    """The commit of the source tree, and whether tracked files differ from it; nothing for an installed package.

    Where git cannot tell, as in a tree that was copied to another machine without its history, $CAPSROUTE_COMMIT may
    name the commit, ending in "-dirty" if it was not copied as it was.
    """
    root = Path(__file__).parents[1]
    if (root / ".git").exists():
        try:
            run = {"cwd": root, "capture_output": True, "text": True, "check": True, "timeout": 10}
            name = subprocess.run(["git", "rev-parse", "HEAD"], **run).stdout.strip()  # type: ignore[call-overload]
            changes = subprocess.run(["git", "status", "--porcelain", "-uno"], **run).stdout  # type: ignore[call-overload]
            return {"id": name, "dirty": bool(changes.strip())}
        except (OSError, subprocess.SubprocessError):
            pass
    told = os.environ.get(COMMIT_VARIABLE)
    return {"id": told.removesuffix("-dirty"), "dirty": told.endswith("-dirty")} if told else {**UNKNOWN}


def versions() -> dict[str, str]:
    """Python, this package, torch and what computes beside them."""
    found = {"python": platform.python_version(), "capsroute": __version__, "torch": torch.__version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """Processor, cores and threads, memory, and GPUs if there are any."""
    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
    return {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gb": round(pages / 2**30, 1) or None,
        "gpus": gpus,
    }


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
