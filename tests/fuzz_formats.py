"""Coverage-guided fuzzing of the readers.

    pip install atheris
    python tests/fuzz_formats.py READER -max_total_time=60

READER is idx, gzip, cifar, pickle, mat or npz. Any exception but `DataError` is a finding, and so is memory beyond
the limit. Not a part of the test suite, which fuzzes the same readers with hypothesis.
"""

import contextlib
import gzip
import io
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["capsroute.data"]):
    import capsroute.data.formats as formats
    from capsroute.data.mat import read_svhn
    from capsroute.data.pickles import read_cifar_batch
from capsroute.errors import DataError

sys.path.insert(0, str(Path(__file__).parent))
import data_files
import numpy as np
import scipy.io

FOLDER = Path(tempfile.mkdtemp())
formats.CIFAR_PER_FILE = 2


def seeds():
    """Sound files, from which the fuzzer starts."""
    images, labels = data_files.arrays(2, (3, 32, 32))
    small = np.arange(20, dtype=np.uint8).reshape(1, 4, 5)
    mat, npz = io.BytesIO(), io.BytesIO()
    scipy.io.savemat(mat, {"X": images.transpose(2, 3, 1, 0), "y": labels.astype(np.uint8)[:, None] + 1})
    np.savez(npz, images=small, labels=np.zeros(1, np.uint8))
    data_files.write_tar(FOLDER / "seed.tar.gz", {"a/b.bin": data_files.cifar_records(images, labels)})
    return {
        "idx": data_files.idx_bytes(small),
        "gzip": gzip.compress(data_files.idx_bytes(small)),
        "cifar": (FOLDER / "seed.tar.gz").read_bytes(),
        "pickle": data_files.cifar_pickle(images[:, :, :2, :2], labels),
        "mat": mat.getvalue(),
        "npz": npz.getvalue(),
    }


def file(data, name):
    path = FOLDER / name
    path.write_bytes(data)
    return path


READERS = {
    "idx": lambda data: formats.read_idx(file(data, "a"), (1, 4, 5)),
    "gzip": lambda data: formats.read_idx(file(data, "a.gz"), (1, 4, 5)),
    "cifar": lambda data: formats.read_cifar_archive(file(data, "a.tar.gz"), ["a/b.bin"]),
    "pickle": lambda data: read_cifar_batch("a", data),
    "mat": lambda data: read_svhn(file(data, "a.mat"), 2),
    "npz": lambda data: formats.read_npz(file(data, "a.npz"), "train"),
}


def main(reader, *options):
    def once(data):
        with contextlib.suppress(DataError):
            READERS[reader](data)

    corpus = FOLDER / "corpus"
    corpus.mkdir()
    (corpus / "seed").write_bytes(seeds()[reader])
    atheris.Setup([sys.argv[0], str(corpus), "-rss_limit_mb=2048", "-max_len=8192", *options], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
