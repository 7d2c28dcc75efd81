"""Layers that lend keys and values, called by their number, so that models can be compared and changed."""

import pytest

from costcalc import kv_cache, load, parameters
from costcalc.architecture.changes import applied, changes
from costcalc.architecture.lent import name_lenders, numbered

CORE = {"heads": 6, "kv_heads": 2, "head_dim": 5}
PLAIN = {"feed_forward": {"d_ff": 37}}


def makes(name, **attention):
    return {"name": name, "attention": {**CORE, **attention}, **PLAIN}


def reads(name, **attention):
    return {"attention": {**CORE, "cache_of": name, **attention}, **PLAIN}


def model(*layers, **top):
    return load({"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": list(layers), **top})


def told(stack):
    """(name, cache_of) of each entry, those of patterns in a list."""
    return [
        told_of(entry) if not hasattr(entry, "pattern") else [told_of(inner) for inner in entry.pattern]
        for entry in stack.layers
    ]


def told_of(block):
    return block.name, block.attention.cache_of


def test_the_layer_that_is_read_and_nobody_else_has_a_name():
    made = model({"repeat": 3, **makes("local", window=5)}, makes("all"), {"repeat": 2, **reads("local", window=5)})
    # layers 0, 1 and 2 are local, so that 2 is read
    assert told(numbered(made.decoder)) == [("layer2", None), (None, None), (None, "layer2")]


def test_the_nearest_earlier_one_of_a_pattern():
    pattern = {"repeat": 2, "pattern": [makes("local", window=5), makes("all")]}
    made = model(pattern, reads("local", window=5), reads("all"))
    assert told(numbered(made.decoder)) == [[("layer2", None), ("layer3", None)], (None, "layer2"), (None, "layer3")]


def test_where_nothing_is_read_nothing_changes():
    stack = model(makes("local"), makes("all", window=5)).decoder
    assert numbered(stack) is stack


def test_an_entry_that_stands_for_several_keeps_its_names():
    """Layer 1 reads layer 0, and layer 3 layer 2."""
    stack = model({"repeat": 2, "pattern": [makes("a"), reads("a")]}).decoder
    assert numbered(stack) is stack


def test_two_entries_of_one_name_are_called_by_what_is_read_of_them():
    pattern = {"repeat": 2, "pattern": [makes("a"), makes("b", window=5)]}
    made = model(pattern, reads("a"), {"repeat": 2, **makes("a")}, reads("a"))
    # layers 0 to 3 are a, b, a, b; 4 reads 2; 5 and 6 are a; 7 reads 6
    assert told(numbered(made.decoder)) == [
        [("layer2", None), (None, None)],
        (None, "layer2"),
        ("layer6", None),
        (None, "layer6"),
    ]


def test_names_make_no_difference_but_who_is_read_does():
    one = model(makes("a"), makes("b"), reads("a"))
    same = model(makes("x"), makes("y"), reads("x"))
    other = model(makes("a"), makes("b"), reads("b"))
    assert changes(one, same) == ()
    [change] = changes(one, other)
    assert (change.field, change.base.value, change.other.value) == ("attention.cache_of", "layer0", "layer1")


def test_a_change_that_takes_layers_apart_leaves_the_lender():
    base = model({"repeat": 3, **makes("a")}, {"repeat": 2, **reads("a")})
    wide = {**PLAIN, "feed_forward": {"d_ff": 41}}
    other = model(makes("a"), {**makes("b"), **wide}, makes("c"), reads("c"), {**reads("c"), **wide})
    whole = applied(base, *changes(base, other))
    assert changes(whole, other) == ()
    assert parameters(whole).total == parameters(other).total
    assert kv_cache(whole, 11).elements == kv_cache(other, 11).elements == 3 * 2 * 2 * 5 * 11


def test_a_model_that_begins_to_read():
    base, other = model({"repeat": 4, **makes("a")}), model({"repeat": 3, **makes("a")}, reads("a"))
    whole = applied(base, *changes(base, other))
    assert kv_cache(whole, 11).elements == kv_cache(other, 11).elements == 3 * 2 * 2 * 5 * 11


def test_names_that_are_read_and_are_no_numbers_stay():
    entries = [{"repeat": 1, "name": "a"}, {"repeat": 1, "name": "b", "attention": {"cache_of": "a"}}]
    name_lenders(entries)
    assert entries == [{"repeat": 1, "name": "a"}, {"repeat": 1, "attention": {"cache_of": "a"}}]


@pytest.mark.parametrize(("number", "entry"), [(0, 0), (3, 0), (4, 1), (5, 1)])
def test_the_entry_that_a_number_stands_for(number, entry):
    inner = [{"repeat": 1, "attention": None}, {"repeat": 1, "attention": None}]
    entries = [{"repeat": 4, "attention": None}, {"repeat": 1, "pattern": inner}, {"repeat": 1, "attention": None}]
    entries[-1]["attention"] = {"cache_of": f"layer{number}"}
    name_lenders(entries)
    named = entries[0] if entry == 0 else inner[number - 4]
    assert [e for e in (entries[0], *inner) if "name" in e] == [named]


def test_a_number_that_no_layer_has_is_left_for_the_rules():
    entries = [{"repeat": 2, "attention": {"cache_of": "layer7"}}]
    name_lenders(entries)
    assert entries == [{"repeat": 2, "attention": {"cache_of": "layer7"}}]
