"""A Fourier transform of a text against the sum that defines it (arXiv 2105.03824, equation 1)."""

import cmath

import numpy as np
import pytest

from costcalc.reference import Arena, Scope, Tape
from costcalc.reference.fourier import fourier
from costcalc.reference.sight import Sight

X = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
BOTH_WAYS = Sight(causal=False)


def transformed(x, sight=BOTH_WAYS):
    tape = Tape(Arena(64, deviation=1.0))
    return fourier({}, x, Scope(tape, "mixer"), sight=sight, eps=1e-5), tape


def test_it_is_the_sum_over_all_tokens_and_numbers():
    y, _ = transformed(X)
    for text, token, channel in ((0, 0, 0), (1, 3, 2), (0, 4, 1)):
        total = sum(
            X[text, n, m] * cmath.exp(-2j * cmath.pi * (token * n / 5 + channel * m / 3))
            for n in range(5)
            for m in range(3)
        )
        assert y[text, token, channel] == pytest.approx(total.real, abs=1e-5)


def test_twice_is_the_text_backwards():
    """Of a transform of a real even part, once more: T·D times the even part of the numbers."""
    y, _ = transformed(X)
    again, _ = transformed(y)
    even = (X + np.roll(X[:, ::-1, ::-1], (1, 1), (1, 2))) / 2
    assert np.allclose(again, 15 * even, atol=1e-4)


def test_its_stages_are_written_down():
    _, tape = transformed(X)
    assert tape.flops() == {"mixer.scan_channels": 2 * 30 * 2, "mixer.scan_tokens": 2 * 30 * 3}
    assert tape.parameters == {}


def test_it_is_for_an_encoder_and_takes_no_tokens():
    with pytest.raises(ValueError, match="it is for an encoder"):
        transformed(X, Sight())
    y, tape = transformed(X[:, :0])
    assert (y.shape, tape.flops()) == ((2, 0, 3), {})
