import pytest

from costcalc.architecture.places import CROSS, DECODER, ENCODER, SOURCE, At
from costcalc.inventory import (
    Asking,
    Cached,
    Context,
    CrossPairs,
    Matmul,
    Memory,
    MemoryPairs,
    Pairs,
    Tokens,
    Weight,
)

AT = At("decoder.layers", times=3)


def test_a_place_further_down_stands_for_as_many_layers():
    assert AT.under("attention") == At("decoder.layers.attention", times=3)
    assert At("decoder").times == 1


def test_a_weight_is_made_at_its_place():
    assert AT.weight("norm", {"D": 13}) == Weight("decoder.layers.norm", {"D": 13}, times=3)
    table = At("decoder").weight("positions", {"length": 11, "D": 13}, role="frozen", table=True)
    assert table == Weight("decoder.positions", {"length": 11, "D": 13}, times=1, role="frozen", table=True)


def test_a_linear_map_is_a_weight_and_its_matmul():
    weight, matmul = AT.linear("q", Tokens(), {"D": 13}, {"N": 6, "H": 5}, bias=False)
    assert weight == Weight("decoder.layers.q", {"D": 13, "N": 6, "H": 5}, times=3)
    assert matmul == Matmul(
        "decoder.layers.q", {"B·T": Tokens(), "D": 13, "N": 6, "H": 5}, times=3, of="decoder.layers.q"
    )
    assert list(matmul.axes) == ["B·T", "D", "N", "H"]  # the formula as it is printed: 2·B·T·D·N·H


def test_the_bias_of_a_linear_map_is_as_wide_as_its_outputs():
    *_, bias = AT.linear("q", Tokens(), {"D": 13}, {"N": 6, "H": 5}, bias=True)
    assert bias == Weight("decoder.layers.q_bias", {"N": 6, "H": 5}, times=3)


def test_the_rows_of_a_linear_map_are_those_of_its_stream():
    _, matmul = AT.linear("k", Memory(once=True), {"D": 13}, {"K": 2}, bias=False)
    assert matmul.axes == {"B·M": Memory(once=True), "D": 13, "K": 2}


def test_the_core_of_an_attention_multiplies_by_no_weight():
    axes = {"B·P": Pairs(), "N": 6, "H": 5}
    assert AT.core("scores", axes) == Matmul("decoder.layers.scores", axes, times=3, of=None, role="scores")
    assert AT.core("values", axes).role == "values"


def test_a_cache_is_made_at_its_place():
    axes = {"B·S": Context(), "K": 2, "H": 5}
    assert AT.cached("k_cache", axes) == Cached("decoder.layers.k_cache", axes, times=3)
    assert AT.cached("k_cache", axes, kind="cross").kind == "cross"


def test_layers_that_share_their_weights_hold_them_once_and_do_the_rest_each():
    shared = At("encoder.layers", times=3, shared=True)
    assert shared.under("attention") == At("encoder.layers.attention", times=3, shared=True)
    assert shared.weight("norm", {"D": 13}).times == 1
    weight, matmul, bias = shared.linear("q", Tokens(), {"D": 13}, {"N": 6}, bias=True)
    assert (weight.times, matmul.times, bias.times) == (1, 3, 1)
    assert (shared.core("scores", {"N": 6}).times, shared.cached("k_cache", {"K": 2}).times) == (3, 3)


def test_a_decoder_looks_back_over_its_new_tokens_and_keeps_them():
    assert (DECODER.rows, DECODER.key_rows, DECODER.cache) == (Tokens(), Tokens(), "kv")
    assert DECODER.pairs(7) == Pairs(window=7, causal=True)
    assert DECODER.pairs(None) == Pairs()
    assert DECODER.held(7) == Context(window=7)


def test_an_encoder_alone_looks_both_ways_and_keeps_nothing():
    assert (ENCODER.rows, ENCODER.key_rows, ENCODER.held) == (Tokens(), Tokens(), None)
    assert ENCODER.pairs(7) == Pairs(window=7, causal=False)


def test_the_encoder_of_a_pair_runs_over_the_memory_once():
    once = Memory(once=True)
    assert (SOURCE.rows, SOURCE.key_rows, SOURCE.held) == (once, once, None)
    assert SOURCE.pairs(7, None) == MemoryPairs(window=7)


def test_cross_attention_asks_the_memory_and_keeps_its_keys():
    assert (CROSS.rows, CROSS.key_rows, CROSS.cache) == (Asking(), Memory(once=True), "cross")
    assert (CROSS.pairs(None), CROSS.held(None)) == (CrossPairs(), Memory())


def test_a_stream_is_frozen():
    with pytest.raises(AttributeError):
        DECODER.cache = "cross"
