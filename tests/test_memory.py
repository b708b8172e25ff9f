"""Freed memory that stays with the process."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys, torch
from capsroute.memory import keep_freed_memory
if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit("not kept")
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
torch.ones(1 << 22)
before = faults()
for _ in range(5):
    torch.ones(1 << 22)
print(faults() - before)
"""


def faults(how):
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is of Linux's C library")
def test_a_tensors_memory_is_not_mapped_anew():
    assert faults("keep") < faults("leave") / 20
