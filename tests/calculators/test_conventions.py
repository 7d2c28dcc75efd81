from fractions import Fraction

import pytest

from costcalc import load
from costcalc.calculators.conventions import (
    PARTS,
    TWO_TEXTS,
    convention_figures,
    conventions,
    six_nd,
    six_nd_figure,
    split,
)
from costcalc.calculators.flops import flops
from costcalc.calculators.parameters import parameters
from costcalc.calculators.rules import RULES
from costcalc.inventory import Inventory, Matmul, Tokens, Weight, Workload

EXPERTS = Weight("decoder.layers.experts.up", {"E": 17, "D": 13, "F": 7}, times=3, used={"E": 2})
TABLE = Weight("decoder.embedding", {"V": 19, "D": 13}, table=True)


def test_six_operations_for_each_parameter_and_token(small):
    counted = parameters(small())
    assert six_nd(counted, 11) == 6 * 6_591 * 11 == 435_006


@pytest.mark.parametrize(
    ("model", "tokens", "published"),
    [
        ("gpt3-175b", 300 * 10**9, "3.14e+23"),  # arXiv 2005.14165, table D.1
        ("llama-3.1-405b", 15_600 * 10**9, "3.80e+25"),  # arXiv 2407.21783, section 1
    ],
)
def test_published_training_runs_by_this_rule(model, tokens, published):
    assert f"{six_nd(parameters(load(model).inventory), tokens):.2e}" == published


def test_the_working_of_that_rule(small):
    figure = six_nd_figure(small(), 11)
    assert (figure.name, figure.value, figure.nature) == ("6nd_total", 435_006, "estimate")
    assert (figure.formula.text(), figure.numbers.text()) == ("6·P·t", "6·6,591·11")


ATTENTION = {"heads": 6, "kv_heads": 2, "head_dim": 5}


def totals(inventory, tokens, seq_len):
    """name -> (total, weights, core)."""
    return {
        each.name: (each.total and each.total.value, each.weight_flops, each.core_flops)
        for each in conventions(inventory, tokens, seq_len)
    }


def test_every_convention_worked_out(small):
    # 7 sequences of 11: t = 77. P = 6,591, of which 494 in two tables; 6,006 in matrices of layers, with the head 6,253
    # that multiply a token; L = 3, D = 13, N x H = 30, V = 19
    assert totals(small(), 77, 11) == {
        # 6·6,253·77; 3·7·360·66 pairs, 3·7·360·121 and half of that
        "exact_attended": (3_387_846, 2_888_886, 498_960),
        "exact_rectangle": (3_803_646, 2_888_886, 914_760),
        "half_rectangle": (3_346_266, 2_888_886, 457_380),
        "6nd_total": (3_045_042, 3_045_042, 0),  # 6·6,591·77
        "6nd_non_embedding": (2_816_814, 2_816_814, 0),  # 6·6,097·77
        "kaplan": (3_274_194, 2_816_814, 457_380),  # 3·(2·6,097 + 2·3·11·30)·77
        "palm": (3_959_802, 3_045_042, 914_760),  # (6·6,591 + 12·3·30·11)·77
        # 72·77·3·13^2 = 2,810,808, of which 11 / 78 and 19 / 468 more
        "megatron": (3_321_318, 2_924_922, 396_396),
        # 96·77·3·13^2 = 3,747,744, of which 11 / 78 and 19 / 624 more
        "megatron_full_recompute": (4_390_386, 3_861_858, 528_528),
        # 3·(2·19·13 + 2·6,253 + 3·(4·11·30 + 3·6·11))·77: 494 + 12,506 weights, 4,554 core
        "chinchilla": (4_054_974, 3_003_000, 1_051_974),
        "rule_of_thumb": (2_774_772, 2_774_772, 0),  # 6·6,006·77
    }


