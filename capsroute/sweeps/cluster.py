"""Runs on a Ray cluster: a task each, on any node that sees the store."""

import dataclasses
import os
import time
from typing import Any

from capsroute.config import TrainConfig
from capsroute.errors import InputError
from capsroute.sweeps.jobs import Job, Outcome, do_job
from capsroute.sweeps.local import fit_with_beacon

RETRIES = 3  # of a run whose node died: Ray starts it again elsewhere, where it goes on from its checkpoint


class RayEngine:
    """As many runs at once as the cluster has room for, `cpus` and `gpus` for each; at most `most`."""

    def __init__(self, address: str, cpus: float, gpus: float, most: int) -> None:
        try:
            import ray
        except ImportError as error:
            raise InputError(
                "--engine ray needs the extra [cluster]: pip install -c constraints.txt 'ray[default]'"
            ) from error
        self.ray = ray
        self.most = most
        self._owner = not ray.is_initialized()
        if self._owner:
            try:
                ray.init(address=None if address == "local" else address, log_to_driver=False, configure_logging=False)
            except (ConnectionError, ValueError, TimeoutError, RuntimeError) as error:
                reason = next(iter(str(error).splitlines()), type(error).__name__)
                raise InputError(
                    f"--address {address}: no Ray cluster answers there ({reason}); start one with: ray start --head"
                ) from error
        self._task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)(_do_remotely)
        self._jobs: dict[Any, Job] = {}

    def start(self, job: Job) -> bool:
        """Submit the job, unless as many are under way as may be."""
        if len(self._jobs) >= self.most:
            return False
        self._jobs[self._task.remote(_anywhere(job.config), os.getcwd())] = job
        return True

    def ended(self, timeout: float) -> list[tuple[Job, Outcome]]:
        """The jobs that ended by now; waits for one, but no longer than this."""
        if not self._jobs:  # all that is left is held by others
            time.sleep(timeout)
            return []
        ready, _ = self.ray.wait(list(self._jobs), num_returns=1, timeout=timeout)
        results = []
        for reference in ready:
            job = self._jobs.pop(reference)
            try:
                outcome = self.ray.get(reference)
            except self.ray.exceptions.RayError as error:
                reason = next(iter(str(error).splitlines()), "no reason given")
                outcome = Outcome("lost", f"Ray: {type(error).__name__}: {reason}")
            results.append((job, outcome))
        return results

    def stop(self) -> None:
        """Cancel what runs; each run saves what it has."""
        for reference in self._jobs:
            self.ray.cancel(reference)
        if self._jobs:
            self.ray.wait(list(self._jobs), num_returns=len(self._jobs), timeout=60)
        self._jobs = {}
        if self._owner:
            self.ray.shutdown()


def _anywhere(config: TrainConfig) -> TrainConfig:
    """The configuration with paths that mean the same in any process's working directory."""
    data_dir = None if config.data_dir is None else config.data_dir.expanduser().absolute()
    return dataclasses.replace(config, out=config.folder().absolute(), data_dir=data_dir)


def _do_remotely(config: TrainConfig, folder: str) -> Outcome:
    """Do the run where the driver would, if that is on this machine: a dataset may be a path from there."""
    if os.path.isdir(folder):
        os.chdir(folder)
    return do_job(config, fit_with_beacon)
