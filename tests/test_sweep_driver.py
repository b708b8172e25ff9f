"""Sweeps: which runs are started, tried again, waited for or left alone; with an engine that only pretends, and for
real on a small dataset."""

import csv
import json
import os
import signal
import time

import pytest
import small_runs

from capsroute import DataError, InputError
from capsroute.checkpoint import CheckpointError
from capsroute.cli import main
from capsroute.errors import BusyRunError, InterruptedRunError, InterruptedSweepError
from capsroute.sweeps import driver
from capsroute.sweeps.driver import run_sweep
from capsroute.sweeps.jobs import Outcome, do_job, make_job
from capsroute.sweeps.local import LocalEngine

FINISHED = Outcome("finished")


class FakeEngine:
    """Ends each job at once, as the script says for its title: an outcome, or a call that gives one."""

    def __init__(self, places=2, **script):
        self.places, self.script = places, {name: list(outcomes) for name, outcomes in script.items()}
        self.running, self.started, self.stopped = [], [], 0

    def start(self, job):
        if len(self.running) == self.places:
            return False
        self.running.append(job)
        self.started.append(job.title)
        return True

    def ended(self, timeout):
        if not self.running:
            time.sleep(timeout)
            return []
        job = self.running.pop(0)
        outcomes = self.script.get(job.title, [])
        outcome = outcomes.pop(0) if outcomes else FINISHED
        outcome = outcome() if callable(outcome) else outcome
        if outcome.kind == "finished":
            finish(job)
        return [(job, outcome)]

    def stop(self):
        self.stopped += 1


def finish(job):
    job.folder.mkdir(parents=True, exist_ok=True)
    (job.folder / "result.json").write_text("{}")


