"""Blocks that layers share: 13 wide, 2 heads of 13 for queries, keys and values of 26 numbers each."""

import pytest

from costcalc.architecture import Architecture
from costcalc.architecture.component import RuleError
from costcalc.architecture.shared_block import SharedBlock
from costcalc.inventory import Workload

CONV = {"kind": "short_conv", "d_conv": 5}
SHARED = {"attention": {"heads": 2, "head_dim": 13}, "feed_forward": {"kind": "gated", "d_ff": 37}}
RANKS = {"attention_adapter_rank": 3, "feed_forward_adapter_rank": 5}
# Once: a norm of 26; q, k, v of 26 x 26, output of 26 x 13; a norm of 13; three matrices of 13 x 37
ONCE = 26 + 3 * 676 + 338 + 13 + 3 * 481
ADAPTERS = 3 * (26 * 3 + 3 * 26) + 13 * 5 + 5 * 74
CONVS = 13 * 39 + 13 * 5 + 13 * 13


def model(*layers):
    parts = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": list(layers)}
    return Architecture.model_validate(parts)


def hybrid(repeat=1, **shared):
    return {
        "name": f"hybrid-{shared.get('weights', '')}",
        "repeat": repeat,
        "mixer": CONV,
        "shared_block": {**SHARED, **shared},
    }


def of_layers(arch):
    """Parameters without the two tables and the final norm."""
    return sum(w.parameters for w in arch.inventory.weights) - 2 * 19 * 13 - 13


def test_weights_are_held_once_and_a_projection_in_each_layer():
    layer = CONVS + 13  # and its norm
    assert of_layers(model(hybrid(3))) == ONCE + 3 * (169 + layer)
    assert of_layers(model(hybrid(3, **RANKS))) == ONCE + 3 * (169 + ADAPTERS + layer)


def test_layers_that_are_equal_share_wherever_they_stand():
    plain = {"name": "plain", "mixer": CONV}
    spread = model(plain, hybrid(), plain, hybrid(), hybrid())
    assert of_layers(spread) == ONCE + 3 * 169 + 5 * (CONVS + 13)


def test_two_sets_of_weights_that_alternate():
    two = model({"repeat": 3, "pattern": [hybrid(weights="first"), hybrid(weights="second")]})
    assert of_layers(two) == 2 * ONCE + 6 * (169 + CONVS + 13)


def test_every_layer_runs_the_block_and_has_a_cache_of_its_own():
    one, three = model(hybrid()), model(hybrid(3))
    workload = Workload(new_tokens=11)

    def flops(arch):
        inside = [m for m in arch.inventory.matmuls if m.path.startswith("decoder.layers")]
        return sum(m.flops(workload) for m in inside)

    assert flops(three) == 3 * flops(one)
    keys = [c for c in three.inventory.cached if c.kind == "kv"]
    assert sum(c.elements(workload) for c in keys) == 3 * 2 * 26 * 11


def test_queries_keys_and_values_are_made_of_the_layers_input_and_the_embeddings():
    weights = {w.path: w.parameters for w in model(hybrid()).inventory.weights}
    inside = "decoder.layers.shared_block"
    assert weights[f"{inside}.attention_norm"] == 26
    assert weights[f"{inside}.attention.q"] == 26 * 26
    assert weights[f"{inside}.attention.output"] == 26 * 13
    assert weights[f"{inside}.linear"] == 13 * 13


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"attention": {"heads": 2, "head_dim": 13, "window": 5}}, "has no `window`, `chunk` or `cache_of`"),
        ({"attention": {"heads": 2, "head_dim": 11}, "attention_adapter_rank": 3}, "2 x d_model numbers each"),
        ({"attention": {"heads": 2, "kv_heads": 1, "head_dim": 13}, "attention_adapter_rank": 3}, "2 x d_model"),
        ({"feed_forward": {"kind": "dense", "d_ff": 37}, "feed_forward_adapter_rank": 3}, "is for a gated network"),
        ({"attention": {"heads": 2, "kv_heads": 3, "head_dim": 13}}, "not a multiple of kv_heads"),
    ],
)
def test_what_is_refused(fields, message):
    with pytest.raises(RuleError, match=message):
        SharedBlock.model_validate({**SHARED, **fields}).check((), 13)


def test_different_layers_cannot_share_one_set(refusal):
    plain, wide = hybrid(), {**hybrid(), "name": "wide", "feed_forward": {"d_ff": 41}}
    error = refusal(layers=[plain, wide])
    assert "2 layers that are not equal have a `shared_block` of the weights 'shared'" in str(error)
    assert "write `weights:`" in error.hint


def test_it_needs_a_mixer_that_reads_it(refusal):
    for change in ({"mixer": None}, {"norms": "post"}, {"norms": "sandwich"}):
        layer = {**hybrid(), "feed_forward": {"d_ff": 37}, **change}
        assert "is for a layer with a `mixer`" in str(refusal(layers=[layer]))
    relative = {"kind": "relative", "buckets": 4, "max_distance": 7, "per_layer": True}
    assert "has no relative positions" in str(refusal(layers=[{**hybrid(), "positions": relative}]))
    assert "`share_weights` shares all" in str(refusal(layers=[{**hybrid(), "share_weights": True}]))


def test_one_line_for_a_reader():
    said = SharedBlock.model_validate({**SHARED, **RANKS}).summary(13)
    assert said.startswith("2 query heads on 2 key/value heads of 13; gated silu, 37 wide, adapters of rank 3 on the")
