"""What differs, named as it was written, and what remains of a model when it is changed one field at a time."""

import random
from itertools import permutations

import pytest

from costcalc.architecture import Architecture, RuleError
from costcalc.architecture.changes import Said, applied, changes
from costcalc.inventory import Workload
from costcalc.sources import load
from costcalc.sources.presets import preset_names

LOCAL = {"name": "local", "attention": {"heads": 6, "head_dim": 5, "window": 5}, "feed_forward": {"d_ff": 37}}
GLOBAL = {"name": "global", "attention": {"heads": 6, "head_dim": 5}, "feed_forward": {"d_ff": 37}}


def told(base, other):
    """field -> (value here, value there), each as the value alone or with what it was derived from."""

    def short(said):
        return (said.value, said.derived) if said.derived else said.value

    return {change.field: (short(change.base), short(change.other)) for change in changes(base, other)}


def totals(model):
    """Parameters, FLOPs of a token after ten others, cached elements at 11 tokens; straight from the records."""
    token, held = Workload(new_tokens=1, past_tokens=10), Workload(new_tokens=11)
    return (
        sum(weight.parameters for weight in model.inventory.weights),
        sum(matmul.flops(token) for matmul in model.inventory.matmuls),
        sum(cached.elements(held) for cached in model.inventory.cached),
    )


@pytest.fixture
def layer(made):
    """layer(**changes) -> the model of conftest.py with its one layer changed; None takes a key away."""

    def make(top=None, **fields):
        plain = {"repeat": 3, "attention": {"heads": 6, "kv_heads": 2, "head_dim": 5}, "feed_forward": {"d_ff": 37}}
        written = {key: value for key, value in {**plain, **fields}.items() if value is not None}
        return made(layers=[written], **(top or {}))

    return make


def test_what_a_model_is_called_is_no_change(made):
    other = made(name="other", source="elsewhere", published_parameters=7)
    assert changes(made(), other) == ()
    assert applied(made()).inventory == made().inventory


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ({"vocab_size": 23}, {"vocab_size": (19, 23)}),
        ({"d_model": 17}, {"d_model": (13, 17)}),
        ({"context_length": 11}, {"context_length": (None, 11)}),
        ({"tie_embeddings": True}, {"tie_embeddings": (False, True)}),
        ({"embedding": {"width": 7}}, {"embedding.width": ((None, "d_model"), 7)}),
        (
            {"embedding": {"width": 7, "bias": True}},
            {"embedding.width": ((None, "d_model"), 7), "embedding.bias": (False, True)},
        ),
        ({"head": {"softcap": 30}}, {"head.softcap": (None, 30.0)}),
        ({"norm": "layernorm"}, {"norm": ("rmsnorm", "layernorm")}),
        ({"norm": {"kind": "rmsnorm", "eps": 1e-5}}, {"norm.eps": (1e-6, 1e-5)}),
        ({"final_norm": False}, {"final_norm": ((True, "norms: pre"), False)}),
        ({"final_norm": True}, {}),  # what follows anyway
        ({"positions": "rope"}, {"positions": ("none", "rope")}),
        ({"positions": {"kind": "learned", "length": 11}}, {"positions": ("none", "learned")}),
    ],
)
def test_fields_outside_the_layers(made, there, wanted):
    assert told(made(), made(**there)) == wanted
    assert told(made(**there), made()) == {field: (new, old) for field, (old, new) in wanted.items()}


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ({"repeat": 4}, {"repeat": (3, 4)}),
        ({"norms": "sandwich"}, {"norms": ("pre", "sandwich")}),
        ({"norm": "layernorm"}, {"norm": ("rmsnorm", "layernorm")}),
        ({"positions": "rope"}, {"positions": ("none", "rope")}),
        ({"attention": {"heads": 6, "kv_heads": 3, "head_dim": 5}}, {"attention.kv_heads": (2, 3)}),
        ({"attention": {"heads": 6, "head_dim": 5}}, {"attention.kv_heads": (2, (6, "heads"))}),
        ({"attention": {"heads": 6, "kv_heads": 2, "head_dim": 5, "window": 7}}, {"attention.window": (None, 7)}),
        (
            {"attention": {"heads": 6, "kv_heads": 2, "head_dim": 5, "scale": 0.5}},
            {"attention.scale": ((5**-0.5, "1 / sqrt(head_dim)"), 0.5)},
        ),
        (
            {"attention": {"heads": 6, "kv_heads": 2, "head_dim": 5, "qk_norm": "per_head"}},
            {"attention.qk_norm": (None, "per_head")},
        ),
        ({"feed_forward": None}, {"feed_forward": ("dense", None)}),
        ({"attention": None}, {"attention": ("grouped_query", None)}),
        ({"feed_forward": {"d_ff": 41}}, {"feed_forward.d_ff": (37, 41)}),
        ({"feed_forward": {"kind": "gated", "d_ff": 37}}, {"feed_forward": ("dense", "gated")}),
        ({"parallel": "one_norm"}, {"parallel": (False, "one_norm")}),
        ({"name": "other"}, {}),
    ],
)
def test_fields_of_the_layers(layer, there, wanted):
    assert told(layer(), layer(**there)) == wanted
    assert told(layer(**there), layer()) == {field: (new, old) for field, (old, new) in wanted.items()}
    for change in changes(layer(), layer(**there)):
        assert change.layers == (0, 1, 2)
        assert change.paths[0][:3] == ("decoder", "layers", 0)


