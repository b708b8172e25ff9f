"""The learning rate as a function of the step, and of nothing else: so a resumed run has the same one."""

import math

DECAY = 0.95  # per epoch, in the paper's


def learning_rate(
    schedule: str, lr: float, step: int, steps_per_epoch: int, epochs: int, warmup: int, rise_share: float
) -> float:
    """The learning rate of step number `step`, from 0; a one-cycle run rises over `rise_share` of its steps."""
    if schedule == "one-cycle":
        total = steps_per_epoch * epochs
        rise = max(1, round(rise_share * total))
        if step < rise:
            return lr * (step + 1) / rise
        return lr * 0.5 * (1 + math.cos(math.pi * (step + 1 - rise) / max(1, total - rise)))
    return lr * DECAY ** (step // steps_per_epoch) * min(1.0, (step + 1) / max(1, warmup))
