"""What the explorer computes, without its page; `test_explorer_page.py` has that."""

import base64
import io
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from small_runs import COMMAND, options, write_dataset

from capsroute import ROUTINGS, CapsNet, lengths, load_dataset
from capsroute.commands.explore import Explore
from capsroute.config import TrainConfig
from capsroute.errors import DataError, InputError
from capsroute.explorer import drawing, guard, opening, views
from capsroute.explorer.dimensions import OFFSETS, dimension_grid, reconstruct
from capsroute.explorer.evidence import by_place, evidence_of, places_of
from capsroute.explorer.pictures import MOST_BYTES, image_url, read_picture
from capsroute.explorer.plane import plane_steps
from capsroute.explorer.rerouting import AS_TRAINED, KNOBS, fitting_routings, knob_start, knobs_of, make_routings, route
from capsroute.explorer.server import require_gradio
from capsroute.explorer.training import PageTraining, recipe, untrained_exhibit
from capsroute.models import Decoder

SHAPE = {"in_shape": (1, 20, 20), "stem_channels": 8, "primary_groups": 2, "primary_stride": 2}
STACKS = {"two layers": (None, 5), "three layers": (None, 6, 5)}


def make_net(routing="adaptive-lambda", capsules=(None, 5), **changes):
    net = CapsNet(**SHAPE, capsules=capsules, routing=routing, **changes).eval()
    for layer in net.layers:
        layer.weight.data *= 30  # as long as in a trained net
    return net


@pytest.fixture
def images():
    return torch.rand(1, 1, 20, 20)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", ROUTINGS)
def test_rerouting_is_the_net_with_that_routing(name, stack, images):
    net = make_net(capsules=STACKS[stack], residual=True, lam=3)
    values = {"iterations": 2, "lam": 0.7, "step": 0.05}
    own = {option: values[option] for option in knobs_of(name)}
    other = make_net(name, STACKS[stack], residual=True, **own)
    other.load_state_dict(net.state_dict())
    for same, chosen in ((other, make_routings(net, name, values)), (net, make_routings(net, AS_TRAINED, values))):
        passes = route(net, images, chosen)
        assert len(passes) == len(net.layers)
        torch.testing.assert_close(passes[-1].v, same(images).detach(), rtol=1e-6, atol=1e-7)


def test_sliders_are_those_that_a_routing_has_and_start_at_the_nets_own_values():
    net = make_net(lam=3)
    assert fitting_routings(net) == list(ROUTINGS)
    assert list(knobs_of("adaptive-lambda")) == ["lam"]
    assert list(knobs_of("adaptive")) == ["iterations", "step"]
    assert knobs_of(AS_TRAINED) == {}
    assert knob_start(net, "lam") == 3
    assert knob_start(net, "iterations") == 3  # the routing's default
    assert knob_start(make_net(lam="learned"), "lam") == 1
    assert knob_start(make_net(lam=500), "lam") == KNOBS["lam"].high


def test_a_routing_that_needs_a_table_too_large_is_not_offered(monkeypatch):
    monkeypatch.setattr("capsroute.explorer.rerouting.MOST_VOTES", 10)
    entries = {
        name: type(entry)(**vars(entry) | {"needs_table": name == "dynamic"}) for name, entry in ROUTINGS.items()
    }
    monkeypatch.setattr("capsroute.explorer.rerouting.ROUTINGS", entries)
    assert fitting_routings(make_net()) == [name for name in ROUTINGS if name != "dynamic"]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("lam", [1, 2.5, "learned-per-capsule"])
def test_evidence_sums_to_the_norm_exactly(lam, stack, images):
    net = make_net(capsules=STACKS[stack], lam=lam).double()
    if lam == "learned-per-capsule":
        with torch.no_grad():
            net.layers[-1].routing.log_lam.uniform_(-1, 1)
    layer = route(net, images.double(), make_routings(net, AS_TRAINED, {}))[-1]
    factor = torch.as_tensor(net.layers[-1].routing.factor()).expand(5, 1)
    for label in range(5):
        found = evidence_of(layer, label)
        s = layer.votes.dense()[0, :, label].sum(0)
        assert found.exact
        assert found.contributions.dtype == torch.float64
        assert found.contributions.sum().item() == pytest.approx(s.norm().item(), rel=1e-12)
        assert found.factor == pytest.approx(factor[label].item(), rel=1e-6 if lam == "learned-per-capsule" else 1e-12)
        routed = layer.steps[-1].s[0, label].norm().item()
        assert found.factor * found.contributions.sum().item() == pytest.approx(routed, rel=1e-12)
        assert found.norm == pytest.approx(routed, rel=1e-12)
        assert found.length == pytest.approx(routed**2 / (1 + routed**2), rel=1e-9)


