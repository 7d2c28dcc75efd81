from copy import deepcopy

import pytest

from costcalc.architecture import Architecture
from costcalc.architecture.component import RuleError
from costcalc.architecture.written import FullForm, full_form

RMS, ROPE = {"kind": "rmsnorm"}, {"kind": "rope"}
HEADS = {"kind": "grouped_query", "heads": 6}


def layers_of(written):
    return full_form(written)["decoder"]["layers"]


def only_layer(written):
    (layer,) = layers_of(written)
    return layer


def test_the_short_form_spelled_out():
    short = {
        "d_model": 13,
        "norm": "rmsnorm",
        "positions": {"kind": "rope", "theta": 5e5},
        "layers": [{"repeat": 3, "attention": {"heads": 6, "qk_norm": "per_head"}, "feed_forward": {"d_ff": 37}}],
    }
    positions = {"kind": "rope", "theta": 5e5}
    assert full_form(short) == {
        "d_model": 13,
        "decoder": {
            "norm": RMS,
            "positions": positions,
            "layers": [
                {
                    "norm": RMS,
                    "positions": positions,
                    "repeat": 3,
                    "attention": {"kind": "grouped_query", "heads": 6, "qk_norm": {"kind": "per_head"}},
                    "feed_forward": {"kind": "dense", "d_ff": 37},
                }
            ],
        },
    }


def test_a_stack_may_be_written_out():
    stack = {"norm": "rmsnorm", "layers": [{"attention": {"heads": 6}}]}
    assert full_form({"decoder": stack}) == full_form(stack)


@pytest.mark.parametrize(
    ("key", "value", "spelled"),
    [
        ("norm", "rmsnorm", RMS),
        ("positions", "rope", ROPE),
        ("positions", "none", {"kind": "none"}),
        ("final_norm", False, False),
    ],
)
def test_a_key_of_a_stack_at_the_top_is_its_default(key, value, spelled):
    full = full_form({key: value, "layers": []})
    assert key not in full
    assert full["decoder"][key] == spelled


def test_a_stacks_own_key_beats_the_top():
    full = full_form({"norm": "rmsnorm", "final_norm": True, "decoder": {"norm": "layernorm", "final_norm": False}})
    assert full["decoder"]["norm"] == {"kind": "layernorm"}
    assert full["decoder"]["final_norm"] is False


def test_keys_of_one_kind_are_merged():
    written = {"norm": {"kind": "layernorm", "bias": False}, "decoder": {"norm": {"weight": False}, "layers": [{}]}}
    merged = {"kind": "layernorm", "bias": False, "weight": False}
    assert full_form(written)["decoder"] == {"norm": merged, "layers": [{"norm": merged}]}


def test_another_kind_replaces_and_takes_nothing_over():
    written = {"positions": {"kind": "learned", "length": 11}, "layers": [{"positions": "rope"}]}
    assert only_layer(written)["positions"] == ROPE
    assert full_form(written)["decoder"]["positions"] == {"kind": "learned", "length": 11}
    block = {"feed_forward": {"kind": "gated", "d_ff": 37, "bias": True}}
    other = {"block": block, "layers": [{"feed_forward": {"kind": "dense", "d_ff": 41}}]}
    assert only_layer(other)["feed_forward"] == {"kind": "dense", "d_ff": 41}


def test_the_same_kind_written_again_is_merged():
    block = {"feed_forward": {"kind": "gated", "d_ff": 37, "bias": True}}
    written = {"block": block, "layers": [{"feed_forward": {"kind": "gated", "d_ff": 41}}]}
    assert only_layer(written)["feed_forward"] == {"kind": "gated", "d_ff": 41, "bias": True}
    assert only_layer({"norm": {"kind": "layernorm", "bias": False}, "layers": [{"norm": "layernorm"}]})["norm"] == {
        "kind": "layernorm",
        "bias": False,
    }


def test_a_default_kind_is_the_same_kind_when_it_is_written_out():
    block = {"attention": {"heads": 6}, "feed_forward": {"d_ff": 37}}
    own = {"attention": {"kind": "grouped_query", "window": 7}, "feed_forward": {"kind": "dense", "bias": True}}
    merged = {
        "attention": {"kind": "grouped_query", "heads": 6, "window": 7},
        "feed_forward": {"kind": "dense", "d_ff": 37, "bias": True},
    }
    assert only_layer({"block": block, "layers": [own]}) == merged
    assert only_layer({"block": block, "decoder": {"block": own, "layers": [{}]}}) == merged


