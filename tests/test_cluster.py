"""A Ray cluster of two nodes on this machine, one of which is killed in the middle of a grid."""

import json
import os
import pathlib

import pytest
import small_runs

from capsroute import InputError
from capsroute.sweeps.driver import run_sweep
from capsroute.sweeps.jobs import make_job

ray = pytest.importorskip("ray", reason="ray is not installed: pip install -c constraints.txt 'ray[default]'")

ROOT = pathlib.Path(__file__).parents[1]
QUIET = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
EPOCHS = 40  # long enough for a node to die in the middle of a run


@pytest.fixture
def cluster(monkeypatch):
    """A head and a second node, a run each at once; their processes see this source tree."""
    from ray.cluster_utils import Cluster

    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))
    node = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 << 20, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=node)
    made.second = made.add_node(num_cpus=1, num_gpus=0, object_store_memory=80 << 20)
    yield made
    if ray.is_initialized():
        ray.shutdown()
    made.shutdown()


def make_jobs(folder, count):
    """With a store and a dataset whose paths begin where the driver runs, and not where the cluster was started."""
    dataset = small_runs.write_dataset(folder).relative_to(folder)
    options = small_runs.options(dataset, None, epochs=EPOCHS, keep="result", checkpoint_every="0.002m")
    del options["out"], options["quiet"]
    return [make_job(pathlib.Path("store"), "run", "run", {**options, "seed": seed}) for seed in range(count)]


def test_every_run_ends_once_though_a_node_dies(cluster, tmp_path, monkeypatch):
    from capsroute.sweeps.cluster import RayEngine

    monkeypatch.chdir(tmp_path)
    jobs = make_jobs(tmp_path, 5)
    seen = {"killed": False, "results": {}, "at_once": 0}

    def watch(state):
        """Kill the second node once something is done and something is under way."""
        under_way = [job for job in jobs if (job.folder / "last.ckpt").exists() and not job.done]
        seen["at_once"] = max(seen["at_once"], len(under_way))
        if not seen["killed"] and any(job.done for job in jobs) and len(under_way) == 2:
            seen["results"] = {job: (job.folder / "result.json").stat().st_mtime_ns for job in jobs if job.done}
            cluster.remove_node(cluster.second, allow_graceful=False)
            seen["killed"] = True

    state = run_sweep(jobs, RayEngine(cluster.address, cpus=1, gpus=0, most=5), watch, "again")
    assert seen["killed"]
    assert seen["at_once"] == 2  # both nodes were at work
    assert state.failed == []
    assert sorted(job.config.seed for job in state.finished) == [*range(5)]
    assert state.done == 5
    for job, written in seen["results"].items():
        assert (job.folder / "result.json").stat().st_mtime_ns == written
    for job in jobs:
        rows = (job.folder / "metrics.csv").read_text().splitlines()
        assert [row.split(",")[0] for row in rows[1:]] == [str(epoch + 1) for epoch in range(EPOCHS)]
        assert json.loads((job.folder / "result.json").read_text())["seed"] == job.config.seed
    # The run that the dead node had went on from its checkpoint, and the others were done in one sitting.
    sittings = [len(json.loads((job.folder / "result.json").read_text())["earlier_commits"]) for job in jobs]
    assert sum(sittings) == 1


def test_an_address_without_a_cluster_is_one_sentence(monkeypatch):
    from capsroute.sweeps.cluster import RayEngine

    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="--address auto: no Ray cluster answers there") as error:
        RayEngine("auto", 1, 0, 1)
    assert "\n" not in str(error.value)
