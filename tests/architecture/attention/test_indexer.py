"""Indexers: their records, which pairs they leave, and who needs one."""

import pytest

import costcalc
from costcalc.architecture.attention import Indexer, Latent
from costcalc.architecture.norm import RMSNorm
from costcalc.architecture.places import DECODER, ENCODER, At
from costcalc.inventory import Cached, Context, Matmul, Pairs, Tokens, Weight, Workload

AT = At("decoder.layers.attention.indexer", times=3)
SMALL = Indexer(heads=5, head_dim=9)
CHOOSING = {
    "kind": "latent",
    "heads": 6,
    "q_rank": 17,
    "kv_rank": 11,
    "nope_dim": 5,
    "rope_dim": 2,
    "v_dim": 7,
    "top_k": 4,
    "indexer": {"heads": 5, "head_dim": 9},
}
FOLLOWING = {key: value for key, value in CHOOSING.items() if key != "indexer"}
ROWS, PAIRS = {"B·T": Tokens()}, {"B·P": Pairs()}


def path(name):
    return f"decoder.layers.attention.indexer.{name}"


def linear(name, axes):
    return [Weight(path(name), axes, 3), Matmul(path(name), {**ROWS, **axes}, 3, path(name))]


def records(indexer, stream=DECODER):
    return list(indexer.records(AT, 13, stream, q_rank=17))


def test_every_record():
    assert records(SMALL) == [
        *linear("q", {"R_q": 17, "N_index": 5, "H_index": 9}),
        *linear("k", {"D": 13, "H_index": 9}),
        Weight(path("k_norm"), {"H_index": 9}, 3),
        Weight(path("k_norm_bias"), {"H_index": 9}, 3),
        *linear("weights", {"D": 13, "N_index": 5}),
        Matmul(path("scores"), {**PAIRS, "N_index": 5, "H_index": 9}, 3, None, "scores"),
        Matmul(path("values"), {**PAIRS, "N_index": 5}, 3, None, "values"),
        Cached(path("k_cache"), {"B·S": Context(), "H_index": 9}, 3),
    ]


def test_another_norm_and_no_cache():
    made = records(SMALL.model_copy(update={"norm": RMSNorm()}), ENCODER)
    assert [r.path for r in made if "norm" in r.path] == [path("k_norm")]
    assert not [r for r in made if type(r) is Cached]


def model(*attentions, **more):
    layers = [{"attention": some, "feed_forward": {"d_ff": 37}} for some in attentions]
    return {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "positions": "rope", "layers": layers, **more}


def test_chosen_pairs_worked_out():
    """11 tokens: 66 pairs are scored by the indexer, 5·9 + 5 multiply-adds each; heads meet 1 + 2 + 3 + 8·4 = 38 keys,
    6·(7 + 7) each. A kernel is handed 121 of either. After 10 tokens a step scores 11 and meets 4.
    """
    arch = costcalc.load(model(CHOOSING, FOLLOWING))
    attended, rectangle = (
        costcalc.flops(arch, Workload(new_tokens=11, counting=counting)).attention
        for counting in ("attended", "rectangle")
    )
    assert attended == 2 * (66 * 50 + 2 * 38 * 84) == 19_368
    assert rectangle == 2 * (121 * 50 + 2 * 121 * 84) == 52_756
    step = costcalc.flops(arch, Workload(new_tokens=1, past_tokens=10, latent="expanded"))
    assert step.attention == 2 * (11 * 50 + 2 * 4 * 84)
    # 17·45 + 13·9 + 2·9 + 13·5 of the indexer; both layers hold 11 + 2 numbers a token, the first one 9 more.
    held = {weight.path: weight.parameters for weight in arch.inventory.weights if ".indexer." in weight.path}
    assert sum(held.values()) == 765 + 117 + 18 + 65
    assert costcalc.kv_cache(arch, 100).elements == 100 * (2 * 13 + 9)
    decompressed = arch.inventory.decompressed.cached
    assert sum(r.elements(Workload(new_tokens=100)) for r in decompressed) == 100 * (2 * 6 * 14 + 9)


def test_deepseek_v32():
    """One layer's indexer: 1,536 x 64·128 + 7,168·128 + 2·128 + 7,168·64 weights, 128 numbers held for each token."""
    made = list(Indexer(heads=64, head_dim=128).records(At("a"), 7168, DECODER, q_rank=1536))
    assert sum(r.parameters for r in made if type(r) is Weight) == 12_582_912 + 917_504 + 256 + 458_752
    assert [r.elements(Workload()) for r in made if type(r) is Cached] == [128]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"top_k": None}, "an `indexer` chooses `top_k` keys"),
        ({"q_rank": None}, "`indexer` reads the latent of queries, and there is none"),
        ({"rope_dim": 10}, "of an indexer's head of 9 numbers rope_dim 10 are rotated: no more are there"),
        ({"gate_reads": "query_latent"}, "`gate_reads` belongs to an `output_gate`"),
        (
            {"query_reads": "both", "q_rank": None, "indexer": None, "top_k": None},
            "`query_reads: both` reads the latent of queries, and there is none",
        ),
    ],
)
def test_what_does_not_go_together(refusal, changes, message):
    error = refusal(**model({**CHOOSING, **changes}))
    assert str(error) == message
    assert error.where == ("decoder", "layers", 0, "attention")
    assert error.hint


def test_somebody_has_to_choose(refusal):
    error = refusal(**model(FOLLOWING, CHOOSING))
    assert str(error) == "no earlier layer chooses the `top_k` keys that this one meets"
    assert error.where == ("decoder", "layers", 0, "attention", "top_k")
    error = refusal(**model(CHOOSING, {**FOLLOWING, "top_k": 3}))
    assert str(error) == "top_k 3, and the nearest earlier layer with an indexer chooses 4"
    error = refusal(**model(CHOOSING, multi_token={"layer": {"attention": FOLLOWING}}))
    assert str(error) == "a module has no other layers to look at"


def test_what_is_said():
    assert Latent(**CHOOSING).summary(13).endswith(", 4 keys a query, chosen by 5 heads of 9 numbers")
    assert Latent(**FOLLOWING).summary(13).endswith(", 4 keys a query, those of an earlier layer")
    assert Latent(**FOLLOWING, sinks=True).summary(13).endswith(", sinks, 4 keys a query, those of an earlier layer")
