import pytest
from pydantic import ValidationError

from costcalc.architecture.attention import GroupedQuery
from costcalc.architecture.block import Block, is_recurrent
from costcalc.architecture.component import RuleError
from costcalc.architecture.feed_forward import Dense, Gated, Mixture, RWKVChannel
from costcalc.architecture.mixer import RGLRU, ShortConv
from costcalc.architecture.norm import LayerNorm, RMSNorm
from costcalc.architecture.places import DECODER, At
from costcalc.architecture.positions import LearnedPositions, RotaryPositions
from costcalc.inventory import Matmul, Weight, Workload

AT = At("decoder.layers", times=3)
ATTENTION = GroupedQuery(heads=6, kv_heads=2, head_dim=5)
FEED_FORWARD = Dense(d_ff=37)
WHERE = ("decoder", "layers", 0)


def block(**changes):
    return Block(**{"norm": RMSNorm(), "attention": ATTENTION, "feed_forward": FEED_FORWARD, **changes})


def weight_paths(layer):
    """The weights of a layer in order, and each sublayer's own as one word."""
    names = [r.path.removeprefix("decoder.layers.") for r in layer.records(AT, 13, DECODER) if type(r) is Weight]
    return list(dict.fromkeys(name.partition(".")[0] for name in names))


@pytest.mark.parametrize("norms", ["pre", "post", "output"])
def test_a_norm_before_after_or_on_the_output_of_each_sublayer_is_one_each(norms):
    assert weight_paths(block(norms=norms)) == ["attention_norm", "attention", "feed_forward_norm", "feed_forward"]


def test_a_sandwich_is_a_norm_before_each_sublayer_and_one_on_its_output():
    assert weight_paths(block(norms="sandwich")) == [
        "attention_norm",
        "attention",
        "attention_output_norm",
        "feed_forward_norm",
        "feed_forward",
        "feed_forward_output_norm",
    ]


@pytest.mark.parametrize(
    ("parallel", "weights"),
    [
        (False, ["attention_norm", "attention", "feed_forward_norm", "feed_forward"]),
        ("one_norm", ["norm", "attention", "feed_forward"]),
        ("two_norms", ["attention_norm", "attention", "feed_forward_norm", "feed_forward"]),
    ],
)
def test_parallel_sublayers_share_a_norm_or_have_one_each(parallel, weights):
    assert weight_paths(block(parallel=parallel)) == weights


@pytest.mark.parametrize(
    ("norms", "has", "weights"),
    [
        ("pre", "attention", ["attention_norm", "attention"]),
        ("pre", "feed_forward", ["feed_forward_norm", "feed_forward"]),
        ("sandwich", "attention", ["attention_norm", "attention", "attention_output_norm"]),
        ("sandwich", "feed_forward", ["feed_forward_norm", "feed_forward", "feed_forward_output_norm"]),
    ],
)
def test_a_layer_may_have_one_sublayer_only(norms, has, weights):
    other = {"attention": "feed_forward", "feed_forward": "attention"}[has]
    assert weight_paths(block(norms=norms, **{other: None})) == weights


@pytest.mark.parametrize(
    ("changes", "norms"),
    [
        # a norm of D = 13 numbers, for each of 3 layers: 39
        ({}, 2),
        ({"norms": "post"}, 2),
        ({"norms": "output"}, 2),
        ({"norms": "sandwich"}, 4),
        ({"parallel": "one_norm"}, 1),
        ({"parallel": "two_norms"}, 2),
        ({"norm": LayerNorm()}, 4),  # a gain and a bias each
        ({"norm": LayerNorm(), "norms": "sandwich"}, 8),
        ({"norm": LayerNorm(), "parallel": "one_norm"}, 2),
        ({"norm": RMSNorm(weight=False)}, 0),
    ],
)
def test_parameters_of_a_layer(changes, norms):
    held = sum(r.parameters for r in block(**changes).records(AT, 13, DECODER) if type(r) is Weight)
    # attention 2 x 13 x 30 + 2 x 13 x 10 = 1,040; feed-forward 2 x 13 x 37 = 962; three layers
    assert held == 3 * (1_040 + 962) + 39 * norms


def test_the_parts_stand_at_their_own_places_for_every_layer():
    made = list(block().records(AT, 13, DECODER))
    parts = [r for r in made if ".attention." in r.path or ".feed_forward." in r.path]
    assert parts == [
        *ATTENTION.records(AT.under("attention"), 13, DECODER),
        *FEED_FORWARD.records(AT.under("feed_forward"), 13, DECODER),
    ]
    assert {r.times for r in made} == {3}


