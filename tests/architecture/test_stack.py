import pytest
from pydantic import ValidationError

from costcalc.architecture import Block, Pattern, Stack
from costcalc.architecture.attention import GroupedQuery
from costcalc.architecture.augmented_residual import AugmentedResidual
from costcalc.architecture.block_residuals import BlockResiduals
from costcalc.architecture.bottleneck import Bottleneck
from costcalc.architecture.component import RuleError
from costcalc.architecture.convolution_beside import ConvolutionBeside
from costcalc.architecture.feed_forward import Dense
from costcalc.architecture.language_adapters import LanguageAdapters
from costcalc.architecture.mixer import ShortConv
from costcalc.architecture.norm import RMSNorm
from costcalc.architecture.norm_gate import NormGate
from costcalc.architecture.output_conv import OutputConv
from costcalc.architecture.places import DECODER
from costcalc.architecture.positions import LearnedPositions, RelativePositions, RotaryPositions
from costcalc.architecture.shared_block import SharedBlock
from costcalc.inventory import Weight

ATTENTION = GroupedQuery(heads=6, kv_heads=2, head_dim=5)


def layer(*, window=None, d_ff=37, **fields):
    attention = ATTENTION.model_copy(update={"window": window})
    return Block(**{"norm": RMSNorm(), "attention": attention, "feed_forward": Dense(d_ff=d_ff), **fields})


def stack(*layers, **fields):
    return Stack(norm=RMSNorm(), layers=layers, **fields)


def grouped(*layers):
    """(path, times) of each group, and the layout with its common prefix taken off."""
    groups, layout = stack(*layers).groups("decoder")
    assert all(path.startswith("decoder.layers") for path in layout)
    return [(g.path, g.times) for g in groups], [path.removeprefix("decoder.layers").lstrip(".") for path in layout]


def test_equal_layers_are_one_group_without_a_name_of_its_own():
    assert grouped(layer(repeat=3)) == ([("decoder.layers", 3)], ["", "", ""])


@pytest.mark.parametrize(
    "layers",
    [
        [layer(), layer(), layer()],
        [layer(repeat=2), layer()],
        [Pattern(repeat=3, pattern=(layer(),))],
        [layer(name="local", repeat=2), layer(name="local")],
        [layer(), layer(norms="pre"), layer(parallel=False)],  # a default that was written is the same layer
    ],
)
def test_layers_that_are_equal_are_one_group_however_they_are_written(layers):
    assert grouped(*layers) == ([("decoder.layers", 3)], ["", "", ""])


OTHER = {
    "name": "other",
    "norm": RMSNorm(weight=False),
    "norms": "post",
    "parallel": "one_norm",
    "positions": RotaryPositions(),
    "attention": None,
    "mixer": ShortConv(),
    "mixer_beside": ShortConv(),
    "shared_block": SharedBlock(attention=ATTENTION, feed_forward=Dense(d_ff=41)),
    "feed_forward": Dense(d_ff=41),
    "cross_attention": ATTENTION,
    "attention_norm": False,
    "share_weights": True,
    "residual_scale": 0.5,
    "residual_affine": True,
    "residual_gain": True,
    "augmented_residual": AugmentedResidual(rank=3),
    "feed_forward_beside": Dense(d_ff=41),
    "norm_gate": NormGate(rank=3),
    "residual_mean": True,
    "shortcut": Dense(d_ff=41),
    "layer_scale": "buffer",
    "output_conv": OutputConv(),
    "block_residuals": BlockResiduals(sources=0),
    "sublayer_gates": True,
    "needs_memory": True,
    "convolution": ConvolutionBeside(taps=3),
    "adapters": LanguageAdapters(languages=2, width=3),
    "bottleneck": Bottleneck(width=6),
    "conditioned": 3,
}


@pytest.mark.parametrize("field", sorted(set(Block.model_fields) - {"repeat"}))
def test_layers_that_differ_in_any_one_field_are_two_groups(field):
    groups, layout = stack(layer(), layer(**{field: OTHER[field]})).groups("decoder")
    assert len(groups) == len(set(layout)) == 2
    assert getattr(groups[1].block, field) == OTHER[field]


