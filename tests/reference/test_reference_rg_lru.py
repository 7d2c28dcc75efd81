"""The real-gated linear recurrent unit, in pieces and whole, against a loop over texts, tokens and channels' blocks."""

import math

import numpy as np
import pytest

from costcalc.reference import Arena, Request, Scope, Tape
from costcalc.reference.rg_lru import rg_lru
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Product

# B=2, T=11, D=13, W=35 in 5 blocks of 7, 3 taps.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
GIVEN = {
    **{name: RNG.normal(size=(13, 35)) / math.sqrt(13) for name in ("input", "gate")},
    **{name: RNG.normal(size=(5, 7, 7)) / math.sqrt(7) for name in ("input_gate", "recurrence_gate")},
    **{f"{name}_bias": RNG.normal(size=35) for name in ("input", "gate", "input_gate", "recurrence_gate", "conv")},
    "conv": RNG.normal(size=(35, 3, 1)),
    "a": RNG.normal(size=35) - 3,
    "output": RNG.normal(size=(35, 13)) / math.sqrt(35),
    "output_bias": RNG.normal(size=13),
}
FIELDS = {"kind": "rg_lru", "width": 35, "heads": 5, "d_conv": 3, "activation": "gelu_tanh", "state_dtype": "fp32"}
PARTS = [(11,), (7, 1, 1, 2), (1,) * 11, (2, 9), (0, 6, 5)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def blockwise(x, name):
    blocks = [x[7 * n : 7 * n + 7] @ GIVEN[name][n] for n in range(5)]
    return sigmoid(np.concatenate(blocks) + GIVEN[f"{name}_bias"])


def looped(start=0):
    """All outputs and the last states, in float64 (equations 1 to 4); a is the logistic function of minus "a"."""
    out, states = np.zeros((2, 11, 13)), np.zeros((2, 35))
    for b, text in enumerate(X.astype(float)):
        entering = text @ GIVEN["input"] + GIVEN["input_bias"]
        beside = text @ GIVEN["gate"] + GIVEN["gate_bias"]
        beside = 0.5 * beside * (1 + np.tanh(math.sqrt(2 / math.pi) * (beside + 0.044715 * beside**3)))
        for t in range(11):
            x = GIVEN["conv_bias"]
            for back in range(min(t, 2) + 1):
                x = x + GIVEN["conv"][:, 2 - back, 0] * entering[t - back]
            a = sigmoid(-GIVEN["a"]) ** (8 * blockwise(x, "recurrence_gate"))
            scale = 1 if start + t == 0 else np.sqrt(1 - a**2)
            states[b] = a * states[b] + scale * blockwise(x, "input_gate") * x
            out[b, t] = states[b] * beside[t] @ GIVEN["output"] + GIVEN["output_bias"]
    return out, states


LOOPED = looped()


def passed(here, parts=(11,)):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        out.append(rg_lru(FIELDS, part, here, sight=Sight(request.past, True, request), eps=0.3))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


@pytest.mark.parametrize("parts", PARTS)
def test_in_any_pieces_it_is_the_loop(place, parts):
    y, request = passed(place(GIVEN), parts)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, LOOPED[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(request.arrays["here.state"], LOOPED[1], rtol=1e-4, atol=1e-5)
    assert {path: (held.shape, request.kind(path)) for path, held in request.arrays.items()} == {
        "here.conv_state": ((2, 2, 35), "state"),  # one fewer than taps
        "here.state": ((2, 35), "state"),
    }


def test_only_the_first_token_of_a_text_enters_whole(place):
    y = rg_lru(FIELDS, X, place(GIVEN), sight=Sight(1, True, Request(1)), eps=0.3)
    assert np.abs(looped(start=1)[0] - LOOPED[0]).max() > 0.01
    np.testing.assert_allclose(y, looped(start=1)[0], rtol=1e-4, atol=1e-5)


def test_states_behind_the_tokens_that_are_kept(place):
    here, request = place(GIVEN), Request(kept=3)
    rg_lru(FIELDS, X[:, :5], here, sight=Sight(0, True, request), eps=0.3)
    here.tape.parameters.clear()
    request.past, request.kept = 3, None
    y = rg_lru(FIELDS, X[:, 3:], here, sight=Sight(3, True, request), eps=0.3)
    np.testing.assert_allclose(y, LOOPED[0][:, 3:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("tokens", [0, 11])
def test_its_parameters_and_products(place, tokens):
    here = place(GIVEN)
    y = rg_lru(FIELDS, X[:, :tokens], here, sight=Sight(), eps=0.3)
    assert y.shape == (2, tokens, 13)
    assert here.tape.parameters == {
        f"here.{name}": (elements, "trainable")
        for name, elements in {
            **{"input": 455, "gate": 455, "output": 455},  # 13·35
            **{"input_gate": 245, "recurrence_gate": 245},  # 5·7²
            **{f"{name}_bias": 35 for name in ("input", "gate", "conv", "input_gate", "recurrence_gate")},
            **{"conv": 105, "a": 35, "output_bias": 13},
        }.items()
    }
    if not tokens:
        assert here.tape.products == {}
        return
    assert here.tape.flops() == {
        **{f"here.{name}": 2 * 22 * 455 for name in ("input", "gate", "output")},
        **{f"here.{name}": 2 * 22 * 245 for name in ("input_gate", "recurrence_gate")},
        "here.conv": 2 * 22 * 105,
        "here.scan_update": 2 * 22 * 35,
    }
    assert len(here.tape.products["here.scan_update"]) == 11
    assert here.tape.products["here.input_gate"] == [Product(10, 11, 7, 7)]  # five blocks of two texts
    assert here.tape.of["here.input_gate"] == "here.input_gate"


def test_a_recurrent_layer_of_recurrentgemma_2b():
    """W = D = 2,560 in 10 blocks of 256: three products of 2,560² and 2,560, 4 taps and a bias, two gates of 10·256²

    and 2,560, and "a": 21,002,240 parameters; 2,560 numbers of state and 3·2,560 of the convolution.
    """
    here, request = Scope(Tape(Arena(2**20, deviation=0.02)), "here"), Request()
    some = {**FIELDS, "width": 2560, "heads": 10, "d_conv": 4}
    x = np.zeros((1, 0, 2560), np.float32)
    rg_lru(some, x, here, sight=Sight(request=request), eps=1e-6)
    # 3·6,556,160 + 10,240 + 2,560 + 2·(655,360 + 2,560) + 2,560
    assert sum(elements for elements, _ in here.tape.parameters.values()) == 20_999_680
    assert sum(held.size for held in request.arrays.values()) == 4 * 2560
