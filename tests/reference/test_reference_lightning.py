"""Lightning attention in both of its forms, in pieces and whole, against the sum over all earlier tokens."""

import math

import numpy as np
import pytest

from costcalc.reference import Arena, Request, Scope, Tape, alibi_slopes
from costcalc.reference.lightning import lightning, slopes
from costcalc.reference.sight import Sight

# B=2, T=11, D=13, N=3, H=7, blocks of 5.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
EPS = 0.3
GIVEN = {
    **{name: RNG.normal(size=(13, 21)) / math.sqrt(13) for name in ("q", "k", "v", "gate")},
    "output": RNG.normal(size=(21, 13)) / math.sqrt(21),
    "norm": RNG.normal(size=21),
}
# It is layer 2 of 0 to 4: slopes are half of those of the first one, and two numbers of almost nothing.
PLACE = {"layer": 2, "layers": 5}
SHRINKS = 1 - 2 / (4 + 1e-5) + 1e-5
PARTS = [(11,), (7, 1, 1, 2), (1,) * 11, (2, 9), (0, 6, 5)]


def fields(**changes):
    some = {"kind": "lightning", "heads": 3, "head_dim": 7, "chunk": 5, "activation": "silu", "state_dtype": "fp32"}
    return {**some, **changes}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def summed(activation):
    """All outputs and the last states, in float64: y_t = the sum of e^(-slope (t - s)) (q_t · k_s) v_s over s <= t."""
    out, states = np.zeros((2, 11, 13)), np.zeros((2, 3, 7, 7))
    for b, text in enumerate(X.astype(float)):
        q, k, v = (activation(text @ GIVEN[name]).reshape(11, 3, 7) for name in "qkv")
        for t in range(11):
            y = np.zeros((3, 7))
            for n in range(3):
                for s in range(t + 1):
                    left = math.exp(-SHRINKS * 2 ** (-8 * (n + 1) / 3) * (t - s))
                    y[n] += left * sum(q[t, n] * k[s, n]) * v[s, n]
                    states[b, n] += left * np.outer(k[s, n], v[s, n]) * (t == 10)
            y = y.ravel() / math.sqrt((y**2).mean() + EPS) * GIVEN["norm"]
            out[b, t] = y * sigmoid(text[t] @ GIVEN["gate"]) @ GIVEN["output"]
    return out, states


ACTIVATIONS = {"silu": lambda x: x * sigmoid(x), "relu": lambda x: np.maximum(x, 0)}
SUMMED = {name: summed(activation) for name, activation in ACTIVATIONS.items()}


def passed(here, some, parts=(11,), *, chunked=False):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        sight = Sight(request.past, True, request, chunked=chunked, **PLACE)
        out.append(lightning(some, part, here, sight=sight, eps=EPS))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("changes", [{}, {"chunk": 1}, {"chunk": 4}, {"chunk": 17}, {"activation": "relu"}])
def test_both_forms_in_any_pieces_are_the_sum(place, changes, parts, chunked):
    some = fields(**changes)
    (y, request), (out, states) = passed(place(GIVEN), some, parts, chunked=chunked), SUMMED[some["activation"]]
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, out, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(request.arrays["here.state"], states, rtol=1e-4, atol=1e-6)
    assert request.kind("here.state") == "state"


@pytest.mark.parametrize("chunk", [1, 4, 5, 11, 17])
def test_blocks_give_what_tokens_give_to_rounding(place, chunk):
    one, other = (passed(place(GIVEN), fields(chunk=chunk), chunked=chunked) for chunked in (False, True))
    np.testing.assert_allclose(one[0], other[0], rtol=0, atol=1e-5 * np.abs(one[0]).max())
    held, there = (request.arrays["here.state"] for _, request in (one, other))
    np.testing.assert_allclose(held, there, rtol=0, atol=1e-5 * np.abs(held).max())


