from fractions import Fraction

import pytest

from costcalc import load
from costcalc.calculators.attention import (
    PASSES,
    SHARES,
    STORED,
    attention_cost,
    attention_figures,
    crossing,
    passes,
    passes_of,
    score_figures,
)
from costcalc.calculators.flops import flops
from costcalc.inventory import Inventory, Matmul, Pairs, Tokens, Workload

ATTENTION = {"heads": 6, "kv_heads": 2, "head_dim": 5}
WHOLE = {"repeat": 3, "name": "whole", "attention": ATTENTION, "feed_forward": {"d_ff": 37}}
LOCAL = {"repeat": 2, "name": "local", "attention": {**ATTENTION, "window": 7}, "feed_forward": {"d_ff": 37}}
WIDE = {"repeat": 2, "name": "wide", "attention": {"heads": 11, "head_dim": 3}}


def test_attention_worked_out(small):
    # a token multiplies by 6,253 weights; scores and values of 3 layers, N x H = 30, are 2·2·3·30 = 360 a pair
    cost = attention_cost(small(), 11)
    assert cost.context == 11
    assert (cost.next_token.weights, cost.next_token.attention) == (12_506, 3_960)  # 360 x 11
    assert (cost.sequence.weights, cost.sequence.attention) == (137_566, 23_760)  # 360 x 66
    assert cost.score_bytes_per_layer == 1_452  # 6 x 11 x 11 x 2
    assert cost.score_bytes == 4_356


def test_the_two_passes_of_a_context():
    assert passes(11) == (Workload(new_tokens=1, past_tokens=10), Workload(new_tokens=11))
    assert passes(1, counting="rectangle") == (Workload(counting="rectangle"), Workload(counting="rectangle"))


def test_counting_changes_the_sequence_only(small):
    attended, rectangle = (attention_cost(small(), 11, counting=counting) for counting in ("attended", "rectangle"))
    assert rectangle.next_token == attended.next_token
    assert rectangle.sequence.attention == 43_560  # 360 x 121
    assert rectangle.score_bytes == attended.score_bytes


@pytest.mark.parametrize(
    ("layers", "per_layer", "total"),
    [
        ([WHOLE], 726, 3 * 726),  # N·S·S = 6 x 121
        ([LOCAL], 726, 2 * 726),  # a kernel without windows writes masked scores, too
        ([WHOLE, LOCAL], 726, 5 * 726),
        ([WHOLE, WIDE], 1_331, 3 * 726 + 2 * 1_331),  # 11 x 121
        ([WIDE, WHOLE], 1_331, 3 * 726 + 2 * 1_331),
        ([{"feed_forward": {"d_ff": 37}}], 0, 0),
    ],
)
@pytest.mark.parametrize(("dtype", "size"), [("bf16", 2), ("fp32", 4), ("fp8", 1)])
def test_the_score_matrices_of_one_layer_and_of_all(small, layers, per_layer, total, dtype, size):
    cost = attention_cost(small(layers=layers), 11, dtype=dtype)
    assert (cost.score_bytes_per_layer, cost.score_bytes) == (size * per_layer, size * total)


def test_score_matrices_in_blocks_are_rounded_up_once(small):
    cost = attention_cost(small(), 7, dtype="q8_0")
    assert cost.score_bytes_per_layer == 313  # 294·34 / 32 = 312.4
    assert cost.score_bytes == 938  # 882·34 / 32 = 937.1


def test_the_score_matrices_are_of_the_form_that_runs():
    both = Inventory(
        (
            Matmul("scores", {"B·P": Pairs(), "N": 6, "H": 5}, 3, role="scores", form="expanded"),
            Matmul("scores", {"B·P": Pairs(), "N": 6, "R": 23}, 3, role="scores", form="absorbed"),
            Matmul("values", {"B·P": Pairs(), "N": 6, "H": 7}, 3, role="values"),
        ),
        {},
    )
    assert score_figures(both, 11, "bf16")["score_matrix_bytes"].value == 4_356


def test_published_score_matrices():
    # arXiv 2205.05198, section 4.1: 5·a·s / h = 80 for GPT-3, bytes a token and width; 2 of the 5 are the scores
    cost = attention_cost(load("gpt3-175b").inventory, 2_048)
    assert Fraction(cost.score_bytes_per_layer, 2_048 * 12_288) == 80 * Fraction(2, 5)
    assert cost.score_bytes == 96 * cost.score_bytes_per_layer


def by_trying(inventory, share, of, counting, *, until=400):
    """The first context from 1 on at which it holds."""
    for context in range(1, until):
        counted = flops(inventory, passes(context, counting=counting)[of == "sequence"])
        if counted.attention >= SHARES[share][0] / SHARES[share][1] * counted.weights:
            return context
    return None


