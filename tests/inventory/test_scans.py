"""Sizes of recurrent work against loops over its tokens, then against NumPy arrays of the same lengths."""

import numpy as np
import pytest

from costcalc.expression import Expression, symbols
from costcalc.inventory import ChunkPairs, Convolved, WholeChunks, Workload

LENGTHS = range(1, 20)


@pytest.mark.parametrize("taps", [1, 3, 5])
def test_places_of_a_convolution(taps):
    """A kernel that is handed taps - 1 zeros at both ends has as many places as there are starts of `taps` inputs."""
    for tokens in LENGTHS:
        padded = tokens + 2 * (taps - 1)
        starts = sum(1 for start in range(padded) if start + taps <= padded)
        assert Convolved(taps).of(Workload(batch=3, new_tokens=tokens)) == 3 * tokens
        assert Convolved(taps).of(Workload(batch=3, new_tokens=tokens, counting="rectangle")) == 3 * starts


@pytest.mark.parametrize("chunk", [1, 2, 5, 7])
def test_whole_chunks(chunk):
    for tokens in LENGTHS:
        padded = tokens
        while padded % chunk:
            padded += 1
        assert WholeChunks(chunk).of(Workload(batch=3, new_tokens=tokens, past_tokens=11)) == 3 * padded


@pytest.mark.parametrize("chunk", [1, 2, 5, 7])
def test_pairs_inside_of_chunks(chunk):
    for tokens in LENGTHS:
        pairs = sum(one // chunk == other // chunk for one in range(tokens) for other in range(tokens))
        assert ChunkPairs(chunk).of(Workload(batch=3, new_tokens=tokens)) == 3 * pairs


@pytest.mark.parametrize("extent", [Convolved(5), WholeChunks(5), ChunkPairs(5)])
@pytest.mark.parametrize("counting", ["attended", "rectangle"])
def test_arrays_and_symbols_give_the_numbers_of_one_length_at_a_time(extent, counting):
    tokens = np.arange(1, 20)
    swept = extent.of(Workload(batch=3, new_tokens=tokens, counting=counting))
    single = [extent.of(Workload(batch=3, new_tokens=int(length), counting=counting)) for length in tokens]
    assert swept.tolist() == single
    workload = Workload(batch=3, new_tokens=11, counting=counting)
    b, t = symbols("B T")
    written = extent.of(type("Symbols", (), {"batch": b, "new_tokens": t, "counting": counting}))
    assert isinstance(written, Expression)
    assert written.value({"B": 3, "T": 11}) == extent.of(workload)


@pytest.mark.parametrize("extent", [Convolved(5), WholeChunks(5), ChunkPairs(5)])
def test_they_are_equal_by_value(extent):
    assert extent == type(extent)(5) != type(extent)(7)
    assert len({extent, type(extent)(5)}) == 1
