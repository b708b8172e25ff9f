"""A training run as a checkpoint, and back: weights, optimiser, average, statistics, random states."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capsroute.averaging import WeightAverage
from capsroute.checkpoint import Checkpoint
from capsroute.models import CapsNet, Decoder
from capsroute.saving import fill_modules, state_of_modules
from capsroute.stats import EpochStats


def take(
    net: CapsNet,
    decoder: Decoder | None,
    optimizer: torch.optim.Optimizer,
    average: WeightAverage | None,
    stats: EpochStats,
    meta: dict[str, Any],
) -> Checkpoint:
    """Everything that the next step depends on."""
    tensors = state_of_modules(net, decoder)
    for number, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            tensors[f"optimizer.{number}.{name}"] = torch.as_tensor(value).cpu().contiguous()
    if average is not None:
        tensors |= {f"average.{name}": value.cpu().contiguous() for name, value in average.state().items()}
    tensors["stats.sums"], tensors["stats.most"] = stats.sums.cpu(), stats.most.cpu()
    tensors["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    described = {"net": net.config, "decoder": None if decoder is None else decoder.config}
    return Checkpoint(tensors, {**meta, **described})


def restore(
    path: Path,
    saved: Checkpoint,
    net: CapsNet,
    decoder: Decoder | None,
    optimizer: torch.optim.Optimizer,
    average: WeightAverage | None,
) -> None:
    """Weights, optimiser, average and random states as they were; `path` is for messages."""
    fill_modules(path, net, decoder, saved.tensors)
    state: dict[int, dict[str, Tensor]] = {}
    parameters = optimizer.param_groups[0]["params"]
    for name, value in saved.tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".")
            parameter = parameters[int(number)]
            if value.shape == parameter.shape:
                # In the layout of the parameter (channels-last for convolutions), as fused steps want it.
                value = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
            state.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    if average is not None:
        mine = {name.removeprefix("average."): t for name, t in saved.tensors.items() if name.startswith("average.")}
        average.load_state(mine)
    torch.set_rng_state(saved.tensors["random.cpu"])
    if "random.cuda" in saved.tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(saved.tensors["random.cuda"])
