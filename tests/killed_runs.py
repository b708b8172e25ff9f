"""Kill a run at many moments, resume it, compare the weights: `python killed_runs.py FOLDER MOMENTS`.

Imports once and forks for each run, so that twenty of them take less than a minute.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import lightning_fabric
import torch
from small_runs import arguments, write_dataset

import capsroute.training
from capsroute import load
from capsroute.cli import main

# All that a checkpoint has to carry: a decoder, an average of the weights, lots drawn in training.
OPTIONS = {"checkpoint_every": "0.001m", "reconstruct": True, "ema": 0.9, "drop_capsules": 0.1, "flip": True}

assert capsroute.training  # imported before the forks, like all that it brings in
assert lightning_fabric


def start(words):
    child = os.fork()
    if child == 0:
        os._exit(main(words))
    return child


def finish(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def weights(folder):
    return load(folder).state_dict()


def compare(folder, moments):
    torch.set_num_threads(1)
    dataset = write_dataset(folder)
    began = time.monotonic()
    assert finish(start(arguments(dataset, folder / "whole", **OPTIONS))) == 0
    took = time.monotonic() - began
    whole = weights(folder / "whole")
    generator = random.Random(0)
    killed = resumed = 0
    for moment in range(moments):
        out = folder / str(moment)
        words = arguments(dataset, out, **OPTIONS)
        child = start(words)
        waited = generator.uniform(0.05, took)
        time.sleep(waited)
        os.kill(child, signal.SIGKILL)
        if finish(child) == -signal.SIGKILL:
            killed += 1
        else:  # the machine was busier when the whole run was timed than it is now
            took = min(took, 0.8 * waited)
        if (out / "config.json").exists():
            resumed += (out / "last.ckpt").exists()
            words = ["train", "--resume", "--out", str(out), "--quiet"]
        assert finish(start(words)) == 0
        again = weights(out)
        assert all(torch.equal(whole[name], again[name]) for name in whole), f"moment {moment} differs"
        assert (out / "steps.csv").read_text() == (folder / "whole/steps.csv").read_text()
    print(f"{moments} runs, {killed} killed, {resumed} resumed from a checkpoint, all with the same weights")
    assert killed > moments // 2
    assert resumed > moments // 4


if __name__ == "__main__":
    compare(Path(sys.argv[1]), int(sys.argv[2]))
