import gzip
import os
import pickle
import struct

import data_files
import numpy as np
import pytest
import scipy.io

from capsroute.data import formats
from capsroute.data.mat import read_svhn
from capsroute.data.pickles import read_cifar_batch
from capsroute.errors import DataError

COLOUR = (3, 32, 32)


@pytest.fixture
def small_batches(monkeypatch):
    """CIFAR-10 files of 20 records instead of 10,000."""
    monkeypatch.setattr(formats, "CIFAR_PER_FILE", 20)
    return 20


# IDX


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx_pair_is_read(tmp_path, ending):
    images, labels = data_files.arrays(7, (5, 4))
    paths = [data_files.write_idx(tmp_path / f"{name}{ending}", a) for name, a in (("i", images), ("l", labels))]
    got_images, got_labels = formats.read_idx_pair(*paths, 7, (1, 5, 4), 10)
    assert np.array_equal(got_images, images[:, None])
    assert np.array_equal(got_labels, labels)
    assert got_labels.dtype == np.int64


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: data[:-3], "offset 33: the file ends, 3 bytes are missing"),
        (lambda data: data[:10], "offset 4: the header says .* expected"),
        (lambda data: b"", "offset 0: nothing is not the IDX magic"),
        (lambda data: data + b"x", "offset 36: more data where the file should end"),
        (lambda data: b"\0\0\x09\x03" + data[4:], "offset 0: 00000903 is not the IDX magic 00000803"),
        (lambda data: data[:4] + struct.pack(">I", 1 << 31) + data[8:], r"the header says \(2147483648, 4, 5\)"),
    ],
    ids=["short", "shorter", "empty", "long", "magic", "huge"],
)
def test_damaged_idx_is_refused_with_the_offset(tmp_path, ending, change, sentence):
    data = change(data_files.idx_bytes(np.zeros((1, 4, 5), np.uint8)))
    path = tmp_path / f"file{ending}"
    path.write_bytes(gzip.compress(data) if ending else data)
    with pytest.raises(DataError, match=sentence) as refusal:
        formats.read_idx(path, (1, 4, 5))
    assert str(path) in str(refusal.value)


def test_damaged_gzip_is_refused(tmp_path):
    path = data_files.write_idx(tmp_path / "file.gz", np.zeros((1, 4, 5), np.uint8))
    whole = path.read_bytes()
    for damaged in (whole[:-10], b"not gzip at all", whole[:-6] + b"\0" + whole[-5:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="damaged gzip data"):
            formats.read_idx(path, (1, 4, 5))


def test_a_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(data_files.idx_bytes(np.zeros((1, 4, 5), np.uint8)) + bytes(200 << 20), 1))
    with pytest.raises(DataError, match="more data where the file should end"):
        formats.read_idx(path, (1, 4, 5))


def test_a_folder_or_missing_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(DataError, match="cannot be read"):
            formats.read_idx(path, (1,))


# CIFAR-10


def test_cifar_binary_is_read(tmp_path, small_batches):
    parts = [data_files.arrays(20, COLOUR, seed=seed) for seed in (1, 2)]
    paths = []
    for number, (images, labels) in enumerate(parts):
        paths.append(tmp_path / f"{number}.bin")
        paths[-1].write_bytes(data_files.cifar_records(images, labels))
    images, labels = formats.read_cifar_binary(paths)
    assert np.array_equal(images, np.concatenate([part[0] for part in parts]))
    assert np.array_equal(labels, np.concatenate([part[1] for part in parts]))


def test_damaged_cifar_binary_is_refused(tmp_path, small_batches):
    images, labels = data_files.arrays(20, COLOUR)
    path = tmp_path / "batch.bin"
    labels[7] = 11
    for data, sentence in [
        (data_files.cifar_records(images, labels), r"offset 21511 \(record 7\): label 11 is outside 0 to 9"),
        (data_files.cifar_records(images[:19], labels[:19]), "the file ends, 3073 bytes are missing"),
        (data_files.cifar_records(images, labels * 0) + b"0", "more data where the file should end"),
    ]:
        path.write_bytes(data)
        with pytest.raises(DataError, match=sentence):
            formats.read_cifar_binary([path])


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_cifar_python_is_read(tmp_path, small_batches, protocol):
    images, labels = data_files.arrays(20, COLOUR)
    path = tmp_path / "data_batch_1"
    path.write_bytes(data_files.cifar_pickle(images, labels, protocol))
    got_images, got_labels = formats.read_cifar_python([path])
    assert np.array_equal(got_images, images)
    assert np.array_equal(got_labels, labels)


