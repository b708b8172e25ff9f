"""Small but well-formed files of every format, made from arrays."""

import gzip
import io
import pickle
import struct
import tarfile

import numpy as np
import scipy.io


def arrays(count, shape=(28, 28), classes=10, seed=0):
    generator = np.random.default_rng(seed)
    return generator.integers(0, 256, (count, *shape), dtype=np.uint8), generator.integers(0, classes, count)


def idx_bytes(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def write_idx(path, array):
    data = idx_bytes(array)
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


def cifar_records(images, labels):
    return np.concatenate([labels[:, None].astype(np.uint8), images.reshape(len(images), -1)], axis=1).tobytes()


def cifar_pickle(images, labels, protocol=2, **changes):
    batch = {b"batch_label": b"one", b"labels": labels.tolist(), b"data": images.reshape(len(images), -1)} | changes
    return pickle.dumps(batch, protocol=protocol)


def write_tar(path, members):
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def write_svhn(path, images, labels, compress=True):
    """images [n, 3, 32, 32], labels with 0 for digit 0."""
    y = np.where(labels == 0, 10, labels).astype(np.uint8)[:, None]
    scipy.io.savemat(path, {"X": images.transpose(2, 3, 1, 0), "y": y}, do_compression=compress)
    return path
