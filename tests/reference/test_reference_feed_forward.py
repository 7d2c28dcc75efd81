"""Feed-forward networks against their formulas, with the matrices that each has."""

import numpy as np
import pytest

from costcalc.reference import ACTIVATIONS
from costcalc.reference.feed_forward import FEED_FORWARD
from costcalc.reference.tape import Product

# B=3, T=11, D=13, F=37
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 11, 13))
GIVEN = {
    "gate": RNG.normal(size=(13, 37)) / 3,
    "gate_bias": RNG.normal(size=37),
    "up": RNG.normal(size=(13, 37)) / 3,
    "up_bias": RNG.normal(size=37),
    "down": RNG.normal(size=(37, 13)) / 6,
    "down_bias": RNG.normal(size=13),
}
NAMES = {"dense": ["up", "down"], "gated": ["gate", "up", "down"]}


def expected(kind, activation, bias):
    act, on = ACTIVATIONS[activation], 1 if bias else 0
    up = X @ GIVEN["up"] + on * GIVEN["up_bias"]
    gate = X @ GIVEN["gate"] + on * GIVEN["gate_bias"]
    hidden = act(up) if kind == "dense" else act(gate) * up
    return hidden @ GIVEN["down"] + on * GIVEN["down_bias"]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", FEED_FORWARD)
def test_feed_forward_is_its_formula(place, kind, activation, bias):
    here = place(GIVEN)
    fields = {"kind": kind, "d_ff": 37, "activation": activation, "bias": bias}
    y = FEED_FORWARD[kind](fields, X.astype(np.float32), here)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, expected(kind, activation, bias), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", FEED_FORWARD)
def test_what_is_recorded(place, kind, bias):
    here = place(GIVEN)
    FEED_FORWARD[kind]({"kind": kind, "d_ff": 37, "activation": "silu", "bias": bias}, X.astype(np.float32), here)
    # 33 rows
    sizes = {"gate": (13, 37), "up": (13, 37), "down": (37, 13)}
    assert here.tape.products == {f"here.{name}": [Product(1, 33, *sizes[name])] for name in NAMES[kind]}
    assert here.tape.of == {f"here.{name}": f"here.{name}" for name in NAMES[kind]}
    matrices = {f"here.{name}": (13 * 37, "trainable") for name in NAMES[kind]}
    biases = {f"here.{name}_bias": (sizes[name][1], "trainable") for name in NAMES[kind] if bias}
    assert here.tape.parameters == matrices | biases


def test_a_gate_of_zero_closes(place):
    here = place({**GIVEN, "gate": np.zeros((13, 37))})
    fields = {"kind": "gated", "d_ff": 37, "activation": "silu", "bias": False}
    np.testing.assert_array_equal(FEED_FORWARD["gated"](fields, X.astype(np.float32), here), np.zeros((3, 11, 13)))
