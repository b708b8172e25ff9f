"""The command as a user runs it: signals, kills, full disks, several processes."""

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

import pytest
import small_runs
import torch
from PIL import Image

import capsroute
from capsroute import checkpoint

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def dataset(tmp_path):
    return small_runs.write_dataset(tmp_path)


def weights(folder):
    return capsroute.load(folder).state_dict()


def assert_same_weights(one, other):
    first, second = weights(one), weights(other)
    assert all(torch.equal(first[name], second[name]) for name in first)


def start(words):
    return subprocess.Popen(
        [small_runs.COMMAND, *words],
        env=small_runs.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.02)


def run_script(name, *arguments):
    """A program of this folder, in a process without run-time checks of shapes."""
    return subprocess.run(
        [sys.executable, str(HERE / name), *map(str, arguments)],
        env=small_runs.environment(CAPSROUTE_NO_SHAPE_CHECKS="1", PYTHONPATH=str(HERE)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_run_killed_at_any_moment_ends_with_the_same_bits(tmp_path):
    done = run_script("killed_runs.py", tmp_path, "20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 runs" in done.stdout


def test_a_compiled_run_follows_a_plain_one(tmp_path):
    done = run_script("compiled_run.py", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_says_how_to_go_on(tmp_path, dataset, number, code):
    out = tmp_path / "run"
    process = start(small_runs.arguments(dataset, out, epochs=400, quiet=False))
    wait_for(out / "last.ckpt")
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert f"capsroute train --resume --out {out}" in errors
    assert "Traceback" not in errors
    assert "epoch 1/400" in output
    saved, complaints = checkpoint.load_newest(out)
    assert not complaints
    assert saved.meta["epoch"] >= 1


def test_a_stopped_and_resumed_run_is_the_uninterrupted_one(tmp_path, dataset):
    words = small_runs.arguments(dataset, tmp_path / "stopped", epochs=30)
    process = start(words)
    wait_for(tmp_path / "stopped/last.ckpt")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    resumed = small_runs.run(["train", "--resume", "--out", tmp_path / "stopped", "--no-quiet"])
    assert resumed.returncode == 0, resumed.stderr
    assert "from epoch" in resumed.stdout
    assert "accuracy" in resumed.stdout
    assert small_runs.run(small_runs.arguments(dataset, tmp_path / "whole", epochs=30)).returncode == 0
    assert_same_weights(tmp_path / "stopped", tmp_path / "whole")


@pytest.mark.parametrize("damage", ["truncated", "flipped", "swapped"])
def test_a_damaged_checkpoint_falls_back_with_a_warning(tmp_path, dataset, damage):
    out = tmp_path / "run"
    assert small_runs.run(small_runs.arguments(dataset, out)).returncode == 0
    whole = weights(out)
    for name in ("result.json", "final.safetensors"):
        (out / name).unlink()
    last = out / "last.ckpt"
    data = last.read_bytes()
    if damage == "swapped":
        other = tmp_path / "other"
        assert small_runs.run(small_runs.arguments(dataset, other, seed=1)).returncode == 0
        last.write_bytes((other / "last.ckpt").read_bytes())
        done = small_runs.run(["train", "--resume", "--out", out])
        assert done.returncode == 2
        assert "--seed was 1 and is 0" in done.stderr
        return
    last.write_bytes(data[:-1000] if damage == "truncated" else data[:9000] + bytes([data[9000] ^ 1]) + data[9001:])
    done = small_runs.run(["train", "--resume", "--out", out, "--no-quiet"])
    assert done.returncode == 0, done.stderr
    assert "warning" in done.stdout
    assert "damaged, its checksum does not fit; going on from the one before" in done.stdout.replace("\n", " ")
    again = weights(out)
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path, dataset):
    """The disk takes the first epochs' checkpoints, and then no file of that size."""
    out = tmp_path / "run"
    process = start(small_runs.arguments(dataset, out, epochs=400))
    wait_for(out / "previous.ckpt")
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100_000, 100_000))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "the checkpoint could not be written" in errors
    assert "is whole" in errors
    assert "Traceback" not in errors
    saved, complaints = checkpoint.load_newest(out)
    assert saved.meta["epoch"] >= 1
    assert not complaints
    assert not list(out.glob("*.writing"))


def test_too_little_space_is_told_before_the_first_step(tmp_path, dataset, monkeypatch):
    from capsroute import TrainConfig, run

    monkeypatch.setattr(run.shutil, "disk_usage", lambda _: type("usage", (), {"free": 1000}))
    config = TrainConfig(**small_runs.options(dataset, tmp_path / "run"))
    with pytest.raises(checkpoint.CheckpointError, match="MB for checkpoints and 0 MB are free"):
        capsroute.fit(config)
    assert not (tmp_path / "run/steps.csv").exists()


def test_a_folder_that_cannot_be_written_to(dataset):
    done = small_runs.run(small_runs.arguments(dataset, "/proc/capsroute-run"))
    assert done.returncode == 2
    assert "/proc/capsroute-run cannot be written to" in done.stderr
    assert done.stderr.count("\n") == 1


def test_two_runs_in_one_folder_the_second_is_refused(tmp_path, dataset):
    out = tmp_path / "run"
    process = start(small_runs.arguments(dataset, out, epochs=400))
    try:
        wait_for(out / "config.json")
        second = small_runs.run(["train", "--resume", "--out", out])
        assert second.returncode == 2
        assert "is in use by another run" in second.stderr
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_two_processes_follow_one(tmp_path, dataset):
    for devices in (1, 2):
        done = small_runs.run(small_runs.arguments(dataset, tmp_path / str(devices), devices=devices))
        assert done.returncode == 0, done.stderr
        assert not done.stdout
    one, two = weights(tmp_path / "1"), weights(tmp_path / "2")
    for name in one:
        # Adam divides small gradients by their like, so rounding of either sum moves a weight by up to lr / 1000.
        torch.testing.assert_close(one[name], two[name], rtol=1e-4, atol=1e-5)
    results = [json.loads((tmp_path / f"{devices}/result.json").read_text()) for devices in (1, 2)]
    assert [result["processes"] for result in results] == [1, 2]
    assert results[0]["confusion"] == results[1]["confusion"]
    assert (tmp_path / "1/metrics.csv").read_text().splitlines()[1].split(",")[:3] == (
        (tmp_path / "2/metrics.csv").read_text().splitlines()[1].split(",")[:3]
    )


def test_processes_that_draw_lots_resume_to_the_same_bits(tmp_path, dataset):
    """Of the last 5 images one process has 3 and the other 2, so their random states part."""
    uneven = {"devices": 2, "epochs": 12, "batch_size": 10, "limit": 95, "drop_capsules": 0.2, "flip": True}
    process = start(small_runs.arguments(dataset, tmp_path / "stopped", **uneven))
    wait_for(tmp_path / "stopped/last.ckpt")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "test"}
    other = small_runs.run(["train", "--resume", "--out", tmp_path / "stopped"], **alone)
    assert other.returncode == 2
    assert "is a run of 2 processes, not of 1; go on with it with as many" in other.stderr
    resumed = small_runs.run(["train", "--resume", "--out", tmp_path / "stopped"])
    assert resumed.returncode == 0, resumed.stderr
    assert small_runs.run(small_runs.arguments(dataset, tmp_path / "whole", **uneven)).returncode == 0
    assert_same_weights(tmp_path / "stopped", tmp_path / "whole")


