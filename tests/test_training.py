"""Training in this process: what is written, what is refused, what is noticed."""

import csv
import dataclasses
import json

import pytest
import small_runs
import torch

import capsroute
from capsroute import InputError, TrainConfig, checkpoint
from capsroute.data.split import limit_per_class, split_off
from capsroute.schedule import learning_rate
from capsroute.stats import EpochStats, state_of
from capsroute.training import DivergedError, fit


@pytest.fixture
def dataset(tmp_path):
    return small_runs.write_dataset(tmp_path)


@pytest.fixture
def config(tmp_path, dataset):
    return lambda **changes: TrainConfig(**small_runs.options(dataset, tmp_path / "run", **changes))


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_a_run_writes_down_all_of_it(tmp_path, config):
    result = fit(config(epochs=8, lr=3e-3))
    folder = tmp_path / "run"
    assert result.accuracy > 0.9
    assert result.state == "ok"
    written = json.loads((folder / "result.json").read_text())
    assert written == json.loads(json.dumps(result.values))
    for key in ("per_class_accuracy", "confusion", "wall_s", "images_per_s", "commit", "versions", "hardware"):
        assert written[key]
    assert written["precision"] == "fp32"
    assert written["seed"] == 0
    assert sum(map(sum, written["confusion"])) == written["count"] == 40
    assert written["evaluated_on"] == "the test split"
    assert written["config"]["lr"] == 3e-3
    metrics = rows(folder / "metrics.csv")
    assert [row["epoch"] for row in metrics] == [str(epoch) for epoch in range(1, 9)]
    assert float(metrics[-1]["accuracy"]) == result.accuracy
    assert float(metrics[-1]["true_length"]) > float(metrics[-1]["other_length"])
    steps = rows(folder / "steps.csv")
    assert [int(row["step"]) for row in steps] == list(range(48))
    assert float(steps[0]["gradient_min"]) < 0 < float(steps[0]["gradient_max"]) < float(steps[0]["gradient_norm"])
    assert "epoch 8/8" in (folder / "train.log").read_text()
    assert not torch.are_deterministic_algorithms_enabled()

    images = torch.rand(3, 1, 20, 20)
    expected = result.net(images)  # channels-last, and so of other rounding
    for path in (folder, folder / "final.safetensors", folder / "last.ckpt"):
        torch.testing.assert_close(capsroute.load(path)(images), expected, rtol=1e-5, atol=1e-6)


def test_two_runs_end_with_the_same_bits(tmp_path, config):
    one = fit(config()).net.state_dict()
    other = fit(config(out=tmp_path / "other")).net.state_dict()
    seeded = fit(config(out=tmp_path / "seeded", seed=1)).net.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not any(torch.equal(one[name], seeded[name]) for name in one if name.endswith("weight"))


def test_a_finished_run_is_left_alone(tmp_path, config):
    first = fit(config())
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir() if path.name != ".lock"}
    again = fit(config(resume=True))
    assert again.values == json.loads(json.dumps(first.values))
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir() if path.name != ".lock"}
    assert before == after


@pytest.mark.parametrize(("keep", "left"), [("net", {"final.safetensors"}), ("result", set())])
def test_what_a_finished_run_keeps(tmp_path, config, keep, left):
    heavy = {"last.ckpt", "previous.ckpt", "final.safetensors"}
    result = fit(config(keep=keep))
    folder = tmp_path / "run"
    assert {path.name for path in folder.iterdir()} & heavy == left
    again = fit(config(keep=keep, resume=True))
    assert again.values["confusion"] == result.values["confusion"]
    assert (again.net is None) == (keep == "result")


def test_the_shift_goes_evenly_from_first_to_last_epoch(config):
    assert [config(epochs=5, shift=2, shift_end=0).shift_at(epoch) for epoch in range(5)] == [2, 2, 1, 0, 0]
    assert [config(epochs=3, shift=2).shift_at(epoch) for epoch in range(3)] == [2, 2, 2]
    with pytest.raises(InputError, match="shift_end=3 must be at most the shift, which is 2"):
        config(shift=2, shift_end=3)


def test_a_folder_with_a_run_is_not_overwritten(config):
    fit(config(epochs=1))
    with pytest.raises(InputError, match="holds a run already; go on with it by --resume"):
        fit(config(epochs=1))


def test_nothing_to_resume_is_said(config):
    with pytest.raises(InputError, match="holds no run to resume"):
        fit(config(resume=True))


