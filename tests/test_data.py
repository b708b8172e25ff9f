"""Finding, checking and describing datasets."""

import dataclasses
import inspect
import os
import pathlib
import time

import data_files
import numpy as np
import pytest
import torch

from capsroute import DATASETS, DataError, InputError, load_dataset
from capsroute.data import files, formats
from capsroute.data.sample import ARCHIVE

REAL = pathlib.Path(os.environ.get("CAPSROUTE_DATA") or pathlib.Path(__file__).parents[2] / "data")


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(tmp_path, monkeypatch):
    """No dataset of the machine is found, and no connection opened."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CAPSROUTE_OFFLINE", "1")
    monkeypatch.delenv("CAPSROUTE_DATA", raising=False)
    monkeypatch.setattr(files, "USUAL_PLACES", ())


@pytest.fixture
def small(monkeypatch):
    """The datasets with 20 samples a split, and files of them that verify."""
    monkeypatch.setattr(formats, "CIFAR_PER_FILE", 4)
    table = {}
    for name, info in DATASETS.items():
        counts = {"train": 20, "test": 4}
        content = {}
        for split, count in counts.items():
            images, labels = small_arrays(name, split, count)
            content[split] = files.content_digest(images, labels)
        table[name] = dataclasses.replace(info, counts=counts, content=content)
    monkeypatch.setattr(files, "DATASETS", table)
    return table


def small_arrays(name, split, count=None):
    count = count or {"train": 20, "test": 4}[split]
    return data_files.arrays(count, DATASETS[name].shape, seed=len(name) + (split == "test"))


def place_idx(name, folder, ending="", dot="-"):
    folder.mkdir(parents=True)
    for split, prefix in (("train", "train"), ("test", "t10k")):
        images, labels = small_arrays(name, split)
        data_files.write_idx(folder / f"{prefix}-images{dot}idx3-ubyte{ending}", images[:, 0])
        data_files.write_idx(folder / f"{prefix}-labels{dot}idx1-ubyte{ending}", labels)


def place_cifar(folder, kind):
    inside = f"cifar-10-batches-{kind}"
    members = {}
    for split, stems in (("train", [f"data_batch_{n}" for n in range(1, 6)]), ("test", ["test_batch"])):
        images, labels = small_arrays("cifar10", split)
        for number, stem in enumerate(stems):
            part = slice(number * 4, number * 4 + 4)
            write = data_files.cifar_records if kind == "bin" else data_files.cifar_pickle
            members[f"{inside}/{stem}{'.bin' if kind == 'bin' else ''}"] = write(images[part], labels[part])
    return members


def check(name, root=None):
    for split in ("train", "test"):
        dataset = load_dataset(name, root, split)
        images, labels = small_arrays(name, split)
        assert np.array_equal(dataset.images.numpy(), images)
        assert np.array_equal(dataset.labels.numpy(), labels)
        assert dataset.images.dtype == torch.uint8
        assert dataset.labels.dtype == torch.int64
        assert dataset.classes == DATASETS[name].classes
        assert dataset.verified
    return dataset


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "folder"),
    [(name, folder) for name in ("mnist", "fashion-mnist") for folder in (*DATASETS[name].folders, ".")],
)
def test_idx_is_found_in_every_layout(tmp_path, small, name, folder, ending):
    place_idx(name, tmp_path / "root" / folder, ending)
    check(name, tmp_path / "root")


def test_idx_with_dots_in_the_names(tmp_path, small):
    place_idx("mnist", tmp_path / "root/mnist", dot=".")
    check("mnist", tmp_path / "root")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["bin", "py"])
@pytest.mark.parametrize("folder", ["", "CIFAR10"])
def test_cifar_is_found_in_every_layout(tmp_path, small, kind, packed, folder):
    place = tmp_path / "root" / folder
    members = place_cifar(place, kind)
    place.mkdir(parents=True)
    if packed:
        data_files.write_tar(place / f"cifar-10-{'binary' if kind == 'bin' else 'python'}.tar.gz", members)
    else:
        for member, data in members.items():
            (place / member).parent.mkdir(exist_ok=True)
            (place / member).write_bytes(data)
    check("cifar10", tmp_path / "root")


@pytest.mark.parametrize("folder", ["svhn", "."])
def test_svhn_is_found(tmp_path, small, folder):
    (tmp_path / "root" / folder).mkdir(parents=True)
    for split in ("train", "test"):
        data_files.write_svhn(tmp_path / "root" / folder / f"{split}_32x32.mat", *small_arrays("svhn", split))
    check("svhn", tmp_path / "root")


def test_places_are_looked_in_in_order(tmp_path, small, monkeypatch):
    places = [tmp_path / "root", tmp_path / "variable", tmp_path / "cache/capsroute", tmp_path / "usual"]
    monkeypatch.setenv("CAPSROUTE_DATA", str(places[1]))
    monkeypatch.setattr(files, "USUAL_PLACES", (places[3],))
    for place in reversed(places):
        place_idx("mnist", place / "mnist")
        assert load_dataset("mnist", places[0]).source.startswith(str(place))


def test_usual_places_must_name_the_dataset(tmp_path, small, monkeypatch):
    """Digits lying bare in ~/data are nobody's Fashion-MNIST."""
    monkeypatch.setattr(files, "USUAL_PLACES", (tmp_path / "data",))
    place_idx("mnist", tmp_path / "data")
    with pytest.raises(DataError, match="not on this machine"):
        load_dataset("mnist")


