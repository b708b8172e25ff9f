"""How long a plan will take, from a step of each of its nets measured on this machine."""

import time

import torch

from capsroute.config import TrainConfig
from capsroute.data.table import DATASETS
from capsroute.hardware import choose, make_fabric, wait_for
from capsroute.losses import margin_loss
from capsroute.paper.plan import Run

STEPS = 2  # measured, after one that is not
EVALUATION = 0.35  # of a training step, for as many images: forward only, in larger batches


def measure_step(config: TrainConfig) -> float:
    """Seconds of a training step of this configuration, on images of its dataset's shape."""
    info = DATASETS[config.dataset]
    choice = choose(config.device, config.precision)
    fabric = make_fabric(config, choice)
    net = config.make_net(info.shape, len(info.classes)).channels_last_().to(fabric.device)
    optimizer = torch.optim.AdamW(net.parameters(), fused=choice.device in ("cpu", "cuda"))
    images = torch.rand(config.batch_size, *info.shape, device=fabric.device)
    images = images.contiguous(memory_format=torch.channels_last)
    targets = torch.arange(config.batch_size, device=fabric.device) % len(info.classes)
    began = 0.0
    for step in range(STEPS + 1):
        if step == 1:
            wait_for(choice.device)
            began = time.perf_counter()
        with fabric.autocast():
            loss = margin_loss(net(images), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    wait_for(choice.device)
    return (time.perf_counter() - began) / STEPS


def estimate_seconds(runs: list[Run], at_once: int) -> float:
    """Seconds that these runs will take, `at_once` of them at a time."""
    measured: dict[tuple[object, ...], float] = {}
    total = 0.0
    for run in runs:
        config = run.job.config
        info = DATASETS[config.dataset]
        net = (info.shape, run.setting.layers, run.setting.routing)
        if net not in measured:
            measured[net] = measure_step(config)
        images = config.epochs * min(config.limit or info.counts["train"], info.counts["train"])
        tests = config.epochs * info.counts["test"]
        total += (images + EVALUATION * tests) / config.batch_size * measured[net]
    # Runs side by side share the cores or the GPU that one alone would have: they save little more than the waiting.
    return total if at_once == 1 else total * max(0.7, 1 / at_once)