def test_a_default_for_the_stack_and_its_layers_is_one_change(made):
    """`norm:` at the top is the norm of the stack and of each entry."""
    (change,) = changes(made(), made(norm={"kind": "rmsnorm", "weight": False}))
    assert change.paths == (("decoder", "norm", "weight"), ("decoder", "layers", 0, "norm", "weight"))
    assert (change.field, change.base, change.other, change.layers) == (
        "norm.weight",
        Said(True),
        Said(False),
        (0, 1, 2),
    )


def test_a_norm_of_the_stack_alone_is_not_one_of_the_layers(layer):
    (change,) = changes(layer(), layer(top={"final_norm": False}))
    assert change.layers == ()
    other = layer(top={"norm": "layernorm"}, norm="rmsnorm")
    (change,) = changes(layer(), other)
    assert (change.field, change.layers, change.paths) == ("norm", (), (("decoder", "norm"),))
    assert applied(layer(), change).inventory == other.inventory


def test_another_kind_is_one_change_of_all_its_fields(layer):
    """What both kinds have, and differs, is told with it: D·37·3 -> D·41·2 is no sum of two single changes."""
    gated = {"kind": "gated", "d_ff": 41, "activation": "gelu", "bias": True}
    (change,) = changes(layer(), layer(feed_forward=gated))
    assert (change.field, change.base, change.other) == ("feed_forward", Said("dense"), Said("gated"))
    assert change.inside == (("d_ff", Said(37), Said(41)), ("bias", Said(False), Said(True)))
    assert applied(layer(), change).inventory == layer(feed_forward=gated).inventory
    (same,) = changes(layer(), layer(feed_forward={"d_ff": 41}))
    assert same.inside == ()


def test_rotations_differ_in_the_layers_that_rotate(made, layer):
    """Written at the top or in a layer, RoPE is the same; the stack's own entry does nothing."""
    assert changes(made(positions="rope"), layer(positions="rope")) == ()
    partial = made(positions={"kind": "rope", "theta": 500, "rotary_dim": 4})
    assert told(made(positions="rope"), partial) == {
        "positions.theta": (10_000.0, 500.0),
        "positions.rotary_dim": ((None, "all"), 4),
    }
    learned = made(positions={"kind": "learned", "length": 11})
    (change,) = changes(made(positions="rope"), learned)
    assert applied(made(positions="rope"), change).inventory == learned.inventory
    (change,) = changes(made(positions={"kind": "learned", "length": 7}), learned)
    assert (change.field, len(change.paths)) == ("positions.length", 2)


