"""Compressed convolutional attention, in pieces and whole, against a loop over texts and tokens."""

import numpy as np
import pytest

from costcalc.reference import Request
from costcalc.reference.block import ATTENTION
from costcalc.reference.convolved import latest, of_length
from costcalc.reference.sight import Sight

# B=2, T=11, D=13, N=6, K=2, H=5; 3 taps, then 2 of each head: C = 40 channels.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
GIVEN = {
    "q": RNG.normal(size=(13, 30)) / np.sqrt(13),
    "q_bias": RNG.normal(size=30),
    "k": RNG.normal(size=(13, 10)) / np.sqrt(13),
    "k_bias": RNG.normal(size=10),
    "v_current": RNG.normal(size=(13, 5)) / np.sqrt(13),
    "v_current_bias": RNG.normal(size=5),
    "v_delayed": RNG.normal(size=(13, 5)) / np.sqrt(13),
    "v_delayed_bias": RNG.normal(size=5),
    "conv": RNG.normal(size=(40, 3, 1)),
    "conv_bias": RNG.normal(size=40),
    "group_conv": RNG.normal(size=(8, 10, 5)) / np.sqrt(10),  # of each head 2 x 5 numbers, those of the token last
    "group_conv_bias": RNG.normal(size=40),
    "key_scale": RNG.normal(size=2),
    "output": RNG.normal(size=(30, 13)) / np.sqrt(30),
    "output_bias": RNG.normal(size=13),
}
PARTS = [(11,), (7, 1, 1, 2), (1,) * 11, (2, 9), (0, 6, 5)]
ROPE = {"kind": "rope", "theta": 30.0, "rotary_dim": 2, "frequencies": "rotated"}
NOWHERE = {"kind": "none"}


def fields(**changes):
    some = {"kind": "convolved", "heads": 6, "kv_heads": 2, "head_dim": 5, "taps": 3, "group_taps": 2}
    return {**some, "bias": True, "window": None, "scale": None, **changes}


def projected(row, name, bias):
    return row @ GIVEN[name] + bias * GIVEN[f"{name}_bias"]


def mixed(text, bias):
    """(T, 8, 5): of each token the six query heads and two key heads, before their lengths are changed."""
    q, k = projected(text, "q", bias), projected(text, "k", bias)
    both = np.concatenate([q, k], axis=1)  # (T, 40)

    def between(t):
        made = GIVEN["conv_bias"].copy()
        for back in range(3):
            made += GIVEN["conv"][:, 2 - back, 0] * (both[t - back] if t >= back else 0)
        return made.reshape(8, 5)

    heads = np.zeros((len(text), 8, 5))
    for t in range(len(text)):
        before, now = between(t - 1) if t else GIVEN["conv_bias"].reshape(8, 5), between(t)
        for head in range(8):
            seen = np.concatenate([before[head], now[head]])
            heads[t, head] = seen @ GIVEN["group_conv"][head] + GIVEN["group_conv_bias"][head * 5 : head * 5 + 5]
        for group in range(2):
            key = k[t, group * 5 : group * 5 + 5]
            means = [(q[t, n * 5 : n * 5 + 5] + key) / 2 for n in range(group * 3, group * 3 + 3)]
            heads[t, group * 3 : group * 3 + 3] += means
            heads[t, 6 + group] += sum(means) / 3
    return heads


def turned(vector, position):
    """The first two numbers by the position itself: of two rotated ones theta has the power 0."""
    first, second = vector[:2]
    sine, cosine = np.sin(position), np.cos(position)
    return np.array([first * cosine - second * sine, first * sine + second * cosine, *vector[2:]])


def looped(some, positions=ROPE):
    """In float64."""
    out, bias = np.zeros((2, 11, 13)), some["bias"]
    for b, text in enumerate(X.astype(float)):
        heads = mixed(text, bias)
        heads *= 5**0.5 / np.linalg.norm(heads, axis=-1, keepdims=True)
        heads[:, 6:] *= GIVEN["key_scale"][:, None]
        if positions["kind"] == "rope":
            heads = np.array([[turned(vector, t) for vector in heads[t]] for t in range(11)])
        current, delayed = projected(text, "v_current", bias), projected(text, "v_delayed", bias)
        earlier = np.concatenate([bias * GIVEN["v_delayed_bias"][None], delayed[:-1]])
        for t in range(11):
            first = 0 if some["window"] is None else max(t - some["window"] + 1, 0)
            given = []
            for n in range(6):
                keys, group = heads[first : t + 1, 6 + n // 3], n // 3
                scores = np.exp(keys @ heads[t, n] * (some["scale"] or 5**-0.5))
                values = (current, earlier)[group]  # of ten numbers a token, two heads: the second is the delayed half
                given.append(scores / scores.sum() @ values[first : t + 1])
            out[b, t] = np.concatenate(given) @ GIVEN["output"] + bias * GIVEN["output_bias"]
    return out


def passed(here, some, parts=(11,), positions=ROPE):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        sight = Sight(request.past, True, request)
        out.append(ATTENTION["convolved"](some, part, here, positions=positions, sight=sight))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


@pytest.mark.parametrize("some", [fields(), fields(bias=False), fields(window=4), fields(scale=0.1)])
@pytest.mark.parametrize("parts", PARTS)
def test_in_any_pieces_it_is_the_loop(place, parts, some):
    y, request = passed(place(GIVEN), some, parts)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, looped(some), rtol=1e-4, atol=1e-4)
    held = {path.removeprefix("here."): (array.shape, request.kind(path)) for path, array in request.arrays.items()}
    tokens = some["window"] or 11
    assert held == {
        "k_cache": ((2, 2, tokens, 5), "kv"),
        "v_cache": ((2, 2, tokens, 5), "kv"),
        "conv_state": ((2, 3, 40), "state"),
        "delayed_state": ((2, 5), "state"),
    }