def test_what_is_exact_says_so_and_what_is_not_as_well(small):
    found = conventions(small(), 77, 11)
    assert [each.name for each in found][:3] == ["exact_attended", "exact_rectangle", "half_rectangle"]
    assert [each.name for each in found][3:] == [rule.name for rule in RULES if rule.name != "6nd_active"]
    natures = {each.name: each.total.nature for each in found}
    assert {name for name, nature in natures.items() if nature == "exact"} == {"exact_attended", "exact_rectangle"}
    assert set(natures.values()) == {"exact", "estimate"}
    for each in found:
        assert each.total.name == each.name
        assert each.total.unit == "FLOPs"
        assert each.total.source
        assert each.why
        assert each.missing == ""
        assert each.total.value == each.weight_flops + each.core_flops


def test_how_conventions_read(small, values_by_name):
    found = {each.name: each.total for each in conventions(small(), 80, 11)}
    assert found["exact_attended"].formula.text() == "weights_attended + core_attended"
    assert found["half_rectangle"].formula.text() == "weights_attended + core_half"
    assert found["kaplan"].formula.text() == "3·(2·P_non_embedding + 2·L·S·N·H)·t"
    assert found["kaplan"].numbers.text() == "3·(2·6,097 + 2·3·11·6·5)·80"
    assert found["megatron"].formula.text() == "72·t·L·D^2·(1 + S / (6·D) + V / (12·L·D))"
    assert found["palm"].formula.latex() == r"(6 \, P + 12 \, L \, N \, H \, S) \, t"
    values = values_by_name(found.values())
    assert values["core_half", "FLOPs"] == values["core_rectangle", "FLOPs"] / 2
    assert values["core_attended", "FLOPs"] == 3 * values["attended_attention_flops", "FLOPs"] + 6_480
    core = next(figure for figure in found["exact_attended"].lineage() if figure.name == "core_attended")
    assert core.formula.text() == "3·(attended_attention_flops + attended_rest_attention_flops)"


def test_the_working_of_parts_and_ratios(small, values_by_name):
    found = conventions(small(), 77, 11)
    figures = convention_figures(found)
    values_by_name(figures.values())
    assert list(figures) == [
        f"{each.name}{part}" for each in found for part in ("", ".weight_flops", ".attention_flops", ".ratio_to_exact")
    ]
    for each in found:
        parts = [figures[f"{each.name}.{part}_flops"] for part in ("weight", "attention")]
        assert [part.value for part in parts] == [each.weight_flops, each.core_flops]
        assert {part.unit for part in parts} == {"FLOPs"}
        ratio = figures[f"{each.name}.ratio_to_exact"]
        assert (ratio.exact_value, ratio.unit) == (Fraction(each.total.value, 3_387_846), "")
        assert ratio.nature == each.total.nature
        assert ratio.name == f"{each.name}.ratio_to_exact"
    palm, core = figures["palm.weight_flops"], figures["palm.attention_flops"]
    assert (palm.numbers.text(), palm.source, palm.status) == ("(6·6,591 + 12·3·6·5·0)·77", PARTS, "estimate")
    assert (core.formula.text(), core.source, core.status) == ("palm - palm.weight_flops", PARTS, "estimate")
    assert (palm.name, core.name) == ("palm.weight_flops", "palm.attention_flops")
    assert figures["palm.ratio_to_exact"].numbers.text() == "3,959,802 / 3,387,846"
    assert {name: each.name for name, each in figures.items()} == {name: name for name in figures}


def test_what_has_no_total_has_no_working(small):
    layers = [{"attention": {"heads": 6, "head_dim": 5}}, {"attention": {"heads": 7, "head_dim": 5}}]
    figures = convention_figures(conventions(small(layers=layers), 77, 11))
    assert "megatron" in figures
    assert not [name for name in figures if name.startswith(("kaplan", "palm", "chinchilla"))]


@pytest.mark.parametrize(
    ("tokens", "sequences", "rest"), [(77, 7, 0), (80, 7, 3), (11, 1, 0), (3, 0, 3), (1, 0, 1), (12, 1, 1)]
)
def test_what_is_left_over_is_one_shorter_sequence(small, tokens, sequences, rest):
    assert split(tokens, 11) == (sequences, rest)
    found = totals(small(), tokens, 11)
    # a sequence of 11 has 66 pairs of 121, one of r has r·(r + 1) / 2 of r·r; 3·360 FLOPs a pair
    pairs, square = sequences * 66 + rest * (rest + 1) // 2, sequences * 121 + rest * rest
    weights = 6 * 6_253 * tokens
    assert found["exact_attended"] == (weights + 1_080 * pairs, weights, 1_080 * pairs)
    assert found["exact_rectangle"] == (weights + 1_080 * square, weights, 1_080 * square)
    assert found["half_rectangle"] == (weights + 540 * square, weights, 540 * square)
    assert found["6nd_total"][0] == 6 * 6_591 * tokens