class TestWhatIsLeftOut:
    """13 = d_model, and heads that divide it or not."""

    @pytest.mark.parametrize(
        ("here", "there", "wanted"),
        [
            ({}, {"head_dim": 12}, {}),
            ({"head_dim": 12}, {}, {}),
            ({}, {"head_dim": 5}, {"attention.head_dim": ((12, "d_model / heads"), 5)}),
            ({}, {"kv_heads": 1}, {}),
            ({"scale": 12**-0.5}, {}, {}),
        ],
    )
    def test_written_out_it_is_the_same(self, layer, here, there, wanted):
        base, other = (layer({"d_model": 12}, attention={"heads": 1, **fields}) for fields in (here, there))
        assert told(base, other) == wanted

    def test_it_stays_what_it_stands_for_when_the_width_changes(self, layer):
        """5 is 10 / 2, and 20 / 2 would be 10: left out here, written there."""
        base = layer({"d_model": 10}, attention={"heads": 2})
        other = layer({"d_model": 20}, attention={"heads": 2, "head_dim": 5})
        for here, there in ((base, other), (other, base)):
            (width,) = changes(here, there)
            assert width.field == "d_model"
            assert applied(here, width).inventory == there.inventory

    @pytest.mark.parametrize(("fields", "said"), [({"head_dim": 10}, 10), ({}, (10, "d_model / heads"))])
    def test_where_it_comes_out_different_it_is_a_change(self, layer, fields, said):
        base = layer({"d_model": 10}, attention={"heads": 2})
        other = layer({"d_model": 20}, attention={"heads": 2, **fields})
        five = (5, "d_model / heads")
        assert told(base, other) == {"d_model": (10, 20), "attention.head_dim": (five, said)}
        assert told(other, base) == {"d_model": (20, 10), "attention.head_dim": (said, five)}
        assert [change.new for change in changes(other, base)] == [10, 5]  # what is said
        assert applied(other, *changes(other, base)).inventory == base.inventory
        width, size = changes(base, other)
        assert applied(base, width).decoder.layers[0].attention.sizes(20) == (2, 5)
        assert applied(base, size).decoder.layers[0].attention.sizes(10) == (2, 10)

    def test_heads_keep_their_size(self, layer):
        """14 / 2 = 7, then 14 / 7 = 2: each alone, and nothing with them."""
        base, other = (layer({"d_model": 14}, attention={"heads": n, "kv_heads": 1}) for n in (2, 7))
        heads, size = changes(base, other)
        assert (heads.field, heads.inside, size.field) == ("attention.heads", (), "attention.head_dim")
        attention = applied(base, heads).decoder.layers[0].attention
        assert (attention.heads, attention.sizes(14)) == (7, (1, 7))

    def test_key_value_heads_go_with_the_heads_where_both_leave_them_out(self, layer):
        top = {"d_model": 14}
        base, other = (layer(top, attention={"heads": n, "head_dim": 5}) for n in (2, 3))
        (heads,) = changes(base, other)
        assert heads.inside == (("kv_heads", Said(2, "heads"), Said(3, "heads")),)
        assert applied(base, heads).inventory == other.inventory
        written = layer(top, attention={"heads": 4, "kv_heads": 4, "head_dim": 5})
        heads, groups = changes(base, written)
        assert (heads.inside, groups.base, groups.other) == ((), Said(2, "heads"), Said(4))
        assert applied(base, heads).decoder.layers[0].attention.sizes(14) == (2, 5)

    def test_the_final_norm_does_not_follow_the_norms(self, layer):
        base, other = layer(), layer(norms="post")
        final, norms = changes(base, other)
        assert (final.field, final.base, final.other) == (
            "final_norm",
            Said(True, "norms: pre"),
            Said(False, "norms: post"),
        )
        assert applied(base, norms).decoder.has_final_norm is True
        assert applied(base, norms, final).inventory == other.inventory

    def test_rotary_dim_of_a_whole_head_is_all(self, made, layer):
        """H = 6 of 6; of 2 in one way or another; 4 of 6 is a part."""
        attention = {"heads": 2, "head_dim": 6}
        ropes = ["rope", *({"kind": "rope", "rotary_dim": n} for n in (6, 4))]
        every, whole, part = (layer(positions=rope, attention=attention) for rope in ropes)
        stack = layer({"positions": ropes[1]}, attention=attention)
        assert changes(every, whole) == changes(whole, every) == changes(stack, every) == ()
        assert told(whole, part) == {"positions.rotary_dim": ((None, "all"), 4)}
        learned = layer({"positions": {"kind": "learned", "length": 11}}, attention=attention)
        (change,) = changes(stack, learned)  # stack and layers in one
        assert applied(stack, change).inventory == learned.inventory
        wider = layer(positions="rope", attention={"heads": 2, "head_dim": 8})
        narrower = layer(positions="rope", attention={"heads": 2, "head_dim": 2})
        for there in (wider, narrower):
            (size,) = changes(whole, there)
            assert applied(whole, size).inventory == there.inventory
        pattern = made(layers=[{"pattern": [{"positions": ropes[1], "attention": attention}]}])
        assert changes(pattern, made(layers=[{"positions": "rope", "attention": attention}])) == ()

    def test_where_it_does_not_divide_nothing_is_derived(self, layer):
        """13 // 2 is 6, but 13 is no multiple of 2: a head_dim of 6 is needed there."""
        base = layer({"d_model": 12}, attention={"heads": 2})
        other = layer(attention={"heads": 2, "head_dim": 6})
        assert told(base, other) == {"d_model": (12, 13)}
        (width,) = changes(base, other)
        assert applied(base, width).inventory == other.inventory


