import resource

import pytest
import torch

from capsroute import checkpoint
from capsroute.checkpoint import Checkpoint, CheckpointError


def make(number=1):
    return Checkpoint({"a": torch.arange(1000.0) * number, "b": torch.tensor(number)}, {"number": number})


def same(one, other):
    return one.meta == other.meta and all(torch.equal(one.tensors[name], other.tensors[name]) for name in one.tensors)


def test_round_trip_and_the_one_before(tmp_path):
    for number in (1, 2, 3):
        checkpoint.save(tmp_path, make(number))
    assert same(checkpoint.load(tmp_path / "last.ckpt"), make(3))
    assert same(checkpoint.load(tmp_path / "previous.ckpt"), make(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last.ckpt", "previous.ckpt"]


def test_an_empty_folder_has_none(tmp_path):
    assert checkpoint.load_newest(tmp_path) == (None, [])


def damages(data):
    middle = len(data) // 2
    return {
        "cut": data[:middle],
        "empty": b"",
        "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "header": data[:30] + b"0" + data[31:],
        "other": b"something else",
        "longer": data + b"x",
    }


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "header", "other", "longer"])
def test_a_damaged_last_one_falls_back_to_the_one_before(tmp_path, damage):
    checkpoint.save(tmp_path, make(1))
    checkpoint.save(tmp_path, make(2))
    last = tmp_path / "last.ckpt"
    last.write_bytes(damages(last.read_bytes())[damage])
    found, complaints = checkpoint.load_newest(tmp_path)
    assert same(found, make(1))
    assert len(complaints) == 1
    assert "last.ckpt" in complaints[0]
    (tmp_path / "previous.ckpt").write_bytes(b"")
    with pytest.raises(CheckpointError, match="no sound checkpoint is left"):
        checkpoint.load_newest(tmp_path)


def test_a_sound_file_of_another_kind_is_refused(tmp_path):
    body = b"no safetensors"
    import hashlib

    path = tmp_path / "last.ckpt"
    path.write_bytes(checkpoint.MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    with pytest.raises(CheckpointError, match="not a checkpoint of this library"):
        checkpoint.load(path)


@pytest.mark.parametrize("stage", ["fsync", "link", "replace"])
def test_whatever_fails_the_last_one_stays_whole(tmp_path, monkeypatch, stage):
    checkpoint.save(tmp_path, make(1))
    checkpoint.save(tmp_path, make(2))

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        if stage == "fsync":
            patched.setattr(checkpoint.os, "fsync", fail)
        elif stage == "link":
            patched.setattr(checkpoint.os, "link", fail)
            patched.setattr(checkpoint.shutil, "copyfile", fail)
        else:
            patched.setattr(checkpoint.Path, "replace", fail)
        with pytest.raises(CheckpointError, match=r"No space left on device\); the one before, .*last\.ckpt, is whole"):
            checkpoint.save(tmp_path, make(3))
    found, complaints = checkpoint.load_newest(tmp_path)
    assert same(found, make(2))
    assert not complaints
    checkpoint.save(tmp_path, make(4))
    assert same(checkpoint.load(tmp_path / "last.ckpt"), make(4))


def test_a_disk_that_gives_back_other_bytes_leaves_the_last_one(tmp_path, monkeypatch):
    checkpoint.save(tmp_path, make(1))
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint.Path, "read_bytes", lambda path: bytes(path.stat().st_size))
        with pytest.raises(CheckpointError, match=r"not what was written\); the one before, .*last\.ckpt, is whole"):
            checkpoint.save(tmp_path, make(2))
    assert same(checkpoint.load(tmp_path / "last.ckpt"), make(1))
    assert [path.name for path in tmp_path.iterdir()] == ["last.ckpt"]


def test_without_links_a_copy_does(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(checkpoint.os, "link", fail)
    checkpoint.save(tmp_path, make(1))
    checkpoint.save(tmp_path, make(2))
    assert same(checkpoint.load(tmp_path / "previous.ckpt"), make(1))


def test_a_file_larger_than_the_disk_allows(tmp_path):
    checkpoint.save(tmp_path, make(1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    large = Checkpoint({"a": torch.zeros(1_000_000)}, {})
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        with pytest.raises(CheckpointError, match="is whole"):
            checkpoint.save(tmp_path, large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert same(checkpoint.load(tmp_path / "last.ckpt"), make(1))
    assert [path.name for path in tmp_path.iterdir()] == ["last.ckpt"]
