"""Activations against formulas in scalars, and against values worked out to 50 digits."""

import math

import numpy as np
import pytest

from costcalc.architecture.feed_forward import Dense, Gated
from costcalc.reference import ACTIVATIONS, gelu

POINTS = np.arange(-7, 7, 0.37).reshape(2, 19)

# Each formula as in its paper, of one number.
FORMULAS = {
    "gelu": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)),  # x Φ(x)
    "gelu_new": lambda x: x / 2 * (1 + math.tanh((x + 0.044715 * x**3) * math.sqrt(2 / math.pi))),
    "gelu_tanh": lambda x: x / 2 * (1 + math.tanh((x + 0.044715 * x**3) * math.sqrt(2 / math.pi))),
    "quick_gelu": lambda x: x / (1 + math.exp(-1.702 * x)),
    "relu": lambda x: x if x > 0 else 0.0,
    "relu_squared": lambda x: x * x if x > 0 else 0.0,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "softplus": lambda x: math.log(1 + math.exp(x)),
    "tanh": lambda x: (math.exp(2 * x) - 1) / (math.exp(2 * x) + 1),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_their_formulas(name):
    expected = np.array([FORMULAS[name](x) for x in POINTS.ravel()]).reshape(POINTS.shape)
    np.testing.assert_allclose(ACTIVATIONS[name](POINTS), expected, rtol=1e-10, atol=1e-14)


# Φ(1) = 0.8413... is in every table of the normal distribution.
@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        ("gelu", 1, 0.841344746068542949),
        ("gelu", -2, -0.045500263896358414),
        ("gelu_tanh", 1, 0.841191990608276705),
        ("gelu_tanh", 3, 2.996362607918226981),
        ("gelu_new", -1, -0.158808009391723295),
        ("quick_gelu", 1, 0.845795765932821296),
        ("quick_gelu", -2, -0.064341376855791850),
        ("silu", 1, 0.731058578630004879),
        ("silu", -1, -0.268941421369995121),
        ("sigmoid", 3, 0.952574126822433219),
        ("softplus", 1, 1.313261687518222834),
        ("softplus", -30, 9.357622968839299e-14),
        ("tanh", 0.5, 0.462117157260009759),
        ("relu", 3, 3),
        ("relu", -3, 0),
        ("relu_squared", 3, 9),
        ("relu_squared", -3, 0),
    ],
)
def test_values_from_outside(name, x, y):
    assert ACTIVATIONS[name](np.array([x], float))[0] == pytest.approx(y, rel=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_shape_and_dtype_stay_and_the_input_is_left_alone(name, dtype):
    x = POINTS.astype(dtype)
    y = ACTIVATIONS[name](x)
    assert (y.shape, y.dtype) == (x.shape, dtype)
    np.testing.assert_array_equal(x, POINTS.astype(dtype))
    exact = ACTIVATIONS[name](x.astype(float))
    np.testing.assert_allclose(y, exact, rtol=1e-5 if dtype == np.float32 else 1e-15, atol=1e-6)


def test_whole_numbers_are_no_reason_to_round():
    """Φ(1) = 0.84, not 0."""
    assert ACTIVATIONS["gelu"](np.array([1, 2, 3])).tolist() == ACTIVATIONS["gelu"](np.array([1.0, 2.0, 3.0])).tolist()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_what_is_large_does_not_overflow(name):
    """A warning of an overflow would fail this test."""
    low, high = ACTIVATIONS[name](np.array([-1e4, 1e4], np.float32)).tolist()
    assert low == {"tanh": -1}.get(name, 0)
    assert high == {"tanh": 1, "sigmoid": 1, "relu_squared": 1e8}.get(name, 1e4)


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "gelu_tanh", "quick_gelu", "silu", "relu"])
def test_units_with_a_symmetric_gate_differ_by_x(name):
    """x g(x) + x g(-x) = x, since g(x) + g(-x) = 1."""
    np.testing.assert_allclose(ACTIVATIONS[name](POINTS) - ACTIVATIONS[name](-POINTS), POINTS, rtol=1e-12)


def test_the_approximations_of_gelu_are_near_it_but_are_not_it():
    exact = ACTIVATIONS["gelu"](POINTS)
    assert 3e-4 < np.abs(ACTIVATIONS["gelu_tanh"](POINTS) - exact).max() < 5e-4
    assert 0.01 < np.abs(ACTIVATIONS["quick_gelu"](POINTS) - exact).max() < 0.021


@pytest.mark.parametrize("part", [Dense, Gated])
def test_there_is_one_for_each_name_that_a_model_may_give(part):
    for name in ACTIVATIONS:
        assert part(d_ff=37, activation=name).activation == name
    (schema,) = [inner["enum"] for key, inner in part.model_json_schema()["properties"].items() if key == "activation"]
    assert set(schema) - {"xielu"} == set(ACTIVATIONS) == set(FORMULAS)  # that one holds numbers of its own


@pytest.mark.parametrize("at_once", [1, 5, 7, 21, 22])
def test_an_error_function_in_parts_is_the_same(monkeypatch, at_once):
    monkeypatch.setattr("costcalc.reference.activations.ERF_AT_ONCE", at_once)
    x = np.linspace(-3, 3, 21).reshape(3, 7)
    assert gelu(x).tolist() == [[v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in row] for row in x.tolist()]