class TestLayers:
    """Stacks of several entries."""

    def test_a_field_that_differs_alike_in_two_entries_is_one_change(self, made):
        base, other = (
            made(layers=[{**LOCAL, "repeat": 2, "feed_forward": ff}, {**GLOBAL, "feed_forward": ff}])
            for ff in ({"d_ff": 37}, {"d_ff": 41})
        )
        (change,) = changes(base, other)
        assert (change.field, change.layers, len(change.paths)) == ("feed_forward.d_ff", (0, 1, 2), 2)
        assert totals(applied(base, change)) == totals(other)

    def test_one_that_differs_in_some_is_told_by_its_layers(self, made):
        """Two patterns of two layers, one more: local layers are 0, 1, 3, 4 of the pattern's two turns."""
        pattern = {"repeat": 2, "pattern": [{**LOCAL, "repeat": 2}, GLOBAL]}
        wider = {**LOCAL, "repeat": 2, "attention": {**LOCAL["attention"], "window": 7}}
        base = made(layers=[pattern, GLOBAL])
        other = made(layers=[{"repeat": 2, "pattern": [wider, GLOBAL]}, {**GLOBAL, "name": "g"}])
        (change,) = changes(made(layers=[pattern]), made(layers=[other.decoder.layers[0].model_dump()]))
        assert (change.field, change.layers) == ("attention.window", (0, 1, 3, 4))
        (change,) = changes(base, other)
        assert (change.field, change.layers) == ("attention.window", (0, 1, 3, 4))
        assert totals(applied(base, change)) == totals(other)

    def test_different_values_are_several_changes_of_one_name(self, made):
        base = made(layers=[LOCAL, {**GLOBAL, "repeat": 2}])
        other = made(
            layers=[{**LOCAL, "feed_forward": {"d_ff": 41}}, {**GLOBAL, "repeat": 2, "feed_forward": {"d_ff": 43}}]
        )
        assert [(c.field, c.other.value, c.layers) for c in changes(base, other)] == [
            ("feed_forward.d_ff", 41, (0,)),
            ("feed_forward.d_ff", 43, (1, 2)),
        ]

    def test_how_often_a_pattern_is_repeated(self, made):
        """Not to be taken for the repeats of its entries, though both go from 2 to 3."""
        inner = [{**LOCAL, "repeat": 2}, GLOBAL]
        base = made(layers=[{"repeat": 2, "pattern": inner}])
        other = made(layers=[{"repeat": 3, "pattern": [{**LOCAL, "repeat": 3}, GLOBAL]}])
        outer, entry = changes(base, other)
        assert (outer.field, outer.layers) == ("pattern.repeat", (0, 1, 2, 3, 4, 5))
        assert (entry.field, entry.layers) == ("repeat", (0, 1, 3, 4))
        assert outer.paths == (("decoder", "layers", 0, "repeat"),)
        assert entry.paths == (("decoder", "layers", 0, "pattern", 0, "repeat"),)
        assert applied(base, outer).decoder.depth == 9
        assert applied(base, entry).decoder.depth == 8
        assert totals(applied(base, outer, entry)) == totals(other)

    @pytest.mark.parametrize(
        ("there", "said"),
        [
            ([LOCAL, {**LOCAL, "feed_forward": {"d_ff": 41}, "name": "x"}], "2 layers of 2 kinds"),
            ([{"repeat": 2, "pattern": [LOCAL, GLOBAL]}], "4 layers of 2 kinds"),
            ([{"repeat": 2, "pattern": [GLOBAL]}], "2 layers"),
        ],
    )
    def test_another_structure_is_one_change_of_the_layers(self, made, there, said):
        base, other = made(layers=[{**LOCAL, "repeat": 3}]), made(layers=there)
        (change,) = changes(base, other)
        assert (change.field, change.base, change.other) == ("layers", Said("3 layers"), Said(said))
        assert change.layers == (0, 1, 2)
        assert totals(applied(base, change)) == totals(other)
        assert change.paths == (("decoder", "layers"),)
        (back,) = changes(other, base)
        assert totals(applied(other, back)) == totals(base)

    def test_patterns_of_other_lengths_are_other_structures(self, made):
        base = made(layers=[{"repeat": 2, "pattern": [LOCAL, GLOBAL]}])
        other = made(layers=[{"repeat": 2, "pattern": [LOCAL, GLOBAL, {**LOCAL, "repeat": 2}]}])
        assert told(base, other) == {"layers": ("4 layers of 2 kinds", "8 layers of 2 kinds")}

    @pytest.mark.parametrize(
        "there",
        [
            [{**LOCAL, "repeat": 1}, {**LOCAL, "repeat": 3}],
            [LOCAL, LOCAL, LOCAL, LOCAL],
            [{"repeat": 2, "pattern": [{**LOCAL, "name": "x"}, {**LOCAL, "name": "x"}]}],
            [{"pattern": [{**LOCAL, "repeat": 4}]}],
        ],
    )
    def test_the_same_layers_written_otherwise_are_no_change(self, made, there):
        assert changes(made(layers=[{**LOCAL, "repeat": 4}]), made(layers=there)) == ()

    def test_what_one_writes_and_another_derives_is_the_same_in_any_structure(self, made):
        """14 / 2 = 7 on 2: in one entry or two."""
        short = {"repeat": 4, "attention": {"heads": 2}}
        long = {"repeat": 2, "attention": {"heads": 2, "kv_heads": 2, "head_dim": 7}}
        base, other = (made(d_model=14, layers=layers) for layers in ([short], [long, long]))
        assert changes(base, other) == changes(other, base) == ()

    def test_another_structure_of_one_depth_is_compared_layer_by_layer(self, made):
        """Of six layers 2 and 5 see all, with wider feed-forward; 0, 1, 3, 4 stay."""
        wide = {**GLOBAL, "feed_forward": {"d_ff": 41}}
        base = made(layers=[{**LOCAL, "repeat": 6}])
        other = made(layers=[{"repeat": 2, "pattern": [{**LOCAL, "repeat": 2}, wide]}])
        for here, there in ((base, other), (other, base)):
            window, width = changes(here, there)
            assert (window.field, window.layers) == ("attention.window", (2, 5))
            assert (width.field, width.layers) == ("feed_forward.d_ff", (2, 5))
            assert width.paths == tuple(("decoder", "layers", layer, "feed_forward", "d_ff") for layer in (2, 5))
            assert totals(applied(here, window, width)) == totals(there)

    def test_a_stack_and_its_layers_in_another_structure_are_one_change(self, made):
        """The stack's norm comes first, and has no layer."""
        base = made(layers=[{**LOCAL, "repeat": 3}])
        other = made(norm="layernorm", layers=[LOCAL, {**LOCAL, "repeat": 2}])
        (norm,) = changes(base, other)
        assert (norm.field, norm.layers, len(norm.paths)) == ("norm", (0, 1, 2), 4)
        assert applied(base, norm).inventory == other.inventory

    @pytest.mark.parametrize(("depth", "field"), [(1_000, "feed_forward.d_ff"), (1_001, "layers")])
    def test_very_many_layers_are_compared_as_a_whole(self, made, depth, field):
        base = made(layers=[{**LOCAL, "repeat": depth}])
        other = made(layers=[{**LOCAL, "repeat": depth - 1}, {**LOCAL, "name": "x", "feed_forward": {"d_ff": 41}}])
        (change,) = changes(base, other)
        assert change.field == field
        assert totals(applied(base, change)) == totals(other)

    def test_layers_as_a_whole_keep_their_own_sizes(self, made):
        """Their heads of 21 / 3 = 7 stay so in a model of 14."""
        base = made(d_model=14, layers=[{"attention": {"heads": 2}}])
        other = made(d_model=21, layers=[{"attention": {"heads": 3}}, {"attention": {"heads": 3, "window": 5}}])
        width, layers = changes(base, other)
        assert [block.attention.sizes(14) for block in applied(base, layers).decoder.layers] == [(3, 7), (3, 7)]
        assert applied(base, width, layers).inventory == other.inventory

    def test_where_an_entry_after_others_begins(self, made):
        """An entry of two layers, two turns of three, then layer 8: 2 + 2·3."""
        pattern = {"repeat": 2, "pattern": [{**LOCAL, "repeat": 2}, GLOBAL]}
        ends = [{**GLOBAL, "name": "end", "feed_forward": {"d_ff": d_ff}} for d_ff in (41, 43)]
        base, other = (made(layers=[{**GLOBAL, "repeat": 2}, pattern, end]) for end in ends)
        (change,) = changes(base, other)
        assert change.layers == (8,)
        inner = [[{"repeat": 2, "pattern": [{**LOCAL, "repeat": 3}, GLOBAL]}, end] for end in ends]
        base, other = (made(layers=[{"repeat": 2, "pattern": entries}]) for entries in inner)
        (change,) = changes(base, other)
        assert change.layers == (8, 17)

    def test_names_inside_a_pattern_do_not_clash(self, made):
        """Two layers called local are equal in the base only."""
        entries = [
            [LOCAL, GLOBAL, {**LOCAL, "name": name, "feed_forward": {"d_ff": d}}]
            for name, d in (("local", 37), ("last", 41))
        ]
        base, other = (made(layers=[{"repeat": 2, "pattern": one}]) for one in entries)
        (change,) = changes(base, other)
        assert totals(applied(base, change)) == totals(other)

    def test_equal_layers_may_come_apart_whatever_their_name(self, made):
        last = {**LOCAL, "name": "last", "feed_forward": {"d_ff": 41}}
        base, other = made(layers=[LOCAL, GLOBAL, LOCAL]), made(layers=[LOCAL, GLOBAL, last])
        (change,) = changes(base, other)
        assert change.layers == (2,)
        assert totals(applied(base, change)) == totals(other)
        base, other = (made(layers=[{"repeat": 2, "pattern": [LOCAL, GLOBAL, third]}]) for third in (LOCAL, last))
        (change,) = changes(base, other)
        assert change.layers == (2, 5)
        assert totals(applied(base, change)) == totals(other)

    def test_what_comes_after_a_pattern_begins_where_it_ends(self, made):
        """Two turns of three layers, then the seventh."""
        pattern = {"repeat": 2, "pattern": [{**LOCAL, "repeat": 2}, GLOBAL]}
        last = {**LOCAL, "name": "last", "feed_forward": {"d_ff": 41}}
        base = made(layers=[pattern, last])
        other = made(layers=[pattern, {**last, "feed_forward": {"d_ff": 43}}])
        (change,) = changes(base, other)
        assert (change.layers, change.paths) == ((6,), (("decoder", "layers", 1, "feed_forward", "d_ff"),))
        assert changes(base, made(layers=[LOCAL, LOCAL, GLOBAL, LOCAL, LOCAL, GLOBAL, last])) == ()
        (change,) = changes(made(layers=[last]), made(layers=[pattern, last]))
        assert change.other == Said("7 layers of 3 kinds")

    def test_one_entry_of_another_structure_is_enough(self, made):
        base = made(layers=[LOCAL, GLOBAL])
        other = made(layers=[{**LOCAL, "feed_forward": {"d_ff": 41}}, {"pattern": [{**GLOBAL, "repeat": 2}]}])
        assert told(base, other) == {"layers": ("2 layers of 2 kinds", "3 layers of 2 kinds")}


