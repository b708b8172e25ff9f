"""A sweep from its first run to its last: what is done is skipped, what broke off goes on, what failed is retried."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from capsroute.errors import InterruptedSweepError
from capsroute.settings import noted_signals
from capsroute.sweeps.jobs import Job, Outcome

POLL_SECONDS = 0.25
BUSY_SECONDS = 3.0  # before a run that another process holds is asked for again
ATTEMPTS = 2


@runtime_checkable
class Engine(Protocol):
    """Where runs are done."""

    def start(self, job: Job) -> bool:
        """Take the job, if there is a place."""

    def ended(self, timeout: float) -> list[tuple[Job, Outcome]]:
        """The jobs that ended by now; waits for one, but no longer than this."""

    def stop(self) -> None:
        """Let running jobs save what they have, and end."""


@dataclass
class SweepState:
    """Which jobs are where, for those who show it."""

    jobs: list[Job]
    done_before: int = 0
    running: list[Job] = field(default_factory=list)
    finished: list[Job] = field(default_factory=list)  # here and now
    failed: list[tuple[Job, str]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def done(self) -> int:
        """Jobs that have their result."""
        return self.done_before + len(self.finished)


Watcher = Callable[[SweepState], None]


def run_sweep(jobs: list[Job], engine: Engine, watch: Watcher, command: str) -> SweepState:
    """Do the jobs, calling `watch` a few times a second; `command` is what goes on with them if they are stopped."""
    waiting = deque(job for job in jobs if not job.done)
    state = SweepState(jobs, done_before=len(jobs) - len(waiting))
    attempts: dict[Job, int] = dict.fromkeys(jobs, 0)
    not_before: dict[Job, float] = {}
    with noted_signals() as caught:
        try:
            while waiting or state.running:
                _start_some(waiting, engine, state, not_before)
                watch(state)
                for job, outcome in engine.ended(POLL_SECONDS):
                    state.running.remove(job)
                    if outcome.kind == "finished":
                        state.finished.append(job)
                    elif outcome.kind == "busy":
                        not_before[job] = time.monotonic() + BUSY_SECONDS
                        waiting.append(job)
                    elif outcome.kind == "interrupted" and not caught:
                        waiting.appendleft(job)  # somebody stopped its process, and not this sweep
                    else:
                        attempts[job] += 1
                        if outcome.final or attempts[job] == ATTEMPTS:
                            state.failed.append((job, outcome.message))
                        else:
                            state.notices.append(f"{job.title}: {outcome.message}; trying once more")
                            waiting.append(job)
                if caught:
                    raise InterruptedSweepError(caught[0], command)
            watch(state)
        finally:
            engine.stop()
    return state


def _start_some(waiting: deque[Job], engine: Engine, state: SweepState, not_before: dict[Job, float]) -> None:
    for _ in range(len(waiting)):
        job = waiting.popleft()
        if job.done:  # by another driver on the same store
            state.done_before += 1
        elif not_before.get(job, 0.0) > time.monotonic():
            waiting.append(job)
        elif engine.start(job):
            state.running.append(job)
        else:
            waiting.appendleft(job)
            return
