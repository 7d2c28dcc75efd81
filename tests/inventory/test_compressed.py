"""Sizes of entries that stand for several tokens, against loops over tokens; then NumPy arrays and symbols."""

import numpy as np
import pytest

from costcalc.expression import Expression, symbols
from costcalc.inventory import Entries, EntryPairs, Overlapping, Waiting, Workload

LENGTHS = [(past, new) for past in (0, 1, 5, 11, 12) for new in range(1, 14)]
EXTENTS = [Entries(5), Waiting(5), Overlapping(5), EntryPairs(5), EntryPairs(3, 2)]


@pytest.mark.parametrize("rate", [1, 2, 3, 7, 128])
@pytest.mark.parametrize(("past", "new"), LENGTHS)
def test_what_is_held(rate, past, new):
    """Token by token: a full row of `rate` becomes an entry, and stays beside it until the next one is made."""
    entries, waiting, last = 0, 0, 0
    for _ in range(past + new):
        waiting += 1
        if waiting == rate:
            entries, waiting, last = entries + 1, 0, rate
    workload = Workload(batch=3, new_tokens=new, past_tokens=past)
    assert [kind(rate).of(workload) for kind in (Entries, Waiting, Overlapping)] == [3 * entries, 3 * waiting, 3 * last]


@pytest.mark.parametrize("chosen", [None, 1, 2, 5])
@pytest.mark.parametrize("rate", [1, 2, 3, 7, 128])
@pytest.mark.parametrize(("past", "new"), LENGTHS)
def test_pairs_with_entries(rate, chosen, past, new):
    met = [sum(1 for entry in range(place + 1) if (entry + 1) * rate <= place + 1) for place in range(past + new)]
    pairs = sum(each if chosen is None else min(each, chosen) for each in met[past:])
    assert EntryPairs(rate, chosen).of(Workload(batch=3, new_tokens=new, past_tokens=past)) == 3 * pairs
    rectangle = Workload(batch=3, new_tokens=new, past_tokens=past, counting="rectangle")
    assert EntryPairs(rate, chosen).of(rectangle) == 3 * new * met[-1]


def test_deepseek_v4_at_one_million():
    """The last of 2^20 tokens meets 8,192 entries of 128 tokens, and 512 of 262,144 entries of 4."""
    last = Workload(past_tokens=2**20 - 1)
    assert EntryPairs(128).of(last) == 8_192
    assert (EntryPairs(4).of(last), EntryPairs(4, 512).of(last)) == (262_144, 512)


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("counting", ["attended", "rectangle"])
def test_arrays_and_symbols_give_the_numbers_of_one_length_at_a_time(extent, counting):
    tokens = np.arange(1, 20)
    swept = extent.of(Workload(batch=3, new_tokens=tokens, past_tokens=4, counting=counting))
    single = [extent.of(Workload(3, int(length), 4, counting=counting)) for length in tokens]
    assert swept.tolist() == single
    b, t, p = symbols("B T p")
    written = extent.of(type("Symbols", (), {"batch": b, "new_tokens": t, "past_tokens": p, "counting": counting}))
    assert isinstance(written, Expression)
    assert written.value({"B": 3, "T": 11, "p": 4}) == extent.of(Workload(3, 11, 4, counting=counting))