def test_without_positions(place):
    y, _ = passed(place(GIVEN), fields(), (4, 7), NOWHERE)
    np.testing.assert_allclose(y, looped(fields(), NOWHERE), rtol=1e-4, atol=1e-4)


def test_what_is_held_for_the_next_token(place):
    """Two inputs of the first convolution, one of the second; the delayed half of the latest token's values."""
    _, request = passed(place(GIVEN), fields())
    text = X.astype(float)
    both = np.concatenate([projected(text, "q", 1), projected(text, "k", 1)], axis=-1)
    state = request.arrays["here.conv_state"]
    np.testing.assert_allclose(state[:, :2], both[:, -2:], rtol=1e-4, atol=1e-5)
    between = sum(GIVEN["conv"][:, 2 - back, 0] * both[:, 10 - back] for back in range(3)) + GIVEN["conv_bias"]
    np.testing.assert_allclose(state[:, 2], between, rtol=1e-4, atol=1e-5)
    delayed = projected(text[:, -1], "v_delayed", 1)
    np.testing.assert_allclose(request.arrays["here.delayed_state"], delayed, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kept", [0, 1, 6, 11])
def test_tokens_that_are_only_tried_leave_nothing(place, kept):
    """As in speculative decoding: the pass after it goes on from those that were kept."""
    here, request = place(GIVEN), Request(kept=kept)
    attend = ATTENTION["convolved"]
    other = np.concatenate([X[:, :kept], X[:, kept:][:, ::-1] + 1], axis=1)
    attend(fields(), other, here, positions=ROPE, sight=Sight(0, True, request))
    request.past, request.kept = kept, None
    here.tape.parameters.clear()
    y = attend(fields(), X[:, kept:], here, positions=ROPE, sight=Sight(kept, True, request))
    np.testing.assert_allclose(y, looped(fields())[:, kept:], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tokens", [0, 11])
@pytest.mark.parametrize("bias", [False, True])
def test_its_parameters_and_products(place, bias, tokens):
    """22 tokens of two texts; 66 pairs of each, of six heads of 5."""
    here = place(GIVEN)
    y = ATTENTION["convolved"](fields(bias=bias), X[:, :tokens], here, positions=ROPE, sight=Sight())
    assert y.shape == (2, tokens, 13)
    products = {"q": 390, "k": 130, "v_current": 65, "v_delayed": 65, "conv": 120, "group_conv": 400, "output": 390}
    always = {**products, "conv_bias": 40, "group_conv_bias": 40, "key_scale": 2}
    biases = {"q_bias": 30, "k_bias": 10, "v_current_bias": 5, "v_delayed_bias": 5, "output_bias": 13} if bias else {}
    assert here.tape.parameters == {
        f"here.{name}": (elements, "trainable") for name, elements in {**always, **biases}.items()
    }
    rows = {f"here.{name}": 2 * 22 * elements for name, elements in products.items()}
    cores = dict.fromkeys(("here.scores", "here.values"), 2 * 2 * 66 * 30)
    assert here.tape.flops() == ({**rows, **cores} if tokens else {})
    assert here.tape.of == ({path: path for path in rows} if tokens else {})


def test_with_one_tap_each_nothing_is_held_for_them(place):
    given = {**GIVEN, "conv": GIVEN["conv"][:, -1:], "group_conv": GIVEN["group_conv"][:, 5:]}
    _, request = passed(place(given), fields(taps=1, group_taps=1), (4, 7))
    assert set(request.arrays) == {"here.k_cache", "here.v_cache", "here.delayed_state"}


def test_lengths_are_the_root_of_a_heads_size():
    lengths = np.linalg.norm(of_length(X), axis=-1)
    np.testing.assert_allclose(lengths, 13**0.5, rtol=1e-5)
    zeros = np.zeros((1, 5), np.float32)
    np.testing.assert_array_equal(of_length(zeros), zeros)


def test_the_latest_places():
    x = np.arange(5.0).reshape(1, 5, 1)
    assert latest(x, 3)[0, ..., 0].tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert latest(x, 5)[0, ..., 0].tolist() == [[0], [1], [2], [3], [4]]
    assert latest(x, 0).shape == (1, 0, 6, 1)