@pytest.fixture
def jobs(tmp_path):
    return [
        make_job(tmp_path, title, title, {"dataset": "sample", "seed": number}) for number, title in enumerate("abc")
    ]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(driver, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(driver, "BUSY_SECONDS", 0.05)


def sweep(jobs, engine, watch=lambda state: None):
    state = run_sweep(jobs, engine, watch, "capsroute sweep --again")
    assert engine.stopped == 1
    return state


def test_every_job_is_done_once_in_order(jobs):
    engine = FakeEngine()
    counts = []
    state = sweep(jobs, engine, lambda state: counts.append((len(state.running), state.done)))
    assert engine.started == ["a", "b", "c"]
    assert state.finished == jobs
    assert (state.done, state.failed, state.notices) == (3, [], [])
    assert max(running for running, _ in counts) == 2  # as many as there are places
    assert counts[-1] == (0, 3)


def test_finished_jobs_are_not_started(jobs):
    finish(jobs[0])
    finish(jobs[2])
    engine = FakeEngine()
    state = sweep(jobs, engine)
    assert engine.started == ["b"]
    assert (state.done_before, state.done) == (2, 3)


def test_a_failed_job_is_tried_once_more_after_the_others(jobs):
    engine = FakeEngine(a=[Outcome("failed", "the disk is full")])
    state = sweep(jobs, engine)
    assert sorted(engine.started) == ["a", "a", "b", "c"]
    assert state.notices == ["a: the disk is full; trying once more"]
    assert state.failed == []
    assert state.done == 3


def test_a_job_that_fails_twice_is_told_of_and_the_rest_goes_on(jobs):
    engine = FakeEngine(places=1, a=[Outcome("failed", "first"), Outcome("lost", "second")])
    state = sweep(jobs, engine)
    assert engine.started == ["a", "b", "c", "a"]
    assert state.failed == [(jobs[0], "second")]
    assert state.finished == jobs[1:]


def test_a_failure_that_would_be_the_same_is_not_tried_again(jobs):
    engine = FakeEngine(b=[Outcome("failed", "no such data", final=True)])
    state = sweep(jobs, engine)
    assert engine.started == ["a", "b", "c"]
    assert state.failed == [(jobs[1], "no such data")]


def test_a_lost_process_counts_as_a_failure(jobs):
    lost = Outcome("lost", "its process ended with status -9")
    state = sweep(jobs, FakeEngine(c=[lost, lost]))
    assert state.failed == [(jobs[2], "its process ended with status -9")]


def test_a_busy_run_is_asked_for_again_however_often(jobs):
    """Another driver has it: that is no failure."""
    busy = Outcome("busy", "in use")
    began = time.monotonic()
    engine = FakeEngine(a=[busy] * 4)
    state = sweep(jobs, engine)
    assert engine.started.count("a") == 5
    assert time.monotonic() - began > 4 * 0.05
    assert (state.failed, state.notices, state.done) == ([], [], 3)


def test_a_run_that_another_driver_finished_is_left_alone(jobs):
    def meanwhile():
        finish(jobs[0])
        finish(jobs[2])
        return Outcome("busy", "in use")

    engine = FakeEngine(places=1, a=[meanwhile])
    state = sweep(jobs, engine)
    assert engine.started == ["a", "b"]
    assert state.done == 3
    assert state.finished == [jobs[1]]


def test_an_interrupted_run_goes_on_next(jobs):
    """Somebody stopped its process and not the sweep: no failure, and before the others, since it has begun."""
    stopped = Outcome("interrupted", "saved")
    engine = FakeEngine(places=1, a=[stopped, stopped, stopped])
    state = sweep(jobs, engine)
    assert engine.started == ["a", "a", "a", "a", "b", "c"]
    assert state.done == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_engine_and_says_how_to_go_on(jobs, number):
    def caught():
        os.kill(os.getpid(), number)
        return FINISHED

    engine = FakeEngine(places=1, b=[caught])
    with pytest.raises(InterruptedSweepError, match="every run saved; go on with: capsroute sweep --again") as error:
        sweep(jobs, engine)
    assert error.value.exit_code == 128 + number
    assert engine.stopped == 1
    assert engine.started == ["a", "b"]


def test_the_engine_is_stopped_whatever_happens(jobs):
    engine = FakeEngine(a=[lambda: 1 / 0])
    with pytest.raises(ZeroDivisionError):
        sweep(jobs, engine)
    assert engine.stopped == 1


@pytest.mark.parametrize(
    ("error", "kind", "final"),
    [
        (None, "finished", False),
        (InterruptedRunError(signal.SIGTERM, "run"), "interrupted", False),
        (BusyRunError("in use"), "busy", False),
        (InputError("no such option"), "failed", True),
        (DataError("no such data"), "failed", True),
        (CheckpointError("the disk is full"), "failed", False),
        (ValueError("a defect"), "failed", False),
    ],
)
def test_however_a_run_ends_is_an_outcome(jobs, error, kind, final):
    seen = []

    def fit(config):
        seen.append(config.resume)
        if error:
            raise error

    config = jobs[0].config
    config.folder().mkdir()
    assert (outcome := do_job(config, fit)).kind == kind
    assert outcome.final == final
    assert str(error or "") in outcome.message
    (config.folder() / "config.json").write_text("{}")
    do_job(config, fit)
    assert seen == [False, True]  # a run that has begun is gone on with
    if isinstance(error, ValueError) and kind == "failed" and not final:
        assert "Traceback" in (config.folder() / "train.log").read_text()


@pytest.fixture
def small_jobs(tmp_path):
    """Runs of a second each, to be done by real processes."""
    dataset = small_runs.write_dataset(tmp_path)
    options = {name: value for name, value in small_runs.options(dataset, None).items() if name not in ("out", "quiet")}
    return [make_job(tmp_path / "store", "run", "run", {**options, "seed": seed}) for seed in range(2)]


def wait_for_one(engine, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ended := engine.ended(0.1):
            return ended
    raise AssertionError("nothing ended")


def test_a_process_that_dies_before_it_reads_its_order_is_lost(small_jobs):
    engine = LocalEngine(1)
    try:
        assert engine.start(small_jobs[0])
        assert not engine.start(small_jobs[1])
        os.kill(engine._pool[0].process.pid, signal.SIGKILL)
        assert wait_for_one(engine) == [(small_jobs[0], Outcome("lost", "its process ended with status -9"))]
    finally:
        engine.stop()


def test_a_process_that_dies_idle_is_replaced(small_jobs):
    engine = LocalEngine(1)
    try:
        idle = engine._hire()
        os.kill(idle.process.pid, signal.SIGKILL)
        idle.process.join()
        assert engine.start(small_jobs[0])
        (successor,) = engine._pool
        assert successor.process.is_alive()
        assert successor.job == small_jobs[0]
    finally:
        engine.stop()


def grid_words(tmp_path, *further):
    options = small_runs.options(small_runs.write_dataset(tmp_path), None, epochs=1)
    told = [f"{name}={value}" for name, value in options.items() if name not in ("out", "quiet")]
    return ["sweep", "--store", str(tmp_path / "store"), *map(str, further), "--grid", *told]


def test_sweep_from_the_command_line(tmp_path, capsys):
    store = tmp_path / "store"
    words = [*grid_words(tmp_path, "--seeds", "2", "--jobs", "2", "--records", tmp_path / "kept.jsonl"), "lam=1,2"]
    assert main([*words[:1], "--plan", *words[1:]]) == 0
    assert capsys.readouterr().out.count("to do") == 4
    assert not store.exists()

    done = small_runs.run(words)
    assert done.returncode == 0, done.stderr
    assert "4 runs, 0 done" in done.stdout
    assert "[4/4] lam=" in done.stdout
    results = {path: path.stat().st_mtime_ns for path in store.glob("*/result.json")}
    assert len(results) == 4
    accuracies = {}
    for path in results:
        result = json.loads(path.read_text())
        accuracies.setdefault(result["config"]["lam"], []).append(100 * result["accuracy"])
    with (store / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["lam"], row["runs"]) for row in rows] == [("1", "2"), ("2", "2")]
    for row in rows:
        assert float(row["accuracy"]) == pytest.approx(sum(accuracies[row["lam"]]) / 2, abs=1e-3)
        assert set(row) == {"lam", "accuracy", "std", "runs", "states"}
    assert len((tmp_path / "kept.jsonl").read_text().splitlines()) == 4
    assert not list(store.glob("*/progress.json"))

    assert main(words) == 0
    assert "4 runs, 4 done" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in store.glob("*/result.json")} == results