def test_the_exact_counts_are_training_steps(small):
    inventory = small(layers=[{"repeat": 2, "attention": {**ATTENTION, "window": 7}}, {"attention": ATTENTION}])
    found = totals(inventory, 77, 11)
    for counting in ("attended", "rectangle"):
        step = flops(inventory, Workload(batch=7, new_tokens=11, counting=counting))
        assert found[f"exact_{counting}"] == (step.train, 3 * step.weights, 3 * step.attention)
    assert found["exact_attended"][2] < found["half_rectangle"][2]  # a window is less than half of the square


def test_the_exact_counts_include_scans(small):
    """Recurrent work, which is modelled, of 7 rows of 11 tokens and one of 5: 3 x 2 x (77 + 5) x 13 x 17."""
    scan = Matmul("decoder.layers.mixer.scan", {"B·T": Tokens(), "D": 13, "n": 17}, role="scan")
    plain = small()
    with_scan = Inventory((*plain.records, scan), plain.layout)
    for name in ("exact_attended", "exact_rectangle", "half_rectangle"):
        before, after = totals(plain, 82, 11)[name], totals(with_scan, 82, 11)[name]
        assert (after[0] - before[0], *after[1:]) == (108_732, *before[1:])
    natures = {way.name: way.total.nature for way in conventions(with_scan, 82, 11)}
    assert natures["exact_attended"] == "modelled"


def test_long_sequences_of_conventions_that_know_no_length(small):
    short, long = totals(small(), 77, 11), totals(small(), 77, 77)
    unmoved = {name for name in short if short[name] == long[name]}
    assert unmoved == {"6nd_total", "6nd_non_embedding", "rule_of_thumb"}
    assert all(short[name][1] == long[name][1] for name in short)  # only cores grow


def test_kaplan_has_half_of_the_rectangle_and_palm_all_of_it(small):
    for tokens, seq_len in ((77, 11), (2_047, 89)):
        found = totals(small(), tokens, seq_len)
        assert found["kaplan"][2] == found["half_rectangle"][2]
        assert found["palm"][2] == found["exact_rectangle"][2] == 2 * found["kaplan"][2]


@pytest.mark.parametrize("model", ["gpt2", "gpt2-xl", "gpt3-175b"])
def test_megatron_is_the_exact_rectangle_of_a_model_in_the_shape_of_gpt2(model):
    """N·H = D, as many key heads, F = 4 D, a head: 72·B·S·L·D^2, 12·B·S^2·L·D and 6·B·S·V·D, whatever is looked up."""
    inventory = load(model).inventory
    found = totals(inventory, 7 * 1_024, 1_024)
    assert found["megatron"] == found["exact_rectangle"]
    # with every layer's forward pass once more: 4 passes of the layers, 3 of the head
    letters = inventory.letters
    head = 2 * letters["V"] * letters["D"] * 7 * 1_024
    again = (found["exact_rectangle"][0] - 3 * head) // 3
    assert found["megatron_full_recompute"][0] == found["exact_rectangle"][0] + again


def test_megatron_is_not_the_rectangle_of_other_models():
    found = totals(load("8b").inventory, 8_192, 8_192)
    assert found["megatron"] != found["exact_rectangle"]


