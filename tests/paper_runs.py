"""Plans and results of the paper's runs, made up: no net is trained."""

import json
import statistics

from capsroute.paper import plan as planning
from capsroute.paper.plan import make_plan
from capsroute.paper.profiles import PROFILES
from capsroute.sweeps.jobs import do_job
from capsroute.sweeps.records import Measured, Record

FLAT = [[step, -1e-3, 2e-3, 5e-2] for step in range(0, 60, 4)]


def record(accuracy, seed=0, state="ok", name="run", gradient=FLAT, **changes):
    """Of a run that ended with so many percent."""
    result = {
        "accuracy": accuracy / 100,
        "state": state,
        "seed": seed,
        "commit": {"id": "0123456789abcdef", "dirty": False},
        "versions": {"torch": "2.13.0"},
        "hardware": {"cpu": "a processor", "cores": 2, "gpus": []},
        "device": "cpu",
        "precision": "bf16",
        "epochs": 3,
        "evaluated_on": "the test split",
        "dataset": {"title": "Fashion-MNIST"},
    }
    return Record(name, {}, result | changes, [accuracy / 100], gradient)


def measured(*accuracies, state="ok"):
    """Of runs that differ in their seeds."""
    return Measured(tuple(record(accuracy, seed, state) for seed, accuracy in enumerate(accuracies)))


def around(mean, deviation=0.1):
    """Three runs with this mean and this deviation between them."""
    runs = (mean - deviation, mean, mean + deviation)
    assert abs(statistics.stdev(runs) - deviation) < 1e-9
    return measured(*runs)


def as_printed(cells):
    """Results that equal the printed numbers, three runs each."""
    return {cell.setting: around(cell.printed, 0.01) for cell in cells}


def fake_plan(monkeypatch, store, target="all", missing=(), seeds=3, profile="quick", finished=()):
    """The plan on a machine that has all the datasets but these."""
    monkeypatch.setattr(planning, "find_split", lambda info, root, split: info.name not in missing or None)
    return make_plan(target, PROFILES[profile], seeds, store, None, {}, {one.name for one in finished})


def records_for(plan, accuracy=lambda setting, seed: 50.0):
    """A record for each of its runs."""
    return [
        record(accuracy(run.setting, run.seed), run.seed, name=run.job.folder.name, gradient=falling(run))
        for run in plan.runs
    ]


def falling(run):
    """A gradient over training that differs between nets."""
    size = 10.0 ** -(run.setting.layers + 3 * (run.setting.routing == "dynamic"))
    return [[step, -size / (step + 1), 2 * size / (step + 1), 9 * size / (step + 1)] for step in range(150)]


class InstantEngine:
    """Does each run at once, as `fit(config)` says, which need not train anything."""

    def __init__(self, fit):
        self.fit, self.waiting, self.done = fit, [], []

    def start(self, job):
        if self.waiting:
            return False
        self.waiting.append(job)
        return True

    def ended(self, timeout):
        done = [(job, do_job(job.config, self.fit)) for job in self.waiting]
        self.done += [job.folder.name for job, _ in done]
        self.waiting = []
        return done

    def stop(self):
        self.waiting = []


def pretend_to_fit(config, accuracy=50.0):
    """Leave what a finished run leaves, but for its net."""
    folder = config.folder()
    folder.mkdir(parents=True, exist_ok=True)
    result = {**record(accuracy, config.seed).result, "config": config.to_json(), "wall_s": 1.0}
    (folder / "metrics.csv").write_text(f"epoch,accuracy\n1,{accuracy / 100}\n")
    rows = "".join(f"{step},1,-1e-3,2e-3,5e-2\n" for step in range(6))
    (folder / "steps.csv").write_text("step,loss,gradient_min,gradient_max,gradient_norm\n" + rows)
    (folder / "config.json").write_text(json.dumps(config.to_json()))
    (folder / "result.json").write_text(json.dumps(result))
