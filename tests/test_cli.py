import os
import pathlib
import subprocess
import sys

from PIL import Image

import capsroute

COMMAND = str(pathlib.Path(sys.executable).with_name("capsroute"))


def run(*arguments):
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_routings_lists_every_routing_with_its_paper():
    done = run("routings")
    assert done.returncode == 0
    assert not done.stderr
    for entry in capsroute.ROUTINGS.values():
        assert entry.name in done.stdout
        assert entry.paper.split(":")[0] in done.stdout


def test_version():
    assert run("--version").stdout == f"capsroute {capsroute.__version__}\n"


def test_unknown_command_exits_2_without_a_traceback():
    done = run("routing")
    assert done.returncode == 2
    assert "Traceback" not in done.stdout + done.stderr


def data_run(tmp_path, *arguments, **variables):
    """The command on a machine that has no datasets and no network."""
    environment = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "CAPSROUTE_OFFLINE": "1"}
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CAPSROUTE")}
    return subprocess.run(
        [COMMAND, "data", *arguments],
        env=kept | environment | variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


def test_data_list_tells_what_exists_and_what_is_here(tmp_path):
    done = data_run(tmp_path, "list", COLUMNS="200")  # wide enough for a path, wherever the package lies
    assert done.returncode == 0
    for name in capsroute.DATASETS:
        assert name in done.stdout
    assert "sample.npz" in done.stdout.replace("\n", "")
    assert str(tmp_path / "cache/capsroute") in done.stdout


def test_data_verify_reads_the_sample(tmp_path):
    done = data_run(tmp_path, "verify", "sample")
    assert done.returncode == 0
    assert "sample train: 6,000 images" in done.stdout
    assert "content verified" in done.stdout


def test_data_verify_refuses_a_damaged_file(tmp_path):
    folder = tmp_path / "mnist"
    folder.mkdir()
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        (folder / name).write_bytes(b"\0\0\x08\x03damaged")
    done = data_run(tmp_path, "verify", "mnist", "--root", str(tmp_path))
    assert done.returncode == 2
    assert "DAMAGED OR MISSING" in done.stdout
    assert "train-images-idx3-ubyte: offset 4" in done.stderr
    assert "Traceback" not in done.stderr


def test_data_show_draws_a_sheet(tmp_path):
    done = data_run(tmp_path, "show", "sample", "--out", "pictures/grid.png", "--split", "test")
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "pictures/grid.png") as picture:
        assert picture.format == "PNG"
        assert min(picture.size) > 400
        assert len(set(picture.convert("L").resize((64, 64)).tobytes())) > 50


def test_data_fetch_offline_says_what_helps(tmp_path):
    done = data_run(tmp_path, "fetch", "cifar10")
    assert done.returncode == 2
    assert done.stderr.startswith("capsroute: CIFAR-10's train split is not on this machine; looked in")
    assert "Traceback" not in done.stderr


def test_data_mistakes_are_one_sentence(tmp_path):
    for arguments, sentence in [
        (("fetch", "mnits"), "unknown dataset 'mnits'; did you mean 'mnist'"),
        (("show", "sample", "--out", "grid.txt"), "must end in .png, .svg or .pdf"),
        (("show", "sample", "--out", "grid.png", "--split", "all"), "split='all' must be one of train, test"),
        (("show", "nothing/here", "--out", "grid.png"), "unknown dataset 'nothing/here'"),
    ]:
        done = data_run(tmp_path, *arguments)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1
