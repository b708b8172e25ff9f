import pytest
import torch
from allocations import Allocations

from capsroute import InputError
from capsroute.votes import Votes, softmax_over_upper_

SIZES = [(1, 1, 1, 1, 1), (3, 63, 5, 4, 2), (2, 7, 100, 1, 8), (0, 4, 3, 2, 2)]  # b, i, j, k, d


def make(size, dtype=torch.float64):
    b, i, j, k, d = size
    u = torch.randn(b, i, k, dtype=dtype).requires_grad_()
    weight = torch.randn(i, k, j, d, dtype=dtype).requires_grad_()
    return (
        u,
        weight,
        torch.rand(b, i, j, dtype=dtype).requires_grad_(),
        torch.randn(b, j, d, dtype=dtype).requires_grad_(),
    )


def table(u, weight):
    return torch.einsum("bik,ikjd->bijd", u, weight)


QUESTIONS = {
    "sum": (lambda votes, c, v: votes.sum(), lambda û, c, v: û.sum(1)),
    "mix": (lambda votes, c, v: votes.mix(c), lambda û, c, v: torch.einsum("bij,bijd->bjd", c, û)),
    "agreement": (lambda votes, c, v: votes.agreement(v), lambda û, c, v: torch.einsum("bijd,bjd->bij", û, v)),
    "dense": (lambda votes, c, v: votes.dense(), lambda û, c, v: û),
}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_equals_the_table(question, size):
    ask, expected = QUESTIONS[question]
    u, weight, c, v = leaves = make(size)
    answer, truth = ask(Votes(u, weight), c, v), expected(table(u, weight), c, v)
    torch.testing.assert_close(answer, truth, rtol=1e-10, atol=1e-10)
    probe = torch.randn_like(truth)
    for got, wanted in zip(
        torch.autograd.grad(answer, leaves, probe, allow_unused=True),
        torch.autograd.grad(truth, leaves, probe, allow_unused=True),
        strict=True,
    ):
        if wanted is None:
            assert got is None
        else:
            torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("needed", [0, 1, 2], ids=["u", "weight", "third"])
@pytest.mark.parametrize("question", ["mix", "agreement"])
def test_a_gradient_wanted_alone_is_the_same(question, needed):
    u, weight, c, v = make((3, 5, 4, 2, 3))
    leaves = [u, weight, c if question == "mix" else v]

    def gradient(leaf):
        frozen = [other if other is leaf else other.detach() for other in leaves]
        votes = Votes(frozen[0], frozen[1])
        return torch.autograd.grad(getattr(votes, question)(frozen[2]).square().sum(), leaf)[0]

    votes = Votes(u, weight)
    together = torch.autograd.grad(getattr(votes, question)(leaves[2]).square().sum(), leaves[needed])[0]
    torch.testing.assert_close(gradient(leaves[needed]), together)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_products_run_low_and_results_come_back_in_float32(dtype):
    u, weight, c, v = make((4, 30, 5, 8, 16), torch.float32)
    with torch.autocast("cpu", dtype):
        votes = Votes(u, weight)
        assert votes.u.dtype == votes.weight.dtype == dtype
        answers = votes.sum(), votes.mix(c), votes.agreement(v)
    full = Votes(u, weight)
    for low, wanted in zip(answers, (full.sum(), full.mix(c), full.agreement(v)), strict=True):
        assert low.dtype == torch.float32
        assert (low - wanted).norm() < 0.02 * wanted.norm()


def test_autocast_leaves_float64_alone():
    u, weight, *_ = make((2, 3, 4, 2, 2))
    with torch.autocast("cpu", torch.bfloat16):
        assert Votes(u, weight).sum().dtype == torch.float64


def test_softmax_runs_over_upper_capsules_in_any_layout():
    logits = torch.randn(3, 4, 5)
    expected = logits.softmax(2)
    torch.testing.assert_close(softmax_over_upper_(logits.clone()), expected)
    other_layout = logits.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    torch.testing.assert_close(softmax_over_upper_(other_layout.clone()), expected)


def test_coefficients_pass_from_agreement_to_mix_without_a_copy():
    u, weight, _, v = make((16, 20, 4, 3, 5))
    votes = Votes(u.detach(), weight.detach())
    logits = votes.agreement(v.detach())
    c = softmax_over_upper_(logits)
    assert c.permute(2, 1, 0).is_contiguous()
    assert c.permute(2, 1, 0).contiguous().data_ptr() == c.data_ptr()


@pytest.mark.parametrize("question", ["mix", "agreement"])
def test_temporaries_do_not_grow_with_upper_capsules(question):
    """At 1152 -> 64 capsules, batch 32: nothing larger than W, u or the coefficients, forward or backward."""
    b, i, j, k, d = 32, 1152, 64, 8, 8
    u, weight, c, v = make((b, i, j, k, d), torch.float32)
    with Allocations() as seen:
        getattr(Votes(u, weight), question)(c if question == "mix" else v).square().sum().backward()
    assert seen.largest == max(b * i * k, i * k * j * d, b * i * j)
    assert seen.largest < b * i * j * d / 3


def test_detached_votes_are_outside_the_graph():
    u, weight, c, _ = make((2, 3, 4, 2, 2))
    votes = Votes(u, weight)
    detached = votes.detach()
    assert not detached.sum().requires_grad
    assert not detached.mix(c.detach()).requires_grad
    torch.testing.assert_close(detached.mix(c), votes.mix(c))


@pytest.mark.parametrize(
    ("u", "weight", "sentence"),
    [
        ((2, 3, 5), (5, 3, 4, 2), r"u must have shape \[b, 5, 3\], got \[2, 3, 5\]; weight has shape"),
        ((2, 3), (3, 5, 4, 2), r"u must have shape \[b, 3, 5\]"),
        ((2, 3, 5), (3, 5, 4), r"weight must have shape \[i, k, j, d\]"),
    ],
)
def test_votes_of_shapes_that_do_not_fit_are_refused(u, weight, sentence, no_shape_checks):
    with pytest.raises(InputError, match=sentence):
        Votes(torch.zeros(u), torch.zeros(weight))


def test_questions_of_shapes_that_do_not_fit_are_refused(no_shape_checks):
    u, weight, c, v = make((2, 3, 4, 2, 2))
    votes = Votes(u, weight)
    with pytest.raises(InputError, match=r"c must have shape \[2, 3, 4\]"):
        votes.mix(c.transpose(1, 2))
    with pytest.raises(InputError, match=r"v must have shape \[2, 4, 2\]"):
        votes.agreement(v[:1])


def test_a_gradient_penalty_reaches_the_weights():
    u, weight, c, v = leaves = make((2, 3, 4, 2, 3))
    for ask, expected in (QUESTIONS["mix"], QUESTIONS["agreement"]):
        penalties = []
        for answer in (ask(Votes(u, weight), c, v), expected(table(u, weight), c, v)):
            (slope,) = torch.autograd.grad(answer.square().sum(), u, create_graph=True)
            penalties.append(torch.autograd.grad(slope.square().sum(), leaves, allow_unused=True))
        torch.testing.assert_close(
            [g for g in penalties[0] if g is not None], [g for g in penalties[1] if g is not None]
        )
