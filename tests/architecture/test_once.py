"""Layers written out one by one are the same architecture as when each was validated by itself."""

import pytest

from costcalc.architecture import Architecture
from costcalc.architecture.once import each_once, parts_of
from costcalc.architecture.written import FullForm

NORM = {"kind": "rmsnorm"}
HEADS = {"kind": "grouped_query", "heads": 6, "head_dim": 5}
NEAR, FAR = {**HEADS, "window": 7}, HEADS
DENSE = {"kind": "dense", "d_ff": 37}


def layer(attention, repeat=1, **more):
    return {"norm": NORM, "attention": attention, "feed_forward": DENSE, "repeat": repeat, **more}


def model(layers):
    return Architecture.model_validate(FullForm(vocab_size=19, d_model=13, decoder={"norm": NORM, "layers": layers}))


ORDER = [layer(NEAR), layer(FAR, 2), layer(NEAR, 3), layer(FAR), layer(NEAR)]


def copied(value):
    """The same with no part in common."""
    return {key: copied(each) for key, each in value.items()} if isinstance(value, dict) else value


def test_parts_that_are_one_and_the_same_give_what_copies_of_them_give():
    assert model(ORDER) == model([copied(each) for each in ORDER])
    assert [entry.repeat for entry in model(ORDER).decoder.layers] == [1, 2, 3, 1, 1]
    assert model(ORDER).inventory == model([copied(each) for each in ORDER]).inventory


def test_each_content_is_validated_once():
    handed = []

    def validate(entries):
        handed.append(len(entries))
        return tuple(model([entry]).decoder.layers[0] for entry in entries)

    blocks = each_once(ORDER, validate)
    assert handed == [2]
    assert parts_of(blocks[0]) == parts_of(blocks[2]) == parts_of(blocks[4]) != parts_of(blocks[1])


@pytest.mark.parametrize("repeat", [0, -1, True, 1.5, "two", 10**13])
def test_a_bad_repeat_is_found_where_it_is_written(repeat):
    with pytest.raises(ValueError, match=r"decoder.layers.3.*repeat"):
        model([layer(NEAR), layer(NEAR), layer(NEAR), layer(NEAR, repeat), layer(NEAR)])


def test_an_error_names_the_entry_that_it_is_in():
    bad = layer({**HEADS, "heads": "six"})
    with pytest.raises(ValueError, match=r"decoder.layers.4.*heads"):
        model([layer(NEAR), layer(FAR), layer(NEAR), layer(FAR), bad, layer(NEAR)])


def test_layers_that_share_weights_share_what_was_written_once():
    shared = [layer(NEAR, 2, share_weights=True) for _ in range(5)]
    assert len(model(shared).groups) == 5
    assert model(shared) == model([copied(each) for each in shared])


def test_a_rule_that_one_content_breaks_is_still_told():
    uneven = [layer({**HEADS, "kv_heads": 4})] * 5
    with pytest.raises(ValueError, match="kv_heads 4"):
        model(uneven)
