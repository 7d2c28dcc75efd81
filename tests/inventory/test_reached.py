"""Tokens within the reach of a window: against a loop over queries."""

import pytest

from costcalc.inventory import Reached, Workload


@pytest.mark.parametrize("window", [1, 2, 5, 7, 11, 13, 1009])
@pytest.mark.parametrize(("past", "new"), [(0, 1), (0, 11), (4, 7), (10, 1), (23, 5)])
def test_it_is_every_key_that_some_query_sees(window, past, new):
    seen = {key for query in range(past, past + new) for key in range(max(query - window + 1, 0), query + 1)}
    assert Reached(window).of(Workload(batch=3, new_tokens=new, past_tokens=past)) == 3 * len(seen)
