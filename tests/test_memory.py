"""Freed memory that stays with the process."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys, torch
from capsroute.bench.nets import NetCase
from capsroute.memory import keep_freed_memory
torch.set_num_threads(1)
if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit("not kept")
case = NetCase("small", "adaptive-lambda", (1, 28, 28), torch.float32, "cpu")
for _ in range(4):
    case.step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    case.step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is of Linux's C library")
def test_training_steps_do_not_map_their_memory_anew():
    assert faults("keep") < faults("leave") / 5