@pytest.mark.parametrize("name", ROUTINGS)
def test_evidence_is_exact_under_every_routing(name, images):
    net = make_net(name).double()
    layer = route(net, images.double(), make_routings(net, AS_TRAINED, {}))[-1]
    found = evidence_of(layer, 2)
    assert found.exact
    assert found.factor * found.contributions.sum().item() == pytest.approx(found.norm, rel=1e-12)
    if ROUTINGS[name].has_coefficients:
        assert found.factor == pytest.approx(1, rel=1e-12)


def test_evidence_is_refused_where_the_sum_is_no_multiple_of_the_votes(images):
    net = make_net()
    layer = route(net, images, make_routings(net, AS_TRAINED, {}))[-1]
    turned = layer.steps[-1]._replace(s=layer.steps[-1].s.flip(-1))
    found = evidence_of(type(layer)(layer.votes, (turned,), layer.v), 0)
    assert not found.exact
    assert "nothing to show" in drawing.evidence_sum(found, "<b>")


@pytest.mark.parametrize("stem", ["paper", "resnet"])
def test_places_are_where_the_primary_capsules_look(stem):
    """The gradient of a primary capsule by the image is centred on its place."""
    net = CapsNet(**SHAPE | {"stem": stem, "primary_stride": 2 if stem == "paper" else 1}, capsules=(None, 5)).eval()
    places = places_of(net)
    groups = net.config["primary_groups"]
    assert len(places) * groups == net.capsules[0]
    for place, cell in enumerate(places):
        image = torch.rand(1, 1, 20, 20, requires_grad=True)
        net.primary(net.stem(image))[0, place * groups].sum().backward()
        rows, columns = torch.nonzero(image.grad[0, 0], as_tuple=True)
        if stem == "paper":
            middle = (columns.min() + columns.max() + 1) / 2, (rows.min() + rows.max() + 1) / 2
            assert (cell.x, cell.y) == (middle[0].item(), middle[1].item())
        assert columns.min() <= cell.x <= columns.max() + 1
        assert rows.min() <= cell.y <= rows.max() + 1
    values = torch.arange(float(net.capsules[0]))
    assert by_place(net, values).sum() == values.sum()
    assert by_place(net, values)[0] == 1  # the two groups of the first place
    assert places_of(make_net(capsules=(None, 6, 5))) is None


@pytest.mark.parametrize("name", ROUTINGS)
def test_iterations_in_the_plane(name, images):
    net = make_net(name)
    layer = route(net, images, make_routings(net, AS_TRAINED, {}))[-1]
    steps = plane_steps(layer, 1, ROUTINGS[name].moves_votes)
    assert len(steps) == len(layer.steps)
    assert steps[-1].length == pytest.approx(lengths(layer.v)[0, 1].item(), rel=1e-5)
    moved = [step.votes - steps[0].votes for step in steps]
    if ROUTINGS[name].moves_votes:  # all alike, by the step times the capsule
        expected = sum(step.v for step in steps[:-1]) * net.layers[-1].routing.step
        torch.testing.assert_close(moved[-1], expected.expand_as(moved[-1]), rtol=1e-3, atol=1e-4)
    else:
        assert all(float(move.abs().max()) == 0 for move in moved)
    assert all(0 <= float(step.weights.min()) <= float(step.weights.max()) <= 1 for step in steps)
    assert all(float(step.v.norm()) <= step.length * 1.0001 for step in steps)


def test_dimension_grid_is_the_decoder_at_every_offset():
    decoder = Decoder(3, 4, (1, 6, 6), hidden=(8, 8))
    capsules = torch.rand(1, 3, 4)
    grid = dimension_grid(decoder, capsules, 1)
    assert grid.shape == (4, 11, 1, 6, 6)
    assert (OFFSETS[0], OFFSETS[5], OFFSETS[-1]) == (-0.25, 0, 0.25)
    for dim, column in ((0, 0), (2, 10), (3, 5)):
        offsets = [0.0] * 4
        offsets[dim] = OFFSETS[column]
        torch.testing.assert_close(grid[dim, column], reconstruct(decoder, capsules, 1, offsets))
    torch.testing.assert_close(reconstruct(decoder, capsules, 1), decoder(capsules, torch.tensor([1]))[0].detach())


