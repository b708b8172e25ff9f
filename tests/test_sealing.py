"""Seals on small files of each kind: a flipped bit anywhere, or a byte less, and the file is refused."""

import io
import json
import pathlib
import zipfile

import onnx
import pytest
import safetensors.torch
import torch

from capsroute import DataError
from capsroute.sealing import check_onnx, check_safetensors, check_zip, seal_onnx, seal_safetensors, seal_zip

FILE = pathlib.Path("some/file")


def onnx_model():
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [value], [value])
    model = onnx.helper.make_model(graph)
    model.metadata_props.add(key="own", value="kept")
    return model.SerializeToString()


def archive():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("inside.txt", "content")
    return buffer.getvalue()


def tensors():
    return safetensors.torch.save({"a": torch.arange(4.0), "b": torch.ones(2, 2)}, {"capsroute": "{}"})


KINDS = {
    "onnx": (onnx_model, seal_onnx, check_onnx),
    "zip": (archive, seal_zip, check_zip),
    "safetensors": (tensors, seal_safetensors, check_safetensors),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_a_sealed_file_is_accepted_and_no_other(kind):
    make, seal, check = KINDS[kind]
    sealed = seal(make())
    check(FILE, sealed)
    for place in range(len(sealed)):
        damaged = sealed[:place] + bytes([sealed[place] ^ 4]) + sealed[place + 1 :]
        if kind == "safetensors" and b'"sha256"' not in damaged:
            continue  # the seal's own name; what it seals is as it was
        with pytest.raises(DataError, match="some/file: "):
            check(FILE, damaged)
    for end in (0, 1, 7, 8, 20, len(sealed) // 2, len(sealed) - 1):
        with pytest.raises(DataError, match="some/file: "):
            check(FILE, sealed[:end])
    with pytest.raises(DataError, match="some/file: "):
        check(FILE, sealed + b"\0")


@each_kind
def test_another_content_cannot_borrow_a_seal(kind):
    make, seal, check = KINDS[kind]
    sealed = seal(make())
    one, zero = b"\0\0\x80\x3f", b"\0\0\0\0"  # of a float32
    changes = {"onnx": (b"kept", b"left"), "zip": (b"content", b"another"), "safetensors": (one, zero)}
    before, after = changes[kind]
    assert before in sealed
    with pytest.raises(DataError):
        check(FILE, sealed.replace(before, after))


def test_other_readers_pass_over_the_seals():
    model = onnx.load_from_string(seal_onnx(onnx_model()))
    onnx.checker.check_model(model)
    assert [entry.key for entry in model.metadata_props] == ["own", "capsroute.sha256"]
    assert seal_onnx(onnx_model()) == model.SerializeToString()  # read and written again, it is still sealed
    with zipfile.ZipFile(io.BytesIO(seal_zip(archive()))) as file:
        assert file.read("inside.txt") == b"content"
    sealed = seal_safetensors(tensors())
    loaded = safetensors.torch.load(sealed)
    assert torch.equal(loaded["a"], torch.arange(4.0))
    assert int.from_bytes(sealed[:8], "little") % 8 == 0


def test_unsealed_onnx_and_zip_are_refused_and_unsealed_safetensors_is_left_to_its_reader():
    for make, check in ((onnx_model, check_onnx), (archive, check_zip)):
        with pytest.raises(DataError, match="capsroute exported"):
            check(FILE, make())
    check_safetensors(FILE, tensors())
    header = json.dumps([]).encode()
    with pytest.raises(DataError, match="not a net of this library"):
        check_safetensors(FILE, len(header).to_bytes(8, "little") + header)


def test_a_zip_with_a_comment_is_not_sealed_over_it():
    with pytest.raises(DataError):
        seal_zip(seal_zip(archive()))
