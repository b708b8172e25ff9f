"""`capsroute figures`: what a run of one's own looks like inside, drawn; and the numbers behind the figures."""

from itertools import pairwise

import pytest
import small_runs
import torch
from PIL import Image

from capsroute import TrainConfig, fit, load
from capsroute.cli import main
from capsroute.figures.architecture import blocks_of
from capsroute.figures.couplings import largest_couplings
from capsroute.figures.iterations import adaptive_steps, dynamic_steps
from capsroute.figures.saturation import lengths_by_iteration
from capsroute.models import parameter_count

NAMES = {"gradient", "architecture", "couplings", "iterations", "saturation"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    dataset = small_runs.write_dataset(folder)
    fit(TrainConfig(**small_runs.options(dataset, folder / "run", routing="dynamic", lr=0.003, epochs=4)))
    return folder / "run"


@pytest.fixture
def images():
    return torch.rand(5, 1, 20, 20)


def test_figures_of_a_run(run, tmp_path, capsys):
    assert main(["figures", str(run), "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    for name in NAMES:
        assert f"{name}.svg" in told
        drawn = (tmp_path / f"run/{name}.svg").read_text()
        assert drawn.startswith("<?xml")
        assert "\n<svg" in drawn
        with Image.open(tmp_path / f"run/{name}.png") as picture:
            assert min(picture.size) > 400
            assert len(picture.convert("RGB").getcolors(1 << 24)) > 20


def test_without_its_net_only_the_gradient_is_drawn(run, tmp_path, capsys):
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "result.json", "metrics.csv", "steps.csv"):
        (bare / name).write_bytes((run / name).read_bytes())
    assert main(["figures", str(bare), "--quiet"]) == 0
    drawn = {path.name: path.read_bytes() for path in (bare / "figures").iterdir()}
    assert drawn.keys() == {"gradient.svg", "gradient.png"}
    assert main(["figures", str(bare), "--quiet"]) == 0
    assert {path.name: path.read_bytes() for path in (bare / "figures").iterdir()} == drawn  # the same is the same file
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "name at least one run folder"),
        (["/nowhere"], "/nowhere: holds no finished run"),
        (["/nowhere", "--images", "0"], "images=0 must be a whole number"),
    ],
)
def test_mistakes_are_one_sentence(capsys, words, sentence):
    assert main(["figures", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_the_drawn_net_is_the_net(run):
    net = load(run)
    blocks = blocks_of(net)
    assert [block.name.split()[0] for block in blocks] == ["image", "features", "primary", "class"]
    assert sum(block.parameters for block in blocks) == parameter_count(net)
    assert blocks[-1].shape == "4 x 16-D"
    assert blocks[-1].how.startswith("dynamic")


def test_couplings_begin_even_and_fall_by_rank(run, images):
    largest = largest_couplings(load(run), images, torch.tensor([0, 1, 2, 3, 0]))
    assert largest.shape == (3, 5, 50)
    torch.testing.assert_close(largest[0], torch.full((5, 50), 1 / 4))
    assert (largest.diff(dim=2) <= 0).all()
    assert (largest[2] <= 1).all()


def test_lengths_by_iteration_are_those_of_algorithm_1(run, images):
    rows, factors = lengths_by_iteration(load(run), images, step=1.0)
    assert rows.shape == (5, 5 * 4)
    assert factors[0] == 1
    assert (rows.diff(dim=0) >= 0).all()
    assert all(later > earlier for earlier, later in pairwise(factors))


def test_iterations_in_the_plane_keep_their_lengths(run, images):
    """The result lies in the plane, being along the sum of the votes in every iteration of Algorithm 1."""
    net = load(run)
    for step in adaptive_steps(net, images[:1], 2, 1.0):
        assert step.v.norm().item() == pytest.approx(step.length, abs=1e-5)
        assert abs(step.v[1].item()) < 1e-5
    first, *_, last = dynamic_steps(net, images[:1], 2)
    torch.testing.assert_close(first.votes, last.votes)
    torch.testing.assert_close(first.weights, torch.ones(40))