BESIDE = Gated(d_ff=17)


def test_a_second_network_beside_the_first_has_norms_of_its_own():
    """Gemma-4: three more norms of 13, and 3·13·17 = 663 numbers."""
    layer, alone = block(norms="sandwich", feed_forward_beside=BESIDE), block(norms="sandwich")
    assert weight_paths(layer)[len(weight_paths(alone)) :] == [
        "feed_forward_alone_output_norm",
        "feed_forward_beside_norm",
        "feed_forward_beside",
        "feed_forward_beside_output_norm",
    ]
    held = [sum(r.parameters for r in some.records(AT, 13, DECODER) if type(r) is Weight) for some in (layer, alone)]
    assert held[0] - held[1] == 3 * (663 + 3 * 13)
    made = [r for r in layer.records(AT, 13, DECODER) if ".feed_forward_beside." in r.path]
    assert made == list(BESIDE.records(AT.under("feed_forward_beside"), 13, DECODER))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"feed_forward": None, "norms": "sandwich"},
            "`feed_forward_beside` stands beside a `feed_forward`",
        ),
        *(
            ({"norms": norms}, f"`feed_forward_beside` goes with `norms: sandwich`, not with {norms}")
            for norms in ("pre", "post", "output")
        ),
    ],
)
def test_a_second_network_that_has_no_place(changes, message):
    with pytest.raises(RuleError) as caught:
        block(feed_forward_beside=BESIDE, **changes).check(WHERE, 13)
    assert (str(caught.value), caught.value.where) == (message, WHERE)


def test_the_rules_of_the_second_network_are_told_at_its_place():
    with pytest.raises(RuleError) as caught:
        mixture = Mixture(experts=2, experts_per_token=3, expert=BESIDE)
        block(norms="sandwich", feed_forward_beside=mixture).check(WHERE, 13)
    assert caught.value.where == (*WHERE, "feed_forward_beside")


def test_a_layers_scale_is_one_number_beside_the_parameters():
    (*others, scale) = block(layer_scale="buffer").records(AT, 13, DECODER)
    assert others == list(block().records(AT, 13, DECODER))
    assert scale == Weight("decoder.layers.layer_scale", {"one": 1}, 3, "buffer")


@pytest.mark.parametrize("layer_scale", [0, True, "trainable"])
def test_what_is_no_scale_of_a_layer(layer_scale):
    with pytest.raises(ValidationError):
        block(layer_scale=layer_scale)


@pytest.mark.parametrize("norms", ["pre", "post", "output", "sandwich"])
def test_both_parts_of_each_sum_may_be_shifted_and_scaled(norms):
    """ZAYA1: four times D behind each sublayer, whatever it is."""
    changes = {"norms": norms, "attention": None, "mixer": ShortConv(), "cross_attention": ATTENTION}
    made = list(block(residual_affine=True, **changes).records(AT, 13, DECODER))
    plain = list(block(**changes).records(AT, 13, DECODER))
    ours = [r for r in made if r not in plain]
    assert [r for r in made if r in plain] == plain
    assert ours == [
        Weight(f"decoder.layers.{sublayer}_{part}_{name}", {"D": 13}, 3)
        for sublayer in ("mixer", "cross_attention", "feed_forward")
        for part in ("residual", "output")
        for name in ("gain", "shift")
    ]
    first = made.index(ours[4])  # behind the cross-attention, and before what comes next
    assert all("feed_forward" not in r.path for r in made[:first])


@pytest.mark.parametrize("parallel", ["one_norm", "two_norms"])
def test_a_sum_of_three_is_not_shifted(parallel):
    with pytest.raises(RuleError, match=r"^`residual_affine` and `residual_gain` are for sublayers one after another$"):
        block(parallel=parallel, residual_affine=True).check(WHERE, 13)
    with pytest.raises(RuleError, match=r"are for sublayers one after another$"):
        block(parallel=parallel, residual_gain=True).check(WHERE, 13)
    block(parallel=parallel).check(WHERE, 13)


def test_each_sublayer_may_have_a_gate():
    """Llama-3.2-Vision: one number behind each sublayer, and nothing else of a layer is another."""
    made, plain = (list(block(sublayer_gates=gated).records(AT, 13, DECODER)) for gated in (True, False))
    gates = [Weight(f"decoder.layers.{name}_gate", {"one": 1}, 3) for name in ("attention", "feed_forward")]
    assert [r for r in made if r not in plain] == gates
    assert [r for r in made if r in plain] == plain
    with pytest.raises(RuleError, match=r"^`sublayer_gates` is not for `parallel` layers$"):
        block(parallel="one_norm", sublayer_gates=True).check(WHERE, 13)