def test_a_layer_without_a_kind_keeps_that_of_its_default():
    written = {"block": {"feed_forward": {"kind": "gated", "d_ff": 37}}, "layers": [{"feed_forward": {"d_ff": 41}}]}
    assert only_layer(written)["feed_forward"] == {"kind": "gated", "d_ff": 41}


def test_the_block_is_a_default_for_every_layer_key_by_key():
    written = {
        "decoder": {
            "block": {"norms": "sandwich", "attention": {"heads": 6, "head_dim": 5}},
            "layers": [
                {"name": "local", "attention": {"window": 7}},
                {"name": "whole"},
                {"norms": "pre", "attention": {"heads": 3}},
            ],
        }
    }
    assert layers_of(written) == [
        {"norms": "sandwich", "name": "local", "attention": {**HEADS, "head_dim": 5, "window": 7}},
        {"norms": "sandwich", "name": "whole", "attention": {**HEADS, "head_dim": 5}},
        {"norms": "pre", "attention": {"kind": "grouped_query", "heads": 3, "head_dim": 5}},
    ]
    assert "block" not in full_form(written)["decoder"]


def test_a_block_at_the_top_is_a_default_for_that_of_the_stack():
    written = {
        "block": {"norms": "post", "attention": {"heads": 6, "bias": True}},
        "decoder": {"block": {"attention": {"bias": False, "window": 7}}, "layers": [{}]},
    }
    assert only_layer(written) == {"norms": "post", "attention": {**HEADS, "bias": False, "window": 7}}


def test_a_block_beats_the_keys_of_its_stack():
    written = {
        "norm": "rmsnorm",
        "positions": "rope",
        "block": {"norm": "layernorm", "positions": "none"},
        "layers": [{}],
    }
    assert only_layer(written) == {"norm": {"kind": "layernorm"}, "positions": {"kind": "none"}}
    assert full_form(written)["decoder"]["norm"] == RMS


def test_only_norm_and_positions_of_a_stack_are_defaults_for_its_layers():
    assert only_layer({"norm": "rmsnorm", "final_norm": True, "layers": [{}]}) == {"norm": RMS}


def test_defaults_reach_into_patterns_at_every_depth():
    inner = {"repeat": 2, "pattern": [{"attention": {"window": 7}}, {"attention": None, "feed_forward": {"d_ff": 37}}]}
    written = {"block": {"attention": {"heads": 6}}, "layers": [{"repeat": 3, "pattern": [inner, {"name": "last"}]}]}
    assert layers_of(written) == [
        {
            "repeat": 3,
            "pattern": [
                {
                    "repeat": 2,
                    "pattern": [
                        {"attention": {**HEADS, "window": 7}},
                        {"feed_forward": {"kind": "dense", "d_ff": 37}},
                    ],
                },
                {"attention": HEADS, "name": "last"},
            ],
        }
    ]


def test_a_null_takes_a_default_away():
    block = {"norms": "post", "attention": {"heads": 6, "window": 7}, "feed_forward": {"d_ff": 37}}
    written = {"positions": "rope", "block": block, "layers": [{"attention": {"window": None}, "positions": None}]}
    assert only_layer(written) == {
        "norms": "post",
        "attention": HEADS,
        "feed_forward": {"kind": "dense", "d_ff": 37},
    }
    assert only_layer({"block": block, "layers": [{"attention": None, "norms": None}]}) == {
        "feed_forward": {"kind": "dense", "d_ff": 37}
    }


@pytest.mark.parametrize("key", ["norm", "positions", "final_norm", "block"])
def test_a_null_in_a_stack_takes_the_default_of_the_top_away(key):
    top = {"norm": "rmsnorm", "positions": "rope", "final_norm": True, "block": {"norms": "post"}}
    full = full_form({**top, "decoder": {key: None, "layers": []}})
    assert key not in full["decoder"]


@pytest.mark.parametrize("key", ["norm", "positions", "final_norm", "block"])
def test_a_null_at_the_top_is_as_if_it_was_not_written(key):
    assert full_form({key: None, "layers": [{"norms": "pre"}]}) == full_form({"layers": [{"norms": "pre"}]})


def test_a_null_for_nothing_is_nothing():
    assert only_layer({"layers": [{"attention": None}]}) == {}


