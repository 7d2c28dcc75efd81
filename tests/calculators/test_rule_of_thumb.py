from dataclasses import fields

import pytest

from costcalc import load
from costcalc.calculators.rule_of_thumb import rule_of_thumb, rule_of_thumb_figures
from costcalc.inventory import Cached, Context, Inventory, Matmul, Memory, Tokens, Weight

EXPERTS = Weight("decoder.layers.experts.up", {"E": 17, "D": 13, "F": 7}, times=3, used={"E": 2})
TABLE = Weight("decoder.embedding", {"V": 19, "D": 13}, table=True)


def test_the_rule_of_thumb_counts_matrices_and_vocabulary_only(small):
    # a layer's matrices 2 x 13 x 30 + 2 x 13 x 10 + 2 x 13 x 37 = 2,002; no norm, no bias, no position table
    plain = rule_of_thumb(small())
    assert (plain.layer_parameters, plain.embedding_parameters) == (6_006, 494)
    assert plain.total_parameters == 6_500
    assert plain.forward_flops_per_token == 12_012
    assert plain.kv_bytes_per_token == 120  # 2 bytes x 2 x 3 layers x 10
    more = small(
        norm="layernorm",
        positions={"kind": "learned", "length": 11},
        head={"bias": True},
        attention={"bias": True, "out_bias": True, "qk_norm": "per_head"},
    )
    assert rule_of_thumb(more) == plain


def test_an_answer_is_frozen(small):
    with pytest.raises(AttributeError):
        rule_of_thumb(small()).layer_parameters = 0


def test_a_tied_table_counts_once(small):
    assert rule_of_thumb(small(tie_embeddings=True)).embedding_parameters == 247


@pytest.mark.parametrize(
    ("model", "printed"),
    [
        # the lesson's three results: total, in layers and in tables in B; GFLOP a token; KiB a token; GiB at a context
        ("gpt2", ("0.12", "0.08", "0.04", "0.2", 36, (1_024, "0.04"))),
        ("7b", ("6.74", "6.48", "0.26", "13.0", 512, (4_096, "2.00"))),
        ("8b", ("8.03", "6.98", "1.05", "14.0", 128, (8_192, "1.00"))),
    ],
)
def test_the_results_of_the_lesson(model, printed):
    rule = rule_of_thumb(load(model).inventory)
    context = printed[-1][0]
    assert printed == (
        f"{rule.total_parameters / 1e9:.2f}",
        f"{rule.layer_parameters / 1e9:.2f}",
        f"{rule.embedding_parameters / 1e9:.2f}",
        f"{rule.forward_flops_per_token / 1e9:.1f}",
        rule.kv_bytes_per_token // 1024,
        (context, f"{rule.kv_bytes_per_token * context / 2**30:.2f}"),
    )


def test_a_plain_block_is_twelve_d_squared():
    """GPT-2: 12 layers of 12 x 768^2."""
    assert rule_of_thumb(load("gpt2").inventory).layer_parameters == 12 * 12 * 768**2


def test_a_token_uses_some_of_the_experts():
    matmul = Matmul(EXPERTS.path, {"B·T": Tokens(), "D": 13, "F": 7}, times=3, of=EXPERTS.path)
    assert (
        rule_of_thumb(Inventory((EXPERTS, matmul), {"decoder": ("decoder.layers",) * 3})).layer_parameters == 546
    )  # 2 x 13 x 7 x 3


def test_only_vocabulary_tables_are_embeddings_here():
    positions = Weight("decoder.positions", {"length": 11, "D": 13}, table=True)
    bias = Weight("head_bias", {"V": 19})
    rule = rule_of_thumb(Inventory((TABLE, positions, bias), {}))
    assert (rule.layer_parameters, rule.embedding_parameters) == (0, 247)


def test_the_cache_of_one_token_leaves_out_state_and_encoder():
    kv = Cached("k", {"B·S": Context(window=7), "K": 2, "H": 5}, times=3)
    cross = Cached("x", {"B·M": Memory(), "K": 2, "H": 5}, kind="cross")
    state = Cached("s", {"D": 13}, kind="state")
    assert rule_of_thumb(Inventory((kv, cross, state), {})).kv_bytes_per_token == 60


def test_only_matrices_of_the_layers_count_as_matrices():
    """A factorised embedding's projection stands below the layers: 3 layers of 2·13·37 + 4·13·13 = 1,638 = 4,914."""
    layers = [{"repeat": 3, "attention": {"heads": 1}, "feed_forward": {"kind": "dense", "d_ff": 37}}]
    spec = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "embedding": {"width": 7}, "layers": layers}
    assert rule_of_thumb(load(spec).inventory).layer_parameters == 4_914


@pytest.mark.parametrize("model", ["gpt2", "8b", "gemma-2-9b"])
def test_the_working_of_the_rule_of_thumb(values_by_name, model):
    inventory = load(model).inventory
    figures, rule = rule_of_thumb_figures(inventory), rule_of_thumb(inventory)
    values_by_name(figures.values())
    said = {field.name: getattr(rule, field.name) for field in fields(rule)}
    said["total_parameters"] = rule.total_parameters
    assert {name: figure.value for name, figure in figures.items()} == {
        f"rule_of_thumb.{name}": value for name, value in said.items()
    }
    assert {figure.nature for figure in figures.values()} == {"estimate"}
    assert all(figure.name == name and figure.source for name, figure in figures.items())


def test_only_what_the_total_counts_is_in_the_rule_of_thumb():
    extra = (
        Weight("decoder.layers.extra", {"D": 13, "F": 7}, times=3, role="extra"),
        Weight("extra.embedding", {"V": 19, "D": 13}, role="extra", table=True),
    )
    matmuls = tuple(Matmul(w.path, {"B·T": Tokens(), "D": 13}, of=w.path) for w in (EXPERTS, *extra))
    inventory = Inventory((EXPERTS, TABLE, *extra, *matmuls), {"decoder": ("decoder.layers",) * 3})
    rule = rule_of_thumb(inventory)
    assert (rule.layer_parameters, rule.embedding_parameters) == (546, 247)  # 2 x 13 x 7 x 3 of the experts
    figures = rule_of_thumb_figures(inventory)
    assert figures["rule_of_thumb.total_parameters"].value == 793
    assert figures["rule_of_thumb.layer_parameters"].terms[0].numbers.text() == "3·2·13·7"


def test_how_the_rule_of_thumb_reads(small):
    figures = rule_of_thumb_figures(small())
    layers, total, forward, cache = (
        figures[f"rule_of_thumb.{name}"]
        for name in ("layer_parameters", "total_parameters", "forward_flops_per_token", "kv_bytes_per_token")
    )
    assert [term.numbers.text() for term in layers.terms][:2] == ["3·13·6·5", "3·13·2·5"]
    assert total.numbers.text() == "6,006 + 494"
    assert forward.formula.text() == "2·rule_of_thumb.layer_parameters"
    assert cache.numbers.text() == "2·60"
    assert [figure.unit for figure in (layers, total, forward, cache)] == ["parameters", "parameters", "FLOPs", "bytes"]
    assert [(figure.name, figure.unit) for figure in total.inputs] == [
        ("rule_of_thumb.layer_parameters", "parameters"),
        ("rule_of_thumb.embedding_parameters", "parameters"),
    ]
    (elements,) = cache.inputs
    assert (elements.name, elements.unit, elements.source) == (
        "rule_of_thumb.kv_elements_per_token",
        "elements",
        cache.source,
    )
    assert [term.name for term in elements.terms] == [
        "decoder.layers.attention.k_cache (one token)",
        "decoder.layers.attention.v_cache (one token)",
    ]