def test_different_layers_are_groups_named_by_their_first_layer():
    groups, layout = grouped(layer(repeat=2), layer(window=7), layer(), layer(d_ff=41, repeat=2), layer(window=7))
    assert groups == [("decoder.layers.0", 3), ("decoder.layers.2", 2), ("decoder.layers.4", 2)]
    assert layout == ["0", "0", "2", "0", "4", "4", "2"]


def test_a_group_may_have_a_name():
    groups, layout = grouped(layer(name="local", window=7, repeat=2), layer(d_ff=41), layer(name="wide", d_ff=43))
    assert groups == [("decoder.layers.local", 2), ("decoder.layers.2", 1), ("decoder.layers.wide", 1)]
    assert layout == ["local", "local", "2", "wide"]


def test_a_named_layer_is_another_group_than_the_same_layer_without_a_name():
    groups, _ = grouped(layer(name="first"), layer())
    assert groups == [("decoder.layers.first", 1), ("decoder.layers.1", 1)]


def test_patterns_repeat_and_nest():
    local, whole, wide = layer(name="local", window=7), layer(name="whole"), layer(name="wide", d_ff=41)
    inner = Pattern(repeat=2, pattern=(local, whole))
    outer = Pattern(repeat=3, pattern=(inner, wide.model_copy(update={"repeat": 2})))
    groups, layout = grouped(outer, local)
    # 3 x (2 x (local, whole), wide, wide), local: 3 x 6 + 1 = 19 layers
    assert groups == [("decoder.layers.local", 7), ("decoder.layers.whole", 6), ("decoder.layers.wide", 6)]
    assert layout == [*["local", "whole", "local", "whole", "wide", "wide"] * 3, "local"]
    assert stack(outer, local).depth == 19


def test_a_pattern_stands_once_unless_it_is_repeated():
    assert stack(Pattern(pattern=(layer(), layer(window=7)))).depth == 2


def test_a_pattern_may_be_of_one_layer():
    stack(Pattern(repeat=3, pattern=(layer(),))).check(("decoder",), 13)


def test_each_group_holds_its_block_and_is_frozen():
    groups, _ = stack(layer(window=7), layer(repeat=2)).groups("decoder")
    assert [group.block.attention.window for group in groups] == [7, None]
    with pytest.raises(AttributeError):
        groups[0].times = 2


def test_two_different_layers_of_one_name_are_refused():
    with pytest.raises(RuleError) as caught:
        stack(layer(name="local", window=7), layer(name="whole"), layer(name="local", window=11)).groups("decoder")
    assert str(caught.value) == "two different layers are both named 'local'"
    assert (caught.value.where, caught.value.hint) == (("decoder", "layers"), "give each its own `name:`")


def test_the_records_of_each_group_stand_for_its_layers():
    made = stack(layer(window=7), layer(repeat=2))
    groups, _ = made.groups("decoder")
    records = list(made.records("decoder", groups, 13, DECODER))
    assert {(r.path.rpartition(".attention")[0], r.times) for r in records if r.path.endswith(".q")} == {
        ("decoder.layers.0", 1),
        ("decoder.layers.1", 2),
    }
    assert (records[-1].path, records[-1].axes, records[-1].times) == ("decoder.final_norm", {"D": 13}, 1)


@pytest.mark.parametrize(
    ("final_norm", "last", "has"),
    [
        (None, layer(), True),
        (None, layer(norms="output"), True),
        (None, layer(norms="sandwich"), True),
        (None, layer(norms="post"), False),  # it ends in a norm of its own
        (None, Pattern(pattern=(layer(), Pattern(pattern=(layer(norms="post"),)))), False),
        (True, layer(norms="post"), True),
        (False, layer(), False),
    ],
)
def test_a_final_norm_is_there_unless_the_last_layer_ends_in_one(final_norm, last, has):
    made = stack(layer(), last, final_norm=final_norm)
    assert made.has_final_norm is has
    groups, _ = made.groups("decoder")
    paths = [record.path for record in made.records("decoder", groups, 13, DECODER)]
    assert ("decoder.final_norm" in paths) is has