def data_url(image, kind="PNG"):
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return f"data:image/{kind.lower()};base64," + base64.b64encode(buffer.getvalue()).decode()


def test_pictures_are_read_as_training_images_are():
    pixels = np.arange(400, dtype=np.uint8).reshape(1, 20, 20)
    np.testing.assert_array_equal(read_picture(image_url(pixels), (1, 20, 20)), pixels)
    red = read_picture(data_url(Image.new("RGB", (50, 30), "red"), "JPEG"), (3, 20, 20))
    assert red.shape == (3, 20, 20)
    assert red[0].min() > 250 > 10 > red[1].max()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (None, "only PNG and JPEG"),
        ({"path": "/etc/passwd"}, "only PNG and JPEG"),
        ("/etc/passwd", "only PNG and JPEG"),
        ("file:///etc/passwd", "only PNG and JPEG"),
        ("http://127.0.0.1/a.png", "only PNG and JPEG"),
        ("data:image/svg+xml;base64,AAAA", "only PNG and JPEG"),
        ("data:image/png;base64,A*A=", "arrived damaged"),
        ("data:image/png;base64," + "A" * (MOST_BYTES * 2), "larger than 8 MB"),
        ("data:image/png;base64,AAAA", "not a readable PNG or JPEG"),
        (data_url(Image.new("RGB", (9, 9)), "GIF").replace("gif", "png"), "not a readable PNG or JPEG"),
        (data_url(Image.new("1", (9000, 9000))), "over the limit of 64 megapixels"),
        (data_url(Image.effect_noise((60, 60), 90))[: 22 + 880], "damaged image"),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value)[:40],
)
def test_other_pictures_are_refused_with_a_sentence(url, told):
    with pytest.raises((InputError, DataError), match=told) as error:
        read_picture(url, (1, 20, 20))
    assert "/tmp" not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/file=/etc/passwd",
        "/gradio_api/file/etc/passwd",
        "/file=/etc/passwd",
        "/gradio_api/proxy=http://127.0.0.1/",
        "/gradio_api/upload",
        "/gradio_api/run/show",
        "/gradio_api/call/show",
        "/static/../../etc/passwd",
        "/assets/../../../etc/passwd",
        "/monitoring",
        "/docs",
        "/gradio_api/heartbeat/../file=/etc/passwd",
    ],
)
def test_the_guard_refuses_what_is_no_part_of_the_page(path):
    assert guard.refusal("GET", path, {"host": "127.0.0.1:7860"}) == 404


def test_the_guard_answers_this_machine_only_and_takes_no_more_than_a_picture():
    here = {"host": "localhost:7860"}
    for path in ("/", "/config", "/gradio_api/queue/join", "/assets/index-Ab_c.js", "/gradio_api/heartbeat/ab3"):
        assert guard.refusal("GET", path, here) is None
    assert guard.refusal("GET", "/", {"host": "evil.example"}) == 421
    assert guard.refusal("GET", "/", {**here, "origin": "http://localhost:7860"}) is None
    assert guard.refusal("GET", "/", {**here, "origin": "https://evil.example"}) == 403
    assert guard.refusal("DELETE", "/", here) == 405
    assert guard.refusal("POST", "/gradio_api/queue/join", {**here, "content-length": str(20 << 20)}) == 413
    assert guard.names_a_file(b'{"data": [1, {"a": [{"path": "/etc/passwd"}]}]}')
    assert guard.names_a_file(b"[" * 100_000)
    assert guard.names_a_file(b"not json")
    assert not guard.names_a_file(b'{"data": [1, "path", null], "session_hash": "a"}')


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory):
    """An untrained net with class names that would be tags."""
    folder = tmp_path_factory.mktemp("exhibit")
    data = load_dataset(write_dataset(folder), split="test")
    data = type(data)(**vars(data) | {"classes": ("<script>alert(1)</script>", "b", "c", "d")})
    return opening.Exhibit(make_net(capsules=(None, 4)), Decoder(4, 16, (1, 20, 20)), data, "a title", "")