def test_cifar_python_of_python_2_is_read(small_batches):
    """As the official files are: byte strings for keys and pixels, written by hand in protocol 2."""
    images, labels = data_files.arrays(20, COLOUR)
    pixels = images.tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87R(K\x01K\x14M\x00\x0c\x86"
        b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        b"T" + struct.pack("<i", len(pixels)) + pixels + b"tb"
    )
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    data = b"\x80\x02}(U\x04data" + array + b"U\x06labels" + numbers + b"u."
    assert np.array_equal(pickle.loads(data, encoding="latin1")["data"], images.reshape(20, -1))
    got_images, got_labels = formats.parse_cifar_python("batch", data)
    assert np.array_equal(got_images, images)
    assert np.array_equal(got_labels, labels)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("ran",)


class Numpy:
    """Asks for a function of numpy's that is harmless, and not among those needed."""

    def __reduce__(self):
        return np.zeros, (3,)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "payload", [Bomb(), Numpy(), [Bomb()], {"data": Bomb()}], ids=["call", "numpy", "list", "dict"]
)
def test_a_malicious_pickle_is_refused_and_nothing_runs(tmp_path, monkeypatch, payload, protocol):
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps(payload, protocol=protocol)
    with pytest.raises(DataError, match="refused, not a CIFAR-10 batch"):
        read_cifar_batch("batch", data)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (pickle.dumps([1, 2], 2), "holds a list"),
        (pickle.dumps({"labels": [1]}, 2), "no array of unsigned bytes"),
        (pickle.dumps({"data": np.zeros(3, np.uint8), "labels": ["x"]}, 2), "no list of whole numbers"),
        (pickle.dumps({"data": np.zeros(3), "labels": [1]}, 2), "refused.*dtype 'f8'"),
        (pickle.dumps({"data": np.zeros(3, object), "labels": [1]}, 2), "refused.*dtype 'O8'"),
        (pickle.dumps({"data": np.zeros(3, ">i4"), "labels": [1]}, 2), "refused.*dtype of another form"),
        (b"\x80\x02}r\xff\xff\xff\xff.", "holds a dict|no array"),  # the memo's billionth place, in six bytes
        (b"\x80\x05\x96" + b"\xff" * 7 + b"\x0f.", "refused"),
        (b"", "refused"),
    ],
    ids=["list", "no-data", "labels", "floats", "objects", "big-endian", "memo", "huge-array", "empty"],
)
def test_pickles_that_are_no_batch_are_refused(data, sentence):
    with pytest.raises(DataError, match=sentence):
        read_cifar_batch("batch", data)


@pytest.mark.parametrize("kind", ["bin", "py"])
def test_cifar_archive_is_read_in_place(tmp_path, monkeypatch, small_batches, kind):
    monkeypatch.chdir(tmp_path)
    images, labels = data_files.arrays(20, COLOUR)
    name = f"cifar-10-batches-{kind}/test_batch" + (".bin" if kind == "bin" else "")
    data = (data_files.cifar_records if kind == "bin" else data_files.cifar_pickle)(images, labels)
    path = data_files.write_tar(
        tmp_path / "cifar.tar.gz", {f"cifar-10-batches-{kind}/readme.html": b"hello", name: data}
    )
    got_images, got_labels = formats.read_cifar_archive(path, [name])
    assert np.array_equal(got_images, images)
    assert np.array_equal(got_labels, labels)
    assert os.listdir(tmp_path) == ["cifar.tar.gz"]


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "cifar-10-batches-bin/../../evil"])
def test_archive_members_that_point_outside_are_refused(tmp_path, monkeypatch, name):
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    path = data_files.write_tar(tmp_path / "cifar.tar.gz", {name: b"x", "cifar-10-batches-bin/test_batch.bin": b""})
    with pytest.raises(DataError, match="which no CIFAR-10 archive does"):
        formats.read_cifar_archive(path, ["cifar-10-batches-bin/test_batch.bin"])
    assert not list(tmp_path.rglob("evil"))