@pytest.mark.parametrize(
    ("share", "of", "counting", "context"),
    [
        # core 360 S, weights 12,506: S = 34.7; a sequence has half the pairs a token: (S + 1) / 2
        ("equal_to_weights", "next_token", "attended", 35),
        ("half_of_weights", "next_token", "attended", 18),
        ("equal_to_weights", "sequence", "attended", 69),  # 68.5
        ("half_of_weights", "sequence", "attended", 34),  # 33.7
        ("equal_to_weights", "next_token", "rectangle", 35),
        ("equal_to_weights", "sequence", "rectangle", 35),
        ("half_of_weights", "sequence", "rectangle", 18),
    ],
)
def test_where_the_core_overtakes_the_weights(small, share, of, counting, context):
    assert crossing(small(), share, of=of, counting=counting) == context
    assert by_trying(small(), share, of, counting) == context


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("of", PASSES)
@pytest.mark.parametrize("counting", ["attended", "rectangle"])
@pytest.mark.parametrize(
    "layers",
    [
        [WHOLE, LOCAL],
        [{**LOCAL, "attention": {**ATTENTION, "window": 41}}],
        [{**LOCAL, "attention": {"heads": 29, "head_dim": 31, "window": 43}}],
        [WIDE],
        [{"attention": {"heads": 1, "head_dim": 1}, "feed_forward": {"d_ff": 1}}],
    ],
)
def test_crossings_are_those_of_a_loop(small, share, of, counting, layers):
    inventory = small(layers=layers, vocab_size=2)
    found = crossing(inventory, share, of=of, counting=counting)
    assert found == by_trying(inventory, share, of, counting, until=600)


def test_layers_with_a_window_may_never_get_there(small):
    inventory = small(layers=[LOCAL])  # at most 2·2·2·30·7 = 1,680 of 2·(2·2,002 + 247) = 8,502
    for share in SHARES:
        for of in PASSES:
            assert crossing(inventory, share, of=of) is None
    # just there: 240 w >= 8,502 at w = 36, and the sequence never, since its first tokens see less
    local = {**LOCAL, "attention": {**ATTENTION, "window": 36}}
    assert crossing(small(layers=[local]), "equal_to_weights", of="next_token") == 36
    local["attention"]["window"] = 35
    assert crossing(small(layers=[local]), "equal_to_weights", of="next_token") is None
    # the rectangle of a whole sequence knows no window
    assert crossing(inventory, "equal_to_weights", of="sequence", counting="rectangle") == 36


def test_without_attention_it_never_is_and_without_weights_it_always_is(small):
    assert crossing(small(layers=[{"feed_forward": {"d_ff": 37}}]), "half_of_weights", of="next_token") is None
    scores = Matmul("scores", {"B·P": Pairs(), "H": 5}, role="scores")
    assert crossing(Inventory((scores,), {}), "equal_to_weights", of="sequence") == 1
    weights = Matmul("up", {"B·T": Tokens(), "D": 5})
    assert crossing(Inventory((scores, weights), {}), "equal_to_weights", of="next_token") == 1  # 10 and 10


