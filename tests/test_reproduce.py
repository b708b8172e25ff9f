"""`capsroute reproduce`: the whole paper in miniature, killed on the way; and what it says when things are missing."""

import csv
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import mini_reproduce
import pytest
import small_runs
from paper_runs import InstantEngine, pretend_to_fit, record

from capsroute.cli import main
from capsroute.commands.engines import EngineOptions
from capsroute.paper import estimate
from capsroute.paper import plan as planning
from capsroute.paper import run as running
from capsroute.paper.plan import dra
from capsroute.sweeps.records import read_store, save_records

HERE = pathlib.Path(__file__).parent


class Miniature:
    """A store, generated datasets, and the command on them as a user would start it again and again."""

    def __init__(self, folder):
        self.folder, self.store = folder, folder / "store/mini"
        writer = self.start("write", "data")
        _, errors = writer.communicate()
        assert writer.returncode == 0, errors

    def environment(self):
        paths = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
        places = {"HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache"), "CAPSROUTE_OFFLINE": "1"}
        return small_runs.environment(PYTHONPATH=paths, CAPSROUTE_DATA=str(self.folder / "data"), **places)

    def start(self, *words):
        return subprocess.Popen(
            [sys.executable, str(HERE / "mini_reproduce.py"), *words],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def reproduce(self, *further):
        words = ("all", "--profile", "mini", "--jobs", "2", "--store", "store", "--precision", "fp32")
        return self.start(*words, *further)

    def results(self):
        """When each result was written."""
        return {path.parent.name: path.stat().st_mtime_ns for path in self.store.glob("*/result.json")}

    def wait_for_results(self, process, count, seconds=100):
        end = time.monotonic() + seconds
        while len(self.results()) < count:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end, f"{len(self.results())} results of {count}"
            time.sleep(0.02)


def test_the_whole_paper_in_miniature_killed_twice(tmp_path):
    mini = Miniature(tmp_path)
    first = mini.reproduce("--quiet")
    mini.wait_for_results(first, 4)
    first.kill()
    first.communicate()
    before = mini.results()
    assert 4 <= len(before) < 43

    second = mini.reproduce("--quiet")
    mini.wait_for_results(second, len(before) + 8)
    second.send_signal(signal.SIGTERM)
    output, errors = second.communicate(timeout=60)
    assert second.returncode == 128 + signal.SIGTERM, errors
    assert output == ""
    assert errors.startswith("capsroute: stopped, every run saved; go on with: mini_reproduce.py all --profile mini")
    assert errors.count("\n") == 1
    middle = mini.results()
    assert before.items() <= middle.items()  # untouched
    assert len(before) + 8 <= len(middle) < 43

    third = mini.reproduce()
    output, errors = third.communicate(timeout=120)
    assert third.returncode == 0, errors
    assert errors == ""
    after = mini.results()
    assert middle.items() <= after.items()
    assert len(after) == 43
    assert f"all: 43 runs, {len(middle)} done; mini profile: 60 training images" in output
    assert re.search(r"about \d+ minutes, by a measured step of each net", output)
    assert f"report: {pathlib.Path('store/mini/report-all/report.html')}" in output
    # Nothing but the runs is left, and none of them half done.
    folders = {path.name for path in mini.store.iterdir() if path.is_dir()}
    assert folders == {*after, "report-all"}
    assert {len(record.accuracy_by_epoch) for record in read_store(mini.store)} == {2}
    assert not list(mini.store.glob("*/progress.json"))
    assert not list(mini.store.glob("*/*.writing"))
    _check_report(mini.store / "report-all")


def _check_report(folder):
    filled = {}
    for number in (1, 2, 3, 4):
        with (folder / f"table{number}.csv").open() as file:
            filled[number] = list(csv.DictReader(file))
        for ending in ("md", "tex"):
            text = (folder / f"table{number}.{ending}").read_text()
            assert "mini profile: 60 training images, 2 epochs".capitalize() in text
    rows = [row for table in filled.values() for row in table]
    assert len(rows) == 44
    assert all(row["runs"] == "1" and 0 <= float(row["accuracy"]) <= 100 for row in rows)
    shared = [row["accuracy"] for row in filled[1] if (row["row"], row["column"]) == ("ARA", "F-MNIST")]
    shared += [row["accuracy"] for row in filled[2] if (row["row"], row["column"]) == ("2 layers", "λ=3")]
    assert shared[0] == shared[1]  # one run for both
    figures = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert figures == {path.stem for path in (folder / "figures").glob("*.png")}
    assert figures == {
        "architecture-2",
        "architecture-4",
        "couplings",
        "iterations",
        "gradients-dynamic",
        "gradients-adaptive",
        "saturation",
        "accuracy",
    }
    page, text = (folder / "report.html").read_text(), (folder / "report.md").read_text()
    for report in (page, text):
        assert "capsroute reproduce all --profile mini --seeds 1" in report
        assert "no finished run" not in report
    assert page.count("<img ") == len(figures)
    assert "[1152, 10]" not in text.split("## Accuracy against")[0]  # captions tell the real nets


@pytest.fixture
def world(monkeypatch, tmp_path):
    """All the datasets by name, an engine that leaves made-up results, and no figures."""
    monkeypatch.setattr(planning, "find_split", lambda info, root, split: True)
    monkeypatch.setattr(estimate, "measure_step", lambda config: 0.5)
    monkeypatch.setattr(running, "draw_all", lambda plan, results: iter(()))
    return Pretended(monkeypatch, tmp_path)


class Pretended:
    def __init__(self, monkeypatch, folder):
        self.monkeypatch, self.folder = monkeypatch, folder
        self.use(pretend_to_fit)

    def use(self, fit):
        self.engine = InstantEngine(fit)
        self.monkeypatch.setattr(EngineOptions, "make_engine", lambda options: self.engine)

    def reproduce(self, *words):
        return main(["reproduce", *words, "--store", str(self.folder / "store")])

    def report(self, target, name, profile="quick"):
        return (self.folder / f"store/{profile}/report-{target}" / name).read_text()


def test_plan_only_tells(world, capsys):
    assert world.reproduce("table1", "--plan") == 0
    told = capsys.readouterr().out
    assert told.startswith("table1: 8 runs, 0 done; quick profile: ")
    assert told.count(": to do, ") == 8
    # Two runs on each dataset: 3 epochs of 6,000 images, and 0.35 of a test split each epoch, 0.5 s for 128 images.
    tests = 10_000 + 26_032 + 10_000 + 10_000
    seconds = 2 * (4 * 3 * 6_000 + 0.35 * 3 * tests) / 128 * 0.5
    assert f"about {seconds / 60:.0f} minutes" in told
    assert not (world.folder / "store").exists()


def test_missing_data_is_named_with_how_to_get_it(world, monkeypatch, capsys):
    monkeypatch.setattr(planning, "find_split", lambda info, root, split: info.name != "svhn" or None)
    assert world.reproduce("table1") == 0
    way = "capsroute data fetch svhn, or --data-dir FOLDER where it is"
    told = capsys.readouterr().out
    assert f"svhn is not on this machine, its cells without a finished run stay empty; get it: {way}" in told
    assert "table1: 6 runs" in told
    assert len(world.engine.done) == 6
    assert f"no data: {way}" in world.report("table1", "report.html")
    assert f"no data: {way}" in world.report("table1", "report.md")
    assert world.report("table1", "table1.csv").count(f'"no data: {way}"') == 2
    monkeypatch.setattr(planning, "find_split", lambda info, root, split: None)
    assert world.reproduce("table4") == 2
    error = capsys.readouterr().err
    assert error.startswith("capsroute: none of the datasets is on this machine; capsroute data fetch cifar10")
    assert error.count("\n") == 1


def test_finished_runs_are_skipped_and_further_seeds_added(world, capsys):
    assert world.reproduce("table2") == 0
    assert len(world.engine.done) == 12
    assert world.reproduce("table2") == 0
    assert len(world.engine.done) == 12
    assert world.reproduce("table1") == 0  # shares a cell with table 2
    assert len(world.engine.done) == 12 + 7
    assert world.reproduce("table2", "--seeds", "2", "--quiet") == 0
    assert len(world.engine.done) == 12 + 7 + 12
    assert "50.00 ± 0.00 (n=2)" in world.report("table2", "table2.md")
    capsys.readouterr()


def test_runs_finished_elsewhere_are_not_done_again(world, tmp_path, capsys):
    assert world.reproduce("table1", "--quiet", "--archive", str(tmp_path / "kept.jsonl")) == 0
    kept = read_store(world.folder / "store/quick")
    assert len((tmp_path / "kept.jsonl").read_text().splitlines()) == len(kept) == 8
    some = [one for one in kept if "dynamic" in one.name]
    save_records(tmp_path / "some.jsonl", [*some, record(99.0, name="another-run")])

    here = Pretended(world.monkeypatch, tmp_path / "elsewhere")
    assert here.reproduce("table1", "--records", str(tmp_path / "some.jsonl")) == 0
    assert "table1: 8 runs, 4 done" in capsys.readouterr().out
    assert len(here.engine.done) == 4
    assert all("adaptive" in name for name in here.engine.done)
    assert here.report("table1", "table1.csv").count("50.0000,,1") == 8

    report = Pretended(world.monkeypatch, tmp_path / "report")
    assert report.reproduce("table1", "--report-only", "--records", str(tmp_path / "kept.jsonl")) == 0
    assert report.engine.done == []
    assert report.report("table1", "table1.csv") == here.report("table1", "table1.csv")
    assert report.reproduce("table1", "--records", str(tmp_path / "nothing.jsonl")) == 2
    assert "nothing.jsonl: holds no records of runs" in capsys.readouterr().err


def test_failed_runs_are_tried_once_more_and_told_of_while_the_rest_goes_on(world, capsys):
    def fit(config):
        if config.routing == "dynamic" and config.dataset == "mnist":
            raise MemoryError("no room")
        if config.routing == "dynamic" and config.dataset == "svhn" and len(world.engine.done) < 6:
            raise MemoryError("no room yet")
        pretend_to_fit(config)

    world.use(fit)
    assert world.reproduce("table1") == 2
    told = capsys.readouterr()
    assert len(world.engine.done) == 10  # two of the eight twice
    assert told.out.count("trying once more") == 2
    sentence = "mnist, 2 layers, DRA, seed 0: MemoryError: no room; see "
    assert told.err.startswith(f"capsroute: 1 runs failed, the report has the rest: {sentence}")
    assert told.err.count("\n") == 1
    assert "Failed runs" in world.report("table1", "report.html")
    assert f"- {sentence}" in world.report("table1", "report.md")
    assert world.report("table1", "table1.csv").count("50.0000,,1") == 7
    assert "Traceback" in next(world.folder.glob("store/quick/mnist-2layers-dynamic*/train.log")).read_text()

    world.use(pretend_to_fit)
    assert world.reproduce("table1") == 0
    assert len(world.engine.done) == 1
    assert "Failed runs" not in world.report("table1", "report.html")


def test_ctrl_c_before_the_first_run_is_no_traceback(world, monkeypatch, capsys):
    """Once runs are under way, they are saved first; here a step is being measured."""

    def interrupted(config):
        raise KeyboardInterrupt

    monkeypatch.setattr(estimate, "measure_step", interrupted)
    assert world.reproduce("table1") == 128 + signal.SIGINT
    assert capsys.readouterr().err == "capsroute: stopped\n"


def test_the_sample_stands_in_where_there_is_nothing(world, monkeypatch, capsys):
    monkeypatch.setattr(planning, "find_split", lambda info, root, split: info.name == "sample" or None)
    assert world.reproduce("glance") == 0
    told = capsys.readouterr().out
    assert "fashion-mnist is not on this machine: its sample, inside the package, stands in" in told
    assert "the sample of Fashion-MNIST, 6,000 training and 1,000 test images, stands in for fashion-mnist" in told
    assert f"sample, {dra(3).layers} layers, DRA" in told
    assert all(name.startswith("sample-") for name in world.engine.done)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["table1", "--seeds", "0"], "seeds=0 must be a whole number of at least 1"),
        (["table1", "--records", "/nowhere"], "/nowhere: holds no records of runs"),
    ],
)
def test_mistakes_are_one_sentence(world, capsys, words, sentence):
    assert world.reproduce(*words) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_the_miniature_has_the_papers_layers():
    """So that it goes through the same code: as many layers of capsules, and classes last."""
    for preset, capsules in mini_reproduce.CAPSULES.items():
        assert len(capsules) == int(preset[-1])
        assert capsules[-1] == 10