def test_rotations_leave_nothing_below_the_layers():
    made = stack(layer(positions=RotaryPositions()), positions=RotaryPositions())
    first = next(made.records("decoder", made.groups("decoder")[0], 13, DECODER))
    assert first.path == "decoder.layers.attention_norm"


@pytest.mark.parametrize("stack_positions", [{"kind": "none"}, {"kind": "learned", "length": 7}])
def test_a_layer_has_no_position_table_of_its_own(stack_positions):
    with pytest.raises(RuleError) as caught:
        stack(layer(), layer(positions=LearnedPositions(length=11)), positions=stack_positions).check(("decoder",), 13)
    assert str(caught.value) == "learned positions are added once, below all layers"
    assert caught.value.where == ("decoder", "layers", 1, "positions")
    assert caught.value.hint == "write them on the stack, not on a layer"


def test_a_layer_may_have_no_positions_where_others_do():
    table = LearnedPositions(length=11)
    stack(layer(positions=table), layer(), layer(positions=RotaryPositions()), positions=table).check(("decoder",), 13)


@pytest.mark.parametrize(
    ("layers", "where", "message"),
    [
        ([], ("decoder", "layers"), "there are no layers"),
        ([layer(), Pattern(pattern=())], ("decoder", "layers", 1), "the pattern has no layers"),
        (
            [Pattern(pattern=(layer(), Pattern(pattern=())))],
            ("decoder", "layers", 0, "pattern", 1),
            "the pattern has no layers",
        ),
        (
            [layer(), Pattern(pattern=(layer(), layer(attention=GroupedQuery(heads=6))))],
            ("decoder", "layers", 1, "pattern", 1, "attention"),
            "d_model 13 is not a multiple of heads 6, and no head_dim is given",
        ),
    ],
)
def test_what_is_wrong_inside_is_told_at_its_place(layers, where, message):
    with pytest.raises(RuleError) as caught:
        stack(*layers).check(("decoder",), 13)
    assert (str(caught.value), caught.value.where) == (message, where)


def test_the_rules_of_the_stacks_own_positions_are_told_at_their_place():
    with pytest.raises(RuleError) as caught:
        stack(layer(), positions={"kind": "sinusoidal", "stored": "buffer"}).check(("decoder",), 13)
    assert caught.value.where == ("decoder", "positions")


@pytest.mark.parametrize(
    "layers",
    [
        [layer(repeat=100_000)],
        [layer(repeat=99_999), layer(window=7)],
        [Pattern(repeat=1000, pattern=(layer(repeat=99), layer(window=7)))],
    ],
)
def test_a_hundred_thousand_layers_pass(layers):
    made = stack(*layers)
    made.check(("decoder",), 13)
    assert made.depth == len(made.groups("decoder")[1]) == 100_000


@pytest.mark.parametrize(
    "layers",
    [
        [layer(repeat=100_001)],
        [layer(repeat=100_000), layer()],
        [layer(repeat=10**12)],
        [Pattern(repeat=10**12, pattern=(Pattern(repeat=10**12, pattern=(layer(repeat=10**12),)),))],
    ],
)
def test_more_layers_are_refused_before_they_are_listed(layers):
    with pytest.raises(RuleError) as caught:
        stack(*layers).check(("decoder",), 13)
    assert str(caught.value) == "the layers add up to more than 100,000"
    assert caught.value.where == ("decoder", "layers")


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"pattern": [{"norm": {"kind": "rmsnorm"}, "feed_forward": {"kind": "dense", "d_ff": 37}}]}, Pattern),
        ({"norm": {"kind": "rmsnorm"}, "feed_forward": {"kind": "dense", "d_ff": 37}}, Block),
    ],
)
def test_an_entry_with_a_pattern_is_a_pattern(entry, kind):
    (made,) = Stack(norm=RMSNorm(), layers=[entry]).layers
    assert type(made) is kind


@pytest.mark.parametrize("entry", [None, 7, "dense", [], {"pattern": None}, {"pattern": [], "norms": "pre"}])
def test_what_is_no_entry(entry):
    with pytest.raises(ValidationError):
        Stack(norm=RMSNorm(), layers=[entry])