def test_runs_of_a_sweep_that_fail_are_told_of_and_exit_2(tmp_path, capsys):
    """A λ that is none fails for good; the other run is done and summed up."""
    assert main([*grid_words(tmp_path), "lam=1,none-such"]) == 2
    told = capsys.readouterr()
    assert "1 runs failed, the summary has the rest; the first, lam=none-such, seed 0: " in told.err
    assert told.err.count("\n") == 1
    assert "failed: lam=none-such: " in told.out
    assert len((tmp_path / "store/summary.csv").read_text().splitlines()) == 2
    assert len(list(tmp_path.glob("store/*/result.json"))) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "--grid names the options to go over"),
        (["--grid", "lamb=1"], "a training run has no option 'lamb'; did you mean 'lam'?"),
        (["--jobs", "0", "--grid", "lam=1"], "jobs=0 must be a whole number of at least 1"),
        (["--jobs", "1000", "--grid", "lam=1"], "--jobs 1000 is more than four for each of this machine's"),
        (["--seeds", "0", "--grid", "lam=1"], "seeds=0 must be a whole number of at least 1"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path, capsys, words, sentence):
    assert main(["sweep", "--store", str(tmp_path / "store"), *words]) == 2
    told = capsys.readouterr()
    assert sentence in told.err
    assert told.err.count("\n") == 1
