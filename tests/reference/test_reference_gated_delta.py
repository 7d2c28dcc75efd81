"""The gated delta rule in both of its forms, in pieces and whole, against loops over texts, heads and tokens."""

import math
from functools import cache

import numpy as np
import pytest

from costcalc.reference import Arena, Request, Scope, Tape
from costcalc.reference.gated_delta import gated_delta
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Product

# B=2, T=11, D=13, N=6 on K=3 key heads, dk=5, dv=7, 4 taps, chunks of 5: 2·3·5 + 6·7 = 72 channels.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
EPS = 0.3
FIELDS = {
    "kind": "gated_delta",
    "heads": 6,
    "key_heads": 3,
    "key_dim": 5,
    "value_dim": 7,
    "d_conv": 4,
    "conv_bias": False,
    "activation": "silu",
    "decay": "per_head",
    "decay_rank": None,
    "decay_floor": None,
    "gate_rank": None,
    "gate_activation": "silu",
    "double_beta": False,
    "chunk": 5,
    "state_dtype": "fp32",
}
KIMI = {
    "key_heads": None,
    "decay": "per_channel",
    "decay_rank": 2,
    "gate_rank": 3,
    "gate_activation": "sigmoid",
    "conv_bias": True,
}
CHANGES = {
    "a decay a head": {},
    "a decay with a floor": {"decay_floor": -0.7},
    "of Kimi, with a floor": {**KIMI, "decay_floor": -0.7},
    "twice the correction": {"double_beta": True},
    "of Kimi": KIMI,
    "of Kimi, one product": {**KIMI, "decay_rank": None, "gate_rank": None},
    "relu": {"activation": "relu"},
    "one token a chunk": {"chunk": 1},
    "one chunk of more than all": {**KIMI, "chunk": 17},
}
PARTS = [(11,), (7, 1, 1, 2), (1,) * 11, (0, 6, 5)]


def fields(**changes):
    return {**FIELDS, **changes}


def sizes(some):
    """Of every matrix, (inputs, outputs)."""
    key_heads, channels = some["key_heads"] or 6, 5 if some["decay"] == "per_channel" else 1
    made = {"q": (13, key_heads * 5), "k": (13, key_heads * 5), "v": (13, 42), "beta": (13, 6), "output": (42, 13)}
    for name, outputs, rank in (("gate", 42, some["gate_rank"]), ("decay", 6 * channels, some["decay_rank"])):
        made |= {f"{name}_down": (13, rank), f"{name}_up": (rank, outputs)} if rank else {name: (13, outputs)}
    return made


def given(some):
    rng = np.random.default_rng(1)
    channels = 2 * (some["key_heads"] or 6) * 5 + 42
    decays = 30 if some["decay"] == "per_channel" else 6
    return {
        **{name: rng.normal(size=shape) / math.sqrt(shape[0]) for name, shape in sizes(some).items()},
        "conv": rng.normal(size=(channels, 4, 1)) / 2,
        **({"conv_bias": rng.normal(size=channels)} if some["conv_bias"] else {}),
        "dt_bias": rng.normal(size=decays),
        "a_log": rng.normal(size=6) / 2,
        "norm": rng.normal(size=7),
    }


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def low_rank(x, arrays, name):
    return x @ arrays[name] if name in arrays else x @ arrays[f"{name}_down"] @ arrays[f"{name}_up"]


@cache
def looped(name):
    """All outputs and the last states, in float64: S = a S, and then S + b k (v - S^T k)^T, head by head."""
    some = fields(**CHANGES[name])
    arrays, key_heads = given(some), some["key_heads"] or 6
    out, states = np.zeros((2, 11, 13)), np.zeros((2, 6, 5, 7))
    for b, text in enumerate(X.astype(float)):
        joined = np.concatenate([text @ arrays["q"], text @ arrays["k"], text @ arrays["v"]], axis=1)
        mixed = np.zeros_like(joined)
        for t in range(11):
            for tap in range(4):
                if t - 3 + tap >= 0:
                    mixed[t] += arrays["conv"][:, tap, 0] * joined[t - 3 + tap]
        mixed += arrays.get("conv_bias", 0)
        mixed = mixed * sigmoid(mixed) if some["activation"] == "silu" else np.maximum(mixed, 0)
        gate = low_rank(text, arrays, "gate")
        gate = gate * sigmoid(gate) if some["gate_activation"] == "silu" else sigmoid(gate)
        beta = sigmoid(text @ arrays["beta"]) * (2 if some["double_beta"] else 1)
        steps = (low_rank(text, arrays, "decay") + arrays["dt_bias"]).reshape(11, 6, -1)
        rates = np.exp(arrays["a_log"])[:, None]
        decay = np.exp(-rates * np.log1p(np.exp(steps)))
        if some["decay_floor"] is not None:
            decay = np.exp(some["decay_floor"] * sigmoid(rates * steps))
        for t in range(11):
            heads = []
            for n in range(6):
                of = n * key_heads // 6
                q, k = mixed[t, 5 * of :][:5], mixed[t, 5 * (key_heads + of) :][:5]
                v = mixed[t, 10 * key_heads + 7 * n :][:7]
                q, k = (some / math.sqrt(sum(some * some) + 1e-6) for some in (q, k))
                state = states[b, n] * decay[t, n][:, None]
                states[b, n] = state + beta[t, n] * np.outer(k, v - state.T @ k)
                y = states[b, n].T @ q / math.sqrt(5)
                heads.extend(y / math.sqrt(sum(y * y) / 7 + EPS) * arrays["norm"])
            out[b, t] = heads * gate[t] @ arrays["output"]
    return out, states


