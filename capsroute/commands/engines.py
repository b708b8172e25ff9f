"""Options of the commands that do many runs: where, and how many at once."""

import os
import shlex
import sys
from dataclasses import dataclass
from typing import Literal

from capsroute.errors import InputError, require_number, require_whole
from capsroute.sweeps.driver import Engine
from capsroute.sweeps.local import LocalEngine, available_cores


@dataclass(frozen=True)
class EngineOptions:
    """Where runs are done."""

    jobs: int = 1
    """Runs at once; on a CPU they share its cores."""
    engine: Literal["local", "ray"] = "local"
    """local: processes of this machine. ray: a Ray cluster (extra [cluster])."""
    address: str = "auto"
    """With --engine ray: the cluster's address; auto finds the one of this machine, local starts one."""
    cpus_per_run: float = 1.0
    """With --engine ray: cores for each run."""
    gpus_per_run: float = 0.0
    """With --engine ray: GPUs, or a share of one, for each run."""
    quiet: bool = False
    """Print nothing but errors."""

    def make_engine(self) -> Engine:
        """The engine that was asked for."""
        require_whole("jobs", self.jobs)
        if self.engine == "local":
            cores = available_cores()
            if self.jobs > 4 * cores:
                raise InputError(f"--jobs {self.jobs} is more than four for each of this machine's {cores} cores")
            return LocalEngine(self.jobs)
        from capsroute.sweeps.cluster import RayEngine

        require_number("cpus_per_run", self.cpus_per_run, 0, 1e4)
        require_number("gpus_per_run", self.gpus_per_run, 0, 1e3)
        return RayEngine(self.address, self.cpus_per_run, self.gpus_per_run, self.jobs)


def command_line() -> str:
    """The command that is running, as one would type it again."""
    return shlex.join([os.path.basename(sys.argv[0]), *sys.argv[1:]])