class TestImpossibleAlone:
    """The rule says why."""

    @pytest.mark.parametrize(
        ("here", "there", "field", "rule"),
        [
            (
                {"heads": 8, "kv_heads": 4},
                {"heads": 6, "kv_heads": 2},
                "attention.heads",
                "heads 6 is not a multiple of kv_heads 4",
            ),
            (
                {"heads": 8, "kv_heads": 4},
                {"heads": 6, "kv_heads": 3},
                "attention.kv_heads",
                "heads 8 is not a multiple of kv_heads 3",
            ),
        ],
    )
    def test_heads_and_their_groups(self, layer, here, there, field, rule):
        base, other = (layer(attention={"head_dim": 5, **fields}) for fields in (here, there))
        single = {change.field: change for change in changes(base, other)}
        with pytest.raises(RuleError, match=f"^{rule}$"):
            applied(base, single[field])
        assert totals(applied(base, *single.values())) == totals(other)

    def test_the_width_of_the_model(self, layer):
        """No multiple of the heads, and yet possible: 12 / 6 = 14 / 7 = 2 stays."""
        base, other = (layer({"d_model": d}, attention={"heads": n}) for d, n in ((12, 6), (14, 7)))
        width, heads = changes(base, other)
        assert applied(base, width).decoder.layers[0].attention.sizes(14) == (6, 2)
        assert applied(base, heads).decoder.layers[0].attention.sizes(12) == (7, 2)
        assert applied(base, heads, width).inventory == other.inventory

    def test_numbers_that_rotate(self, layer):
        base, other = (
            layer(positions={"kind": "rope", "rotary_dim": 4}, attention={"heads": 2, "head_dim": 6}),
            layer(positions="rope", attention={"heads": 2, "head_dim": 2}),
        )
        single = {change.field: change for change in changes(base, other)}
        with pytest.raises(RuleError, match=r"^rotary_dim 4 is more than head_dim 2$"):
            applied(base, single["attention.head_dim"])
        assert applied(base, *single.values()).inventory == other.inventory


