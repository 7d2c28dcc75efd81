"""Pairs of queries that meet chosen keys alone, against loops over queries; then NumPy arrays of the same lengths."""

import numpy as np
import pytest

from costcalc.expression import Expression, symbols
from costcalc.inventory import BlockPairs, Workload

SIZES = [(1, 1), (1, 3), (3, 1), (3, 2), (5, 2), (7, 3), (128, 16)]


def met(place, block, blocks):
    """Keys that the query at `place` (from 0) meets: whole blocks but for its own."""
    own = place // block
    return min(blocks - 1, own) * block + place % block + 1


@pytest.mark.parametrize(("block", "blocks"), SIZES)
@pytest.mark.parametrize("past", [0, 1, 2, 5, 14, 15, 46])
def test_pairs_of_chosen_blocks(block, blocks, past):
    for new in range(1, 19):
        pairs = sum(met(place, block, blocks) for place in range(past, past + new))
        workload = Workload(batch=3, new_tokens=new, past_tokens=past)
        assert BlockPairs(block, blocks).of(workload) == 3 * pairs
        rectangle = Workload(batch=3, new_tokens=new, past_tokens=past, counting="rectangle")
        assert BlockPairs(block, blocks).of(rectangle) == 3 * new * (past + new)


def test_minimax_m3_at_one_million():
    """16 blocks of 128: the last token of 2^20 meets 2,048 keys of 1,048,576."""
    assert BlockPairs(128, 16).of(Workload(past_tokens=2**20 - 1)) == 2_048


@pytest.mark.parametrize("counting", ["attended", "rectangle"])
def test_arrays_and_symbols_give_the_numbers_of_one_length_at_a_time(counting):
    extent, tokens = BlockPairs(3, 2), np.arange(1, 20)
    swept = extent.of(Workload(batch=3, new_tokens=tokens, past_tokens=4, counting=counting))
    single = [extent.of(Workload(3, int(length), 4, counting=counting)) for length in tokens]
    assert swept.tolist() == single
    b, t, p = symbols("B T p")
    written = extent.of(type("Symbols", (), {"batch": b, "new_tokens": t, "past_tokens": p, "counting": counting}))
    assert isinstance(written, Expression)
    assert written.value({"B": 3, "T": 11, "p": 4}) == extent.of(Workload(3, 11, 4, counting=counting))
