"""Token after token: which states are held, and when a chunked form runs."""

import numpy as np
import pytest

from costcalc.reference import Request
from costcalc.reference.recurrence import is_chunked, kept_of, padded, recurrence
from costcalc.reference.sight import Sight

X = np.arange(1, 12, dtype=np.float32)[None, :, None] * np.ones((2, 1, 3), np.float32)  # B=2, T=11, 3 numbers


def sums(here, part, sight):
    """The sum of all tokens so far, and twice it."""

    def step(t, states):
        total = states["total"] + part[:, t]
        return 2 * total, {"total": total}

    return recurrence(step, np.empty_like(part), {"total": np.zeros((2, 3), np.float32)}, here, sight=sight)


@pytest.mark.parametrize("parts", [(11,), (1,) * 11, (7, 4), (0, 5, 6)])
def test_each_token_goes_on_where_the_one_before_it_ended(place, parts):
    request, here = Request(), place({})
    out = [sums(here, part, Sight(request=request)) for part in np.split(X, np.cumsum(parts)[:-1], axis=1)]
    triangles = np.arange(1, 12) * np.arange(2, 13)  # twice 1 + 2 + .. + t
    np.testing.assert_array_equal(np.concatenate(out, axis=1)[1, :, 2], triangles)
    np.testing.assert_array_equal(request.arrays["here.total"], np.full((2, 3), 66))
    assert request.states == {"here.total"}
    assert request.kind("here.total") == "state"


@pytest.mark.parametrize(("kept", "held"), [(0, 3), (1, 6), (5, 28), (9, 66), (None, 66)])
def test_the_state_behind_the_last_kept_token_is_held(place, kept, held):
    """Two tokens before, and then nine."""
    request, here = Request(), place({})
    sums(here, X[:, :2], Sight(request=request))
    request.kept = kept
    y = sums(here, X[:, 2:], Sight(request=request))
    assert y[0, -1, 0] == 132
    np.testing.assert_array_equal(request.arrays["here.total"], np.full((2, 3), held))


def test_where_no_token_stays_the_start_is_held(place):
    request = Request(kept=0)
    sums(place({}), X, Sight(request=request))
    np.testing.assert_array_equal(request.arrays["here.total"], np.zeros((2, 3)))


def test_with_no_request_a_text_starts_from_nothing(place):
    assert sums(place({}), X, Sight())[0, -1, 0] == 132


@pytest.mark.parametrize(("kept", "tokens", "stay"), [(None, 7, 7), (0, 7, 0), (3, 7, 3)])
def test_how_many_stay(kept, tokens, stay):
    assert kept_of(Sight(request=Request(kept=kept)), tokens) == stay
    assert kept_of(Sight(), tokens) == tokens


@pytest.mark.parametrize(
    ("asked", "start", "tokens", "runs"),
    [
        (True, 0, 7, True),
        (True, 0, 1, True),
        (True, 5, 7, True),
        (True, 5, 1, False),  # a decode step
        (True, 1, 1, False),
        (False, 0, 7, False),
        (False, 5, 1, False),
    ],
)
def test_when_a_chunked_form_runs(asked, start, tokens, runs):
    assert is_chunked(Sight(start=start, chunked=asked), tokens) is runs


@pytest.mark.parametrize(("tokens", "whole"), [(0, 0), (1, 5), (4, 5), (5, 5), (6, 10), (11, 15)])
def test_zeros_fill_the_last_chunk(tokens, whole):
    filled = padded(X[:, :tokens], 5)
    assert (filled.shape, filled.dtype) == ((2, whole, 3), np.float32)
    np.testing.assert_array_equal(filled[:, :tokens], X[:, :tokens])
    np.testing.assert_array_equal(filled[:, tokens:], 0)


def test_a_state_of_another_batch_is_refused():
    request = Request()
    request.hold("a", X)
    assert request.state("a", np.zeros_like(X)) is X
    assert request.state("b", X) is X
    with pytest.raises(ValueError, match="another batch or model"):
        request.state("a", X[:1])
