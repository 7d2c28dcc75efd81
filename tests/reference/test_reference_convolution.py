"""Causal convolutions of each channel, in pieces and whole, and what is held of a text between them."""

import numpy as np
import pytest

from costcalc.reference import Request
from costcalc.reference.convolution import convolved
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Product

# B=2, T=11, C=5 channels, 4 taps.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 5)).astype(np.float32)
GIVEN = {"conv": RNG.normal(size=(5, 4, 1)), "conv_bias": RNG.normal(size=5)}
PARTS = [(11,), (7, 1, 1, 2), (1,) * 11, (2, 9), (0, 6, 5)]


def summed(bias):
    """Each number and the three before it, the newest with the last weight, one by one."""
    out = np.zeros((2, 11, 5))
    for text, token, channel in np.ndindex(out.shape):
        for back in range(min(token, 3) + 1):
            out[text, token, channel] += float(X[text, token - back, channel]) * GIVEN["conv"][channel, 3 - back, 0]
        out[text, token, channel] += bias * GIVEN["conv_bias"][channel]
    return out


def passed(here, parts, *, bias=True, keeps=None):
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        out.append(convolved(part, here, taps=4, bias=bias, sight=Sight(request=request), keeps=keeps))
    return np.concatenate(out, axis=1), request


@pytest.mark.parametrize("keeps", [None, 3])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("parts", PARTS)
def test_in_any_pieces_each_number_is_a_sum_of_the_latest(place, parts, bias, keeps):
    y, request = passed(place(GIVEN), parts, bias=bias, keeps=keeps)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, summed(bias), rtol=1e-5, atol=1e-6)
    ((path, held),) = request.arrays.items()
    assert (path, request.kind(path)) == ("here.conv_state", "state")
    np.testing.assert_array_equal(held, X[:, -(keeps or 4) :])


@pytest.mark.parametrize("tokens", [0, 1, 2, 3])
def test_before_a_text_there_are_zeros(place, tokens):
    request = Request()
    y = convolved(X[:, :tokens], place(GIVEN), taps=4, bias=False, sight=Sight(request=request))
    assert y.shape == (2, tokens, 5)
    held = request.arrays["here.conv_state"]
    assert held.shape == (2, 4, 5)
    np.testing.assert_array_equal(held[:, : 4 - tokens], 0)
    np.testing.assert_array_equal(held[:, 4 - tokens :], X[:, :tokens])


@pytest.mark.parametrize("kept", [0, 1, 5, 7])
@pytest.mark.parametrize("keeps", [None, 3])
def test_only_kept_tokens_are_held(place, kept, keeps):
    """Four tokens, and then seven, of which some are only tried."""
    request, here = Request(), place(GIVEN)
    for part, stay in ((X[:, :4], 4), (X[:, 4:], kept)):
        here.tape.parameters.clear()
        request.kept = stay
        y = convolved(part, here, taps=4, bias=True, sight=Sight(request=request), keeps=keeps)
    np.testing.assert_allclose(y, summed(bias=True)[:, 4:], rtol=1e-5, atol=1e-6)
    end = 4 + kept
    np.testing.assert_array_equal(request.arrays["here.conv_state"], X[:, end - (keeps or 4) : end])


def test_with_no_request_nothing_is_held(place):
    y = convolved(X, place(GIVEN), taps=4, bias=True, sight=Sight())
    np.testing.assert_allclose(y, summed(bias=True), rtol=1e-5, atol=1e-6)


def test_what_is_held_is_no_view_of_the_tokens(place):
    request, x = Request(), X.copy()
    convolved(x, place(GIVEN), taps=4, bias=False, sight=Sight(request=request))
    assert not np.shares_memory(request.arrays["here.conv_state"], x)
    assert request.arrays["here.conv_state"].base is None


def test_what_it_records(place):
    """2·11 numbers of each of 5 channels, of 4 products each."""
    here = place(GIVEN)
    convolved(X, here, taps=4, bias=True, sight=Sight())
    assert here.tape.parameters == {"here.conv": (20, "trainable"), "here.conv_bias": (5, "trainable")}
    assert here.tape.products == {"here.conv": [Product(10, 11, 4, 1)]}
    assert here.tape.flops() == {"here.conv": 2 * 22 * 5 * 4}
    assert here.tape.of == {"here.conv": "here.conv"}


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 5), (2, 4, 7)])
def test_another_batch_or_model_is_refused(place, shape):
    request = Request(arrays={"here.conv_state": np.zeros(shape, np.float32)})
    with pytest.raises(ValueError, match=r"conv_state holds .* is of another batch or model"):
        convolved(X, place(GIVEN), taps=4, bias=False, sight=Sight(request=request))