def test_all_changes_together_are_the_other_model():
    models = [load(name) for name in preset_names()]
    rng = random.Random(34)
    for base, other in rng.sample(list(permutations(models, 2)), 300):
        whole = applied(base, *changes(base, other))
        assert totals(whole) == totals(other), (base.name, other.name)
        assert changes(whole, other) == ()


def test_all_changes_together_are_the_other_model_at_random(made):
    """200 pairs of small specs that differ in a few fields each."""
    rng = random.Random(20)

    def spec():
        heads = rng.choice([2, 3, 6])
        attention = {"heads": heads, "head_dim": rng.choice([4, 6]), "window": rng.choice([None, 5])}
        attention["kv_heads"] = rng.choice([None, 1, heads])
        if rng.random() < 0.5:
            del attention["head_dim"]
        kind = rng.choice(["dense", "gated"])
        one = {
            "repeat": rng.choice([1, 3]),
            "attention": attention,
            "feed_forward": {"kind": kind, "d_ff": rng.choice([5, 7])},
        }
        more = [{**one, "feed_forward": {"d_ff": 11}}] if rng.random() < 0.3 else []
        return made(
            d_model=rng.choice([12, 24]),
            vocab_size=rng.choice([19, 23]),
            tie_embeddings=rng.choice([True, False]),
            norm=rng.choice(["rmsnorm", "layernorm"]),
            positions=rng.choice(["none", "rope", {"kind": "learned", "length": 11}]),
            final_norm=rng.choice([None, True, False]),
            layers=rng.choice([[one, *more], [{"repeat": 2, "pattern": [one, *more]}]]),
        )

    for _ in range(200):
        base, other = spec(), spec()
        whole = applied(base, *changes(base, other))
        assert totals(whole) == totals(other)
        assert changes(whole, other) == ()


