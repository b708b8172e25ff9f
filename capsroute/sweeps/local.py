"""Runs in processes of this machine, which stay from run to run: a start costs seconds."""

import multiprocessing
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from capsroute.config import TrainConfig
from capsroute.sweeps.jobs import Job, Outcome, do_job

PATIENCE_SECONDS = 60  # that a worker has for saving its run when it is asked to stop


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: Job | None = field(default=None)


class LocalEngine:
    """`workers` processes that take one job at a time; the machine's cores are shared out among them."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: list[_Worker] = []
        self._threads = max(1, available_cores() // workers)

    def start(self, job: Job) -> bool:
        """Give the job to an idle worker, if there is one."""
        for dead in [worker for worker in self._pool if worker.job is None and not worker.process.is_alive()]:
            self._dismiss(dead)  # ended by someone else, between two runs
        worker = next((worker for worker in self._pool if worker.job is None), None)
        if worker is None:
            if len(self._pool) == self.workers:
                return False
            worker = self._hire()
        worker.job = job
        with suppress(OSError):  # it ended just now: `ended` will tell
            worker.pipe.send(job.config)
        return True

    def ended(self, timeout: float) -> list[tuple[Job, Outcome]]:
        """The jobs that ended by now; waits for one, but no longer than this."""
        busy = {worker.pipe: worker for worker in self._pool if worker.job is not None}
        if not busy:
            time.sleep(timeout)
        results = []
        for pipe in wait(list(busy), timeout) if busy else []:
            assert isinstance(pipe, Connection)
            worker = busy[pipe]
            assert worker.job is not None
            try:
                outcome = pipe.recv()
            except (EOFError, OSError):  # a reset, if it ended before it read its order
                self._dismiss(worker)
                outcome = Outcome("lost", f"its process ended with status {worker.process.exitcode}")
            results.append((worker.job, outcome))
            worker.job = None
        return results

    def stop(self) -> None:
        """Let running jobs save what they have, and end the processes."""
        for worker in self._pool:
            if worker.job is not None and worker.process.is_alive():
                worker.process.terminate()
            worker.pipe.close()  # no further orders
        deadline = time.monotonic() + PATIENCE_SECONDS
        for worker in self._pool:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
        self._pool = []

    def _dismiss(self, worker: _Worker) -> None:
        """Forget a process that has ended."""
        worker.process.join()
        worker.pipe.close()
        self._pool.remove(worker)

    def _hire(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        before = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = str(self._threads)  # read when the new process loads torch
        try:
            process = context.Process(target=_work, args=(there,), daemon=True)
            process.start()
        finally:
            if before is None:
                del os.environ["OMP_NUM_THREADS"]
            else:
                os.environ["OMP_NUM_THREADS"] = before
        there.close()
        worker = _Worker(process, here)
        self._pool.append(worker)
        return worker


def available_cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _work(orders: Connection) -> None:
    """What a worker does: a run for each configuration that comes, until none can come any more."""
    os.setsid()  # a terminal's Ctrl-C is for the driver, which then asks each worker once
    while True:
        try:
            config: TrainConfig = orders.recv()
        except (EOFError, OSError):
            return
        try:
            orders.send(do_job(config, fit_with_beacon))
        except BrokenPipeError:  # the driver has gone; the store has the result
            return


def fit_with_beacon(config: TrainConfig) -> object:
    """Train, and let others see how far it is."""
    from capsroute.sweeps.beacon import Beacon
    from capsroute.training import fit

    return fit(config, partial(Beacon, config.folder()))
