"""A training run as a checkpoint, and back: weights, optimiser, average, statistics, random states."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from capsroute.averaging import WeightAverage
from capsroute.checkpoint import Checkpoint
from capsroute.errors import InputError
from capsroute.models import CapsNet, Decoder
from capsroute.saving import fill_modules, state_of_modules
from capsroute.stats import EpochStats

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def random_states(fabric: "Fabric") -> dict[str, Tensor]:
    """The random states by name, a row for each process; all of the fabric's processes call it together.

    Each has a state of its own: of a batch that they do not share evenly they draw for different numbers of samples.
    """
    mine = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        mine["random.cuda"] = torch.cuda.get_rng_state()
    if fabric.world_size == 1:
        return {name: state[None] for name, state in mine.items()}
    return {name: torch.as_tensor(fabric.all_gather(state)).cpu() for name, state in mine.items()}


def take(
    net: CapsNet,
    decoder: Decoder | None,
    optimizer: torch.optim.Optimizer,
    average: WeightAverage | None,
    stats: EpochStats,
    meta: dict[str, Any],
    random: dict[str, Tensor],
) -> Checkpoint:
    """Everything that the next step depends on; `random` is what `random_states` gives."""
    tensors = state_of_modules(net, decoder)
    for number, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            tensors[f"optimizer.{number}.{name}"] = torch.as_tensor(value).cpu().contiguous()
    if average is not None:
        tensors |= {f"average.{name}": value.cpu().contiguous() for name, value in average.state().items()}
    tensors["stats.sums"], tensors["stats.most"] = stats.sums.cpu(), stats.most.cpu()
    tensors |= random
    described = {"net": net.config, "decoder": None if decoder is None else decoder.config}
    return Checkpoint(tensors, {**meta, **described})


def restore(
    path: Path,
    saved: Checkpoint,
    net: CapsNet,
    decoder: Decoder | None,
    optimizer: torch.optim.Optimizer,
    average: WeightAverage | None,
    rank: int,
    world: int,
) -> None:
    """Weights, optimiser, average and the random states of process `rank` of `world`; `path` is for messages."""
    processes = len(saved.tensors["random.cpu"])
    if processes != world:
        raise InputError(f"{path} is a run of {processes} processes, not of {world}; go on with it with as many")
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
    # Copied, as torch takes a state from where its storage begins, whichever row it is.
    torch.set_rng_state(saved.tensors["random.cpu"][rank].clone())
    if "random.cuda" in saved.tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(saved.tensors["random.cuda"][rank].clone())
