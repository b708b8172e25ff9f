"""What goes on inside a net on one batch: lengths and gradients by layer, coefficients, the effective λ."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from capsroute.layers import CapsuleLayer
from capsroute.losses import margin_loss
from capsroute.models import CapsNet
from capsroute.nonlinearity import lengths
from capsroute.routing import RoutingStep
from capsroute.stats import COLLAPSED_GRADIENT


@dataclass(frozen=True)
class LayerReport:
    """One layer of the net; what does not apply is None."""

    name: str
    length_mean: float | None
    length_min: float | None
    length_max: float | None
    # How much of the capsules is each image's own: 0, all images give the same; 1, they have nothing in common.
    own_share: float | None
    gradient_norm: float  # of its weights
    coefficients: dict[str, float] | None  # of the last iteration, over all samples and pairs
    effective_lambda: list[float] | None  # per iteration: how many times the first sum the sum is

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return dict(vars(self))


class _Watch:
    """Keeps of each routing step what the report needs."""

    def __init__(self) -> None:
        self.lengths: dict[int, Tensor] = {}
        self.own_shares: dict[int, float] = {}
        self.coefficients: dict[int, dict[str, float]] = {}
        self.sums: dict[int, list[Tensor]] = {}

    def __call__(self, layer: int, step: RoutingStep) -> None:
        self.lengths[layer] = lengths(step.v)
        self.own_shares[layer] = own_share(step.v)
        self.sums.setdefault(layer, []).append(lengths(step.s))
        if step.coefficients is not None:
            c = step.coefficients.float()
            self.coefficients[layer] = {
                "mean": c.mean().item(),
                "min": c.min().item(),
                "max": c.max().item(),
                # Of each lower capsule's shares, the largest: 1/J where it decides nothing, 1 where all goes one way.
                "mean_largest_share": c.amax(2).mean().item(),
                "one_over_j": 1 / c.shape[2],
            }


def diagnose(net: CapsNet, images: Float[Tensor, "b c h w"], targets: Int64[Tensor, " b"]) -> list[LayerReport]:
    """A report for each layer, from one forward and backward pass; the net keeps no gradients of it."""
    watch = _Watch()
    parameters = dict(net.named_parameters())
    was_training = net.training
    net.eval()
    with torch.enable_grad():
        primary: list[Tensor] = []
        hook = net.primary.register_forward_hook(lambda *call: primary.append(call[2].detach()))
        try:
            loss = margin_loss(net(images, watch), targets)
        finally:
            hook.remove()
        gradients = dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values())), strict=True))
    net.train(was_training)

    reports = [_report("stem (Conv1)", None, None, gradients["stem.0.weight"])]
    share = own_share(primary[0])
    reports.append(_report("primary", lengths(primary[0]), share, gradients["primary.conv.weight"]))
    for number, layer in enumerate(net.layers):
        assert isinstance(layer, CapsuleLayer)
        sums = watch.sums[number]
        factor = [(later.sum() / sums[0].sum().clamp(min=1e-30)).item() for later in sums]
        reports.append(
            _report(
                f"layers.{number} ({layer.routing_name})",
                watch.lengths[number],
                watch.own_shares[number],
                gradients[f"layers.{number}.weight"],
                watch.coefficients.get(number),
                # With coefficients the sum is a mixture, and no multiple of the first one.
                factor if len(factor) > 1 and number not in watch.coefficients else None,
            )
        )
    return reports


def own_share(v: Float[Tensor, "b j d"]) -> float:
    """Of the capsules' root mean square, the part by which images differ from their mean."""
    v = v.double()  # squares of lengths of 1e-30 are no float32
    whole = v.square().sum().sqrt().item()
    return (v - v.mean(0)).square().sum().sqrt().item() / whole if whole else 0.0


def dead_net_warning(
    net: CapsNet, images: UInt8[Tensor, "b c h w"], targets: Int64[Tensor, " b"], init: str
) -> str | None:
    """A sentence about a fresh net that cannot learn, and what cures it; None for one that can."""
    device = next(net.parameters()).device
    stem = diagnose(net, images.to(device).float() / 255, targets.to(device))[0]
    if stem.gradient_norm >= COLLAPSED_GRADIENT:
        return None
    cure = "--init length" if init == "normal" else "fewer layers, --residual or a larger --lam"
    return (
        f"this net is dead at step 0: the gradient of Conv1 has norm {stem.gradient_norm:.1e}, so nothing will be "
        f"learned; {cure} cures that"
    )


def _report(
    name: str,
    length: Tensor | None,
    share: float | None,
    gradient: Tensor,
    coefficients: dict[str, float] | None = None,
    effective_lambda: list[float] | None = None,
) -> LayerReport:
    return LayerReport(
        name=name,
        length_mean=None if length is None else length.mean().item(),
        length_min=None if length is None else length.min().item(),
        length_max=None if length is None else length.max().item(),
        own_share=share,
        gradient_norm=gradient.norm().item(),
        coefficients=coefficients,
        effective_lambda=effective_lambda,
    )