def passed(here, some, parts=(11,), *, chunked=False, x=X):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(x, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        sight = Sight(request.past, True, request, chunked=chunked)
        out.append(gated_delta(some, part, here, sight=sight, eps=EPS))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("name", CHANGES)
def test_both_forms_in_any_pieces_are_the_loop(place, name, parts, chunked):
    some = fields(**CHANGES[name])
    (y, request), (out, states) = passed(place(given(some)), some, parts, chunked=chunked), looped(name)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, out, rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(request.arrays["here.state"], states, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_chunks_give_what_tokens_give_to_rounding(place, changes):
    some = fields(**changes)
    one, other = (passed(place(given(some)), some, chunked=chunked) for chunked in (False, True))
    np.testing.assert_allclose(one[0], other[0], rtol=0, atol=1e-5 * np.abs(one[0]).max())
    held, there = (request.arrays["here.state"] for _, request in (one, other))
    np.testing.assert_allclose(held, there, rtol=0, atol=1e-5 * np.abs(held).max())


@pytest.mark.parametrize("changes", [{}, KIMI])
def test_decays_too_strong_for_their_inverse_are_no_overflow(place, changes):
    """e^-200 a token: of e^since and e^-since each alone would be 0 or infinite within a chunk."""
    some = fields(**changes)
    arrays = {**given(some), "a_log": np.full(6, math.log(200))}
    with np.errstate(over="raise", invalid="raise"):
        one, other = (passed(place(arrays), some, chunked=chunked)[0] for chunked in (False, True))
    assert np.abs(one).max() > 0.1
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("chunked", [False, True])
def test_what_is_held_is_as_large_whatever_went_through(place, chunked):
    for changes, channels in (({}, 72), (KIMI, 102)):  # 2·6·5 + 6·7 = 102
        some = fields(**changes)
        for parts in ((1, 10), (11,), (5, 6)):
            _, request = passed(place(given(some)), some, parts, chunked=chunked)
            assert {path: array.shape for path, array in request.arrays.items()} == {
                "here.conv_state": (2, 4, channels),
                "here.state": (2, 6, 5, 7),
            }
            assert {request.kind(path) for path in request.arrays} == {"state"}
            assert request.arrays["here.state"].dtype == np.float32


def test_states_behind_the_tokens_that_are_kept(place):
    """Three of five tokens are kept: the next pass takes up behind the third."""
    some, here, request = fields(), place(given(FIELDS)), Request(kept=3)
    gated_delta(some, X[:, :5], here, sight=Sight(0, True, request), eps=EPS)
    request.past, request.kept = 3, None
    here.tape.parameters.clear()
    y = gated_delta(some, X[:, 3:], here, sight=Sight(3, True, request), eps=EPS)
    np.testing.assert_allclose(y, looped("a decay a head")[0][:, 3:], rtol=1e-4, atol=2e-6)


def test_without_a_request_a_text_starts_and_nothing_is_held(place):
    for chunked in (False, True):
        y = gated_delta(fields(), X, place(given(FIELDS)), sight=Sight(chunked=chunked), eps=EPS)
        np.testing.assert_allclose(y, looped("a decay a head")[0], rtol=1e-4, atol=2e-6)


def scans(here):
    flops = {path.removeprefix("here."): count for path, count in here.tape.flops().items()}
    return {path: count for path, count in flops.items() if path.startswith("scan_")}


@pytest.mark.parametrize("changes", [{}, KIMI])
def test_products_token_by_token(place, changes):
    """2·N·dk·dv = 2·6·5·7 = 420 a token, B·T = 22 of them."""
    some = fields(**changes)
    here = place(given(some))
    passed(here, some, (10, 1))
    assert scans(here) == dict.fromkeys(("scan_recall", "scan_update", "scan_read"), 22 * 420)
    assert len(here.tape.products["here.scan_read"]) == 11


@pytest.mark.parametrize("changes", [{}, KIMI])
def test_products_chunk_by_chunk(place, changes):
    """11 tokens are 15 in chunks of 5: 2·15 = 30 of two texts, each against 5 of N heads: 2·5·6·5 = 300 of keys each,

    2·5·6·7 = 420 of values each.
    """
    some = fields(**changes)
    here = place(given(some))
    passed(here, some, chunked=True)
    assert scans(here) == {
        **dict.fromkeys(("scan_overlaps", "scan_scores", "scan_solved_keys"), 30 * 300),
        **dict.fromkeys(("scan_solved_values", "scan_values"), 30 * 420),
        **dict.fromkeys(("scan_recall", "scan_update", "scan_read"), 30 * 420),
    }


def test_a_decode_step_is_never_a_chunk_but_the_only_token_of_a_text_is(place):
    here = place(given(FIELDS))
    passed(here, fields(), (1,), chunked=True, x=X[:, :1])
    assert scans(here)["scan_recall"] == 2 * 5 * 420
    assert "scan_overlaps" in scans(here)
    here.tape.products.clear()
    here.tape.parameters.clear()
    gated_delta(fields(), X[:, :1], here, sight=Sight(7, True, Request(7), chunked=True), eps=EPS)
    assert scans(here) == dict.fromkeys(("scan_recall", "scan_update", "scan_read"), 2 * 420)


@pytest.mark.parametrize("chunked", [False, True])
def test_projections_and_the_convolution(place, chunked):
    some = fields(**KIMI)
    here = place(given(some))
    passed(here, some, chunked=chunked)
    for name, (inputs, outputs) in sizes(some).items():
        assert here.tape.products[f"here.{name}"] == [Product(1, 22, inputs, outputs)], name
        assert here.tape.of[f"here.{name}"] == f"here.{name}"
    assert here.tape.flops()["here.conv"] >= 2 * 22 * 102 * 4


@pytest.mark.parametrize("tokens", [0, 11])
@pytest.mark.parametrize("chunked", [False, True])
def test_the_parameters_of_a_gated_delta_net(place, chunked, tokens):
    here = place(given(FIELDS))
    y = gated_delta(fields(), X[:, :tokens], here, sight=Sight(request=Request(), chunked=chunked), eps=EPS)
    assert y.shape == (2, tokens, 13)
    assert here.tape.parameters == {
        f"here.{name}": (elements, "trainable")
        for name, elements in {
            "q": 195,  # 13·3·5
            "k": 195,
            "v": 546,  # 13·6·7
            "gate": 546,
            "beta": 78,
            "decay": 78,
            "dt_bias": 6,
            "a_log": 6,
            "conv": 288,  # 72·4
            "norm": 7,
            "output": 546,
        }.items()
    }


def test_the_parameters_of_kimi_delta_attention(place):
    some = fields(**KIMI)
    here = place(given(some))
    passed(here, some)
    assert {path.removeprefix("here."): elements for path, (elements, _) in here.tape.parameters.items()} == {
        "q": 390,  # 13·6·5
        "k": 390,
        "v": 546,
        "gate_down": 39,  # 13·3
        "gate_up": 126,  # 3·42
        "beta": 78,
        "decay_down": 26,  # 13·2
        "decay_up": 60,  # 2·6·5
        "dt_bias": 30,
        "a_log": 6,
        "conv": 408,  # 102·4
        "conv_bias": 102,
        "norm": 7,
        "output": 546,
    }


def test_a_layer_of_qwen3_next():
    """`Qwen3NextGatedDeltaNet` of 2,048: 2,048·(2·2,048 + 2·4,096 + 2·32) for the input, 8,192·4 taps, 2·32, 128 and

    4,096·2,048: 33,718,464 parameters. It holds 32·128·128 and 8,192·4 numbers: 557,056, and 36 layers 20,054,016.
    """
    some = fields(heads=32, key_heads=16, key_dim=128, value_dim=128, chunk=64)
    here, request = Scope(Tape(Arena(2**20, deviation=0.02)), "here"), Request()
    x = np.zeros((1, 0, 2048), np.float32)
    gated_delta(some, x, here, sight=Sight(request=request), eps=1e-6)
    assert sum(elements for elements, _ in here.tape.parameters.values()) == 33_718_464
    assert 36 * sum(array.size for array in request.arrays.values()) == 20_054_016


def test_another_decay_is_refused(place):
    with pytest.raises(LookupError, match="decay of kind per_token"):
        gated_delta(fields(decay="per_token"), X, place(given(FIELDS)), sight=Sight(), eps=EPS)