@pytest.mark.parametrize(
    ("layers", "missing"),
    [
        ([{"attention": {"heads": 6, "head_dim": 5}}, {"attention": {"heads": 7, "head_dim": 5}}], ["N"]),
        ([{"attention": {"heads": 6, "head_dim": 5}}, {"attention": {"heads": 6, "head_dim": 7}}], ["H"]),
        ([{"attention": {"heads": 6, "head_dim": 5}}, {"attention": {"heads": 7, "head_dim": 3}}], ["N", "H"]),
        ([{"feed_forward": {"d_ff": 37}}], ["L", "N", "H"]),
        # a layer without attention: the rules' layers all attend
        ([{"attention": {"heads": 6, "head_dim": 5}}, {"feed_forward": {"d_ff": 37}, "attention": None}], ["L"]),
    ],
)
def test_a_letter_of_several_values_or_of_none_is_named(small, layers, missing):
    found = {each.name: each for each in conventions(small(layers=layers), 77, 11)}
    without = {name for name, each in found.items() if each.total is None}
    assert without == {"kaplan", "palm", "chinchilla"} | ({"megatron", "megatron_full_recompute"} & {*with_l(missing)})
    for name in without:
        letters = [letter for letter in found_symbols(name) if letter in missing]
        words = {"L": "has layers that do not attend to one text"}
        said = " and ".join(words.get(letter, f"has no single {letter}") for letter in letters)
        assert found[name].missing == f"the model {said}"
        assert (found[name].weight_flops, found[name].core_flops) == (None, None)
        assert found[name].why
    assert found["exact_attended"].total.nature == "exact"  # what is counted needs no letter


def with_l(missing):
    return [rule.name for rule in RULES if "L" in missing and "L" in rule.formula.symbols()]


def test_a_run_of_fewer_tokens_than_a_sequence_is_one_shorter_sequence(small):
    short, exact = totals(small(), 7, 11), totals(small(), 7, 7)
    assert short == exact


def found_symbols(name):
    """The letters of a rule in the order of its formula."""
    return next(rule.formula.symbols() for rule in RULES if rule.name == name)


def test_layers_of_all_groups_are_one_l(small):
    mixed = small(layers=[{"repeat": 2, "attention": {**ATTENTION, "window": 7}}, {"attention": ATTENTION}])
    palm = next(each for each in conventions(mixed, 77, 11) if each.name == "palm")
    assert palm.core_flops == 12 * 3 * 30 * 11 * 77


@pytest.mark.parametrize(
    ("model", "seq_len", "tokens", "name", "published"),
    [
        # arXiv 2005.14165, table D.1; the core and the head make it more
        ("gpt3-175b", 2_048, 300 * 10**9, "6nd_total", "3.14e+23"),
        ("gpt3-175b", 2_048, 300 * 10**9, "exact_attended", "3.19e+23"),
        # arXiv 2407.21783, section 1: 3.8 x 10^25
        ("llama-3.1-405b", 8_192, 15_600 * 10**9, "6nd_total", "3.80e+25"),
        ("llama-3.1-405b", 8_192, 15_600 * 10**9, "exact_attended", "3.94e+25"),
    ],
)
def test_published_training_runs_by_their_convention(model, seq_len, tokens, name, published):
    assert f"{totals(load(model).inventory, tokens, seq_len)[name][0]:.2e}" == published


PALM_540B = {
    # arXiv 2204.02311, section 2 and table 1: multi-query, SwiGLU, parallel, no biases, shared tables
    "vocab_size": 256_000,
    "d_model": 18_432,
    "norm": {"kind": "layernorm", "bias": False},
    "positions": "rope",
    "tie_embeddings": True,
    "layers": [
        {
            "repeat": 118,
            "parallel": "one_norm",
            "attention": {"heads": 48, "kv_heads": 1, "head_dim": 256},
            "feed_forward": {"kind": "gated", "d_ff": 4 * 18_432},
        }
    ],
}


def test_the_run_of_palm_by_its_own_convention():
    inventory = load(PALM_540B).inventory
    matrices = parameters(inventory).total - 119 * 18_432  # table 1 has no room for the gains of norms
    assert f"{matrices / 1e9:.2f}" == "540.35"
    found = totals(inventory, 780 * 10**9, 2_048)
    assert f"{found['palm'][0]:.2e}" == "2.56e+24"  # table 21: 2.56 x 10^24 with 780 B tokens
    assert f"{found['6nd_total'][0]:.2e}" == "2.53e+24"
    # section 4.1: 238.3 K tokens a second on 6,144 TPU v4 of 275 TFLOP/s are an MFU of 46.2%, without the core 45.7%
    used = [found[name][0] / 780e9 * 238_300 / (6_144 * 275e12) for name in ("palm", "6nd_total")]
    assert [f"{share:.1%}" for share in used] == ["46.2%", "45.7%"]