@pytest.mark.parametrize(("memory_tokens", "rows"), [(0, 0), (7, 5)])
def test_a_layer_may_need_a_memory(memory_tokens, rows):
    """Without one nothing of it runs, its network included: 5 new tokens or none, times 13 x 37 twice."""
    layer = block(attention=None, cross_attention=ATTENTION, needs_memory=True)
    workload = Workload(new_tokens=5, memory_tokens=memory_tokens)
    products = [r for r in layer.records(AT, 13, DECODER) if type(r) is Matmul and ".feed_forward." in r.path]
    assert [next(iter(r.axes.values())).of(workload) for r in products] == [rows, rows]
    held = [r for r in layer.records(AT, 13, DECODER) if type(r) is Weight]
    plain = block(attention=None, cross_attention=ATTENTION)
    assert held == [r for r in plain.records(AT, 13, DECODER) if type(r) is Weight]


@pytest.mark.parametrize("changes", [{}, {"cross_attention": ATTENTION}, {"attention": None, "mixer": ShortConv()}])
def test_what_has_something_else_to_do_needs_no_memory(changes):
    with pytest.raises(RuleError, match=r"^`needs_memory` is for a layer with `cross_attention`, and without"):
        block(needs_memory=True, **changes).check(WHERE, 13)


def test_what_a_network_reads_may_have_a_gain_that_follows_from_a_condition():
    """Voxtral Realtime: 2·D·R numbers a layer, and as many products of one row, whatever the batch and the tokens."""
    made = [r for r in block(conditioned=3).records(AT, 14, DECODER) if ".condition." in r.path]
    assert [r.axes for r in made if type(r) is Weight] == [{"D": 14, "condition": 3}, {"condition": 3, "D": 14}]
    products = [r for r in made if type(r) is Matmul]
    for workload in (Workload(), Workload(batch=5, new_tokens=11)):
        assert [r.flops(workload) for r in products] == [2 * 14 * 3 * 3] * 2  # of three layers
    for wrong in ({"feed_forward": None}, {"parallel": "one_norm"}):
        with pytest.raises(RuleError, match=r"^`conditioned` is for a `feed_forward`, and not `parallel`$"):
            block(conditioned=3, **wrong).check(WHERE, 14)
    with pytest.raises(RuleError, match=r"^`conditioned` needs an even d_model, not 13$"):
        block(conditioned=3).check(WHERE, 13)


def test_a_layer_does_something():
    with pytest.raises(RuleError) as caught:
        block(attention=None, feed_forward=None).check(WHERE, 13)
    assert str(caught.value) == "a layer needs `attention`, `mixer` or `feed_forward`"
    assert caught.value.where == WHERE


@pytest.mark.parametrize("parallel", ["one_norm", "two_norms"])
@pytest.mark.parametrize("lacking", ["attention", "feed_forward"])
def test_parallel_needs_two_sublayers(parallel, lacking):
    with pytest.raises(RuleError, match=r"^`parallel` needs both `attention` and `feed_forward`$"):
        block(parallel=parallel, **{lacking: None}).check(WHERE, 13)


@pytest.mark.parametrize("parallel", ["one_norm", "two_norms"])
@pytest.mark.parametrize("norms", ["post", "output", "sandwich"])
def test_parallel_goes_with_norms_before_the_sublayers(parallel, norms):
    with pytest.raises(RuleError, match=rf"^`parallel` goes with `norms: pre`, not with {norms}$"):
        block(parallel=parallel, norms=norms).check(WHERE, 13)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"attention": None},
        {"feed_forward": None},
        {"parallel": "one_norm"},
        {"parallel": "two_norms"},
        {"norms": "post"},
        {"norms": "sandwich", "attention": None},
        {"positions": RotaryPositions(rotary_dim=4)},
        {"positions": RotaryPositions(rotary_dim=40), "attention": None},  # nothing is rotated
    ],
)
def test_layers_that_pass(changes):
    block(**changes).check(WHERE, 13)


def test_a_whole_head_may_be_rotated():
    block(positions=RotaryPositions(rotary_dim=4), attention=GroupedQuery(heads=6, head_dim=4)).check(WHERE, 13)