OTHER_VALUES = {
    "dataset": "sample",
    "image_size": 24,
    "limit": 50,
    "holdout": 10,
    "preset": "paper-2",
    "capsules": (64, 8, 4),
    "dims": (8, 8),
    "primary_stride": 2,
    "reconstruct": True,
    "routing": "dynamic",
    "lam": "2",
    "lam_start": 2.0,
    "iterations": 2,
    "step": 0.5,
    "detach": False,
    "epochs": 4,
    "batch_size": 8,
    "lr": 0.1,
    "schedule": "one-cycle",
    "warmup": 5,
    "shift": 0,
    "shift_end": 0,
    "flip": True,
    "stem": "resnet",
    "residual": True,
    "drop_capsules": 0.1,
    "init": "length",
    "rise": 0.1,
    "weight_decay": 0.1,
    "ema": 0.9,
    "cuda_graphs": True,
    "clip": 1.0,
    "seed": 1,
    "device": "auto",
    "devices": 2,
    "precision": "auto",
    "compile": True,
    "deterministic": False,
}
FREE = {"data_dir", "offline", "out", "resume", "checkpoint_every", "keep", "tensorboard", "quiet"}


def test_every_option_is_either_free_to_change_or_refused_by_name(config):
    assert set(OTHER_VALUES) | FREE == {field.name for field in dataclasses.fields(TrainConfig)}
    saved = config()
    for name, value in OTHER_VALUES.items():
        related = {
            "lam_start": {"lam": "learned"},
            "detach": {"routing": "dynamic"},
            "iterations": {"routing": "dynamic"},
        }
        changes = related.get(name, {"routing": "adaptive"} if name == "step" else {}) | {name: value}
        with pytest.raises(InputError, match=f"holds another run: .*--{name.replace('_', '-')} was"):
            capsroute.config.refuse_changes(saved, config(**changes))
    capsroute.config.refuse_changes(saved, config(quiet=False, checkpoint_every="5m", resume=True))


def test_config_survives_json(config):
    first = config(capsules=(64, 8, 4), dims=(8, 4, 4))
    assert TrainConfig.from_json(json.loads(json.dumps(first.to_json()))) == first
    with pytest.raises(InputError, match="unknown options: colour"):
        TrainConfig.from_json({"colour": 1})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"epochs": 0}, "epochs=0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"lr": -1.0}, "lr=-1.0"),
        ({"warmup": -1}, "warmup=-1"),
        ({"checkpoint_every": "5"}, "must be epochs, like 1e, or minutes, like 10m"),
        ({"checkpoint_every": "0e"}, "must be epochs"),
        ({"iterations": 3}, "--iterations is not for routing 'adaptive-lambda', which has lam, lam_start"),
        ({"lam": "-2"}, "lam=-2.0 must be a number"),
        ({"lam": "lots"}, "lam='lots' must be a number"),
        ({"capsules": (64, 5)}, r"capsules=\(64, 5\) must end in 4, the number of classes"),
        ({"holdout": 96}, "holdout=96 must leave some"),
        ({"device": "tpu"}, "--device tpu is not on this machine"),
        ({"precision": "fp16"}, "--precision fp16 needs a GPU"),
        ({"shift": 99}, "shift=99 must be at most 16"),
    ],
    ids=lambda value: None if isinstance(value, dict) else "",
)
def test_bad_options_are_refused(config, changes, sentence):
    with pytest.raises(InputError, match=sentence):
        fit(config(**changes))


def test_a_diverging_run_stops_and_keeps_the_last_good_state(tmp_path, config, monkeypatch):
    from capsroute import training

    honest = training.learning_rate

    def explode(schedule, lr, step, *rest):
        return 1e30 if step == 14 else honest(schedule, lr, step, *rest)

    monkeypatch.setattr(training, "learning_rate", explode)
    with pytest.raises(DivergedError) as refusal:
        fit(config())
    message = str(refusal.value)
    for part in (
        "step 15: loss",
        "class lengths",
        "norm of Conv1's gradient",
        "last.ckpt",
        "--warmup",
        "--lr",
        "--lam",
    ):
        assert part in message
    saved, complaints = checkpoint.load_newest(tmp_path / "run")
    assert not complaints
    assert (saved.meta["epoch"], saved.meta["step"]) == (2, 0)
    assert all(torch.isfinite(tensor).all() for name, tensor in saved.tensors.items() if name.startswith("net."))
    assert not (tmp_path / "run/result.json").exists()


def test_a_collapsed_net_is_named(config):
    result = fit(config(lam="1e-20", epochs=1))
    assert result.state == "collapsed"


