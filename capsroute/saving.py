"""A trained net in one file: weights as safetensors, and in the metadata what makes the net again."""

import json
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

from capsroute import checkpoint
from capsroute.errors import DataError, InputError
from capsroute.models import CapsNet, Decoder

FINAL = "final.safetensors"


def save_net(path: Path, net: CapsNet, decoder: Decoder | None, meta: dict[str, Any]) -> None:
    """Write the net, and its decoder if there is one; the file is whole or as it was."""
    tensors = state_of_modules(net, decoder)
    described = {**meta, "net": net.config, "decoder": None if decoder is None else decoder.config}
    checkpoint.write_atomically(path, safetensors.torch.save(tensors, {"capsroute": json.dumps(described)}))


def load(path: str | Path) -> CapsNet:
    """The net of a run folder, of a `final.safetensors`, or of a checkpoint; in evaluation mode, on the CPU."""
    net, _, _ = load_all(Path(path))
    return net


def load_all(path: Path) -> tuple[CapsNet, Decoder | None, dict[str, Any]]:
    """The net, its decoder if it has one, and what else was saved with it (classes, preprocessing, origin)."""
    path = path.expanduser()
    if path.is_dir():
        if (path / FINAL).is_file():
            return load_all(path / FINAL)
        saved, _ = checkpoint.load_newest(path)
        if saved is None:
            raise InputError(f"{path}: holds no trained net: neither {FINAL} nor {checkpoint.LAST}")
        return _build(path, saved.tensors, saved.meta)
    if path.suffix == ".ckpt":
        saved = checkpoint.load(path)
        return _build(path, saved.tensors, saved.meta)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
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
