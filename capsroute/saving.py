"""A trained net in one file: weights as safetensors, in the metadata what makes the net again, and a seal on it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

from capsroute import checkpoint
from capsroute.errors import DataError, InputError
from capsroute.models import CapsNet, Decoder
from capsroute.sealing import ADVICE, check_safetensors, read_bytes, seal_safetensors

FINAL = "final.safetensors"
WEIGHTS, DESCRIPTION = "model.safetensors", "config.json"  # of an exported folder


def save_net(path: Path, net: CapsNet, decoder: Decoder | None, meta: dict[str, Any]) -> None:
    """Write the net, and its decoder if there is one; the file is whole or as it was."""
    checkpoint.write_atomically(path, net_bytes(net, decoder, meta))


def net_bytes(net: CapsNet, decoder: Decoder | None, meta: dict[str, Any]) -> bytes:
    """The content of the file that `save_net` writes."""
    tensors = state_of_modules(net, decoder)
    described = {**meta, "net": net.config, "decoder": None if decoder is None else decoder.config}
    return seal_safetensors(safetensors.torch.save(tensors, {"capsroute": json.dumps(described)}))


def load(path: str | Path) -> CapsNet:
    """The net of a run or exported folder, a `final.safetensors` or a checkpoint; in evaluation mode, on the CPU."""
    net, _, _ = load_all(Path(path))
    return net


def load_all(path: Path) -> tuple[CapsNet, Decoder | None, dict[str, Any]]:
    """The net, its decoder if it has one, and what else was saved with it (classes, preprocessing, origin)."""
    path = path.expanduser()
    if path.is_dir():
        if (path / WEIGHTS).is_file():
            return _load_exported(path)
        if (path / FINAL).is_file():
            return load_all(path / FINAL)
        saved, _ = checkpoint.load_newest(path)
        if saved is None:
            raise InputError(f"{path}: holds no trained net: neither {FINAL} nor {checkpoint.LAST}")
        return _build(path, saved.tensors, saved.meta)
    if path.suffix == ".ckpt":
        saved = checkpoint.load(path)
        return _build(path, saved.tensors, saved.meta)
    return _load_bytes(path, read_bytes(path))


def _load_exported(folder: Path) -> tuple[CapsNet, Decoder | None, dict[str, Any]]:
    """The net of a folder as `capsroute export --format hub-folder` writes it, if its parts belong together."""
    try:
        described = json.loads(read_bytes(folder / DESCRIPTION))
        digest, config = described["weights"]["sha256"], described["net"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder / DESCRIPTION}: not the description of an exported net, or damaged") from error
    content = read_bytes(folder / WEIGHTS)
    if hashlib.sha256(content).hexdigest() != digest:
        raise DataError(f"{folder / WEIGHTS}: not the weights that {DESCRIPTION} tells of, or {ADVICE}")
    net, decoder, meta = _load_bytes(folder / WEIGHTS, content)
    if json.loads(json.dumps(net.config)) != config:
        raise DataError(f"{folder / DESCRIPTION}: describes another net than its weights, or was altered")
    return net, decoder, meta


def _load_bytes(path: Path, content: bytes) -> tuple[CapsNet, Decoder | None, dict[str, Any]]:
    check_safetensors(path, content)
    try:
        tensors = safetensors.torch.load(content)
        size = int.from_bytes(content[:8], "little")
        meta = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["capsroute"])
    except (SafetensorError, ValueError, KeyError) as error:
        raise DataError(f"{path}: not a net of this library, or damaged ({error})") from error
    return _build(path, tensors, meta)


def state_of_modules(net: CapsNet, decoder: Decoder | None) -> dict[str, Tensor]:
    """All weights by name, contiguous and on the CPU."""
    modules: dict[str, nn.Module | None] = {"net": net, "decoder": decoder}
    return {
        f"{prefix}.{name}": tensor.detach().cpu().contiguous()
        for prefix, module in modules.items()
        if module is not None
        for name, tensor in module.state_dict().items()
    }


def fill_modules(path: Path, net: CapsNet, decoder: Decoder | None, tensors: dict[str, Tensor]) -> None:
    """Copy saved weights into modules of the same form."""
    modules: dict[str, nn.Module | None] = {"net": net, "decoder": decoder}
    for prefix, module in modules.items():
        if module is not None:
            mine = {name.removeprefix(prefix + "."): t for name, t in tensors.items() if name.startswith(prefix + ".")}
            try:
                module.load_state_dict(mine)
            except RuntimeError as error:
                raise DataError(
                    f"{path}: its weights do not fit its description ({str(error).splitlines()[0]})"
                ) from error


def _build(
    path: Path, tensors: dict[str, Tensor], meta: dict[str, Any]
) -> tuple[CapsNet, Decoder | None, dict[str, Any]]:
    try:
        net = CapsNet(**meta["net"])
        decoder = Decoder(**meta["decoder"]) if meta.get("decoder") else None
    except (TypeError, KeyError, InputError) as error:
        raise DataError(f"{path}: describes no net of this library ({error})") from error
    fill_modules(path, net, decoder, tensors)
    return net.eval(), decoder, meta
