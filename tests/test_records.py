"""What runs leave behind, read back and put together, against numbers worked out by hand."""

import json
import math

import pytest
import small_runs
from paper_runs import measured, record

from capsroute import DataError, TrainConfig, fit
from capsroute.sweeps.records import Measured, envelope, load_records, read_run, read_store, save_records

HEADER = "step,loss,gradient_min,gradient_max,gradient_norm\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run of a second, in a store of its own."""
    store = tmp_path_factory.mktemp("store")
    options = small_runs.options(small_runs.write_dataset(store), store / "first", seed=4, lam="2")
    fit(TrainConfig(**options))
    return store / "first"


def test_mean_and_deviation_between_seeds():
    three = measured(70.0, 76.0, 79.0)
    assert three.count == 3
    assert three.mean == pytest.approx(75.0)
    assert three.std == pytest.approx(math.sqrt((25 + 1 + 16) / 2))  # of a sample: by n - 1
    assert three.text() == "75.00 ± 4.58 (n=3)"


def test_one_run_has_no_deviation():
    one = measured(78.414)
    assert math.isnan(one.std)
    assert one.text() == "78.41 (n=1)"


def test_states_name_what_went_wrong_once():
    runs = [record(90, 0), record(10, 1, "saturated"), record(10, 2, "collapsed"), record(10, 3, "collapsed")]
    assert Measured(tuple(runs)).states == ["collapsed", "saturated"]
    assert measured(90, 91).states == []


def test_a_finished_run_is_read_back(finished):
    one = read_run(finished)
    result = json.loads((finished / "result.json").read_text())
    assert one.name == "first"
    assert (one.seed, one.state) == (4, result["state"])
    assert one.accuracy == 100 * result["accuracy"]
    assert one.config["lam"] == "2"
    assert one.config["epochs"] == 3
    assert "out" not in one.config
    assert "lr" not in one.config  # at its default
    assert len(one.accuracy_by_epoch) == 3
    assert one.accuracy_by_epoch[-1] == result["accuracy"]
    assert [row[0] for row in one.gradient] == [*range(18)]


def test_a_store_has_the_finished_runs_by_name(finished):
    for name in ("second", "broken off"):
        (finished.parent / name).mkdir(exist_ok=True)
    for file in ("result.json", "metrics.csv", "steps.csv"):
        (finished.parent / "second" / file).write_bytes((finished / file).read_bytes())
    assert [one.name for one in read_store(finished.parent)] == ["first", "second"]
    assert read_run(finished.parent / "broken off") is None


def test_records_in_one_file_are_those_of_the_store(finished, tmp_path):
    kept = read_store(finished.parent)
    save_records(tmp_path / "new/folder/kept.jsonl", kept)
    assert load_records(tmp_path / "new/folder/kept.jsonl") == kept == load_records(finished.parent)
    save_records(tmp_path / "none.jsonl", [])
    assert load_records(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize("content", [None, "no JSON\n", '{"name": "one"}\n', "[1, 2]\n", '"text"\n', b"\xff\xfe\n"])
def test_a_file_that_holds_no_records_is_refused(tmp_path, content):
    path = tmp_path / "kept.jsonl"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=r"kept\.jsonl: holds no records of runs"):
        load_records(path)


def test_envelope_by_hand(tmp_path):
    """Five steps in stretches of two: first step, smallest and largest entry, largest norm."""
    rows = ["0,1,-1,2,3", "1,1,-4,1,2", "2,1,-2,5,6", "3,1,-3,4,9", "4,1,-0.5,0.5,1"]
    (tmp_path / "steps.csv").write_text(HEADER + "\n".join(rows) + "\n")
    assert envelope(tmp_path / "steps.csv", points=3) == [[0, -4, 2, 3], [2, -3, 5, 9], [4, -0.5, 0.5, 1]]
    assert envelope(tmp_path / "steps.csv", points=5)[1] == [1, -4, 1, 2]
    assert len(envelope(tmp_path / "steps.csv")) == 5


@pytest.mark.parametrize("steps", [1, 149, 150, 151, 1000])
def test_an_envelope_has_no_more_points_than_asked_for(tmp_path, steps):
    rows = [f"{step},1,{-step},{step},{step}" for step in range(steps)]
    (tmp_path / "steps.csv").write_text(HEADER + "\n".join(rows) + "\n")
    points = envelope(tmp_path / "steps.csv", 150)
    assert len(points) <= 150
    assert points[0][0] == 0
    assert max(point[2] for point in points) == steps - 1


def test_no_steps_no_envelope(tmp_path):
    assert envelope(tmp_path / "steps.csv") == []
    (tmp_path / "steps.csv").write_text(HEADER)
    assert envelope(tmp_path / "steps.csv") == []
