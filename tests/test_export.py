"""Exports as a user makes and uses them: each format, each refusal, and what others can read."""

import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import small_runs
import torch
from PIL import Image

import capsroute
from capsroute import CapsNet, DataError, InputError, cli, list_routings, load_dataset
from capsroute.checkpoint import CheckpointError
from capsroute.export import hub
from capsroute.export.exporting import FORMATS, export_run
from capsroute.sweeps.records import Measured, read_run

HERE = pathlib.Path(__file__).parent
ENDINGS = {"onnx": "net.onnx", "torch": "net.pt2", "safetensors": "net.safetensors", "hub-folder": "net"}
# Runs the command where a package cannot be imported, and sees that it was not.
WITHOUT = """
import sys

class Refusal:
    def find_spec(self, name, *rest):
        if name.split(".")[0] == "{name}":
            raise ImportError("no {name} here", name="{name}")

sys.meta_path.insert(0, Refusal())
from capsroute import cli
code = cli.main(sys.argv[1:])
assert "{name}" not in sys.modules
sys.exit(code)
"""


# Exports a net whose traced form is off by the last argument.
WRONG = """
import pathlib, sys, torch
from capsroute.export import checking, exporting

run, kind, target, error = sys.argv[1:]
right = checking.Classifier.forward

def wrong(self, images):
    capsules, lengths = right(self, images)
    return (capsules + float(error) if torch.compiler.is_compiling() else capsules), lengths

checking.Classifier.forward = wrong
try:
    exporting.export_run(pathlib.Path(run), kind, pathlib.Path(target), force=True)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the dataset, three seeds of a run, a picture, and an export of the first run in each format."""
    folder = tmp_path_factory.mktemp("exports")
    dataset = small_runs.write_dataset(folder)
    for seed in range(3):
        words = small_runs.arguments(dataset, folder / f"seed{seed}", seed=seed, lam="learned", lr=0.003)
        assert small_runs.run(words).returncode == 0
    for kind, name in ENDINGS.items():
        done = small_runs.run(["export", folder / "seed0", "--format", kind, "--out", folder / name])
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("\n") == 2
        assert not done.stderr
    picture = Image.new("L", (50, 70), 20)
    picture.paste(240, (25, 35, 50, 70))  # the fourth quarter
    picture.save(folder / "mine.png")
    Image.new("RGB", (20, 20), (200, 10, 30)).save(folder / "red.jpg")
    return folder