def test_anything_but_a_broken_rule_is_our_bug_and_not_told_as_one(made):
    (change,) = changes(made(), made(vocab_size=23))
    broken = type(change)(**{name: getattr(change, name) for name in change.__slots__} | {"new": "many"})
    with pytest.raises(ValueError, match="vocab_size") as caught:
        applied(made(), broken)
    assert not isinstance(caught.value, RuleError)


def test_the_base_stays_as_it_is(made):
    base = made()
    before = base.model_dump()
    applied(base, *changes(base, made(vocab_size=23, norm="layernorm")))
    assert base.model_dump() == before
    assert isinstance(applied(base), Architecture)


def test_shared_layers_are_not_taken_one_by_one(made):
    """Two entries against one: taken layer by layer each would have a set of weights of its own."""
    layer = {"attention": {"heads": 6, "kv_heads": 2, "head_dim": 5}, "feed_forward": {"d_ff": 37}}
    one = made(layers=[{**layer, "repeat": 4, "share_weights": True}])
    two = made(layers=[{**layer, "repeat": 2, "share_weights": True}] * 2)
    (change,) = changes(one, two)
    assert change.field == "layers"
    assert totals(applied(one, change)) == totals(two)
    wider = made(layers=[{**layer, "repeat": 4, "share_weights": True, "feed_forward": {"d_ff": 41}}])
    (change,) = changes(one, wider)
    assert (change.field, totals(applied(one, change))) == ("feed_forward.d_ff", totals(wider))
