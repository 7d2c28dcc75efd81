"""The matrix memory of xLSTM, in pieces and whole, against the sum over all earlier tokens."""

import math

import numpy as np
import pytest

from costcalc.reference import Arena, Request, Scope, Tape
from costcalc.reference.mlstm import mlstm
from costcalc.reference.sight import Sight

# B=2, T=11, D=13, N=3, dk=5, dv=7.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
EPS = 0.3
OUTPUTS = {"q": 15, "k": 15, "v": 21, "gate": 21, "input_gate": 3, "forget_gate": 3}
GIVEN = {
    **{name: RNG.normal(size=(13, outputs)) / math.sqrt(13) for name, outputs in OUTPUTS.items()},
    **{f"{name}_bias": RNG.normal(size=outputs) for name, outputs in OUTPUTS.items()},
    "output": RNG.normal(size=(21, 13)) / math.sqrt(21),
    "output_bias": RNG.normal(size=13),
    "norm": RNG.normal(size=21),
    "norm_bias": RNG.normal(size=21),
}
CHANGES = {"plain": {}, "biases": {"bias": True}, "capped gates": {"gate_softcap": 0.7}}
PARTS = [(11,), (7, 1, 1, 2), (1,) * 11, (2, 9), (0, 6, 5)]


def fields(**changes):
    some = {"kind": "mlstm", "heads": 3, "qk_dim": 5, "v_dim": 7, "bias": False, "gate_softcap": None}
    return {**some, "state_dtype": "fp32", **changes}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def summed(some, given):
    """All outputs, in float64, without a maximum: weights i_s f_(s + 1) ... f_t (q_t · k_s) / √dk, divided by the

    larger of 1 and the distance of their sum from 0.
    """
    out, cap = np.zeros((2, 11, 13)), some["gate_softcap"]
    for b, text in enumerate(X.astype(float)):
        made = {}
        for name, outputs in OUTPUTS.items():
            biased = some["bias"] or name in ("input_gate", "forget_gate")
            made[name] = (text @ given[name] + biased * given[f"{name}_bias"]).reshape(11, -1, outputs // 3)
        enters, stays = made["input_gate"].reshape(11, 3), made["forget_gate"].reshape(11, 3)
        enters, stays = ((cap * np.tanh(some / cap) if cap else some) for some in (enters, stays))
        for t in range(11):
            joined = []
            for n in range(3):
                weights = [
                    math.exp(enters[s, n]) * math.prod(sigmoid(stays[s + 1 : t + 1, n]))
                    * sum(made["q"][t, n] * made["k"][s, n]) / math.sqrt(5)
                    for s in range(t + 1)
                ]  # fmt: skip
                y = np.dot(weights, made["v"][: t + 1, n]) / max(1, abs(sum(weights)))
                joined.extend((y - y.mean()) / math.sqrt(y.var() + EPS))
            y = joined * given["norm"] + some["bias"] * given["norm_bias"]
            y = y * sigmoid(made["gate"][t].ravel())
            out[b, t] = y @ given["output"] + some["bias"] * given["output_bias"]
    return out


SUMMED = {name: summed(fields(**changes), GIVEN) for name, changes in CHANGES.items()}


def passed(here, some, parts=(11,)):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        out.append(mlstm(some, part, here, sight=Sight(request.past, True, request), eps=EPS))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("name", CHANGES)
def test_in_any_pieces_it_is_the_sum(place, name, parts):
    y, request = passed(place(GIVEN), fields(**CHANGES[name]), parts)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, SUMMED[name], rtol=1e-4, atol=1e-5)
    assert {path: (held.shape, request.kind(path)) for path, held in request.arrays.items()} == {
        "here.state": ((2, 3, 5, 7), "state"),
        "here.normalizer_state": ((2, 3, 5), "state"),
        "here.maximum_state": ((2, 3), "state"),
    }


@pytest.mark.parametrize("shift", [60.0, 300.0])
def test_weights_that_no_float32_can_hold_are_held_by_their_maximum(place, shift):
    """Input gates of e^60 and e^300: the sum is divided by itself, and a million more or less is the same."""
    biased = {**GIVEN, "input_gate_bias": GIVEN["input_gate_bias"] + shift}
    with np.errstate(over="raise", invalid="raise"):
        y, request = passed(place(biased), fields(), (4, 7))
    np.testing.assert_allclose(y, summed(fields(), biased), rtol=1e-3, atol=1e-4)
    assert np.abs(request.arrays["here.state"]).max() < 100


def test_input_gates_of_almost_nothing_are_not_divided_by_their_sum(place):
    """e^-5 each: their sum is below 1, by which it is divided then, and the norm's eps shows how small outputs are."""
    small = {**GIVEN, "input_gate_bias": GIVEN["input_gate_bias"] - 5}
    y, _ = passed(place(small), fields())
    np.testing.assert_allclose(y, summed(fields(), small), rtol=1e-4, atol=1e-5)


def test_states_behind_the_tokens_that_are_kept(place):
    here, request = place(GIVEN), Request(kept=3)
    mlstm(fields(), X[:, :5], here, sight=Sight(0, True, request), eps=EPS)
    here.tape.parameters.clear()
    request.past, request.kept = 3, None
    y = mlstm(fields(), X[:, 3:], here, sight=Sight(3, True, request), eps=EPS)
    np.testing.assert_allclose(y, SUMMED["plain"][:, 3:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("tokens", [0, 11])
@pytest.mark.parametrize("bias", [False, True])
def test_its_parameters_and_products(place, bias, tokens):
    """Gates of the memory have a bias whatever is said; 2·N·dk·dv = 2·3·5·7 = 210 a token, 22 of them."""
    here = place(GIVEN)
    y = mlstm(fields(bias=bias), X[:, :tokens], here, sight=Sight(), eps=EPS)
    assert y.shape == (2, tokens, 13)
    matrices = {"q": 195, "k": 195, "v": 273, "gate": 273, "input_gate": 39, "forget_gate": 39, "output": 273}
    biases = {"q_bias": 15, "k_bias": 15, "v_bias": 21, "gate_bias": 21, "output_bias": 13, "norm_bias": 21}
    assert here.tape.parameters == {
        f"here.{name}": (elements, "trainable")
        for name, elements in {
            **matrices,
            **{"norm": 21, "input_gate_bias": 3, "forget_gate_bias": 3},
            **(biases if bias else {}),
        }.items()
    }
    scans = dict.fromkeys(("here.scan_update", "here.scan_read"), 22 * 210)
    rows = {f"here.{name}": 2 * 22 * elements for name, elements in matrices.items()}
    assert here.tape.flops() == ({**rows, **scans} if tokens else {})


def test_a_layer_of_xlstm_7b():
    """8 heads of 256 and 512 at a width of 4,096: 2·4,096·2,048 + 2·4,096² + 2·(4,096·8 + 8) + 4,096 + 4,096²

    parameters: 67,178,512. It holds 8·256·512 + 8·256 + 8 numbers: 1,050,632, and 32 layers 33,620,224.
    """
    here, request = Scope(Tape(Arena(2**20, deviation=0.01)), "here"), Request()
    some = fields(heads=8, qk_dim=256, v_dim=512, gate_softcap=15.0)
    x = np.zeros((1, 0, 4096), np.float32)
    mlstm(some, x, here, sight=Sight(request=request), eps=1e-6)
    assert sum(elements for elements, _ in here.tape.parameters.values()) == 67_178_512
    assert 32 * sum(held.size for held in request.arrays.values()) == 33_620_224
