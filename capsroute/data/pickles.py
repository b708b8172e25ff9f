"""CIFAR-10's Python batches, without running anything that a pickle can say.

A pickle is a program: it names functions and calls them. Here only the instructions that make dicts, lists, tuples,
strings and numbers are known, and the names that numpy's arrays need are bound to inert stand-ins; all else is
refused. The array is then made from its bytes, checked against its declared shape and type.
"""

import codecs
import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capsroute.errors import DataError

DTYPES = {"u1": np.uint8, "i1": np.int8, "i2": np.int16, "i4": np.int32, "i8": np.int64}

INSTRUCTIONS = """
    PROTO FRAME MARK STOP POP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG1 BINFLOAT
    STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINBYTES SHORT_BINBYTES BINBYTES8
    EMPTY_DICT DICT SETITEM SETITEMS EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3
    PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET GLOBAL STACK_GLOBAL REDUCE BUILD
"""


class _Dtype:
    """Stands for `numpy.dtype`."""

    def __init__(self, name: object = "", align: object = False, copy: object = False) -> None:
        if not isinstance(name, str) or name.lstrip("<|=") not in DTYPES:
            raise pickle.UnpicklingError(f"the dtype {name!r}")
        self.dtype = np.dtype(DTYPES[name.lstrip("<|=")])

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", "|", "="):
            raise pickle.UnpicklingError("a dtype of another form than numpy's")


class _Array:
    """Stands for `numpy.ndarray`: made empty, filled by its state."""

    value: NDArray[Any] | None = None

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise pickle.UnpicklingError("an array of another form than numpy's")
        _, shape, dtype, fortran, data = state
        if isinstance(data, str):
            data = codecs.latin_1_encode(data)[0]
        if not isinstance(dtype, _Dtype) or not isinstance(data, bytes) or not isinstance(shape, tuple):
            raise pickle.UnpicklingError("an array of another form than numpy's")
        if not all(isinstance(side, int) and 0 <= side <= len(data) for side in shape):
            raise pickle.UnpicklingError(f"an array of shape {shape}")
        if int(np.prod(shape, dtype=object)) * dtype.dtype.itemsize != len(data):
            raise pickle.UnpicklingError(f"{len(data)} bytes for an array of shape {shape}")
        self.value = np.frombuffer(data, dtype.dtype).reshape(shape, order="F" if fortran else "C")


def _reconstruct(*_: object) -> _Array:
    """Stands for numpy's function of that name."""
    return _Array()


# Python's own unpickler in Python: the one in C can be made to allocate gigabytes by a number in a few bytes.
class _ArraysOnly(pickle._Unpickler):
    dispatch = {  # noqa: RUF012  # as in the base class
        getattr(pickle, name)[0]: pickle._Unpickler.dispatch[getattr(pickle, name)[0]] for name in INSTRUCTIONS.split()
    }

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="latin1")
        self.encodable = len(data)

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in (("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct")):
            return _reconstruct
        allowed = {("numpy", "ndarray"): _Array, ("numpy", "dtype"): _Dtype, ("_codecs", "encode"): self.encode}
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return allowed[module, name]

    def encode(self, text: object, encoding: object = "latin1") -> bytes:
        """Stand for `_codecs.encode`, by which protocol 2 writes bytes; no more of it than the file could hold."""
        if not isinstance(text, str) or encoding not in ("latin1", "latin-1") or len(text) > self.encodable:
            raise pickle.UnpicklingError(f"an encoding {encoding!r}")
        self.encodable -= len(text)
        return codecs.latin_1_encode(text)[0]


def read_cifar_batch(name: str, data: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """`data` and `labels` of one pickled batch; `name` is the file, for messages."""
    try:
        content = _ArraysOnly(data).load()
    except Exception as error:  # the unpickler raises whatever the bytes lead it to; all of it means: not a batch
        raise DataError(f"{name}: refused, not a CIFAR-10 batch ({type(error).__name__}: {error})") from error
    if not isinstance(content, dict):
        raise DataError(f"{name}: holds a {type(content).__name__}, not the dict of a CIFAR-10 batch")
    fields = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in content.items()}
    array, labels = fields.get("data"), fields.get("labels")
    pixels = array.value if isinstance(array, _Array) else None
    if pixels is None or pixels.dtype != np.uint8:
        raise DataError(f"{name}: has no array of unsigned bytes named 'data'")
    if not isinstance(labels, list) or not all(type(label) is int and abs(label) < 1 << 31 for label in labels):
        raise DataError(f"{name}: has no list of whole numbers named 'labels'")
    return pixels, np.asarray(labels, dtype=np.int64)
