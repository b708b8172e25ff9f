"""One training step at batch 128 in this process: `python step_memory.py PRESET ROUTING` prints its peak megabytes."""

import resource
import sys

import torch

from capsroute import CapsNet, margin_loss


def main(preset, routing):
    torch.manual_seed(0)
    net = CapsNet.from_preset(preset, routing=routing)
    optimizer = torch.optim.Adam(net.parameters())
    loss = margin_loss(net(torch.rand(128, 1, 28, 28)), torch.arange(128) % 10)
    loss.backward()
    optimizer.step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


if __name__ == "__main__":
    main(*sys.argv[1:])