@pytest.mark.parametrize(
    ("rotary_dim", "message"),
    [(6, "rotary_dim 6 is more than head_dim 5"), (3, "rotary_dim 3 is odd: RoPE rotates pairs")],
)
def test_the_rotated_part_fits_into_a_head_in_pairs(rotary_dim, message):
    with pytest.raises(RuleError) as caught:
        block(positions=RotaryPositions(rotary_dim=rotary_dim)).check(WHERE, 13)
    assert (str(caught.value), caught.value.where) == (message, WHERE)


@pytest.mark.parametrize(
    ("part", "where"),
    [
        ({"attention": GroupedQuery(heads=6, kv_heads=4)}, (*WHERE, "attention")),
        ({"positions": {"kind": "sinusoidal", "stored": "buffer"}}, (*WHERE, "positions")),
    ],
)
def test_the_rules_of_the_parts_are_told_at_their_places(part, where):
    with pytest.raises(RuleError) as caught:
        block(**part).check(WHERE, 13)
    assert caught.value.where == where


@pytest.mark.parametrize("norms", ["before", "", None, True])
def test_unknown_placements_are_refused(norms):
    with pytest.raises(ValidationError):
        block(norms=norms)


@pytest.mark.parametrize("parallel", [0, 1, 0.0, True, "yes", "none", None])
def test_parallel_is_false_or_a_word(parallel):
    """0 equals False in Python, but nobody who writes it means it."""
    with pytest.raises(ValidationError):
        block(parallel=parallel)


def test_what_the_attention_derives_is_told():
    assert list(block(attention=GroupedQuery(heads=13)).derived(13)) == [
        "head_dim = d_model / heads = 13 / 13 = 1",
        "kv_heads = heads = 13 (multi-head attention)",
    ]
    assert list(block(attention=None).derived(13)) == []


def test_a_layer_stands_once_before_norms_sequential_and_unnamed_unless_said_otherwise():
    layer = Block(norm=RMSNorm(), feed_forward=Gated(d_ff=37))
    assert (layer.repeat, layer.norms, layer.parallel, layer.name, layer.attention) == (1, "pre", False, None, None)


def test_positions_of_a_layer_hold_nothing_in_it():
    """A table is stated once, by the stack."""
    layer = block(positions=LearnedPositions(length=11))
    assert list(layer.records(AT, 13, DECODER)) == list(block().records(AT, 13, DECODER))


CONV = ShortConv(d_conv=5)


def test_a_mixer_stands_where_an_attention_would():
    layer = block(attention=None, mixer=CONV)
    assert weight_paths(layer) == ["mixer_norm", "mixer", "feed_forward_norm", "feed_forward"]
    assert weight_paths(block(attention=None, mixer=CONV, norms="sandwich"))[:3] == [
        "mixer_norm",
        "mixer",
        "mixer_output_norm",
    ]
    assert weight_paths(block(attention=None, mixer=CONV, feed_forward=None)) == ["mixer_norm", "mixer"]


def test_a_mixer_beside_the_attention_has_no_norm_of_its_own():
    weights = ["attention_norm", "attention", "mixer_beside", "feed_forward_norm", "feed_forward"]
    assert weight_paths(block(mixer_beside=CONV)) == weights
    assert weight_paths(block(mixer_beside=CONV, parallel="one_norm"))[:3] == ["norm", "attention", "mixer_beside"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mixer": CONV}, "`attention` and `mixer` exclude each other"),
        ({"attention": None, "mixer_beside": CONV}, "`mixer_beside` stands beside an `attention`"),
        ({"attention": None, "mixer": CONV, "parallel": "one_norm"}, "`parallel` needs both"),
        ({"attention": None, "feed_forward": None, "mixer_beside": CONV}, "a layer needs `attention`, `mixer` or"),
    ],
)
def test_where_a_mixer_cannot_stand(changes, message):
    with pytest.raises(RuleError, match=message):
        block(**changes).check(WHERE, 13)


def test_what_is_wrong_in_a_mixer_is_told_there():
    for name, changes in (("mixer", {"attention": None}), ("mixer_beside", {})):
        with pytest.raises(RuleError) as caught:
            block(**{**changes, name: RGLRU(width=22, heads=3)}).check(WHERE, 13)
        assert caught.value.where == (*WHERE, name)


@pytest.mark.parametrize("changes", [{"mixer": CONV, "attention": None}, {"mixer_beside": CONV}])
def test_what_goes_on_from_token_to_token(changes):
    assert is_recurrent(block(**changes))
    assert is_recurrent(block(feed_forward=RWKVChannel(d_ff=37)))
    assert not is_recurrent(block())