def test_a_saturated_net_is_named(config):
    result = fit(config(lam="1e20", epochs=1, lr=1e-9))
    assert result.state == "saturated"


def test_states_follow_the_stated_bounds():
    sound = {"shortest": 0.1, "longest": 0.9, "conv1_gradient": 1.0}
    assert state_of(sound) == "ok"
    assert state_of(sound | {"shortest": 0.91, "longest": 0.99}) == "saturated"
    assert state_of(sound | {"shortest": 0.0, "longest": 9e-4}) == "collapsed"
    assert state_of(sound | {"conv1_gradient": 9e-11}) == "collapsed"


def test_statistics_are_sums_over_samples():
    stats = EpochStats()
    capsules = torch.tensor([[[0.3, 0.4], [0.0, 0.1]], [[0.6, 0.0], [0.0, 0.8]]])
    gradient = torch.tensor([-1.0, 2.0, 3.0])
    stats.add(capsules, torch.tensor([0, 0]), torch.tensor(0.25), gradient)
    stats.add(capsules[:1], torch.tensor([0]), torch.tensor(1.0), gradient / 2)
    stats.add(capsules[:0], torch.tensor([], dtype=torch.long), torch.tensor(0.0), gradient)
    row = stats.summary()
    assert row["train_loss"] == pytest.approx(0.5)
    assert row["train_accuracy"] == pytest.approx(2 / 3)
    assert row["true_length"] == pytest.approx((0.5 + 0.6 + 0.5) / 3)
    assert row["other_length"] == pytest.approx((0.1 + 0.8 + 0.1) / 3)
    assert (row["longest"], row["shortest"], row["conv1_gradient"]) == pytest.approx((0.8, 0.1, 3.0))


def test_the_papers_schedule():
    def rate(step, warmup=200):
        return learning_rate("paper", 1e-3, step, 469, 150, warmup, 0.25)

    assert rate(0, warmup=0) == 1e-3
    assert rate(0) == pytest.approx(1e-3 / 200)
    assert rate(199) == rate(468) == pytest.approx(1e-3)
    assert rate(469) == pytest.approx(0.95e-3)
    assert rate(149 * 469) == pytest.approx(1e-3 * 0.95**149)


def test_the_one_cycle_schedule():
    rates = [learning_rate("one-cycle", 1e-3, step, 100, 4, 200, 0.25) for step in range(400)]
    assert max(rates) == rates[99] == pytest.approx(1e-3)
    assert rates == sorted(rates[:100]) + sorted(rates[100:], reverse=True)
    assert rates[-1] == pytest.approx(0, abs=1e-9)


def test_parts_of_a_training_split():
    sample = capsroute.load_dataset("sample")
    few = limit_per_class(sample, 105)
    assert sorted(few.labels.bincount().tolist()) == [10] * 5 + [11] * 5
    assert "105 of its 6,000 images" in few.title
    assert limit_per_class(sample, None) is sample
    kept, held = split_off(sample, 1000)
    assert (len(kept), len(held)) == (5000, 1000)
    everything = torch.cat([kept.images, held.images]).flatten(1).sum(1).sort().values
    assert torch.equal(everything, sample.images.flatten(1).sum(1).sort().values)


def test_holding_out_never_reads_the_test_split(config, dataset):
    import numpy as np

    with np.load(dataset) as archive:
        training_only = {name: archive[name] for name in ("x_train", "y_train")}
    np.savez(dataset, **training_only)
    result = fit(config(holdout=24, epochs=1))
    assert result.values["evaluated_on"] == "held-out training images"
    assert result.values["count"] == 24
    assert result.values["dataset"]["train_count"] == 72


def test_reconstruction_trains_a_decoder_that_is_kept(tmp_path, config):
    from capsroute.saving import load_all

    fit(config(reconstruct=True, epochs=1))
    _, decoder, _ = load_all(tmp_path / "run")
    assert decoder is not None
    assert decoder(torch.rand(2, 4, 16)).shape == (2, 1, 20, 20)


@pytest.mark.parametrize("changes", [{"clip": 0.1}, {"schedule": "one-cycle"}, {"precision": "bf16"}], ids=str)
def test_options_of_the_loop(config, changes):
    assert fit(config(epochs=1, **changes)).state == "ok"


def test_an_altered_net_is_refused(tmp_path, config):
    fit(config(epochs=1))
    path = tmp_path / "run/final.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(capsroute.DataError, match="damaged, cut short or altered"):
        capsroute.load(path)
    with pytest.raises(InputError, match="holds no trained net"):
        capsroute.load(tmp_path)
