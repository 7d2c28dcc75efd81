from __future__ import annotations

import pytest

from costcalc.architecture.attention import DynamicMask
from costcalc.architecture.component import RuleError
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import BlockPairs, Cached, Context, Matmul, Tokens, Weight, Workload

AT = At("decoder.layers.attention", times=3)
# N=6 heads on K=2 key/value heads of H=5, the best 7 keys; D=13
SMALL = DynamicMask(heads=6, kv_heads=2, head_dim=5, keys=7)


def path(name):
    return f"decoder.layers.attention.{name}"


def linear(name, axes, rows=None):
    rows = Tokens() if rows is None else rows
    return [Weight(path(name), axes, 3), Matmul(path(name), {rows.letters: rows, **axes}, 3, path(name))]


def records(attention, at=AT, d_model=13):
    return list(attention.records(at, d_model, DECODER))


def test_everything_that_is_stated():
    shared, queries, pairs = {"K": 2, "H": 5}, {"N": 6, "H": 5}, BlockPairs(1, 7)
    assert records(SMALL) == [
        *linear("q", {"D": 13, **queries}),
        *linear("k", {"D": 13, **shared}),
        *linear("v", {"D": 13, **shared}),
        Weight(path("q_norm"), {"H": 5}, 3),
        Weight(path("k_norm"), {"H": 5}, 3),
        *linear("worth", {**shared, "K_worth": 2}, Context()),
        Weight(path("worth_gain"), {"K": 2}, 3),
        Matmul(path("scores"), {"B·P": pairs, **queries}, 3, None, "scores"),
        Matmul(path("values"), {"B·P": pairs, **queries}, 3, None, "values"),
        Cached(path("k_cache"), {"B·S": Context(), **shared}, 3),
        Cached(path("v_cache"), {"B·S": Context(), **shared}, 3),
        *linear("output", {**queries, "D": 13}),
    ]


def test_the_best_keys_and_the_rectangle():
    """Of 11 tokens 1 + 2 + ... + 7 + 4·7 = 56 pairs; kernels are handed 121. A step reads all values anew."""
    made = {r.path: r for r in records(SMALL) if type(r) is Matmul}
    scores, worth = made[path("scores")], made[path("worth")]
    assert scores.flops(Workload(new_tokens=11)) == 2 * 3 * 56 * 30
    assert scores.flops(Workload(new_tokens=11, counting="rectangle")) == 2 * 3 * 121 * 30
    assert worth.flops(Workload(new_tokens=1, past_tokens=10)) == 2 * 3 * 11 * 10 * 2


def test_biases():
    biased = [r for r in records(SMALL.model_copy(update={"bias": True})) if r not in records(SMALL)]
    assert [r.path for r in biased] == [path(f"{name}_bias") for name in ("q", "k", "v", "worth", "output")]


def test_doge():
    """The class as it is (tests/oracle/cousins.json): 4 x 1,024², 1,024·8, 8 and 2 x 128 in each attention."""
    whole = DynamicMask(heads=8, kv_heads=8, head_dim=128)
    held = sum(r.parameters for r in records(whole, At("a"), 1024) if type(r) is Weight)
    assert held == 4 * 1024**2 + 8_192 + 8 + 256


def test_rules_and_what_a_reader_is_told():
    with pytest.raises(RuleError, match="heads 6 is not a multiple of kv_heads 4"):
        SMALL.model_copy(update={"kv_heads": 4}).check((), 13)
    assert SMALL.summary(13) == "6 query heads on 2 key/value heads of 5, the best 7 keys"
    assert SMALL.left_out(13) == {"scale": (5**-0.5, "1 / sqrt(head_dim)")}
    assert SMALL.rotated(13) == 5