def prediction(words, **variables):
    done = small_runs.run(["predict", *words, "--json"], **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def without(name, *words):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(name=name), *map(str, words)],
        env=small_runs.environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def main(capsys, *words):
    """The command in this process: its status, and its one sentence."""
    code = cli.main(list(map(str, words)))
    told = capsys.readouterr()
    assert told.err.count("\n") <= 1, told.err
    return code, told.err


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", list_routings())
def test_every_routing_and_depth_gives_the_same_exported(name):
    done = subprocess.run(
        [sys.executable, str(HERE / "exported_nets.py"), name],
        env=small_runs.environment(CAPSROUTE_NO_SHAPE_CHECKS="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(word in done.stdout for word in ("paper-2", "paper-3", "paper-4", "residual"))


def test_an_onnx_file_is_alone_dynamic_and_says_what_it_is(made):
    model = onnx.load(made / "net.onnx", load_external_data=False)
    onnx.checker.check_model(model, full_check=True)
    assert not any(tensor.external_data for tensor in model.graph.initializer)
    sides = {
        value.name: [side.dim_param or side.dim_value for side in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    }
    assert sides == {"images": ["batch", 1, 20, 20], "capsules": ["batch", 4, 16], "lengths": ["batch", 4]}
    told = {entry.key: entry.value for entry in model.metadata_props}
    result = json.loads((made / "seed0/result.json").read_text())
    assert json.loads(told["capsroute.classes"]) == ["0", "1", "2", "3"]
    assert json.loads(told["capsroute.preprocessing"]) == {
        "shape": [1, 20, 20],
        "mode": "L",
        "resize": "bilinear",
        "divide_by": 255,
    }
    assert json.loads(told["capsroute.routing"])[0]["name"] == "adaptive-lambda"
    assert "learned, now" in json.loads(told["capsroute.routing"])[0]["options"]
    assert json.loads(told["capsroute.dataset"])["title"] == "quarters"
    assert json.loads(told["capsroute.accuracy"]) == result["accuracy"]
    assert json.loads(told["capsroute.version"]) == capsroute.__version__
    assert len(told["capsroute.sha256"]) == 64


@pytest.mark.parametrize("name", ["net.onnx", "net.pt2", "net"])
def test_exports_tell_no_path_of_this_machine(made, name):
    files = [made / name] if (made / name).is_file() else list((made / name).iterdir())
    for file in files:
        content = file.read_bytes()
        for path in (str(made), str(HERE.parent), "site-packages"):
            assert path.encode() not in content


def test_an_onnx_file_has_the_accuracy_of_the_run(made):
    dataset = load_dataset(made / "quarters.npz", split="test")
    session = onnxruntime.InferenceSession(made / "net.onnx")
    images = dataset.images.numpy().astype(np.float32) / 255
    capsules, lengths = session.run(["capsules", "lengths"], {"images": images})
    accuracy = (lengths.argmax(1) == dataset.labels.numpy()).mean()
    assert accuracy == pytest.approx(json.loads((made / "seed0/result.json").read_text())["accuracy"])
    with torch.no_grad():
        expected = capsroute.load(made / "seed0")(torch.from_numpy(images))
    np.testing.assert_allclose(capsules, expected, rtol=0, atol=1e-4)
    assert expected.abs().max() > 0.1


def test_predict_needs_no_torch_for_an_onnx_file(made):
    pictures = [made / "mine.png", made / "red.jpg"]
    done = without("torch", "predict", "--onnx", made / "net.onnx", *pictures, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [entry["image"] for entry in told] == list(map(str, pictures))
    for ours, theirs in zip(told, prediction([made / "seed0", *pictures]), strict=True):
        assert ours["prediction"] == theirs["prediction"]
        for one, other in zip(ours["lengths"], theirs["lengths"], strict=True):
            assert one["class"] == other["class"]
            assert one["length"] == pytest.approx(other["length"], abs=1e-5)
    table = without("torch", "predict", "--onnx", made / "net.onnx", made / "mine.png", "--top", 1)
    assert "mine.png" in table.stdout
    failed = without("torch", "predict", made / "seed0", made / "mine.png")
    assert "no torch here" in failed.stderr  # the import is really refused


@pytest.mark.parametrize("name", ["net.onnx", "net.pt2", "net.safetensors", "net"])
def test_predict_reads_every_format(made, name):
    ours, theirs = (prediction([place, made / "mine.png"])[0] for place in (made / name, made / "seed0"))
    assert ours["prediction"] == theirs["prediction"]
    assert ours["lengths"][0]["length"] == pytest.approx(theirs["lengths"][0]["length"], abs=1e-5)


def test_a_program_runs_in_plain_torch_without_this_library(made, tmp_path):
    images = torch.rand(7, 1, 20, 20)
    with torch.no_grad():
        torch.save({"images": images, "capsules": capsroute.load(made / "seed0")(images)}, tmp_path / "expected.pt")
    script = f"""
import sys
sys.path.append({str(pathlib.Path(torch.__file__).parents[1])!r})

class Refusal:
    def find_spec(self, name, *rest):
        if name.split(".")[0] == "capsroute":
            raise ImportError(name)

sys.meta_path.insert(0, Refusal())
import json, torch
extra = {{"capsroute.json": ""}}
net = torch.export.load({str(made / "net.pt2")!r}, extra_files=extra).module()
told = json.loads(extra["capsroute.json"])
expected = torch.load({str(tmp_path / "expected.pt")!r})
for batch in (1, 7):
    capsules, lengths = net(expected["images"][:batch])
    torch.testing.assert_close(capsules, expected["capsules"][:batch], rtol=0, atol=1e-4)
    torch.testing.assert_close(lengths, capsules.norm(dim=2))
assert "capsroute" not in sys.modules
print(told["classes"], told["preprocessing"]["shape"], told["format"])
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['0', '1', '2', '3'] [1, 20, 20] 1\n"


def test_safetensors_is_the_run_s_own_file(made):
    assert (made / "net.safetensors").read_bytes() == (made / "seed0/final.safetensors").read_bytes()


@pytest.mark.parametrize("place", [0.02, 0.5, 0.999], ids=["start", "middle", "end"])
@pytest.mark.parametrize("name", ["net.onnx", "net.pt2", "net.safetensors", "net/model.safetensors"])
def test_altered_and_cut_files_are_refused_in_one_sentence(made, tmp_path, name, place, capsys):
    copy = tmp_path / name
    if "/" in name:
        shutil.copytree(made / "net", copy.parent)
    content = (made / name).read_bytes()
    at = int(len(content) * place)
    source = copy.parent if "/" in name else copy
    altered = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    for damaged in (altered, content[:at], content[:-1], b""):
        copy.write_bytes(damaged)
        code, told = main(capsys, "predict", source, made / "mine.png")
        assert code == 2
        assert str(copy) in told
    copy.write_bytes(content)
    assert main(capsys, "predict", source, made / "mine.png") == (0, "")


def test_an_altered_description_is_refused(made, tmp_path, capsys):
    for number, change in enumerate(({"net": {}}, {"weights": {"sha256": "0" * 64}}, {"weights": None}, None)):
        folder = tmp_path / str(number)
        shutil.copytree(made / "net", folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text("{" if change is None else json.dumps(config | change))
        code, told = main(capsys, "predict", folder, made / "mine.png")
        assert code == 2
        assert "config.json" in told


def test_nothing_is_overwritten_unless_forced(made, tmp_path, capsys):
    target = tmp_path / "net.safetensors"
    target.write_bytes(b"mine")
    code, told = main(capsys, "export", made / "seed0", "--format", "safetensors", "--out", target)
    assert (code, target.read_bytes()) == (2, b"mine")
    assert "is there already; overwrite it by --force" in told
    assert main(capsys, "export", made / "seed0", "--format", "safetensors", "--out", target, "--force") == (0, "")
    assert capsroute.load(target).capsules == capsroute.load(made / "seed0").capsules
    assert [entry.name for entry in tmp_path.iterdir()] == [target.name]


def test_a_folder_is_replaced_only_if_it_is_an_export_and_forced(made, tmp_path, capsys):
    target = tmp_path / "net"
    words = ["export", made / "seed1", "--format", "hub-folder", "--out", target]
    shutil.copytree(made / "net", target)
    before = (target / "model.safetensors").read_bytes()
    code, told = main(capsys, *words)
    assert code == 2
    assert "overwrite it by --force" in told
    (target / "notes.txt").write_text("mine")
    code, told = main(capsys, *words, "--force")
    assert code == 2
    assert "holds notes.txt, which is no part of an export" in told
    assert (target / "model.safetensors").read_bytes() == before
    (target / "notes.txt").unlink()
    assert main(capsys, *words, "--force") == (0, "")
    assert (target / "model.safetensors").read_bytes() != before
    assert [entry.name for entry in tmp_path.iterdir()] == ["net"]


@pytest.mark.parametrize("kind", ["onnx", "torch"])
@pytest.mark.parametrize("error", [1e-3, float("nan")])
def test_a_mismatch_writes_nothing_and_deletes_nothing(made, tmp_path, kind, error):
    """Where the exported net gives something else, however it came to that."""
    target = tmp_path / ENDINGS[kind]
    target.write_bytes(b"before")
    done = subprocess.run(
        [sys.executable, "-c", WRONG, str(made / "seed0"), kind, str(target), str(error)],
        env=small_runs.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("DataError the exported net's class capsules differ from the net's by"), done.stderr
    assert "nothing was written" in done.stdout
    assert target.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize("missing", ["onnx", "onnxscript", "onnxruntime"])
def test_without_the_extra_the_sentence_names_it(made, tmp_path, monkeypatch, capsys, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    code, told = main(capsys, "export", made / "seed0", "--out", tmp_path / "net.onnx")
    assert code == 2
    assert f"{missing} is missing: pip install 'capsroute[export]'" in told
    if missing == "onnxruntime":
        code, told = main(capsys, "predict", "--onnx", made / "net.onnx", made / "mine.png")
        assert code == 2
        assert "pip install 'capsroute[export]'" in told
    assert not list(tmp_path.iterdir())
    assert (
        main(capsys, "export", made / "seed0", "--format", "safetensors", "--out", tmp_path / "a.safetensors")[0] == 0
    )


@pytest.mark.parametrize("kind", ["safetensors", "hub-folder"])
def test_a_checkpoint_is_exported_without_an_accuracy(made, tmp_path, kind):
    target = tmp_path / ENDINGS[kind]
    export_run(made / "seed0/last.ckpt", kind, target)
    exported, saved = capsroute.load(target).state_dict(), capsroute.load(made / "seed0/last.ckpt").state_dict()
    assert all(torch.equal(exported[name], saved[name]) for name in saved)
    if kind == "hub-folder":
        assert json.loads((target / "config.json").read_text())["accuracy"] is None
        assert "Not measured" in (target / "README.md").read_text()
        assert "state and its accuracy by class are not known" in (target / "README.md").read_text()


def test_a_hub_folder_is_weights_description_and_card(made):
    folder = made / "net"
    assert sorted(entry.name for entry in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    config = json.loads((folder / "config.json").read_text())
    assert config["weights"]["sha256"] == hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    result = json.loads((made / "seed0/result.json").read_text())
    assert config["accuracy"] == result["accuracy"]
    assert config["net"]["lam"] == "learned"
    for net in (capsroute.load(folder), CapsNet.from_pretrained(folder), CapsNet.from_pretrained(str(folder))):
        expected = capsroute.load(made / "seed0").state_dict()
        assert all(torch.equal(value, expected[name]) for name, value in net.state_dict().items())
        assert not net.training
    card = (folder / "README.md").read_text()
    worst = min(zip(result["per_class_accuracy"], "0123", strict=True))
    for part in (
        "library_name: capsroute",
        f"**{100 * result['accuracy']:.2f} %** on the test split",
        "how much it varies from seed to seed is not known",
        f"wrong most often: {worst[1]} {100 * worst[0]:.1f} %",
        "A short run: 3 epochs, where the paper's recipe has 150",
        "not known to be an official dataset's",
        "adaptive-lambda (lam=learned, now",
        "capsroute train --dataset quarters.npz",
        "Its licence is not known",
        "https://arxiv.org/abs/1911.08119",
    ):
        assert part in card, part


def test_the_command_on_the_card_makes_the_run(made, tmp_path):
    words = (made / "net/README.md").read_text().split("```sh\ncapsroute ")[1].split("\n```")[0].split()
    done = subprocess.run(
        [small_runs.COMMAND, *words, "--out", str(tmp_path / "again"), "--quiet"],
        env=small_runs.environment(),
        cwd=made,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    again, before = (capsroute.load(folder).state_dict() for folder in (tmp_path / "again", made / "seed0"))
    assert all(torch.equal(again[name], before[name]) for name in before)


def test_further_seeds_give_a_mean_on_the_card(made, tmp_path):
    also = [made / "seed1", made / "seed2"]
    done = export_run(made / "seed0", "hub-folder", tmp_path / "net", also=also)
    measured = Measured(tuple(read_run(made / f"seed{seed}") for seed in range(3)))
    assert "± " in measured.text()
    assert measured.text() in done.checked
    card = (tmp_path / "net/README.md").read_text()
    assert f"Over seeds 0, 1, 2: **{measured.text()}**" in card
    assert "these weights are of seed 0" in card


def test_runs_that_are_no_other_seeds_are_refused(made, tmp_path, capsys):
    other = tmp_path / "other"
    shutil.copytree(made / "seed1", other)
    result = json.loads((other / "result.json").read_text())
    result["config"]["lr"] = 0.5
    (other / "result.json").write_text(json.dumps(result))
    for also, sentence in [
        (other, "differs from .* in more than its seed .lr.; leave it out"),
        (made / "seed0", "has seed 0, as another run given here"),
        (tmp_path, "is not a finished run's folder"),
    ]:
        with pytest.raises(InputError, match=sentence):
            export_run(made / "seed0", "hub-folder", tmp_path / "net", also=[also])
    with pytest.raises(InputError, match="is not a finished run, so that its accuracy has no mean"):
        export_run(made / "seed0/last.ckpt", "hub-folder", tmp_path / "net", also=[made / "seed1"])
    code, told = main(capsys, "export", made / "seed0", "--also", made / "seed1", "--out", tmp_path / "net.onnx")
    assert code == 2
    assert "--also is for --format hub-folder" in told
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize("state", ["saturated", "collapsed"])
def test_the_card_tells_of_a_net_that_went_wrong(made, tmp_path, state):
    run = tmp_path / "run"
    shutil.copytree(made / "seed0", run)
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps(result | {"state": state}))
    export_run(run, "hub-folder", tmp_path / "net", also=[made / "seed1"])
    card = (tmp_path / "net/README.md").read_text()
    assert f"The net ended **{state}**" in card
    assert f"Of 2 seeds, 1 ended {state}" in card


def test_the_card_of_the_sample_says_what_it_is_worth(tmp_path):
    words = ["--dataset", "sample", "--preset", "small", "--epochs", "1", "--limit", "64", "--device", "cpu"]
    words += ["--precision", "fp32"]  # as evaluate computes
    assert small_runs.run(["train", *words, "--out", tmp_path / "run", "--quiet"]).returncode == 0
    export_run(tmp_path / "run", "hub-folder", tmp_path / "net")
    card = (tmp_path / "net/README.md").read_text()
    assert "its accuracy says nothing of the full dataset" in card
    assert "Trained on only 64 images" in card
    assert "A short run: 1 epoch," in card
    assert "Licence of the dataset: MIT" in card
    assert "Ankle boot" in card
    evaluated = small_runs.run(["evaluate", tmp_path / "net", "--json"])
    with (tmp_path / "run/metrics.csv").open() as file:
        assert json.loads(evaluated.stdout)["accuracy"] == float(list(csv.DictReader(file))[-1]["accuracy"])


def test_a_hub_s_name_is_fetched_and_its_failures_are_one_sentence(made, monkeypatch):
    import huggingface_hub

    asked = []

    def snapshot(name, **options):
        asked.append((name, options["local_files_only"]))
        assert "model.safetensors" in options["allow_patterns"]
        assert not any("*" in pattern for pattern in options["allow_patterns"])
        return str(made / "net")

    monkeypatch.delenv("CAPSROUTE_OFFLINE", raising=False)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert CapsNet.from_pretrained("somebody/capsules").classes == 4
    monkeypatch.setenv("CAPSROUTE_OFFLINE", "1")
    CapsNet.from_pretrained("somebody/capsules")
    assert asked == [("somebody/capsules", False), ("somebody/capsules", True)]

    def failing(name, **options):
        raise OSError("no route\nto host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", failing)
    with pytest.raises(InputError, match=r"^somebody/capsules: no such folder here, .* did not give it \(no route\)$"):
        CapsNet.from_pretrained("somebody/capsules")
    for place in ("no/such/folder", "nothing", "../x/y"):
        with pytest.raises(InputError, match="no such folder, and no name of a hub's repository"):
            CapsNet.from_pretrained(place)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"pip install 'capsroute\[hub\]'"):
        CapsNet.from_pretrained("somebody/capsules")
    assert CapsNet.from_pretrained(made / "net").classes == 4  # a folder needs no extra


def test_a_hub_that_cannot_be_reached_is_one_sentence(tmp_path, monkeypatch):
    """The real client, told not to connect, with nothing in its cache."""
    monkeypatch.setenv("CAPSROUTE_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match=r"^somebody/capsules: no such folder here, and the hub did not give it"):
        hub.local_folder("somebody/capsules")


def test_a_full_or_read_only_disk_leaves_no_half_folder(made, tmp_path, monkeypatch):
    shutil.copytree(made / "net", tmp_path / "net")
    before = (tmp_path / "net/model.safetensors").read_bytes()

    def refuse(path, content):
        raise CheckpointError(f"{path}: cannot be written (disk full)")

    monkeypatch.setattr(hub, "write_atomically", refuse)
    with pytest.raises(CheckpointError):
        export_run(made / "seed1", "hub-folder", tmp_path / "net", force=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["net"]
    assert (tmp_path / "net/model.safetensors").read_bytes() == before
    for kind in ("safetensors", "hub-folder"):
        with pytest.raises((InputError, CheckpointError), match="cannot be written"):
            export_run(made / "seed0", kind, pathlib.Path("/proc/exports") / ENDINGS[kind])


def test_mistakes_are_one_sentence(made, tmp_path, capsys):
    for words, sentence in [
        (["export", tmp_path], "holds no trained net"),
        (["export", made / "seed0", "--out", tmp_path / "net.bin"], "net.bin: must end in .onnx"),
        (["export", made / "seed0", "--out", tmp_path], "must end in .onnx"),
        (["export", made / "seed0", "--format", "hub-folder", "--out", made / "mine.png"], "is a file"),
        (["predict", "--onnx", made / "mine.png", made / "mine.png"], "must end in .onnx"),
        (["predict", "--onnx", tmp_path / "none.onnx", made / "mine.png"], "none.onnx: cannot be read"),
        (["predict", made / "net.onnx"], "name at least one image"),
        (["predict", tmp_path / "none.pt2", made / "mine.png"], "none.pt2: cannot be read"),
    ]:
        code, told = main(capsys, *words)
        assert code == 2
        assert sentence in told
    with pytest.raises(InputError, match="unknown format 'onx'; did you mean 'onnx'"):
        export_run(made / "seed0", "onx")


def test_a_newer_format_is_refused(made, tmp_path, capsys):
    from capsroute.sealing import seal_onnx

    model = onnx.load(made / "net.onnx")
    entries = [entry for entry in model.metadata_props if entry.key != "capsroute.sha256"]
    next(entry for entry in entries if entry.key == "capsroute.format").value = "2"
    del model.metadata_props[-1]
    (tmp_path / "net.onnx").write_bytes(seal_onnx(model.SerializeToString()))
    code, told = main(capsys, "predict", tmp_path / "net.onnx", made / "mine.png")
    assert code == 2
    assert "of a format that this version of capsroute does not know" in told


def test_the_target_has_the_run_s_name_if_none_is_given(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind in ("safetensors", "hub-folder"):
        done = export_run(made / "seed0", kind)
        assert done.path == pathlib.Path("seed0-hub" if kind == "hub-folder" else f"seed0{FORMATS[kind]}")
        assert done.path.exists()
    assert os.listdir(tmp_path)


def test_help_tells_the_formats_and_defaults():
    told = " ".join(small_runs.run(["export", "--help"]).stdout.split())
    for part in ("{onnx,torch,safetensors,hub-folder}", "(default: onnx)", "--force", "--also"):
        assert part in told


def test_weights_that_are_not_the_description_s_are_refused(made, tmp_path):
    shutil.copytree(made / "net", tmp_path / "net")
    shutil.copy(made / "seed1/final.safetensors", tmp_path / "net/model.safetensors")
    with pytest.raises(DataError, match=r"model.safetensors: not the weights that config.json tells of"):
        capsroute.load(tmp_path / "net")


def test_commands_and_programs_on_the_page_run(made, tmp_path):
    for seed, name in enumerate(("first", "second", "third")):
        shutil.copytree(made / f"seed{seed}", tmp_path / "runs" / name)
    shutil.copy(made / "mine.png", tmp_path / "shirt.png")
    page = (HERE.parent / "docs/export.md").read_text()
    commands = [line for block in re.findall(r"```sh\n(.*?)```", page, re.S) for line in block.splitlines()]
    assert len(commands) == 4
    for command in commands:
        words = command.split()
        assert words[0] == "capsroute"
        done = subprocess.run(
            [small_runs.COMMAND, *words[1:]], env=small_runs.environment(), cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    script = "\n".join(re.findall(r"```python\n(.*?)```", page, re.S))
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
