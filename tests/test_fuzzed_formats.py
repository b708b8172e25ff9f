"""Whatever the bytes: a `DataError` or a result, never another exception."""

import contextlib
import gzip

import data_files
import numpy as np
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capsroute import DataError
from capsroute.data import formats
from capsroute.data.mat import read_svhn
from capsroute.data.pickles import read_cifar_batch


def mutations(whole):
    """Sound bytes with pieces cut out, overwritten and inserted."""
    place = st.integers(0, len(whole))
    edits = st.lists(st.tuples(place, st.integers(0, 12), st.binary(max_size=12)), max_size=4)

    def apply(edits):
        data = whole
        for at, cut, put in edits:
            data = data[:at] + put + data[at + cut :]
        return data

    return st.one_of(edits.map(apply), st.binary(max_size=300))


def sound_mat():
    import io

    out = io.BytesIO()
    images, labels = data_files.arrays(2, (3, 32, 32))
    scipy.io.savemat(out, {"X": images.transpose(2, 3, 1, 0), "y": labels.astype(np.uint8)[:, None] + 1})
    return out.getvalue()


FUZZ = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def only_data_errors(function):
    with contextlib.suppress(DataError):
        function()


@FUZZ
@given(mutations(data_files.idx_bytes(np.arange(20, dtype=np.uint8).reshape(1, 4, 5))), st.booleans())
def test_fuzzed_idx(tmp_path, data, zipped):
    path = tmp_path / ("fuzz.gz" if zipped else "fuzz")
    path.write_bytes(gzip.compress(data) if zipped else data)
    only_data_errors(lambda: formats.read_idx(path, (1, 4, 5)))


@FUZZ
@given(mutations(gzip.compress(data_files.idx_bytes(np.arange(20, dtype=np.uint8).reshape(1, 4, 5)), mtime=0)))
def test_fuzzed_gzip(tmp_path, data):
    path = tmp_path / "fuzz.gz"
    path.write_bytes(data)
    only_data_errors(lambda: formats.read_idx(path, (1, 4, 5)))


@FUZZ
@given(mutations(data_files.cifar_pickle(np.zeros((2, 3, 2, 2), np.uint8), np.array([3, 4]))))
def test_fuzzed_pickle(data):
    only_data_errors(lambda: read_cifar_batch("fuzz", data))


@FUZZ
@given(mutations(sound_mat()))
def test_fuzzed_mat(tmp_path, data):
    path = tmp_path / "fuzz.mat"
    path.write_bytes(data)
    only_data_errors(lambda: read_svhn(path, 2))


@FUZZ
@given(data=st.data())
def test_fuzzed_archives(tmp_path, data):
    path = data_files.write_tar(tmp_path / "sound.tar.gz", {"a/b.bin": b"12345678"})
    (tmp_path / "fuzz.tar.gz").write_bytes(data.draw(mutations(path.read_bytes())))
    only_data_errors(lambda: formats.read_cifar_archive(tmp_path / "fuzz.tar.gz", ["a/b.bin"]))
    np.savez(tmp_path / "sound.npz", images=np.zeros((2, 3, 3), np.uint8), labels=np.zeros(2, np.uint8))
    (tmp_path / "fuzz.npz").write_bytes(data.draw(mutations((tmp_path / "sound.npz").read_bytes())))
    only_data_errors(lambda: formats.read_npz(tmp_path / "fuzz.npz", "train"))
