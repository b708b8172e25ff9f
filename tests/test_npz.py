"""One's own arrays."""

import struct
import zipfile

import data_files
import numpy as np
import pytest

from capsroute import DataError
from capsroute.data import formats


@pytest.mark.parametrize("shape", [(6, 9, 8), (6, 1, 9, 8), (6, 9, 8, 1)], ids=str)
def test_npz_is_read_in_every_layout(tmp_path, shape):
    images, labels = data_files.arrays(6, (9, 8), classes=3)
    np.savez_compressed(tmp_path / "a.npz", x_train=images.reshape(shape), y_train=labels, x_test=images, y_test=labels)
    got_images, got_labels = formats.read_npz(tmp_path / "a.npz", "train")
    assert np.array_equal(got_images, images[:, None])
    assert np.array_equal(got_labels, labels)


def test_npz_with_colours_last(tmp_path):
    images, labels = data_files.arrays(6, (9, 8, 3), classes=3)
    np.savez(tmp_path / "a.npz", images=images, labels=labels)
    assert np.array_equal(formats.read_npz(tmp_path / "a.npz", "train")[0], images.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"images": np.zeros((2, 3, 3)), "labels": np.zeros(2, int)}, "images: float64"),
        ({"images": np.zeros((2, 3, 3), np.uint8), "labels": np.zeros(3, int)}, "expected 2 whole numbers"),
        (
            {"images": np.zeros((2, 3, 3), np.uint8), "labels": np.array([0, -1])},
            "labels: record 1: label -1 is outside",
        ),
        ({"images": np.zeros((2, 3, 3), np.int32), "labels": np.zeros(2, int)}, "expected uint8"),
        ({"images": np.zeros((0, 3, 3), np.uint8), "labels": np.zeros(0, int)}, "at least one image"),
        ({"pictures": np.zeros((2, 3, 3), np.uint8)}, "expected arrays x_train and y_train"),
        ({"images": np.array([{}], object), "labels": np.zeros(1, int)}, "images: object"),
    ],
    ids=["floats", "count", "negative", "wide", "none", "names", "objects"],
)
def test_npz_of_another_content_is_refused(tmp_path, arrays, sentence):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=sentence):
        formats.read_npz(tmp_path / "a.npz", "train")


@pytest.mark.parametrize("header", [b"{'shape': (2, 3,", b"{'shape'", b"[]", b"\xff\xfe", b"{" * 9000])
def test_npz_with_a_broken_header_is_refused(tmp_path, header):
    npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(18)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("images.npy", npy)
        archive.writestr("labels.npy", npy)
    with pytest.raises(DataError, match=r"not a sound \.npy array"):
        formats.read_npz(tmp_path / "a.npz", "train")


def test_npz_with_a_name_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ïmages.npy", b"")
    path.write_bytes(path.read_bytes().replace("ï".encode(), b"\xb7\xb7"))
    with pytest.raises(DataError, match=r"not a sound \.npz archive"):
        formats.read_npz(path, "train")


def test_npz_that_declares_too_much_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999, 28, 28), }"
    npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", npy)
        archive.writestr("labels.npy", npy)
    with pytest.raises(DataError, match="of 78399999999216 bytes; expected whole numbers that fit"):
        formats.read_npz(path, "train")
    monkeypatch.setattr(formats, "NPZ_BYTES", 1000)
    np.savez_compressed(path, images=np.zeros((9, 28, 28), np.uint8), labels=np.zeros(9, int))
    with pytest.raises(DataError, match="over the limit of 1000"):
        formats.read_npz(path, "train")
