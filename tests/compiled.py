"""Compiled and exported layers and nets against eager ones: `python compiled.py ROUTING`, exit 0 if they agree."""

import copy
import sys

import torch

from capsroute import ROUTINGS, CapsNet, CapsuleLayer, margin_loss


def gradients(module, u):
    module.zero_grad()
    value = module(u)
    value.square().sum().backward()
    return [value.detach(), *(parameter.grad.clone() for parameter in module.parameters())]


def check_layer(name, options):
    layer = CapsuleLayer(40, 10, 8, 16, name, **options)
    torch.nn.init.normal_(layer.weight, std=0.1)
    u = torch.randn(6, 40, 8)
    torch.compiler.reset()
    compiled = torch.compile(copy.deepcopy(layer), fullgraph=True)
    torch.testing.assert_close(gradients(compiled, u), gradients(layer, u), rtol=1e-4, atol=1e-5)
    exported = torch.export.export(layer, (u,), dynamic_shapes=({0: torch.export.Dim("b")},)).module()
    for batch in (1, 6, 7):
        u = torch.randn(batch, 40, 8)
        torch.testing.assert_close(exported(u), layer(u), rtol=1e-4, atol=1e-5)


def check_net(name):
    net = CapsNet.from_preset("small", routing=name)
    images = torch.rand(4, 1, 28, 28)
    program = torch.export.export(net, (images,), dynamic_shapes=({0: torch.export.Dim("b")},)).module()
    torch.testing.assert_close(program(images[:3]), net(images[:3]), rtol=1e-4, atol=1e-5)
    torch.compiler.reset()
    targets = torch.arange(4)

    def loss(images, targets):
        return margin_loss(net(images), targets)

    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(torch.compile(loss)(images, targets), loss(images, targets), rtol=0.02, atol=0.002)


if __name__ == "__main__":
    routing = sys.argv[1]
    for options in ({}, *ROUTINGS[routing].variants[-1:]):
        check_layer(routing, dict(options))
    check_net(routing)