def test_archives_that_are_damaged_or_bombs_are_refused(tmp_path, small_batches):
    name = "cifar-10-batches-bin/test_batch.bin"
    path = data_files.write_tar(tmp_path / "a.tar.gz", {name: data_files.cifar_records(*data_files.arrays(20, COLOUR))})
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:-4] + b"\0\0\0\0", b"no archive", gzip.compress(b"no tar" * 200)):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"a\.tar\.gz"):
            formats.read_cifar_archive(path, [name])
    data_files.write_tar(path, {"other": b"x"})
    with pytest.raises(DataError, match=f"holds no {name}"):
        formats.read_cifar_archive(path, [name])
    data_files.write_tar(path, {"large": bytes(65 << 20)})
    with pytest.raises(DataError, match="holds 'large', which no CIFAR-10 archive does"):
        formats.read_cifar_archive(path, [name])


def test_an_archive_never_unpacks_beyond_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "CIFAR_ARCHIVE_BYTES", 1 << 20)
    path = data_files.write_tar(tmp_path / "a.tar.gz", {f"file{n}": bytes(1 << 18) for n in range(8)})
    with pytest.raises(DataError, match="unpacks to more than 1048576 bytes"):
        formats.read_cifar_archive(path, ["x"])


# SVHN


@pytest.mark.parametrize("compress", [True, False])
def test_svhn_equals_scipy(tmp_path, compress):
    images, labels = data_files.arrays(9, COLOUR)
    path = data_files.write_svhn(tmp_path / "train_32x32.mat", images, labels, compress)
    got_images, got_labels = read_svhn(path, 9)
    assert np.array_equal(got_images, scipy.io.loadmat(path)["X"].transpose(3, 2, 0, 1))
    assert np.array_equal(got_images, images)
    assert np.array_equal(got_labels, labels)  # 10 became 0


def test_svhn_labels_may_be_doubles(tmp_path):
    images, labels = data_files.arrays(4, COLOUR)
    path = tmp_path / "a.mat"
    scipy.io.savemat(
        path, {"X": images.transpose(2, 3, 1, 0), "y": np.where(labels == 0, 10, labels).astype(float)[:, None]}
    )
    assert np.array_equal(read_svhn(path, 4)[1], labels)


def test_damaged_svhn_is_refused(tmp_path):
    images, labels = data_files.arrays(4, COLOUR)
    path = data_files.write_svhn(tmp_path / "a.mat", images, labels)
    whole = path.read_bytes()
    flipped = whole[:5000] + bytes([whole[5000] ^ 255]) + whole[5001:]
    for data, sentence in [
        (whole[:-5], "offset .*the file is damaged"),
        (whole[:60], "offset 124: not a little-endian MATLAB 5 file"),
        (b"\x89HDF\r\n\x1a\n" + whole[8:124] + b"    ", "MATLAB 7.3"),
        (
            whole[:128] + b"\x0f\0\0\0\xff\xff\xff\xff" + whole[136:],
            "offset 128: element of type 15 and 4294967295 bytes",
        ),
        (whole[:128], "holds no array 'X'"),
        (whole + whole[128:], "a second array 'X'"),
        (flipped, "damaged compressed data|no array|ends early"),
        (whole + b"abc", "the file ends within a tag"),
    ]:
        path.write_bytes(data)
        with pytest.raises(DataError, match=sentence):
            read_svhn(path, 4)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"X": np.zeros((32, 32, 3, 5), np.uint8)}, r"shape \(32, 32, 3, 5\), expected \(32, 32, 3, 4\)"),
        ({"y": np.full((4, 1), 11, np.uint8)}, r"y\[0\]: label 11 is outside 1 to 10"),
        ({"y": np.zeros((4, 1), np.uint8)}, r"y\[0\]: label 0 is outside 1 to 10"),
        ({"y": np.full((4, 1), 1.5)}, "numbers that are no bytes"),
        ({"X": np.zeros((32, 32, 3, 4), np.int16)}, "expected unsigned bytes"),
        ({"z": np.zeros(3)}, "unexpected array 'z'"),
        ({"y": "text"}, "array 'y' has shape"),
        ({"bomb": np.zeros(3_000_000)}, "unpacks to more than|an unexpected array"),
    ],
    ids=["count", "label-11", "label-0", "fraction", "type", "other", "text", "bomb"],
)
def test_svhn_of_another_content_is_refused(tmp_path, arrays, sentence):
    images, _ = data_files.arrays(4, COLOUR)
    sound = {"X": images.transpose(2, 3, 1, 0), "y": np.ones((4, 1), np.uint8)}
    scipy.io.savemat(tmp_path / "a.mat", sound | arrays, do_compression=True)
    with pytest.raises(DataError, match=sentence):
        read_svhn(tmp_path / "a.mat", 4)