def test_the_core_of_llama_3_8b_overtakes_its_weights():
    """A token multiplies by all but the input table and 65 norms; 4·32·4,096 = 524,288 FLOPs a token that it sees."""
    inventory = load("8b").inventory
    multiplied = 8_030_261_248 - 128_256 * 4_096 - 65 * 4_096
    assert crossing(inventory, "equal_to_weights", of="next_token") == -(-2 * multiplied // 524_288) == 28_628
    assert crossing(inventory, "equal_to_weights", of="sequence") == 57_255  # (S + 1) / 2 >= 28,627.9


@pytest.mark.parametrize("name", ["half", "weights"])
def test_an_unknown_share_or_pass_is_an_error_of_ours(small, name):
    with pytest.raises(KeyError):
        crossing(small(), name, of="sequence")
    with pytest.raises(ValueError, match="tuple"):
        crossing(small(), "half_of_weights", of=name)


@pytest.mark.parametrize("counting", ["attended", "rectangle"])
@pytest.mark.parametrize("layers", [[WHOLE], [LOCAL], [WHOLE, WIDE]])
def test_the_working_is_that_of_the_numbers(small, values_by_name, counting, layers):
    inventory = small(layers=layers)
    cost = attention_cost(inventory, 11, counting=counting, dtype="fp32")
    figures = attention_figures(inventory, 11, counting=counting, dtype="fp32")
    values_by_name(figures.values())
    assert all(figure.name == name for name, figure in figures.items())
    values = {name: figure.value for name, figure in figures.items()}
    for prefix, counted in (("next_token_", cost.next_token), ("sequence_", cost.sequence)):
        assert values[f"{prefix}weight_flops"] == counted.weights
        assert values[f"{prefix}attention_flops"] == counted.attention
        assert values[f"{prefix}forward_flops"] == counted.forward
        assert values[f"{prefix}flops_per_token"] == counted.per_token
    assert values["score_matrix_bytes"] == cost.score_bytes
    assert values["score_matrix_bytes_per_layer"] == cost.score_bytes_per_layer
    crossings = {name: value for name, value in values.items() if name.startswith("crossings.")}
    assert crossings == {
        f"crossings.{share}_context.{of}": found
        for share in SHARES
        for of in PASSES
        if (found := crossing(inventory, share, of=of, counting=counting)) is not None
    }


def test_how_the_working_reads(small):
    figures = attention_figures(small(), 11)
    scores = figures["score_matrix_bytes"]
    assert scores.formula.text() == "score_matrix_elements·2"
    first, *_ = scores.lineage()
    assert (first.name, first.formula.text()) == ("decoder.layers.attention.scores", "L·B·S·S·N")
    single, one, _ = figures["score_matrix_bytes_per_layer"].lineage()
    assert [(figure.name, figure.unit, figure.source) for figure in (*scores.inputs, one)] == [
        ("score_matrix_elements", "elements", STORED),
        ("score_matrix_elements_per_layer", "elements", STORED),
    ]
    assert (single.name, single.numbers.text()) == ("decoder.layers.attention.scores of one layer", "1·11·11·6")
    equal, half = (
        figures[f"crossings.{share}_context.next_token"] for share in ("equal_to_weights", "half_of_weights")
    )
    assert equal.formula == (
        "the S from which on equal_to_weights_next_token_attention_flops >= "
        "1 x equal_to_weights_next_token_weight_flops"
    )
    assert half.formula == (
        "the S from which on half_of_weights_next_token_attention_flops >= "
        "1/2 x half_of_weights_next_token_weight_flops"
    )
    assert (equal.value, equal.unit, equal.source) == (35, "tokens", figures["sequence_attention_flops"].source)
    assert equal.source.endswith("arXiv 1706.03762, equation 1")


def test_the_last_token_of_every_context_is_the_sequence(small):
    inventory = small(layers=[WHOLE, LOCAL])
    steps = [attention_cost(inventory, context) for context in range(1, 12)]
    assert steps[-1].sequence.forward == sum(step.next_token.forward for step in steps)


def test_shares():
    assert {name: Fraction(*share) for name, share in SHARES.items()} == {
        "half_of_weights": Fraction(1, 2),
        "equal_to_weights": Fraction(1),
    }


@pytest.mark.parametrize("counting", ["attended", "rectangle"])
@pytest.mark.parametrize("of", PASSES)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("memory", [1, 7, 200])
def test_crossings_of_a_pair_are_those_of_a_loop(pair, memory, share, of, counting):
    """The pass that starts the request is none of a next token's; beside a long text the core may fall, then rise."""
    part, whole = SHARES[share]
    below = 0 if of == "sequence" else 1
    for context in range(below + 1, 400):
        counted = flops(pair(), passes(context, memory_tokens=memory, counting=counting)[of == "sequence"])
        below = below if counted.attention * whole >= counted.weights * part else context
    assert crossing(pair(), share, of=of, memory_tokens=memory, counting=counting) == below + 1 < 399


def test_a_long_text_overtakes_at_first_and_then_no_more():
    """T5-small beside 3,600 encoder tokens: more than half at 1, less at 2,048, more again from 5,5.. on."""
    inventory = load("t5-small").inventory
    shares = []
    for context in (1, 2_048, 8_192):
        counted = flops(inventory, Workload(new_tokens=context, memory_tokens=3_600))
        shares.append(counted.attention > counted.weights)
    assert shares == [True, False, True]
    found = crossing(inventory, "equal_to_weights", of="sequence", memory_tokens=3_600)
    for context, above in ((found - 1, False), (found, True), (found + 1, True)):
        counted = flops(inventory, Workload(new_tokens=context, memory_tokens=3_600))
        assert (counted.attention >= counted.weights) is above


def test_an_encoder_has_no_next_token(pair):
    cost = attention_cost(pair(decoder=None), 11)
    assert cost.next_token is None
    assert cost.sequence == flops(pair(decoder=None), Workload(new_tokens=11))
    assert passes_of(pair(decoder=None)) == ("sequence",)
    assert passes_of(pair()) == PASSES
    assert not [name for name in attention_figures(pair(decoder=None), 11) if "next_token" in name]
