"""A gated short convolution, in pieces and whole, against a loop over texts and tokens."""

import numpy as np
import pytest

from costcalc.reference import Request
from costcalc.reference.short_conv import short_conv
from costcalc.reference.sight import Sight

# B=2, T=11, D=13, 3 taps.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
GIVEN = {
    "input": RNG.normal(size=(13, 39)) / np.sqrt(13),
    "input_bias": RNG.normal(size=39),
    "conv": RNG.normal(size=(13, 3, 1)),
    "conv_bias": RNG.normal(size=13),
    "output": RNG.normal(size=(13, 13)) / np.sqrt(13),
    "output_bias": RNG.normal(size=13),
}
PARTS = [(11,), (7, 1, 1, 2), (1,) * 11, (2, 9), (0, 6, 5)]


def looped(bias):
    """C * (the sum of the latest three B * x, each with its own weight), in float64."""
    out = np.zeros((2, 11, 13))
    for b, text in enumerate(X.astype(float)):
        made = text @ GIVEN["input"] + bias * GIVEN["input_bias"]
        before, behind, x = made[:, :13], made[:, 13:26], made[:, 26:]
        for t in range(11):
            mixed = bias * GIVEN["conv_bias"]
            for back in range(min(t, 2) + 1):
                mixed = mixed + GIVEN["conv"][:, 2 - back, 0] * before[t - back] * x[t - back]
            out[b, t] = behind[t] * mixed @ GIVEN["output"] + bias * GIVEN["output_bias"]
    return out


def passed(here, some, parts=(11,)):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        out.append(short_conv(some, part, here, sight=Sight(request.past, True, request), eps=0.3))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


def fields(bias):
    return {"kind": "short_conv", "d_conv": 3, "bias": bias}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("parts", PARTS)
def test_in_any_pieces_it_is_the_loop(place, parts, bias):
    y, request = passed(place(GIVEN), fields(bias), parts)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, looped(bias), rtol=1e-4, atol=1e-5)
    ((path, held),) = request.arrays.items()
    assert (path, held.shape, request.kind(path)) == ("here.conv_state", (2, 3, 13), "state")
    made = X[:, -3:] @ GIVEN["input"] + bias * GIVEN["input_bias"]
    np.testing.assert_allclose(held, made[..., :13] * made[..., 26:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("tokens", [0, 11])
@pytest.mark.parametrize("bias", [False, True])
def test_its_parameters_and_products(place, bias, tokens):
    """13·39 and 13·13 for the two products, 13·3 taps, biases of 39, 13 and 13; 22 tokens of two texts."""
    here = place(GIVEN)
    y = short_conv(fields(bias), X[:, :tokens], here, sight=Sight(), eps=0.3)
    assert y.shape == (2, tokens, 13)
    biases = {"input_bias": 39, "conv_bias": 13, "output_bias": 13} if bias else {}
    assert here.tape.parameters == {
        f"here.{name}": (elements, "trainable")
        for name, elements in {"input": 507, "conv": 39, "output": 169, **biases}.items()
    }
    rows = {"here.input": 2 * 22 * 507, "here.conv": 2 * 22 * 39, "here.output": 2 * 22 * 169}
    assert here.tape.flops() == (rows if tokens else {})
    assert here.tape.of == {path: path for path in here.tape.products}