def test_views_escape_names_and_tell_what_is_missing(exhibit):
    picked = views.from_dataset(exhibit, 0)
    pieces = [
        *views.overview(exhibit, picked),
        *(views.routed(exhibit, picked, views.PREDICTED, name, {}) for name in (AS_TRAINED, *ROUTINGS)),
        *(views.evidence(exhibit, picked, label) for label in range(4)),
        views.dimensions(exhibit, picked, 0, [0.0] * 15 + [0.3]),
        views.grid(exhibit, picked, 0),
        views.depth(exhibit),
        views.metrics(exhibit),
    ]
    assert not any("<script" in piece for piece in pieces)
    assert "&lt;script" in pieces[0]
    assert "1 dimensions moved" not in "".join(pieces)
    assert "1 dimension moved" in "".join(pieces)
    assert "no metrics.csv" in pieces[-1]
    bare = opening.Exhibit(exhibit.net, None, exhibit.dataset, "", "")
    assert "--reconstruct" in views.dimensions(bare, picked, 0, [])
    assert views.grid(bare, picked, 0) == ""


def test_metrics_that_are_odd_are_still_shown(exhibit, tmp_path):
    text = "epoch,train_accuracy,accuracy,train_loss,loss,evaluated_on\n1,0.5,nan,<b>,0.2,the test split\n"
    (tmp_path / "metrics.csv").write_text(text)
    read = opening.Exhibit(exhibit.net, None, exhibit.dataset, "", opening.read_metrics(tmp_path))
    assert "&lt;b&gt;" in views.metrics(read)
    assert opening.read_metrics(tmp_path / "nowhere") == ""
    (tmp_path / "metrics.csv").write_bytes(b"\xff\xff")
    with pytest.raises(DataError, match="cannot be read"):
        opening.read_metrics(tmp_path)


def test_picking_goes_round_a_class(exhibit):
    of_class = [opening.pick(exhibit.dataset, 2, number) for number in range(10)]
    assert len(set(of_class)) == 10
    assert all(int(exhibit.dataset.labels[index]) == 2 for index in of_class)
    assert opening.pick(exhibit.dataset, 2, 10) == of_class[0]
    assert opening.pick(exhibit.dataset, None, 43) == 3


def test_the_pages_own_training_is_kept_for_the_next_time(tmp_path):
    config = TrainConfig(**options(write_dataset(tmp_path), tmp_path / "run", epochs=1, reconstruct=True))
    assert not Explore(out=config.out)._stage().trained
    training = PageTraining(config)
    training.start()
    thread = training._thread
    training.start()  # a second visitor
    assert training._thread is thread
    thread.join()
    assert (training.error, training.share, training.running) == ("", 1.0, False)
    assert Explore(out=config.out)._stage().trained
    stopped = PageTraining(TrainConfig(**options(write_dataset(tmp_path), tmp_path / "long", epochs=1000)))
    stopped.start()
    stopped.stop()
    assert not stopped.running
    assert "go on with" in stopped.error
    failing = PageTraining(TrainConfig(**options(tmp_path / "none.npz", tmp_path / "other")))
    failing.start()
    failing._thread.join()
    assert "unknown dataset" in failing.error


def test_the_recipe_fits_the_page_that_is_built_before_it_ran(tmp_path):
    config = recipe(tmp_path / "runs")
    assert not config.resume
    before = untrained_exhibit(config)
    assert before.net.classes == 10
    assert before.decoder.dim == 16


def test_without_gradio_one_sentence_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", None)
    with pytest.raises(InputError, match=r"pip install 'capsroute\[explore\]'"):
        require_gradio()


@pytest.mark.parametrize(
    ("words", "told"), [(["nowhere"], "nowhere"), (["--port", "70000"], "--port 70000 must lie between")]
)
def test_mistakes_are_one_sentence(words, told, tmp_path):
    pytest.importorskip("gradio", reason="gradio is not installed: pip install 'capsroute[explore]'")
    done = subprocess.run([COMMAND, "explore", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_pages_files_are_in_the_package():
    folder = pathlib.Path(drawing.__file__).parent
    assert all((folder / name).is_file() for name in ("page.css", "picking.html", "picking.js"))
