"""Looking into a net: the votes that a capsule layer is given."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.layers import CapsuleLayer
from capsroute.models import CapsNet
from capsroute.votes import Votes


@torch.no_grad()
def votes_of(net: CapsNet, images: Float[Tensor, "b c h w"], layer: int = -1) -> Votes:
    """The votes in this capsule layer; of the class capsules, if not given."""
    module = net.layers[layer]
    assert isinstance(module, CapsuleLayer)
    seen: list[Tensor] = []

    def keep(_: Any, inputs: tuple[Any, ...]) -> None:
        seen.append(inputs[0])

    hook = module.register_forward_pre_hook(keep)
    was_training = net.training
    try:
        net.eval()(images)
    finally:
        hook.remove()
        net.train(was_training)
    return Votes(seen[0], module.weight.detach())
