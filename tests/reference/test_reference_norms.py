"""Norms against loops, and their gains and biases as a model holds them."""

import math

import numpy as np
import pytest

from costcalc.reference import NoReferenceError, layer_norm, rms_norm
from costcalc.reference.norms import NORMS, norm

RNG = np.random.default_rng(0)
X = RNG.normal(2, 3, (3, 11, 13))
GAIN, BIAS = RNG.normal(size=(2, 13))


def layer_normed(row, eps):
    mean = sum(row) / len(row)
    variance = sum((x - mean) ** 2 for x in row) / len(row)
    return [(x - mean) / math.sqrt(variance + eps) for x in row]


def rms_normed(row, eps):
    return [x / math.sqrt(sum(x * x for x in row) / len(row) + eps) for x in row]


@pytest.mark.parametrize(("function", "of_row"), [(layer_norm, layer_normed), (rms_norm, rms_normed)])
@pytest.mark.parametrize("eps", [1e-6, 0.7])
def test_norms_of_the_last_axis(function, of_row, eps):
    expected = np.array([[of_row(row, eps) for row in rows] for rows in X.tolist()])
    np.testing.assert_allclose(function(X, eps=eps), expected, rtol=1e-12)


def test_by_hand():
    # mean 2, variance 1: ±1 / √(1 + 3)
    np.testing.assert_allclose(layer_norm(np.array([1.0, 3.0]), eps=3.0), [-0.5, 0.5], rtol=1e-15)
    # mean square (1 + 9) / 2 = 5: x / √(5 + 4)
    np.testing.assert_allclose(rms_norm(np.array([1.0, 3.0]), eps=4.0), [1 / 3, 1], rtol=1e-15)


def test_values_from_outside():
    """What torch 2.13.0 answers in float64: layer_norm(x, (4,)) with its eps of 1e-5, rms_norm(x, (4,), eps=1e-6)."""
    x = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(layer_norm(x), [-1.3416354200, -0.4472118067, 0.4472118067, 1.3416354200], atol=6e-11)
    np.testing.assert_allclose(rms_norm(x), [0.3651483473, 0.7302966947, 1.0954450420, 1.4605933893], atol=6e-11)


@pytest.mark.parametrize(("function", "default"), [(layer_norm, 1e-5), (rms_norm, 1e-6)])
def test_eps_unless_given(function, default):
    small = 1e-3 * X
    np.testing.assert_array_equal(function(small), function(small, eps=default))
    assert np.abs(function(small) - function(small, eps=2 * default)).max() > 1e-3


def test_what_norms_do_not_see():
    np.testing.assert_allclose(rms_norm(5 * X, eps=25e-6), rms_norm(X, eps=1e-6), rtol=1e-12)  # a factor
    np.testing.assert_allclose(layer_norm(5 * X + 7, eps=25e-6), layer_norm(X, eps=1e-6), rtol=1e-10)  # and a shift
    centred = X - X.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(rms_norm(centred), layer_norm(X, eps=1e-6), rtol=1e-12)
    np.testing.assert_allclose(layer_norm(X, eps=1e-12).mean(axis=-1), 0, atol=1e-12)
    np.testing.assert_allclose((layer_norm(X, eps=1e-12) ** 2).mean(axis=-1), 1, rtol=1e-10)
    assert np.abs(rms_norm(X + 7) - rms_norm(X)).max() > 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", NORMS.values())
def test_shape_and_dtype_stay(function, dtype):
    y = function(X.astype(dtype), eps=1e-6)
    assert (y.shape, y.dtype) == (X.shape, dtype)


@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize("weight", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_gain_and_bias_where_a_model_has_them(place, kind, weight, bias):
    fields = {"kind": kind, "eps": 0.3, "weight": weight}
    has_bias = bias and kind == "layernorm"
    if kind == "layernorm":
        fields["bias"] = bias
    here = place({"some_norm": GAIN, "some_norm_bias": BIAS})
    y = norm(fields, X.astype(np.float32), here, "some_norm")
    expected = NORMS[kind](X, eps=0.3) * (GAIN if weight else 1) + (BIAS if has_bias else 0)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    names = ["some_norm"] * weight + ["some_norm_bias"] * has_bias
    assert here.tape.parameters == {f"here.{name}": (13, "trainable") for name in names}


def test_another_kind_has_no_forward_pass(place):
    with pytest.raises(NoReferenceError, match="norm of kind batchnorm has no forward pass"):
        norm({"kind": "batchnorm", "eps": 1e-5, "weight": False}, X, place({}), "some_norm")
