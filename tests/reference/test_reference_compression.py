"""Entries that stand for several tokens, and a stream of several parts, in pieces: against loops."""

import numpy as np
import pytest

from costcalc.reference import Given, Request, Scope, Tape
from costcalc.reference.compression import entries
from costcalc.reference.hyper_connections import doubly_stochastic
from costcalc.reference.sight import Sight

# B=2, T=11, D=13, entries of 5 numbers, of 3 tokens each.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
NORM = {"kind": "rmsnorm", "eps": 1e-6, "weight": False}
NOWHERE = {"kind": "none"}


def given(series):
    drawn = {name: RNG.normal(size=(13, series * 5)) / np.sqrt(13) for name in ("kv", "weights")}
    return {**drawn, "places": RNG.normal(size=(3, series * 5))}


def by_loop(text, numbers, series):
    """Each number of each entry by itself: what it is a mean of, and by which weights."""
    kv, weights = text @ numbers["kv"], text @ numbers["weights"]  # (T, s·5)
    made = []
    for first in range(0, len(text) - 2, 3):
        entry = np.empty(5)
        for number in range(5):
            places = [(first + i, (series - 1) * 5 + number, i) for i in range(3)]
            places += [(first - 3 + i, number, i) for i in range(3) if series == 2 and first > 0]
            shares = np.exp([weights[row, column] + numbers["places"][i, column] for row, column, i in places])
            entry[number] = sum(share * kv[row, column] for share, (row, column, _) in zip(shares, places, strict=True))
            entry[number] /= shares.sum()
        made.append(entry / np.sqrt((entry**2).mean() + 1e-6))
    return np.array(made)


@pytest.mark.parametrize("series", [1, 2])
@pytest.mark.parametrize("parts", [(11,), (7, 1, 1, 2), (1,) * 11, (2, 9), (3, 3, 3, 2)])
def test_entries(series, parts):
    numbers, request = given(series), Request()
    how = {"rate": 3, "overlap": series == 2}
    arrays = {f"here.{name}": values.astype(np.float32) for name, values in numbers.items()}
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        at = Scope(Tape(Given(arrays)), "here")
        sight = Sight(request.past, request=request)
        got = entries(how, part, at, width=5, norm_of=NORM, positions=NOWHERE, sight=sight)
        request.past += part.shape[1]
    for text in range(2):
        assert got[text] == pytest.approx(by_loop(X[text], numbers, series), abs=1e-4)
    sizes = {path.removeprefix("here."): held.shape[1:] for path, held in request.arrays.items()}
    waiting = {"waiting_kv": (2, series * 5), "waiting_weights": (2, series * 5)}
    overlapping = {"overlapping_kv": (3, 5), "overlapping_weights": (3, 5)} if series == 2 else {}
    assert sizes == {"entries": (3, 5), **waiting, **overlapping}


def test_rows_and_columns_come_to_one():
    logits = RNG.normal(size=(2, 7, 3, 3)).astype(np.float32)
    matrix = doubly_stochastic(logits, iterations=20, eps=1e-6)
    assert matrix.dtype == np.float32
    assert matrix.sum(axis=-1) == pytest.approx(1, abs=1e-4)
    assert matrix.sum(axis=-2) == pytest.approx(1, abs=1e-4)
    once = doubly_stochastic(logits, iterations=1, eps=1e-6)
    assert once.sum(axis=-2) == pytest.approx(1, abs=1e-4)
    assert once.sum(axis=-1) != pytest.approx(1, abs=1e-2)
