import pytest

from costcalc import load
from costcalc.calculators.conventions import rule_of_thumb, six_nd_total
from costcalc.calculators.parameters import parameters
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


def test_six_operations_for_each_parameter_and_token(small):
    counted = parameters(small())
    assert six_nd_total(counted, 11) == 6 * 6_591 * 11 == 435_006


@pytest.mark.parametrize(
    ("model", "tokens", "published"),
    [
        ("gpt3-175b", 300 * 10**9, "3.14e+23"),  # arXiv 2005.14165, table D.1
        ("llama-3.1-405b", 15_600 * 10**9, "3.80e+25"),  # arXiv 2407.21783, section 1
    ],
)
def test_published_training_runs_by_this_rule(model, tokens, published):
    assert f"{six_nd_total(parameters(load(model).inventory), tokens):.2e}" == published


def test_only_matrices_of_the_layers_count_as_matrices():
    """A factorised embedding's projection stands below the layers: 3 layers of 2·13·37 + 4·13·13 = 1,638 = 4,914."""
    layers = [{"repeat": 3, "attention": {"heads": 1}, "feed_forward": {"kind": "dense", "d_ff": 37}}]
    spec = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "embedding": {"width": 7}, "layers": layers}
    assert rule_of_thumb(load(spec).inventory).layer_parameters == 4_914