@pytest.mark.parametrize(
    ("seq_len", "ratio"), [(2_048, "0.968"), (8_192, "1.068"), (32_768, "1.469"), (131_072, "3.074")]
)
def test_exact_attended_over_6nd_for_llama_3_8b(seq_len, ratio):
    found = totals(load("8b").inventory, 2**20, seq_len)
    assert f"{found['exact_attended'][0] / found['6nd_total'][0]:.3f}" == ratio


@pytest.mark.parametrize(
    ("layers", "d_model", "heads", "head_dim", "millions", "ratio"),
    [
        # arXiv 2203.15556, table A4: F = 4 D, vocabulary of 32,000, S = 2,048
        (10, 640, 10, 64, "74", "1.03"),  # it prints 73
        (20, 1_024, 16, 64, "305", "1.10"),
        (24, 1_280, 10, 128, "552", "1.08"),
        (26, 1_792, 14, 128, "1143", "1.04"),
        (28, 2_048, 16, 128, "1592", "1.03"),
        (40, 3_584, 28, 128, "6794", "0.99"),
    ],
)
def test_chinchillas_own_table_leaves_out_both_tables(layers, d_model, heads, head_dim, millions, ratio):
    """As printed, appendix F charges input table and head; its table comes out without them, but with softmax.

    The models have relative positions, whose projection of D x D a layer counts as parameters.
    """
    layer = {"attention": {"heads": heads, "head_dim": head_dim}, "feed_forward": {"d_ff": 4 * d_model}}
    spec = {"vocab_size": 32_000, "d_model": d_model, "norm": "rmsnorm", "tie_embeddings": True}
    inventory = load({**spec, "layers": [{"repeat": layers, **layer}]}).inventory
    held = parameters(inventory).total + layers * d_model**2
    assert f"{held / 1e6:.0f}" == millions
    tables = 2 * 6 * 32_000 * d_model
    counted = totals(inventory, 2_048, 2_048)["chinchilla"][0] - tables * 2_048
    assert f"{counted / (6 * held * 2_048):.2f}" == ratio


def test_a_convention_is_frozen(small):
    with pytest.raises(AttributeError):
        conventions(small(), 77, 11)[0].total = None


def test_a_pair_is_trained_on_both_texts(pair):
    """Two sequences of 11 and one of 7, each beside 5 encoder tokens; t counts the decoder's 29 tokens."""
    ways = {way.name: way for way in conventions(pair(), 29, 11, memory_tokens=5)}
    whole = flops(pair(), Workload(new_tokens=11, memory_tokens=5))
    rest = flops(pair(), Workload(new_tokens=7, memory_tokens=5))
    assert ways["exact_attended"].total.value == 2 * whole.train + rest.train
    assert ways["exact_attended"].core_flops == 3 * (2 * whole.attention + rest.attention)
    assert ways["6nd_total"].total.value == 6 * parameters(pair()).total * 29
    for name in ("kaplan", "palm", "megatron", "megatron_full_recompute", "chinchilla"):
        assert (ways[name].total, ways[name].missing) == (None, TWO_TEXTS)


def test_a_pair_of_which_as_many_layers_attend_as_there_are_is_none_for_a_single_l(pair):
    """Three decoder layers with cross-attention only, two encoder layers: five scores in five layers."""
    cross = {"heads": 6, "kv_heads": 2, "head_dim": 5}
    odd = pair(decoder={"layers": [{"repeat": 3, "cross_attention": cross, "feed_forward": {"d_ff": 37}}]})
    ways = {way.name: way for way in conventions(odd, 11, 11, memory_tokens=5)}
    assert (ways["palm"].total, ways["palm"].missing) == (None, TWO_TEXTS)


def test_an_encoder_has_every_convention(pair):
    """L = 2, and the rectangle is exact: PaLM's core is the exact one."""
    ways = {way.name: way for way in conventions(pair(decoder=None), 22, 11)}
    assert all(way.total is not None for way in ways.values())
    assert ways["palm"].core_flops == ways["exact_attended"].core_flops == 12 * 2 * 6 * 5 * 11 * 22