def test_without_positions_a_stack_and_its_layers_have_none():
    stack = Stack(norm=RMSNorm(), layers=(Block(norm=RMSNorm(), feed_forward=Dense(d_ff=37)),))
    assert stack.positions.kind == stack.layers[0].positions.kind == "none"


RELATIVE, PER_LAYER = RelativePositions(buckets=7), RelativePositions(buckets=7, per_layer=True)


def relative_tables(made):
    records = made.records("decoder", made.groups("decoder")[0], 13, DECODER)
    return [(r.path, r.axes, r.times) for r in records if r.path.endswith("positions")]


def test_relative_positions_have_one_table_for_all_layers_of_a_stack():
    """T5's: buckets x N, here 7 x 6, whatever the layers; those without relative positions use none of it."""
    made = stack(layer(positions=RELATIVE, repeat=3), layer(), positions=RELATIVE)
    made.check(("decoder",), 13)
    assert relative_tables(made) == [("decoder.positions", {"buckets": 7, "N": 6}, 1)]


def test_or_one_in_each_layer():
    """UMT5's: the layers may differ then."""
    wide = layer(positions=PER_LAYER, attention=GroupedQuery(heads=10, kv_heads=2, head_dim=5))
    made = stack(layer(positions=PER_LAYER, repeat=3), wide, positions=PER_LAYER)
    made.check(("decoder",), 13)
    assert relative_tables(made) == [
        ("decoder.layers.0.positions", {"buckets": 7, "N": 6}, 3),
        ("decoder.layers.3.positions", {"buckets": 7, "N": 10}, 1),
    ]


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [layer(positions=RELATIVE), layer(positions=RELATIVE, attention=GroupedQuery(heads=10, head_dim=5))],
            "one table of relative positions is for layers of 6 and 10 heads",
        ),
        ([layer()], "one table of relative positions is for no layer with attention"),
        ([layer(positions=RELATIVE, attention=None)], "one table of relative positions is for no layer with attention"),
    ],
)
def test_one_table_needs_one_number_of_heads(layers, message):
    with pytest.raises(RuleError) as caught:
        stack(*layers, positions=RELATIVE).check(("decoder",), 13)
    assert (str(caught.value), caught.value.where) == (message, ("decoder", "positions"))
    assert caught.value.hint == "write `per_layer: true`, or the same heads everywhere"


@pytest.mark.parametrize("positions", [RelativePositions(buckets=11), RotaryPositions(), None])
def test_a_layer_has_no_one_table_of_its_own(positions):
    fields = {} if positions is None else {"positions": positions}
    with pytest.raises(RuleError) as caught:
        stack(layer(), layer(positions=RELATIVE), **fields).check(("decoder",), 13)
    assert str(caught.value) == "relative positions have one table for all layers"
    assert caught.value.where == ("decoder", "layers", 1, "positions")


def test_layers_that_share_their_weights_hold_one_set():
    """ALBERT: parameters once, products and caches for each layer."""
    made = stack(layer(repeat=3, share_weights=True))
    groups, layout = made.groups("decoder")
    assert layout == ("decoder.layers",) * 3
    records = [r for r in made.records("decoder", groups, 13, DECODER) if r.path.startswith("decoder.layers")]
    assert {r.times for r in records if type(r) is Weight} == {1}
    assert {r.times for r in records if type(r) is not Weight} == {3}


@pytest.mark.parametrize("names", [("first", "second"), (None, None)])
def test_entries_share_their_own_set_each_whatever_they_are_called(names):
    """A name changes no number; what was written twice is two."""
    written = [layer(repeat=3, share_weights=True, **({"name": name} if name else {})) for name in names]
    groups, layout = stack(*written).groups("decoder")
    assert [g.times for g in groups] == [3, 3]
    assert [path.rpartition(".")[2] for path in layout] == [names[0] or "0"] * 3 + [names[1] or "3"] * 3


def test_an_entry_shares_one_set_in_every_turn_of_its_pattern():
    shared = layer(repeat=2, share_weights=True)
    groups, layout = stack(Pattern(repeat=3, pattern=(shared, layer(d_ff=41)))).groups("decoder")
    assert [(g.path, g.times) for g in groups] == [("decoder.layers.0", 6), ("decoder.layers.2", 3)]
    assert len(layout) == 9
