"""Layers that read another's keys and values: what they state, and to whom they may point."""

import pytest

from costcalc import flops, kv_cache, parameters
from costcalc.inventory import Workload

A = {"heads": 6, "kv_heads": 2, "head_dim": 5}


OTHER = "the layer 'a' caches other heads, or has another window or chunk"


def layer(name=None, *, repeat=1, **attention):
    named = {} if name is None else {"name": name}
    return {**named, "repeat": repeat, "attention": {**A, **attention}}


def test_a_borrower_makes_and_keeps_no_keys(made):
    own = made(layers=[layer("own"), layer("same")])
    lent = made(layers=[layer("own"), layer("reads", cache_of="own")])
    # k and v of a layer: 2·13·2·5 = 260 parameters, 2·2·5 = 20 cached numbers a token
    assert parameters(own).total - parameters(lent).total == 260
    assert kv_cache(own, 7).elements == 2 * kv_cache(lent, 7).elements == 2 * 7 * 20
    step = Workload(new_tokens=11)
    assert flops(own, step).weights - flops(lent, step).weights == 2 * 11 * 260
    assert flops(own, step).attention == flops(lent, step).attention


def test_a_borrower_may_hold_weights_that_it_does_not_use(made):
    lent = made(layers=[layer("own"), layer("reads", cache_of="own", keeps_kv_weights=True, qk_norm="per_head")])
    paths = [weight.path for weight in lent.inventory.weights if ".reads.attention." in weight.path]
    assert [path.rpartition(".")[2] for path in paths] == ["q", "k", "v", "q_norm", "k_norm", "output"]
    multiplied = {matmul.of for matmul in lent.inventory.matmuls}
    assert [path for path in paths if path not in multiplied and "norm" not in path] == [paths[1], paths[2]]
    without = made(layers=[layer("own"), layer("reads", cache_of="own", qk_norm="per_head")])
    held = [
        weight.path.rpartition(".")[2] for weight in without.inventory.weights if ".reads.attention." in weight.path
    ]
    assert held == ["q", "q_norm", "output"]


def test_the_nearest_earlier_layer_of_a_name_lends_through_a_pattern(made):
    pattern = [{"repeat": 3, "pattern": [layer("own"), layer("reads", repeat=2, cache_of="own")]}]
    assert kv_cache(made(layers=pattern), 7).elements == 3 * 7 * 20


def where(*, index):
    return ("decoder", "layers", index, "attention", "cache_of")


@pytest.mark.parametrize(
    ("layers", "message", "index"),
    [
        ([layer("own"), layer(cache_of="other")], "no layer is named 'other', whose keys and values could be read", 1),
        ([layer("a", cache_of="a")], "the layer 'a' cannot read itself", 0),
        ([layer(cache_of="b"), layer("b")], "the layer 'b' comes later: its keys and values are not made yet", 0),
        (
            [layer("a"), layer("b", cache_of="a"), layer("c", cache_of="b")],
            "the layer 'b' has no keys and values of its own of this kind of attention",
            2,
        ),
        (
            [{"name": "a", "feed_forward": {"d_ff": 37}}, layer(cache_of="a")],
            "the layer 'a' has no keys and values of its own of this kind of attention",
            1,
        ),
        *(
            (
                [layer("a"), layer(cache_of="a", **other)],
                "the layer 'a' caches other heads, or has another window or chunk",
                1,
            )
            for other in ({"kv_heads": 3}, {"head_dim": 7}, {"v_dim": 7}, {"window": 5}, {"chunk": 5})
        ),
    ],
)
def test_whom_a_layer_cannot_point_to(refusal, layers, message, index):
    error = refusal(layers=layers)
    assert (str(error), error.where) == (message, where(index=index))
    assert error.hint


def test_a_place_in_a_pattern_is_named(refusal):
    error = refusal(layers=[{"repeat": 2, "pattern": [layer(), layer(cache_of="x")]}])
    assert error.where == ("decoder", "layers", 0, "pattern", 1, "attention", "cache_of")


def test_in_a_second_turn_of_a_pattern_a_later_layer_is_an_earlier_one(refusal):
    """The first turn decides: there nothing is made yet."""
    error = refusal(layers=[{"repeat": 2, "pattern": [layer(cache_of="own"), layer("own")]}])
    assert "comes later" in str(error)


def test_only_a_decoder_has_them(refusal):
    said = "`chunk`, `cache_of`, `block_choice`, `top_k` and `keys` are for a decoder"
    encoder = {"layers": [layer("own"), layer("reads", cache_of="own")]}
    assert str(refusal(layers=None, encoder=encoder)) == said
    assert "chunk" in str(refusal(layers=None, encoder={"layers": [layer(chunk=5)]}))


def test_keeping_weights_is_for_borrowers(refusal):
    assert str(refusal(layers=[layer(keeps_kv_weights=True)])) == "`keeps_kv_weights` is for layers with `cache_of`"


def test_a_value_size_that_is_the_head_size_is_the_same_cache(made):
    assert kv_cache(made(layers=[layer("own"), layer("reads", cache_of="own", v_dim=5)]), 7).elements == 7 * 20
