"""Signals through untrained nets, and what is foretold of them."""

import json
import subprocess

import pytest
import small_runs
import torch

from capsroute import CapsNet, load_dataset
from capsroute.depth_scan import scan
from capsroute.diagnosis import own_share
from capsroute.figures.depth_scan import draw_depth_scan
from capsroute.initialization import STARTS
from capsroute.routing import ROUTINGS


@pytest.fixture(scope="module")
def data():
    sample = load_dataset("sample")
    return sample.images[:64].float() / 255, sample.labels[:64]


def scans_of(depth, data):
    shape = dict(CapsNet.from_preset("small", capsules=(144, *[16] * (depth - 2), 10)).config)
    return {(one.init, one.routing): one for one in scan({k: v for k, v in shape.items() if k != "routing"}, {}, *data)}


def test_every_start_and_routing_is_scanned_layer_by_layer(data):
    scans = scans_of(3, data)
    assert list(scans) == [(init, routing) for init in STARTS for routing in ROUTINGS]
    assert all(len(one.reports) == 4 for one in scans.values())


def test_what_depth_does_is_foretold(data):
    scans = scans_of(12, data)
    assert "will not train (dead" in scans["normal", "dynamic"].sentence()
    assert "try --init length" in scans["normal", "adaptive-lambda"].sentence()
    assert "will train" in scans["length", "adaptive-lambda"].sentence()
    # Alive, with gradients and lengths as wanted, and yet of no use.
    assert "will hardly train (scattered" in scans["length", "dynamic"].sentence()
    assert "will train" in scans_of(2, data)["normal", "dynamic"].sentence()


def test_own_share_is_what_images_do_not_have_in_common():
    common, alone = torch.randn(1, 4, 8).expand(6, 4, 8), torch.randn(6, 4, 8)
    assert own_share(common) < 1e-6
    assert own_share(torch.zeros(6, 4, 8)) == 0
    assert own_share(1e-30 * (alone - alone.mean(0))) == pytest.approx(1, abs=1e-6)
    assert own_share(torch.cat([torch.ones(1, 1, 1), -torch.ones(1, 1, 1)]) + 1) == pytest.approx(0.5**0.5)


def test_the_figure_has_a_panel_for_each_start_and_signal(data):
    drawing = draw_depth_scan(list(scans_of(2, data).values()), "A test.")
    assert len(drawing.figure.axes) == 3 * len(STARTS)
    assert drawing.content("svg").startswith(b"<?xml")


def test_the_command_tells_and_draws(tmp_path):
    words = ["diagnose", "--depth-scan", "--capsules", 144, 16, 16, 16, 10, "--batch-size", 32, "--out", tmp_path]
    done = small_runs.run(words)
    assert done.returncode == 0, done.stderr
    assert "normal, dynamic: will not train (dead" in done.stdout
    assert (tmp_path / "depth-scan.png").stat().st_size > 10_000
    told = json.loads(small_runs.run([*words, "--json"]).stdout)
    assert len(told) == len(STARTS) * len(ROUTINGS)
    assert told[0]["layers"][0]["gradient_norm"] < 1e-10


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["diagnose"], "name a run"),
        (["diagnose", "--depth-scan", "--capsules", "144", "16", "7"], "must end in 10"),
        (["diagnose", "--depth-scan", "--capsules", "145", "10"], "primary capsules"),
    ],
)
def test_what_cannot_be_scanned_is_refused(words, message):
    done: subprocess.CompletedProcess[str] = small_runs.run(words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
