"""Mamba, in pieces and whole, against loops over texts, tokens and channels."""

import numpy as np
import pytest

from costcalc.architecture.mixer import Mamba1
from costcalc.reference import Request
from costcalc.reference.mamba1 import mamba1
from costcalc.reference.sight import Sight

# B=2, T=11, D=13; I=10 channels, S=3 numbers of state each, 4 taps, steps of rank 7; in one head, or in five of 2.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
SELECTION, DT = RNG.normal(size=(5, 2, 13)) / 2, RNG.normal(size=(5, 7, 2)) / 3
GIVEN = {
    "input": RNG.normal(size=(13, 20)) / 4,
    "input_bias": RNG.normal(size=20),
    "conv": RNG.normal(size=(10, 4, 1)),
    "conv_bias": RNG.normal(size=10),
    "dt_bias": RNG.normal(size=10),
    "dt_norm": RNG.normal(size=7),
    "b_norm": RNG.normal(size=3),
    "c_norm": RNG.normal(size=3),
    "a_log": RNG.normal(size=(10, 3)) / 2,
    "d": RNG.normal(size=10),
    "output": RNG.normal(size=(10, 13)) / 3,
    "output_bias": RNG.normal(size=13),
}
IN_HEADS = {
    1: {**GIVEN, "selection": RNG.normal(size=(1, 10, 13)) / 3, "dt": RNG.normal(size=(1, 7, 10)) / 3},
    5: {**GIVEN, "selection": SELECTION, "dt": DT},
}
PARTS = [(11,), (7, 1, 1, 2), (1,) * 11, (2, 9), (0, 6, 5)]
CHANGES = [
    {},
    {"bias": True},
    {"conv_bias": False},
    {"activation": "relu"},
    {"inner_norms": True},
    {"inner_norms": "without_gain"},
    {"heads": 5},
    {"heads": 5, "inner_norms": True, "bias": True},
]


def fields(**changes):
    return Mamba1(**{"d_inner": 10, "d_state": 3, "dt_rank": 7, **changes}).model_dump()


def silu(x):
    return x / (1 + np.exp(-x))


def normed(x, name, some):
    if not some["inner_norms"]:
        return x
    gain = GIVEN[f"{name}_norm"] if some["inner_norms"] is True else 1
    return x / np.sqrt(np.mean(x * x) + 0.3) * gain


def looped(some):
    """(outputs, last states) in float64: equation 2 with A of equation 4, channel by channel."""
    w = IN_HEADS[some["heads"]]
    out, states = np.zeros((2, 11, 13)), np.zeros((2, 10, 3))
    act = silu if some["activation"] == "silu" else lambda x: np.maximum(x, 0)
    part = 10 // some["heads"]
    for b, text in enumerate(X.astype(float)):
        made = text @ w["input"] + some["bias"] * w["input_bias"]
        for t in range(11):
            u = some["conv_bias"] * w["conv_bias"]
            for back in range(min(t, 3) + 1):
                u = u + w["conv"][:, 3 - back, 0] * made[t - back, :10]
            u, y = act(u), np.zeros(10)
            for channel in range(10):
                head, inside = divmod(channel, part)
                chosen = u[head * part : head * part + part] @ w["selection"][head]
                dt, enters, leaves = (
                    normed(one, name, some)
                    for one, name in zip(np.split(chosen, [7, 10]), ("dt", "b", "c"), strict=True)
                )
                step = np.log(1 + np.exp(dt @ w["dt"][head, :, inside] + w["dt_bias"][channel]))
                for s in range(3):
                    left = np.exp(-step * np.exp(w["a_log"][channel, s])) * states[b, channel, s]
                    states[b, channel, s] = left + step * enters[s] * u[channel]
                y[channel] = sum(leaves * states[b, channel]) + w["d"][channel] * u[channel]
            out[b, t] = y * silu(made[t, 10:]) @ w["output"] + some["bias"] * w["output_bias"]
    return out, states


def passed(here, some, parts=(11,)):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        out.append(mamba1(some, part, here, sight=Sight(request.past, True, request), eps=0.3))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


@pytest.mark.parametrize("changes", CHANGES)
def test_it_is_the_loop(place, changes):
    some = fields(**changes)
    y, request = passed(place(IN_HEADS[some["heads"]]), some)
    out, states = looped(some)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, out, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(request.arrays["here.state"], states, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("changes", [{}, {"heads": 5, "inner_norms": True}])
def test_in_any_pieces_it_is_the_same(place, changes, parts):
    some = fields(**changes)
    given = IN_HEADS[some["heads"]]
    whole, end = passed(place(given), some)
    y, request = passed(place(given), some, parts)
    np.testing.assert_allclose(y, whole, rtol=1e-5, atol=1e-5)
    assert request.arrays.keys() == end.arrays.keys() == request.states
    assert {path: held.shape for path, held in request.arrays.items()} == {
        "here.conv_state": (2, 4, 10),
        "here.state": (2, 10, 3),
    }
    for path, held in request.arrays.items():
        assert held.dtype == np.float32
        np.testing.assert_allclose(held, end.arrays[path], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("tokens", [0, 11])
@pytest.mark.parametrize("changes", CHANGES)
def test_what_it_records(place, changes, tokens):
    """2·tokens rows: 13·20, ten channels of four taps, 10·13 and 7·10 (in five heads a fifth), 10·3 twice, 10·13."""
    some = fields(**changes)
    heads = some["heads"]
    here = place(IN_HEADS[heads])
    mamba1(some, X[:, :tokens], here, sight=Sight(), eps=0.3)
    sizes = {"input": 260, "conv": 40, "selection": 130, "dt": 70, "output": 130}
    more = {"dt_bias": 10, "a_log": 30, "d": 10}
    more |= {"input_bias": 20, "output_bias": 13} if some["bias"] else {}
    more |= {"conv_bias": 10} if some["conv_bias"] else {}
    more |= {"dt_norm": 7, "b_norm": 3, "c_norm": 3} if some["inner_norms"] is True else {}
    assert here.tape.parameters == {f"here.{name}": (size, "trainable") for name, size in {**sizes, **more}.items()}
    done = {**sizes, "scan_update": 30, "scan_read": 30} if tokens else {}
    assert here.tape.flops() == {f"here.{name}": 2 * 22 * size for name, size in done.items()}
    assert here.tape.of == {path: path for path in here.tape.products if "scan" not in path}


def test_it_keeps_the_state_behind_the_last_kept_token(place):
    some, request = fields(), Request(kept=5)
    here = place(IN_HEADS[1])
    mamba1(some, X, here, sight=Sight(request=request), eps=0.3)
    here.tape.parameters.clear()
    request.kept = None
    y = mamba1(some, X[:, 5:], here, sight=Sight(5, request=request), eps=0.3)
    np.testing.assert_allclose(y, looped(some)[0][:, 5:], rtol=1e-4, atol=1e-5)