def test_usual_places_may_hold_files_that_tell_their_dataset_bare(tmp_path, small, monkeypatch):
    """As torchvision leaves them in the folder that it is given."""
    monkeypatch.setattr(files, "USUAL_PLACES", (tmp_path / "data",))
    (tmp_path / "data").mkdir()
    for split in ("train", "test"):
        data_files.write_svhn(tmp_path / f"data/{split}_32x32.mat", *small_arrays("svhn", split))
    for member, data in place_cifar(tmp_path / "data", "py").items():
        (tmp_path / "data" / member).parent.mkdir(exist_ok=True)
        (tmp_path / "data" / member).write_bytes(data)
    check("svhn")
    check("cifar10")


def test_a_label_out_of_range_is_told_with_its_file_and_offset(tmp_path, small):
    place_idx("mnist", tmp_path / "root")
    labels = tmp_path / "root/train-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:-1] + b"\x0a")
    with pytest.raises(
        DataError, match=r"train-labels-idx1-ubyte: offset 27 \(record 19\): label 10 is outside 0 to 9"
    ):
        load_dataset("mnist", tmp_path / "root")


def test_nothing_found_says_where_it_looked_and_what_helps(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPSROUTE_DATA", "/nowhere/data")
    monkeypatch.setattr(files, "USUAL_PLACES", (tmp_path / "share/datasets",))  # the real one may have it
    with pytest.raises(DataError) as refusal:
        load_dataset("fashion-mnist", tmp_path / "root")
    for part in (
        str(tmp_path / "root"),
        "/nowhere/data",
        str(tmp_path / "cache/capsroute"),
        str(tmp_path / "share/datasets"),
        "capsroute data fetch fashion-mnist",
        "apt-get install dataset-fashion-mnist",
        "export CAPSROUTE_DATA=",
        "'sample'",
    ):
        assert part in str(refusal.value)


def test_other_content_is_refused(tmp_path, small):
    place_idx("mnist", tmp_path / "root")
    with pytest.raises(DataError, match="this is MNIST, not Fashion-MNIST"):
        load_dataset("fashion-mnist", tmp_path / "root")
    images = tmp_path / "root/train-images-idx3-ubyte"
    data = bytearray(images.read_bytes())
    data[1000] ^= 1
    images.write_bytes(data)
    with pytest.raises(DataError, match="damaged or altered, put it away and run: capsroute data fetch mnist"):
        load_dataset("mnist", tmp_path / "root")


def test_npz_of_ones_own(tmp_path):
    images, labels = data_files.arrays(6, (9, 8), classes=3)
    np.savez(tmp_path / "mine.npz", x_train=images, y_train=labels, x_test=images[:2], y_test=labels[:2])
    dataset = load_dataset(tmp_path / "mine.npz")
    assert np.array_equal(dataset.images.numpy()[:, 0], images)
    assert dataset.classes == tuple(map(str, range(int(labels.max()) + 1)))
    assert len(load_dataset("mine.npz", tmp_path, "test")) == 2


def test_npz_has_the_classes_of_its_training_labels(tmp_path):
    images, labels = data_files.arrays(6, (9, 8), classes=3)
    labels[:] = [0, 1, 2, 0, 1, 2]
    np.savez(tmp_path / "mine.npz", x_train=images, y_train=labels, x_test=images[:2], y_test=labels[:2])
    assert load_dataset(tmp_path / "mine.npz", split="test").classes == ("0", "1", "2")
    np.savez(tmp_path / "mine.npz", x_train=images, y_train=labels, x_test=images[:2], y_test=labels[:2] + 2)
    with pytest.raises(DataError, match=r"mine\.npz: y_test: record 1: label 3 is outside 0 to 2"):
        load_dataset(tmp_path / "mine.npz", split="test")
    np.savez(tmp_path / "mine.npz", images=images, labels=labels.astype(np.uint64) << 40)
    with pytest.raises(DataError, match="label 1099511627776 is outside 0 to 9999"):
        load_dataset(tmp_path / "mine.npz")


def test_npz_without_a_test_split_is_no_test_split(tmp_path):
    """Images that were trained on must not be what a net is judged by."""
    images, labels = data_files.arrays(6, (9, 8), classes=3)
    np.savez(tmp_path / "mine.npz", images=images, labels=labels)
    assert len(load_dataset(tmp_path / "mine.npz")) == 6
    with pytest.raises(DataError, match=r"expected arrays x_test and y_test.*--holdout"):
        load_dataset(tmp_path / "mine.npz", split="test")


def test_unknown_names_and_splits_are_refused():
    with pytest.raises(InputError, match=r"unknown dataset 'fashionmnist', and .* did you mean 'fashion-mnist'"):
        load_dataset("fashionmnist")
    with pytest.raises(InputError, match="split='validation' must be one of train, test"):
        load_dataset("sample", split="validation")


def test_the_table_is_complete():
    for name, info in DATASETS.items():
        assert info.name == name
        assert len(info.classes) == 10
        for split in ("train", "test"):
            for file in info.files.get(split, ()):
                assert file.urls
                assert len(file.sha256) == 64
                assert file.size > 1000
                assert all(url.endswith(file.name) for url in file.urls)


# The embedded sample


def test_sample_is_balanced_small_and_quick():
    assert ARCHIVE.stat().st_size < 4_000_000
    start = time.perf_counter()
    splits = {split: load_dataset("sample", split=split) for split in ("train", "test")}
    assert time.perf_counter() - start < 2  # 0.03 s here; the bound is for a machine that is busy
    assert splits["train"].labels.bincount().tolist() == [600] * 10
    assert splits["test"].labels.bincount().tolist() == [100] * 10
    assert "Sample" in splits["train"].title
    assert splits["train"].verified


def real(name):
    """The real dataset beside the project, or a reason to skip."""
    info = DATASETS[name]
    if files.find_split(info, REAL, "train") is None:
        pytest.skip(f"{info.title} is not in {REAL}; set CAPSROUTE_DATA to a folder that has it")
    return {split: load_dataset(name, REAL, split) for split in ("train", "test")}


def test_sample_equals_the_official_images():
    full = real("fashion-mnist")
    with np.load(ARCHIVE) as archive:
        for split, dataset in full.items():
            positions = torch.from_numpy(archive[f"positions_{split}"].astype(np.int64))
            sample = load_dataset("sample", split=split)
            assert len(positions.unique()) == len(sample)
            assert torch.equal(sample.images, dataset.images[positions])
            assert torch.equal(sample.labels, dataset.labels[positions])


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "sample"])
def test_the_real_dataset_is_read_whole(name):
    for split, dataset in real(name).items():
        assert len(dataset) == DATASETS[name].counts[split]
        assert dataset.labels.unique().tolist() == list(range(10))
        assert dataset.verified == (name != "svhn")


def test_public_signature():
    assert list(inspect.signature(load_dataset).parameters)[:3] == ["name", "root", "split"]