def test_torchrun_starts_the_processes(tmp_path, dataset):
    """Its variables, as it sets them for each of two processes on one machine."""
    words = small_runs.arguments(dataset, tmp_path / "run", epochs=1)
    port = str(29600 + os.getpid() % 300)
    processes = []
    for rank in ("0", "1"):
        variables = {
            "RANK": rank,
            "LOCAL_RANK": rank,
            "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2",
            "GROUP_RANK": "0",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "TORCHELASTIC_RUN_ID": "test",
        }
        processes.append(
            subprocess.Popen(
                [small_runs.COMMAND, *words], env=small_runs.environment(**variables), stderr=subprocess.PIPE, text=True
            )
        )
    errors = [process.communicate(timeout=90)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    assert json.loads((tmp_path / "run/result.json").read_text())["processes"] == 2


def test_quiet_prints_nothing_and_otherwise_there_is_a_line_for_each_epoch(tmp_path, dataset):
    quiet = small_runs.run(small_runs.arguments(dataset, tmp_path / "quiet"))
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    plain = small_runs.run(small_runs.arguments(dataset, tmp_path / "plain", quiet=False))
    assert sum("epoch " in line and "train loss" in line for line in plain.stdout.splitlines()) == 3
    assert "cpu, fp32 (as asked)" in plain.stdout
    assert not plain.stderr


def test_a_mistake_is_one_sentence(tmp_path, dataset):
    for changes, sentence in [
        ({"lam": "0"}, "lam=0.0 must be a number"),
        ({"dataset": "nothing"}, "unknown dataset 'nothing'"),
        ({"epochs": 0}, "epochs=0 must be a whole number"),
    ]:
        done = small_runs.run(small_runs.arguments(dataset, tmp_path / "run", **changes))
        assert done.returncode == 2
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "run/config.json").exists()


def test_evaluate_predict_and_diagnose(tmp_path, dataset):
    out = tmp_path / "run"
    words = small_runs.arguments(dataset, out, epochs=8, lr=0.003, routing="adaptive", iterations=2, step=0.01)
    assert small_runs.run(words).returncode == 0
    result = json.loads((out / "result.json").read_text())

    done = small_runs.run(["evaluate", out, "--json", "--figure", tmp_path / "confusion.png"])
    told = json.loads(done.stdout)
    assert told["accuracy"] == result["accuracy"]
    assert told["confusion"] == result["confusion"]
    with Image.open(tmp_path / "confusion.png") as picture:
        assert min(picture.size) > 300
    assert "accuracy" in small_runs.run(["evaluate", out]).stdout

    picture = Image.new("L", (50, 70), 20)
    picture.paste(240, (25, 35, 50, 70))  # the fourth quarter
    picture.save(tmp_path / "mine.png")
    told = json.loads(small_runs.run(["predict", out, tmp_path / "mine.png", "--json"]).stdout)
    assert told[0]["prediction"] == "3"
    assert len(told[0]["lengths"]) == 3
    assert "mine.png" in small_runs.run(["predict", out, tmp_path / "mine.png"]).stdout

    reports = json.loads(small_runs.run(["diagnose", out, "--json"]).stdout)
    assert [report["name"] for report in reports] == ["stem (Conv1)", "primary", "layers.0 (adaptive)"]
    assert all(report["gradient_norm"] > 0 for report in reports)
    first, second = reports[2]["effective_lambda"]
    assert first == 1
    assert second > 1
    assert "effective λ" in small_runs.run(["diagnose", out]).stdout

    for words, sentence in [
        (["predict", out, tmp_path / "none.png"], "none.png: not a readable PNG or JPEG"),
        (["evaluate", out, "--dataset", "sample"], r"the net takes images of (1, 20, 20) in 4 classes"),
        (["evaluate", tmp_path], "holds no trained net"),
    ]:
        done = small_runs.run(words)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr
