from __future__ import annotations

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters
from costcalc.inventory import Weight

UNIT = {"kind": "rmsnorm", "weight": False, "unit": True}
SHARED = {"attention": {"heads": 6, "kv_heads": 2, "head_dim": 5}, "feed_forward": {"d_ff": 37}, "share_weights": True}
LOW, HIGH = {**SHARED, "name": "low"}, {**SHARED, "name": "high"}
ONCE = 2 * 13 * 30 + 2 * 13 * 10 + 2 * 13 * 37
"""One layer, D=13: q and output, k and v, up and down."""


def model(layers, **stack):
    return load({"vocab_size": 19, "d_model": 13, "norm": UNIT, "layers": layers, **stack})


def two_modules(rounds, low_turns, **more):
    layers = [{"repeat": rounds, "pattern": [{**LOW, "repeat": low_turns}, HIGH]}]
    return model(layers, hierarchy={"low": 1, "high": 1, "low_turns": low_turns, **more})


def test_modules_hold_their_weights_once_and_a_start():
    """HRM-Text: two layers, 13 numbers that are not trained, two tables; each turn has its own products and cache."""
    arch = two_modules(2, 3)
    count = parameters(arch)
    assert (count.total, count.trainable) == (2 * ONCE + 13 + 2 * 19 * 13, 2 * ONCE + 2 * 19 * 13)
    assert Weight("decoder.low_start", {"D": 13}, role="frozen") in arch.inventory.records
    assert flops(arch, Workload(new_tokens=11)).weights == 2 * 11 * (8 * ONCE + 19 * 13)
    assert kv_cache(arch, 11).elements == 8 * 2 * 2 * 5 * 11


def test_a_loop_is_the_layers_that_run():
    """Dory: one layer before, one that runs three times, one behind: three sets of weights, five caches."""
    own = {key: value for key, value in SHARED.items() if key != "share_weights"}
    layers = [{**own, "name": "first"}, {**LOW, "repeat": 3}, {**own, "name": "last"}]
    arch = model(layers, loop={"before": 1, "layers": 1, "turns": 3})
    assert parameters(arch).total == 3 * ONCE + 2 * 19 * 13
    assert kv_cache(arch, 11).elements == 5 * 2 * 2 * 5 * 11


@pytest.mark.parametrize(
    ("stack", "what"),
    [
        ({"hierarchy": {"low": 1, "high": 1, "low_turns": 3}}, "no whole number of rounds of 4"),
        ({"loop": {"layers": 3, "turns": 2}}, "the loop ends at 6"),
        ({"loop": {"layers": 1, "turns": 2}, "norm": "rmsnorm"}, "has no numbers of its own"),
        ({"loop": {"layers": 1, "turns": 2}, "hierarchy": {"low": 1, "high": 4}}, "exclude each other"),
    ],
)
def test_what_cannot_be(stack, what):
    with pytest.raises(CostcalcError, match=what):
        model([{**LOW, "repeat": 5}], **stack)
