"""RWKV-4's time and channel mixing, in pieces and whole, against weighted means written out."""

import numpy as np
import pytest

from costcalc.reference import Request
from costcalc.reference.feed_forward import feed_forward
from costcalc.reference.rwkv import rwkv, rwkv_channel
from costcalc.reference.sight import Sight

# B=2, T=11, D=13, W=17, F=19.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
MIXES = {f"mix_{name}": RNG.uniform(size=13) for name in "kvr"}
TIME = {
    **MIXES,
    **{name: RNG.normal(size=(13, 17)) / 3 for name in "kvr"},
    "time_decay": RNG.normal(size=17),
    "time_first": RNG.normal(size=17),
    "output": RNG.normal(size=(17, 13)) / 4,
}
CHANNEL = {
    **MIXES,
    "k": RNG.normal(size=(13, 19)) / 3,
    "r": RNG.normal(size=(13, 13)) / 3,
    "v": RNG.normal(size=(19, 13)) / 4,
}
FIELDS = {"kind": "rwkv", "width": 17, "state_dtype": "fp32"}
NETWORK = {"kind": "rwkv_channel", "d_ff": 19}
PARTS = [(11,), (7, 1, 1, 2), (1,) * 11, (2, 9), (0, 6, 5)]


def time_mixing(here, x, sight):
    return rwkv(FIELDS, x, here, sight=sight, eps=0.3)


def channel_mixing(here, x, sight):
    return rwkv_channel(NETWORK, x, here, sight=sight)


RUNS = [(time_mixing, TIME), (channel_mixing, CHANNEL)]


def mixed(text, name):
    """Each token with the one before it."""
    before = np.concatenate([np.zeros((1, 13)), text[:-1]])
    return text * MIXES[f"mix_{name}"] + before * (1 - MIXES[f"mix_{name}"])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def mean_of_all(given):
    """In float64: the mean of all values up to each token, of weights e^k, e^-w a token later, at first e^(u+k)."""
    out = np.zeros((2, 11, 13))
    for b, text in enumerate(X.astype(float)):
        r, k, v = (mixed(text, name) @ given[name] for name in "rkv")
        for t in range(11):
            ages = np.arange(t - 1, -1, -1)[:, None]  # of the tokens before it
            old = np.exp(-np.exp(given["time_decay"]) * ages + k[:t])
            new = np.exp(given["time_first"] + k[t])
            mean = ((old * v[:t]).sum(axis=0) + new * v[t]) / (old.sum(axis=0) + new)
            out[b, t] = sigmoid(r[t]) * mean @ given["output"]
    return out


def network():
    out = [
        sigmoid(mixed(text, "r") @ CHANNEL["r"]) * (np.maximum(mixed(text, "k") @ CHANNEL["k"], 0) ** 2 @ CHANNEL["v"])
        for text in X.astype(float)
    ]
    return np.stack(out)


def passed(run, here, parts=(11,)):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        out.append(run(here, part, Sight(request.past, True, request)))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


@pytest.mark.parametrize("parts", PARTS)
def test_time_mixing_is_the_mean_in_any_pieces(place, parts):
    y, request = passed(time_mixing, place(TIME), parts)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, mean_of_all(TIME), rtol=1e-4, atol=1e-5)
    assert {path: (held.shape, held.dtype) for path, held in request.arrays.items()} == {
        "here.shift_state": ((2, 13), np.float32),
        "here.state": ((2, 3, 17), np.float32),
    }
    assert request.states == request.arrays.keys()
    np.testing.assert_array_equal(request.arrays["here.shift_state"], X[:, -1])


@pytest.mark.parametrize("parts", PARTS)
def test_channel_mixing_is_its_formula_in_any_pieces(place, parts):
    y, request = passed(channel_mixing, place(CHANNEL), parts)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, network(), rtol=1e-4, atol=1e-5)
    assert request.states == request.arrays.keys() == {"here.shift_state"}
    np.testing.assert_array_equal(request.arrays["here.shift_state"], X[:, -1])


def test_a_layer_finds_its_network(place):
    y = feed_forward(NETWORK, X, place(CHANNEL), residual=X, sight=Sight())
    np.testing.assert_allclose(y, network(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1, 300])
def test_keys_of_any_size_stay_numbers(place, size):
    """With e^k beyond any float the largest key takes all: the mean is its value."""
    given = {**TIME, "k": size * TIME["k"], "time_decay": np.full(17, -9.0), "time_first": np.zeros(17)}
    y, request = passed(time_mixing, place(given), (3, 8))
    assert np.isfinite(y).all()
    assert np.isfinite(request.arrays["here.state"]).all()
    if size == 1:
        np.testing.assert_allclose(y, mean_of_all(given), rtol=1e-4, atol=1e-5)
        return
    r, k, v = (np.stack([mixed(text, name) @ given[name] for text in X.astype(float)]) for name in "rkv")
    largest = np.stack([k[:, : t + 1].argmax(axis=1) for t in range(11)], axis=1)
    best = sigmoid(r) * np.take_along_axis(v, largest, axis=1) @ given["output"]
    assert np.median(np.abs(y - best)) < 1e-4  # where two keys are not close to each other


@pytest.mark.parametrize(("run", "given"), RUNS)
def test_the_state_behind_the_last_kept_token_is_held(place, run, given):
    request, here = Request(kept=5), place(given)
    whole = run(here, X, Sight(request=request))
    here.tape.parameters.clear()
    request.kept = None
    y = run(here, X[:, 5:], Sight(5, request=request))
    np.testing.assert_allclose(y, whole[:, 5:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("tokens", [0, 11])
def test_what_time_mixing_records(place, tokens):
    """2·tokens rows of 3·13·17 and 17·13, and one product for each channel's numerator and output."""
    here = place(TIME)
    assert time_mixing(here, X[:, :tokens], Sight()).shape == (2, tokens, 13)
    sizes = {"k": 221, "v": 221, "r": 221, "output": 221}
    more = {"mix_k": 13, "mix_v": 13, "mix_r": 13, "time_decay": 17, "time_first": 17}
    assert here.tape.parameters == {f"here.{name}": (size, "trainable") for name, size in {**sizes, **more}.items()}
    done = {**sizes, "scan_update": 17, "scan_read": 17} if tokens else {}
    assert here.tape.flops() == {f"here.{name}": 2 * 22 * size for name, size in done.items()}


@pytest.mark.parametrize("tokens", [0, 11])
def test_what_channel_mixing_records(place, tokens):
    here = place(CHANNEL)
    assert channel_mixing(here, X[:, :tokens], Sight()).shape == (2, tokens, 13)
    sizes = {"k": 13 * 19, "v": 19 * 13, "r": 169}
    more = {"mix_k": 13, "mix_r": 13}
    assert here.tape.parameters == {f"here.{name}": (size, "trainable") for name, size in {**sizes, **more}.items()}
    assert here.tape.flops() == ({f"here.{name}": 2 * 22 * size for name, size in sizes.items()} if tokens else {})