def test_a_list_or_a_word_replaces_what_was_there():
    assert only_layer({"block": {"norms": "post"}, "layers": [{"norms": "pre"}]}) == {"norms": "pre"}
    assert only_layer({"block": {"attention": {"heads": 6}}, "layers": [{"attention": [6]}]}) == {"attention": [6]}
    assert only_layer({"block": {"attention": [6]}, "layers": [{"attention": {"heads": 6}}]}) == {"attention": HEADS}


def test_words_inside_are_spelled_out_too():
    qk_norm = {"kind": "projection", "norm": "layernorm"}
    spelled = {"kind": "projection", "norm": {"kind": "layernorm"}}
    assert only_layer({"layers": [{"attention": {"heads": 6, "qk_norm": qk_norm}}]})["attention"]["qk_norm"] == spelled
    block = {"attention": {"heads": 6, "qk_norm": "per_head"}}
    assert (
        only_layer({"block": block, "layers": [{"attention": {"qk_norm": qk_norm}}]})["attention"]["qk_norm"] == spelled
    )
    assert full_form({"embedding": {"norm": "rmsnorm"}})["embedding"] == {"norm": RMS}


def test_a_kind_that_must_be_written_is_not_guessed():
    assert only_layer({"layers": [{"norm": {"bias": False}, "positions": {"length": 11}}]}) == {
        "norm": {"bias": False},
        "positions": {"length": 11},
    }


def test_layers_at_the_top_and_a_decoder_are_one_too_many():
    with pytest.raises(RuleError) as caught:
        full_form({"layers": [], "decoder": {"layers": []}})
    assert str(caught.value) == "short for `decoder: {layers: ...}`, which is there too"
    assert (caught.value.where, caught.value.hint) == (("layers",), "write one of the two")


def test_defaults_at_the_top_are_for_both_stacks():
    layers = [{"attention": {"heads": 6, "head_dim": 5}}]
    stacks = {"encoder": {"layers": layers}, "decoder": {"positions": "none", "layers": layers}}
    full = full_form({"norm": "rmsnorm", "positions": "relative", **stacks})
    assert full["encoder"]["positions"] == full["encoder"]["layers"][0]["positions"] == {"kind": "relative"}
    assert full["decoder"]["positions"] == full["decoder"]["layers"][0]["positions"] == {"kind": "none"}
    assert full["encoder"]["norm"] == full["decoder"]["norm"] == {"kind": "rmsnorm"}


def test_a_transform_ends_in_the_norm_that_stands_at_the_top_unless_it_has_its_own():
    for head, norm in (
        ({"transform": True}, {"kind": "layernorm"}),
        ({"transform": True, "norm": "rmsnorm"}, {"kind": "rmsnorm"}),
        ({"transform": True, "norm": None}, None),
    ):
        full = full_form({"norm": "layernorm", "head": head, "encoder": {"layers": []}})
        assert full["head"] == {"kind": "vocabulary", "transform": True, "norm": norm}
    assert full_form({"norm": "layernorm", "head": {"bias": True}})["head"] == {"kind": "vocabulary", "bias": True}
    assert full_form({"norm": "layernorm", "head": "none"})["head"] == {"kind": "none"}


@pytest.mark.parametrize("block", [7, "pre", [], False])
def test_a_block_is_a_mapping(block):
    with pytest.raises(RuleError) as caught:
        full_form({"decoder": {"block": block, "layers": []}})
    assert str(caught.value) == "must be a mapping of defaults for the layers"
    assert (caught.value.where, caught.value.hint) == (("decoder", "block"), "write keys of a layer")


@pytest.mark.parametrize(
    ("layers", "passes"),
    [
        ([{}] * 10_000, True),
        ([{}] * 10_001, False),
        ([7] * 10_000, True),
        ([7] * 10_001, False),
        ([{"pattern": [{}] * 4_999}] * 2, True),  # a pattern is an entry as well: 2 x 5,000
        ([{"pattern": [{}] * 4_999}] * 2 + [{}], False),
        ([{"pattern": [{"pattern": [{}] * 4_999}, {}]}] * 2, False),  # 2 x 5,002
        ([{"repeat": 10**9}], True),  # the components bound the depth
    ],
)
def test_ten_thousand_layers_may_be_written_out_and_no_more(layers, passes):
    if passes:
        assert len(layers_of({"layers": layers})) == len(layers)
        return
    with pytest.raises(RuleError) as caught:
        full_form({"layers": layers})
    assert str(caught.value) == "more than 10,000 layers are written out"
    assert (caught.value.where, caught.value.hint) == (("decoder", "layers"), "use `repeat:`")


