"""Mixtures of experts: what one holds, and what a step of several tokens reads."""

from fractions import Fraction
from itertools import product

import pytest

from costcalc import load
from costcalc.calculators.experts import MOST_TOKENS, Mixture, expert_figures, experts, mixtures
from costcalc.calculators.parameters import parameters
from costcalc.errors import CostcalcError

# 3 layers of 7 experts, of which a token uses 2; one has 3·13·11 = 429 parameters. Attention of 1,040 and norms of 26 a
# layer, the router 13·7 = 91, a shared expert of 3·13·5 = 195.
MOE = {
    "kind": "mixture",
    "experts": 7,
    "experts_per_token": 2,
    "expert": {"kind": "gated", "d_ff": 11},
    "shared": {"kind": "gated", "d_ff": 5},
}
WRITTEN = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": "rmsnorm",
    "layers": [{"repeat": 3, "attention": {"heads": 6, "kv_heads": 2, "head_dim": 5}, "feed_forward": MOE}],
}
PATH = "decoder.layers.feed_forward.experts"
DEEPSEEK = "deepseek-v3"


@pytest.fixture
def inventory():
    return load(WRITTEN).inventory


def test_the_mixtures_of_a_model(inventory):
    assert mixtures(inventory) == [Mixture(PATH, experts=7, chosen=2, layers=3, expert_parameters=429)]


def test_layers_of_another_kind_are_another_mixture():
    other = {**MOE, "experts": 5, "experts_per_token": 3, "expert": {"d_ff": 17, "bias": True}}
    layers = [*WRITTEN["layers"], {"name": "wide", "feed_forward": other}]
    found = mixtures(load({**WRITTEN, "layers": layers}).inventory)
    # 2·13·17 + 17 + 13 = 472
    wide = Mixture("decoder.layers.wide.feed_forward.experts", experts=5, chosen=3, layers=1, expert_parameters=472)
    assert found == [Mixture("decoder.layers.0.feed_forward.experts", 7, 2, 3, 429), wide]


def distinct_of_all(e, x, tokens):
    """The mean over every way in which tokens may choose: each of them x of e experts, all ways alike."""
    from itertools import combinations

    ways = list(combinations(range(e), x))
    counts = [len({expert for chosen in each for expert in chosen}) for each in product(ways, repeat=tokens)]
    return Fraction(sum(counts), len(counts))


@pytest.mark.parametrize(("e", "x"), [(3, 1), (4, 2), (5, 3), (2, 2)])
@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_distinct_experts_are_the_mean_over_all_choices(e, x, tokens):
    mixture = {**MOE, "experts": e, "experts_per_token": x}
    layers = [{**WRITTEN["layers"][0], "feed_forward": mixture}]
    figures = expert_figures(load({**WRITTEN, "layers": layers}).inventory, tokens)
    assert figures[f"distinct_experts.{PATH}"].exact_value == distinct_of_all(e, x, tokens)


def test_what_a_step_reads(inventory):
    counted = parameters(inventory)
    # 3·(1,040 + 26 + 91 + 7·429 + 195) + 13 + 2·247 = 13,572: total; 5·429·3 = 6,435 fewer are active
    assert (counted.total, counted.active, counted.active_without_input_table) == (13_572, 7_137, 6_890)
    assert experts(inventory, 1).read_parameters == 6_890
    # 3 tokens: 7·(1 - (5/7)^3) = 218/49 distinct experts, 120/49 more than one token's: 6,890 + 3·429·120/49 = 10,041.8
    step = experts(inventory, 3)
    assert step.distinct == {PATH: pytest.approx(218 / 49)}
    assert step.read_parameters == 10_042
    assert experts(inventory, MOST_TOKENS).read_parameters == counted.total - 247  # all, but the input table


def test_a_dense_model_reads_all_but_its_input_table():
    step = experts(load("8b").inventory, 5)
    assert (step.mixtures, step.distinct, step.read_parameters) == ((), {}, 7_504_924_672)


def test_one_token_is_exact_and_more_an_estimate(inventory):
    assert expert_figures(inventory, 1)["read_parameters"].nature == "exact"
    assert expert_figures(inventory, 2)["read_parameters"].nature == "estimate"
    all_of_them = {**WRITTEN["layers"][0], "feed_forward": {**MOE, "experts_per_token": 7}}
    every = load({**WRITTEN, "layers": [all_of_them]}).inventory
    assert expert_figures(every, 5)["read_parameters"].nature == "exact"
    formula = expert_figures(inventory, 5)[f"distinct_experts.{PATH}"]
    assert (formula.formula.text(), formula.numbers.text()) == ("E·(1 - (1 - X / E)^B)", "7·(1 - (1 - 2 / 7)^5)")


@pytest.mark.parametrize("tokens", [0, -1, True, 1.5, "7", MOST_TOKENS + 1])
def test_steps_that_cannot_be(inventory, tokens):
    with pytest.raises(CostcalcError):
        experts(inventory, tokens)
