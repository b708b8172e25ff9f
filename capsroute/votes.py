"""Votes: the linear map from lower capsules to predictions, asked questions instead of being tabulated.

    û[b,i,j,d] = Σ_k u[b,i,k] W[i,k,j,d]

For 128 samples and 1152 -> 256 capsules of 8 dimensions that table has 302 million entries (1.2 GB). No routing needs
it: each asks for a few contractions of it, and each contraction is one or a few matrix products of u and W.

`mix` and `agreement` are two derivatives of one form that is linear in each of its four arguments,

    T(c, v; u, W) = Σ_bijd c[b,i,j] û[b,i,j,d] v[b,j,d],

namely mix(c) = ∂T/∂v and agreement(v) = ∂T/∂c; and their backward passes are again derivatives of T, to any order. So
all of it is one function, `_derivatives`, which goes over T in blocks that fit in the cache and keeps none of them.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.errors import InputError, require_tensor

# Elements of a block's temporary. Profiled on 2 cores with 32 MB of L3: flat from 0.5 to 1.2 million, slower outside.
# A GPU wants few large kernels.
BLOCK_ELEMENTS, BLOCK_ELEMENTS_ON_GPU = 1 << 20, 1 << 25
# Upper capsules per block: batched products of fewer are call overhead, of more leave too few lower capsules a block.
BLOCK_UPPER, BLOCK_UPPER_ON_GPU = 16, 64
# A compiler unrolls the blocks, and its batch may be symbolic: few blocks, sized for this batch.
COMPILED_BLOCKS = 4
COMPILED_BATCH = 128


class Votes:
    """What every lower capsule predicts for every upper one, held as (u, W).

    Under autocast the products run in its low precision; the results (`sum`, `mix`, `agreement`) come back in float32.
    """

    def __init__(self, u: Float[Tensor, "b i k"], weight: Float[Tensor, "i k j d"]) -> None:
        i, k, _, _ = require_tensor("weight", weight, ("i", "k", "j", "d")).shape
        require_tensor("u", u, ("b", i, k), f"; weight has shape {list(weight.shape)}")
        dtype = _product_dtype(u, weight)
        self.u = u.to(dtype)
        self.weight = weight.to(dtype)
        self._u_by_batch: Tensor | None = None

    @property
    def lower(self) -> int:
        """I, the number of lower capsules."""
        return self.weight.shape[0]

    @property
    def upper(self) -> int:
        """J, the number of upper capsules."""
        return self.weight.shape[2]

    def sum(self) -> Float[Tensor, "b j d"]:
        """Σ_i û[b,i,j,:]. One product of [b, ik] and [ik, jd]: b·i·k·j·d multiply-adds, no temporary."""
        i, k, j, d = self.weight.shape
        s = self.u.flatten(1) @ self.weight.reshape(i * k, j * d)
        return _no_infinity(s).to(_result_dtype(s.dtype)).unflatten(1, (j, d))

    def mix(self, c: Float[Tensor, "b i j"]) -> Float[Tensor, "b j d"]:
        """Σ_i c[b,i,j] û[b,i,j,:], as (c_j ⊙ u)[b, ik] @ W_j[ik, d] for each j.

        b·i·k·j·d multiply-adds forward and twice that backward; temporaries of one block; saves c, rounded to the
        products' precision.
        """
        self._require("c", c, (self.lower, self.upper))
        c = c.to(self.u.dtype).permute(2, 1, 0).contiguous()  # [j, i, b]
        (s,) = _Form.apply(self._transposed(), self.weight, c, None, "v")  # [j, d, b]
        return s.permute(2, 0, 1).contiguous()

    def agreement(self, v: Float[Tensor, "b j d"]) -> Float[Tensor, "b i j"]:
        """û[b,i,j,:] · v[b,j,:], as Σ_k u[b,ik] (v_j W_jᵀ)[b,ik] for each j.

        b·i·k·j·d multiply-adds forward and twice that backward; temporaries of one block; saves v.
        """
        self._require("v", v, (self.upper, self.weight.shape[3]))
        v = v.to(self.u.dtype).permute(1, 2, 0).contiguous()  # [j, d, b]
        (a,) = _Form.apply(self._transposed(), self.weight, None, v, "c")  # [j, i, b]
        return a.permute(2, 1, 0)

    def dense(self) -> Float[Tensor, "b i j d"]:
        """The table itself, all b·i·j·d entries of it: for tests, for figures, for a routing that cannot do without."""
        return torch.einsum("bik,ikjd->bijd", self.u, self.weight)

    def detach(self) -> "Votes":
        """The same votes, outside the graph."""
        votes = Votes.__new__(Votes)
        votes.u, votes.weight = self.u.detach(), self.weight.detach()
        votes._u_by_batch = self._transposed().detach()
        return votes

    def _require(self, name: str, value: Tensor, shape: tuple[int, int]) -> None:
        if value.shape != (self.u.shape[0], *shape):
            raise InputError(f"{name} must have shape {[self.u.shape[0], *shape]}, got {list(value.shape)}")

    def _transposed(self) -> Float[Tensor, "i k b"]:
        # With the batch innermost, a coefficient per (j, i, b) multiplies and a sum over k reduces whole vectors:
        # 2 to 3 times as fast as rows of 8. Made once and shared by all passes of a routing.
        if self._u_by_batch is None:
            self._u_by_batch = self.u.permute(1, 2, 0).contiguous()
        return self._u_by_batch


def softmax_over_upper_(logits: Float[Tensor, "b i j"]) -> Float[Tensor, "b i j"]:
    """Softmax over j, in the memory layout [j, i, b] that `agreement` returns and `mix` takes without a copy.

    Outside the graph it takes the logits' place, block by block: there they are of no further use.
    """
    by_upper = logits.permute(2, 1, 0)
    if logits.requires_grad or torch.compiler.is_compiling():
        return torch.softmax(by_upper, dim=0).permute(2, 1, 0)
    upper, _, batch = by_upper.shape
    elements, _ = _block_limits(logits.device)
    for block in by_upper.split(max(1, elements // max(1, upper * batch)), dim=1):
        block.copy_(torch.softmax(block, dim=0))
    return logits


class _Form(torch.autograd.Function):
    """The derivatives of T by the arguments named in `wanted`. Each is linear in all the others.

    So its own backward is T again: with the gradient in place of the argument that it is a derivative by.
    """

    @staticmethod
    def forward(u: Tensor, weight: Tensor, c: Tensor | None, v: Tensor | None, wanted: str) -> tuple[Tensor, ...]:
        return _derivatives({"u": u, "w": weight, "c": c, "v": v}, wanted)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:4])
        ctx.wanted = inputs[4]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        arguments = dict(zip("uwcv", ctx.saved_tensors, strict=True))
        needed = [name for name, needs in zip("uwcv", ctx.needs_input_grad, strict=False) if needs]
        totals: dict[str, Tensor] = {}
        for name, gradient in zip(ctx.wanted, gradients, strict=True):
            others = "".join(other for other in needed if other != name)
            if gradient is None or not others:
                continue
            replaced = {**arguments, name: gradient.to(arguments["u"].dtype).contiguous()}
            # A compiler cannot nest functions, nor differentiate twice; elsewhere the backward has a backward.
            if torch.compiler.is_compiling():
                parts = _derivatives(replaced, others)
            else:
                parts = _Form.apply(replaced["u"], replaced["w"], replaced["c"], replaced["v"], others)
            for other, part in zip(others, parts, strict=True):
                totals[other] = totals[other] + part if other in totals else part
        results = (totals.get(name) for name in "uwcv")
        typed = (
            result if result is None else result.to(arguments[name].dtype)
            for name, result in zip("uwcv", results, strict=True)
        )
        return (*typed, None)


def _derivatives(arguments: dict[str, Tensor | None], wanted: str) -> tuple[Tensor, ...]:
    """The derivatives of T by those of u, w, c, v named in `wanted`, in one pass over blocks of (j, i).

    u is [i, k, b], w is [i, k, j, d], c is [j, i, b] and v is [j, d, b]; the last two may be missing if no wanted
    derivative needs them. Sums across blocks run in float32 or better.
    """
    u, weight, c, v = (arguments[name] for name in "uwcv")
    assert u is not None
    assert weight is not None
    lower, in_dim, batch = u.shape
    upper, out_dim = weight.shape[2:]
    result = _result_dtype(u.dtype)
    grads: dict[str, Tensor] = {}
    if "v" in wanted:
        grads["v"] = u.new_zeros((upper, out_dim, batch), dtype=result)
    if "c" in wanted:
        grads["c"] = u.new_empty((upper, lower, batch), dtype=result)
    if "u" in wanted:
        grads["u"] = u.new_zeros((lower, in_dim, batch), dtype=result)
    if "w" in wanted:
        grads["w"] = torch.empty_like(weight, memory_format=torch.contiguous_format)
    upper_block, lower_block = _block_sizes(lower, upper, in_dim, out_dim, batch, u.device)
    for i in range(0, lower, lower_block):
        u_block = u[i : i + lower_block]  # [i, k, b]
        for j in range(0, upper, upper_block):
            rows, columns = slice(i, i + lower_block), slice(j, j + upper_block)
            w_block = weight[rows, :, columns]  # [i, k, j, d]
            n_i, _, n_j, _ = w_block.shape
            w_rows = w_block.permute(2, 0, 1, 3).flatten(1, 2)  # [j, ik, d], a view
            c_block = None if c is None else c[columns, rows].unsqueeze(2)  # [j, i, 1, b]
            if c_block is not None and ("v" in wanted or "w" in wanted):
                mixed = (c_block * u_block).view(n_j, n_i * in_dim, batch)  # c ⊙ u
                if "v" in wanted:
                    grads["v"][columns] += _no_infinity(torch.bmm(w_rows.transpose(1, 2), mixed))
                if "w" in wanted and v is not None:
                    w_grad = torch.bmm(mixed, v[columns].transpose(1, 2))  # [j, ik, d]
                    grads["w"][rows, :, columns] = w_grad.view(n_j, n_i, in_dim, out_dim).permute(1, 2, 0, 3)
                del mixed
            if v is not None and ("c" in wanted or "u" in wanted):
                backed = torch.bmm(w_rows, v[columns]).view(n_j, n_i, in_dim, batch)  # W v
                if "u" in wanted and c_block is not None:
                    grads["u"][rows] += (c_block * backed).sum(0, dtype=result)
                if "c" in wanted:
                    grads["c"][columns, rows] = _no_infinity(backed.mul_(u_block)).sum(2, dtype=result)
    return tuple(grads[name] for name in wanted)


def _block_sizes(
    lower: int, upper: int, in_dim: int, out_dim: int, batch: int, device: torch.device
) -> tuple[int, int]:
    """Upper and lower capsules per block: a temporary fits the cache and is at most half of the table of votes."""
    elements, most_upper = _block_limits(device)
    if torch.compiler.is_compiling():
        batch, elements = COMPILED_BATCH, COMPILED_BATCH * lower * upper * in_dim // COMPILED_BLOCKS
    else:
        batch = max(batch, 1)
    pairs = max(1, min(elements // (batch * in_dim), lower * upper * out_dim // (2 * in_dim)))
    upper_block = min(upper, most_upper, pairs)
    blocks = -(-lower // max(1, pairs // upper_block))
    return upper_block, -(-lower // blocks)


def _block_limits(device: torch.device) -> tuple[int, int]:
    """Elements of a block's temporary, and upper capsules in it, at the most."""
    if device.type == "cpu":
        return BLOCK_ELEMENTS, BLOCK_UPPER
    return BLOCK_ELEMENTS_ON_GPU, BLOCK_UPPER_ON_GPU


def _product_dtype(u: Tensor, weight: Tensor) -> torch.dtype:
    device = u.device.type
    autocast = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    if autocast and torch.float64 not in (u.dtype, weight.dtype):
        return torch.get_autocast_dtype(device)
    return torch.promote_types(u.dtype, weight.dtype)


def _result_dtype(product: torch.dtype) -> torch.dtype:
    return torch.promote_types(product, torch.float32)


def _no_infinity(product: Tensor) -> Tensor:
    """Float16 products that overflowed, as the largest float16: an infinity would turn into NaN further on."""
    if product.dtype != torch.float16:
        return product
    return product.clamp(torch.finfo(torch.float16).min, torch.finfo(torch.float16).max)
