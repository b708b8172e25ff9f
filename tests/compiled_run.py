"""A compiled training run against a plain one: `python compiled_run.py FOLDER`, exit 0 if they agree."""

import functools
import sys
from pathlib import Path
from unittest import mock

import lightning_fabric
import small_runs
import torch

from capsroute import TrainConfig, fit

assert lightning_fabric  # imported for its own `torch.compile`, which notes the options for it to compile again


def weights(dataset, out, compiled):
    options = small_runs.options(dataset, out, epochs=1, compile=compiled)
    # What the compiler traces, run without generating code, which takes longer and a C++ compiler.
    with mock.patch("torch.compile", functools.partial(torch.compile, backend="aot_eager")):
        return fit(TrainConfig(**options)).net.state_dict()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    dataset = small_runs.write_dataset(folder)
    plain, compiled = (weights(dataset, folder / str(compiled), compiled) for compiled in (False, True))
    # Adam divides small gradients by their like, so rounding of either moves a weight by up to lr / 1000.
    torch.testing.assert_close(compiled, plain, rtol=1e-4, atol=1e-5)
