"""Feed-forward networks against their formulas, with the matrices that each has."""

import numpy as np
import pytest

from costcalc.architecture.feed_forward import Dense, Gated
from costcalc.reference import ACTIVATIONS
from costcalc.reference.networks import NETWORKS, sparse
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


def fields(kind, **changes):
    """As they are dumped, with what they leave out."""
    return {"dense": Dense, "gated": Gated}[kind](**{"d_ff": 37, "activation": "silu", **changes}).model_dump()


def expected(kind, activation, bias):
    act, on = ACTIVATIONS[activation], 1 if bias else 0
    up = X @ GIVEN["up"] + on * GIVEN["up_bias"]
    gate = X @ GIVEN["gate"] + on * GIVEN["gate_bias"]
    hidden = act(up) if kind == "dense" else act(gate) * up
    return hidden @ GIVEN["down"] + on * GIVEN["down_bias"]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", NETWORKS)
def test_feed_forward_is_its_formula(place, kind, activation, bias):
    here = place(GIVEN)
    y = NETWORKS[kind](fields(kind, activation=activation, bias=bias), X.astype(np.float32), here)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, expected(kind, activation, bias), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", NETWORKS)
def test_what_is_recorded(place, kind, bias):
    here = place(GIVEN)
    NETWORKS[kind](fields(kind, bias=bias), X.astype(np.float32), here)
    # 33 rows
    sizes = {"gate": (13, 37), "up": (13, 37), "down": (37, 13)}
    assert here.tape.products == {f"here.{name}": [Product(1, 33, *sizes[name])] for name in NAMES[kind]}
    assert here.tape.of == {f"here.{name}": f"here.{name}" for name in NAMES[kind]}
    matrices = {f"here.{name}": (13 * 37, "trainable") for name in NAMES[kind]}
    biases = {f"here.{name}_bias": (sizes[name][1], "trainable") for name in NAMES[kind] if bias}
    assert here.tape.parameters == matrices | biases


def test_a_gate_of_zero_closes(place):
    here = place({**GIVEN, "gate": np.zeros((13, 37))})
    y = NETWORKS["gated"](fields("gated"), X.astype(np.float32), here)
    np.testing.assert_array_equal(y, np.zeros((3, 11, 13)))


def test_a_gate_and_its_other_factor_are_bounded_and_shifted(place):
    """Number by number, as gpt-oss does it: the gate from above, the other factor from both sides, and 1 more."""
    gate, up = X @ GIVEN["gate"] + GIVEN["gate_bias"], X @ GIVEN["up"] + GIVEN["up_bias"]
    assert ((gate > 0.7) | (gate < -0.7)).any() and (up < -0.7).any()
    bounded = [
        (min(g, 0.7) / (1 + np.exp(-1.702 * min(g, 0.7)))) * (max(-0.7, min(u, 0.7)) + 1)
        for g, u in zip(gate.flat, up.flat, strict=True)
    ]
    y = np.reshape(bounded, gate.shape) @ GIVEN["down"] + GIVEN["down_bias"]
    some = fields("gated", activation="quick_gelu", limit=0.7, up_shift=1.0, bias=True)
    np.testing.assert_allclose(NETWORKS["gated"](some, X.astype(np.float32), place(GIVEN)), y, rtol=1e-4, atol=1e-4)


def test_a_limit_that_nothing_reaches_changes_nothing(place):
    wide, none = (
        NETWORKS["gated"](fields("gated", limit=limit), X.astype(np.float32), place(GIVEN)) for limit in (97.0, None)
    )
    np.testing.assert_array_equal(wide, none)


def test_a_sparse_gate_keeps_what_is_far_above_its_mean(place):
    """Of normal numbers 0.95 lie below a mean and 1.6449 deviations."""
    some = fields("gated", sparsity=0.95, activation="relu")
    y = NETWORKS["gated"](some, X.astype(np.float32), place(GIVEN))
    gate = X @ GIVEN["gate"]
    bound = gate.mean(axis=-1, keepdims=True) + 1.644854 * gate.std(axis=-1, keepdims=True)
    kept = np.maximum(gate - bound, 0)
    assert 0 < (kept > 0).mean() < 0.1
    np.testing.assert_allclose(y, (kept * (X @ GIVEN["up"])) @ GIVEN["down"], rtol=1e-3, atol=1e-4)
    assert y.dtype == np.float32


def test_a_half_of_the_gate_is_above_its_mean():
    x = RNG.normal(size=(3, 1001)).astype(np.float32)
    kept = sparse(x, 0.5)
    np.testing.assert_allclose(kept, np.maximum(x - x.mean(axis=-1, keepdims=True), 0), atol=1e-6)
    assert kept.dtype == np.float32


def test_xielu_is_its_formula(place):
    """a x² + b x above 0, and (b + n)(e^x - 1 - x) + b x below, a and n made positive (arXiv 2411.13010)."""
    held = {"alpha_p": 0.3, "alpha_n": -0.2, "beta": 0.5, "eps": -1e-6}
    here = place({**GIVEN, **{f"activation_{name}": np.array([value]) for name, value in held.items()}})
    up = X @ GIVEN["up"]
    a, n = np.log1p(np.exp(0.3)), 0.5 + np.log1p(np.exp(-0.2))
    hidden = np.where(up > 0, a * up**2 + 0.5 * up, n * (np.exp(up) - 1 - up) + 0.5 * up)
    y = NETWORKS["dense"](fields("dense", activation="xielu"), X.astype(np.float32), here)
    np.testing.assert_allclose(y, hidden @ GIVEN["down"], rtol=1e-4, atol=1e-4)


def test_a_norm_inside_divides_by_the_length_of_what_the_last_matrix_reads(place):
    gains = 1 + RNG.normal(size=37) / 9
    some = fields("gated", inner_norm={"kind": "rmsnorm", "eps": 1e-5}, activation="relu_squared")
    hidden = np.maximum(X @ GIVEN["gate"], 0) ** 2 * (X @ GIVEN["up"])
    hidden /= np.sqrt((hidden**2).mean(axis=-1, keepdims=True) + 1e-5)
    y = NETWORKS["gated"](some, X.astype(np.float32), place({**GIVEN, "inner_norm": gains}))
    np.testing.assert_allclose(y, (hidden * gains) @ GIVEN["down"], rtol=1e-4, atol=1e-4)