@pytest.mark.parametrize("written", [None, 7, "8b", [], [{"layers": []}]])
def test_what_is_no_mapping_is_left_for_the_components_to_refuse(written):
    assert full_form(written) is written


@pytest.mark.parametrize("layers", [None, 7, "dense", {"repeat": 3}, [7], ["dense"], [None]])
def test_layers_of_a_wrong_type_are_left_for_the_components_to_refuse(layers):
    assert layers_of({"norm": "rmsnorm", "layers": layers} if layers is not None else {"decoder": {}}) == layers


def test_a_stack_or_pattern_of_a_wrong_type_is_left_for_the_components_to_refuse():
    assert full_form({"decoder": 7, "norm": "rmsnorm"}) == {"decoder": 7}
    assert layers_of({"layers": [{"pattern": 7}]}) == [{"pattern": 7}]


def test_the_full_form_is_taken_as_it_is():
    full = FullForm({"decoder": {"layers": [{"norm": "left as it is"}]}})
    assert full_form(full) is full


def test_importers_may_hand_over_the_full_form(made):
    model = made()
    assert Architecture.model_validate(FullForm(model.model_dump())) == model


def test_what_was_written_is_not_changed():
    written = {
        "norm": "rmsnorm",
        "block": {"attention": {"heads": 6}},
        "decoder": {"block": {"attention": {"window": 7}}, "layers": [{"pattern": [{"attention": {"bias": True}}]}]},
    }
    before = deepcopy(written)
    full_form(written)
    full_form({"block": written["block"], "layers": written["decoder"]["layers"]})
    assert written == before


def test_a_default_that_names_no_kind_is_one_for_any_kind():
    """A bias for every feed-forward is not dropped because a layer's is gated; what does not fit is refused later."""
    written = {"block": {"feed_forward": {"bias": True}}, "layers": [{"feed_forward": {"kind": "gated", "d_ff": 11}}]}
    assert only_layer(written)["feed_forward"] == {"kind": "gated", "d_ff": 11, "bias": True}


def test_what_is_around_all_layers_may_stand_at_the_top():
    around = {"altup": {"inputs": 3}, "per_layer_input": {"vocab_size": 17, "width": 7}}
    stack = full_form({**around, "norm": "rmsnorm", "layers": [{"feed_forward": {"d_ff": 37}}]})["decoder"]
    assert {key: stack[key] for key in around} == around


def test_a_second_network_is_dense_unless_it_says_otherwise():
    layer = only_layer({"layers": [{"feed_forward_beside": {"d_ff": 37}}]})
    assert layer["feed_forward_beside"] == {"kind": "dense", "d_ff": 37}


def test_what_stands_beside_a_default_goes_with_it():
    """A mixer in place of an attention that has one beside it; an attention in place of a mixer with a shared block."""
    top = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm"}
    beside = {"attention": {"heads": 6, "head_dim": 5}, "mixer_beside": "short_conv"}
    (layer,) = full_form({**top, "block": beside, "layers": [{"mixer": "short_conv"}]})["decoder"]["layers"]
    assert not {"attention", "mixer_beside"} & set(layer)
    shared = {"mixer": "short_conv", "shared_block": {"attention": {"heads": 2}, "feed_forward": {"d_ff": 7}}}
    (layer,) = full_form({**top, "block": shared, "layers": [{"attention": {"heads": 6}}]})["decoder"]["layers"]
    assert not {"mixer", "shared_block"} & set(layer)


@pytest.mark.parametrize(("default", "written"), [("attention", "mixer"), ("mixer", "attention")])
def test_a_mixer_takes_the_place_of_a_default_attention_and_the_other_way_round(default, written):
    parts = {"attention": {"heads": 6, "head_dim": 5}, "mixer": {"kind": "short_conv"}}
    block = {default: parts[default], "feed_forward": {"d_ff": 37}}
    top = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "block": block}
    layers = full_form({**top, "layers": [{}, {written: parts[written]}, {written: None}]})["decoder"]["layers"]
    assert [sorted({default, written} & set(layer)) for layer in layers] == [[default], [written], [default]]


def test_a_layer_that_writes_both_keeps_both_and_is_refused_later():
    both = {"attention": {"heads": 6}, "mixer": "short_conv"}
    top = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [both]}
    (layer,) = full_form(top)["decoder"]["layers"]
    assert layer["mixer"] == {"kind": "short_conv"}
    assert layer["attention"]["kind"] == "grouped_query"
