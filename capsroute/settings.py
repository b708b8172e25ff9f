"""What a run changes of its process while it lasts."""

import os
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import torch


@contextmanager
def noted_signals() -> Iterator[list[int]]:
    """A list that SIGINT and SIGTERM are added to, instead of ending the program in the middle of a step."""
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    def note(number: int, frame: FrameType | None) -> None:
        if caught:  # asked twice: at once
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        caught.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def deterministic_operations(wanted: bool) -> Iterator[None]:
    """Only operations that give the same bits each time, or whatever is fastest; as before afterwards."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(wanted)
    try:
        with warnings.catch_warnings():
            # Of one input channel, channels-last and not are the same bytes; torch minds the name.
            warnings.filterwarnings("ignore", message="Grad strides do not match bucket view strides")
            yield
    finally:
        torch.use_deterministic_algorithms(before)
