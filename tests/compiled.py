"""Compiled and exported layers and nets against eager ones: `python compiled.py ROUTING`, exit 0 if they agree."""

import copy
import os
import shutil
import sys

import torch

from capsroute import ROUTINGS, CapsNet, CapsuleLayer, margin_loss

# What torch's compiler traces and differentiates, run without generating code: that takes half a minute for each layer
# of usual size, and a C++ compiler, which a machine for Python may be without.
TRACED = "aot_eager"
GENERATED = "inductor"


def gradients(module, u):
    module.zero_grad()
    value = module(u)
    value.square().sum().backward()
    return [value.detach(), *(parameter.grad.clone() for parameter in module.parameters())]


def make_layer(name, options, in_caps, out_caps, in_dim, out_dim):
    layer = CapsuleLayer(in_caps, out_caps, in_dim, out_dim, name, **options)
    torch.nn.init.normal_(layer.weight, std=0.1)
    return layer, torch.randn(6, in_caps, in_dim)


def check_compiled(layer, u, backend):
    torch.compiler.reset()
    compiled = torch.compile(copy.deepcopy(layer), fullgraph=True, backend=backend)
    torch.testing.assert_close(gradients(compiled, u), gradients(layer, u), rtol=1e-4, atol=1e-5)


def check_exported(layer, u):
    exported = torch.export.export(layer, (u,), dynamic_shapes=({0: torch.export.Dim("b")},)).module()
    for batch in (1, 6, 7):
        u = torch.randn(batch, *u.shape[1:])
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
        low = torch.compile(loss, backend=TRACED)(images, targets)
        torch.testing.assert_close(low, loss(images, targets), rtol=0.02, atol=0.002)


def has_cpp_compiler():
    return any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "g++", "clang++"))


if __name__ == "__main__":
    routing = sys.argv[1]
    for options in ({}, *ROUTINGS[routing].variants[-1:]):
        layer, u = make_layer(routing, dict(options), 40, 10, 8, 16)
        check_compiled(layer, u, TRACED)
        check_exported(layer, u)
    check_net(routing)
    if has_cpp_compiler():
        check_compiled(*make_layer(routing, {}, 8, 3, 2, 4), GENERATED)
