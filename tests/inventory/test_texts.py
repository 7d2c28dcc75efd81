"""Sizes of a whole text against loops over its tokens, then against NumPy arrays of the same lengths and symbols."""

import numpy as np
import pytest

from costcalc.expression import Expression, symbols
from costcalc.inventory import Stages, Workload

LENGTHS = range(1, 40)
EXTENTS = [Stages()]


def test_stages_of_a_fast_transform():
    """Halves of halves, until one number is left."""
    for tokens in (*LENGTHS, 1023, 1024, 1025):
        stages, left = 0, tokens
        while left > 1:
            left, stages = (left + 1) // 2, stages + 1
        assert Stages().of(Workload(batch=3, new_tokens=tokens)) == stages
        assert Stages(True).of(Workload(batch=3, new_tokens=7, memory_tokens=tokens)) == stages


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("counting", ["attended", "rectangle"])
def test_arrays_and_symbols_give_the_numbers_of_one_length_at_a_time(extent, counting):
    tokens = np.arange(1, 40)
    swept = extent.of(Workload(batch=3, new_tokens=tokens, counting=counting))
    single = [extent.of(Workload(batch=3, new_tokens=int(length), counting=counting)) for length in tokens]
    assert swept.tolist() == single
    b, t = symbols("B T")
    written = extent.of(type("Symbols", (), {"batch": b, "new_tokens": t, "counting": counting}))
    assert isinstance(written, Expression)
    for length in LENGTHS:
        workload = Workload(batch=3, new_tokens=length, counting=counting)
        assert written.value({"B": 3, "T": length}) == extent.of(workload)