@pytest.mark.parametrize("heads", [8, 64])
def test_slopes_of_the_first_layer_are_those_of_alibi_where_heads_are_a_power_of_two(heads):
    first, last = (slopes(heads, Sight(layer=layer, layers=80)) for layer in (0, 79))
    np.testing.assert_allclose(first, alibi_slopes(heads), rtol=2e-5)
    np.testing.assert_allclose(last, 1e-5 * (1 + 1 / 79) * alibi_slopes(heads), rtol=1e-4)


def test_the_one_layer_of_a_stack_is_its_first(place):
    np.testing.assert_allclose(slopes(8, Sight()), alibi_slopes(8), rtol=2e-5)


def test_states_behind_the_tokens_that_are_kept(place):
    here, request = place(GIVEN), Request(kept=3)
    lightning(fields(), X[:, :5], here, sight=Sight(0, True, request, **PLACE), eps=EPS)
    here.tape.parameters.clear()
    request.past, request.kept = 3, None
    y = lightning(fields(), X[:, 3:], here, sight=Sight(3, True, request, **PLACE), eps=EPS)
    np.testing.assert_allclose(y, SUMMED["silu"][0][:, 3:], rtol=1e-4, atol=1e-6)


def scans(here):
    flops = {path.removeprefix("here."): count for path, count in here.tape.flops().items()}
    return {path: count for path, count in flops.items() if path.startswith("scan_")}


def test_products_token_by_token(place):
    """2·N·H² = 2·3·49 = 294 a token, B·T = 22 of them."""
    here = place(GIVEN)
    passed(here, fields(), (10, 1))
    assert scans(here) == dict.fromkeys(("scan_update", "scan_read"), 22 * 294)


def test_products_block_by_block(place):
    """Blocks of 5, 5 and 1 have 25 + 25 + 1 = 51 pairs of tokens, of two texts 102; 2·N·H = 42 each."""
    here = place(GIVEN)
    passed(here, fields(), chunked=True)
    assert scans(here) == {
        **dict.fromkeys(("scan_scores", "scan_values"), 102 * 42),
        **dict.fromkeys(("scan_update", "scan_read"), 22 * 294),
    }


def test_a_decode_step_is_never_a_block(place):
    here = place(GIVEN)
    lightning(fields(), X[:, :1], here, sight=Sight(7, True, Request(7), chunked=True), eps=EPS)
    assert scans(here) == dict.fromkeys(("scan_update", "scan_read"), 2 * 294)


@pytest.mark.parametrize("tokens", [0, 11])
@pytest.mark.parametrize("chunked", [False, True])
def test_the_parameters_of_lightning_attention(place, chunked, tokens):
    here, request = place(GIVEN), Request()
    y = lightning(fields(), X[:, :tokens], here, sight=Sight(request=request, chunked=chunked, **PLACE), eps=EPS)
    assert y.shape == (2, tokens, 13)
    assert here.tape.parameters == {
        **{f"here.{name}": (273, "trainable") for name in ("q", "k", "v", "gate", "output")},  # 13·3·7
        "here.norm": (21, "trainable"),
    }
    assert request.arrays["here.state"].shape == (2, 3, 7, 7)
    assert here.tape.flops().get("here.gate", 0) == 2 * 2 * tokens * 273


def test_without_a_request_a_text_starts_and_nothing_is_held(place):
    for chunked in (False, True):
        y = lightning(fields(), X, place(GIVEN), sight=Sight(chunked=chunked, **PLACE), eps=EPS)
        np.testing.assert_allclose(y, SUMMED["silu"][0], rtol=1e-4, atol=1e-6)


def test_a_layer_of_minimax_01():
    """64 heads of 128 at a width of 6,144: a state of 64·128² = 1,048,576 numbers, 5·6,144·8,192 + 8,192 parameters."""
    here, request = Scope(Tape(Arena(2**20, deviation=0.01)), "here"), Request()
    x = np.zeros((1, 0, 6144), np.float32)
    lightning(fields(heads=64, head_dim=128, chunk=256), x, here, sight=Sight(request=request), eps=1e-6)
    assert sum(array.size for array in request.arrays.values()) == 1_048_576
    assert sum(elements for elements, _ in here.tape.parameters.values()) == 251_666_432
