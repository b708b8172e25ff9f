"""TensorBoard's files in the run folder, for those who have the extra [log]."""

import importlib.util
from pathlib import Path
from typing import Any

from capsroute.errors import InputError


def refuse_without_tensorboard() -> None:
    """Before a run, not after its first epoch."""
    if importlib.util.find_spec("tensorboard") is None:
        raise InputError("--tensorboard needs the extra [log]: pip install -c constraints.txt tensorboard")


def write_tensorboard(folder: Path, row: dict[str, Any]) -> None:
    """Add an epoch's figures."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder / "tensorboard")) as writer:
        for name, value in row.items():
            if isinstance(value, float):
                writer.add_scalar(name, value, row["epoch"])
