from __future__ import annotations

from costcalc.inventory import Handed, Pairs, Workload


def test_kernels_are_handed_it_several_times_and_the_mathematics_needs_it_once():
    """A window of 5 in 11 tokens of 3 texts: 1 + 2 + 3 + 4 + 7·5 = 45 pairs each; kernels have 11·11, three times."""
    some = Handed(Pairs(window=5), 3)
    assert some.of(Workload(batch=3, new_tokens=11)) == 3 * 45
    assert some.of(Workload(batch=3, new_tokens=11, counting="rectangle")) == 3 * 3 * 121
    assert some.letters == "B·P"
