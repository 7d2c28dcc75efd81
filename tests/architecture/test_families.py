"""Encoders and encoder-decoders on different primes: what they hold, what they cannot have."""

from copy import deepcopy
from math import prod

import pytest
from pydantic import ValidationError

from costcalc.architecture import Architecture
from costcalc.architecture.written import FullForm
from costcalc.inventory import Matmul, Weight, Workload

ATTENTION = {"heads": 6, "kv_heads": 2, "head_dim": 5}
CROSS = {"heads": 10, "kv_heads": 5, "head_dim": 7}
PAIR = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": "rmsnorm",
    "tie_embeddings": True,
    "share_embeddings": True,
    "encoder": {"layers": [{"repeat": 2, "attention": ATTENTION, "feed_forward": {"d_ff": 37}}]},
    "decoder": {
        "layers": [{"repeat": 3, "attention": ATTENTION, "cross_attention": CROSS, "feed_forward": {"d_ff": 41}}]
    },
}
APART = {**PAIR, "share_embeddings": False}
OWN = "`{}` of its own is for an encoder beside a decoder that does not share its table"
ENCODER = {key: value for key, value in PAIR.items() if key not in ("decoder", "share_embeddings")}


def built(base, **changes):
    written = {key: value for key, value in {**deepcopy(base), **changes}.items() if value is not None}
    return Architecture.model_validate(written)


def refused(base, **changes):
    with pytest.raises(ValidationError) as caught:
        built(base, **changes)
    (detail,) = caught.value.errors()
    return detail["ctx"]["error"]


def held(model):
    """Parameters by path."""
    return {w.path: w.parameters for w in model.inventory.weights}


def test_the_family_follows_from_the_stacks_that_are_written():
    pair, encoder, decoder = built(PAIR), built(ENCODER), built(PAIR, encoder=None, share_embeddings=None)
    assert [m.family for m in (pair, encoder, decoder)] == ["encoder-decoder", "encoder-only", "decoder-only"]
    assert [m.main for m in (pair, encoder, decoder)] == ["decoder", "encoder", "decoder"]
    assert [list(m.stacks) for m in (pair, encoder, decoder)] == [["encoder", "decoder"], ["encoder"], ["decoder"]]


def test_the_parameters_of_a_pair_worked_out():
    """V·D once: 19·13 = 247.

    Encoder, twice: 2·13·(6 + 2)·5 + 2·13·37 + 2·13 = 1,040 + 962 + 26 = 2,028, x 2 = 4,056, and a final norm of 13.
    Decoder, three times: 1,040 + 2·13·(10 + 5)·7 + 2·13·41 + 3·13 = 1,040 + 2,730 + 1,066 + 39 = 4,875, x 3 = 14,625,
    and 13. Together 247 + 4,069 + 14,638 = 18,954.
    """
    assert sum(held(built(PAIR)).values()) == 18_954
    assert sum(held(built(PAIR, share_embeddings=None)).values()) == 18_954 + 247
    assert sum(held(built(PAIR, share_embeddings=None, encoder_vocab_size=23)).values()) == 18_954 + 23 * 13
    assert sum(held(built(PAIR, tie_embeddings=None)).values()) == 18_954 + 247


def test_whose_table_is_whose():
    tables = {w.path for w in built(PAIR).inventory.weights if w.table}
    assert tables == {"decoder.embedding"}
    apart = built(PAIR, share_embeddings=None, tie_embeddings=None)
    assert {w.path for w in apart.inventory.weights if w.table} == {"encoder.embedding", "decoder.embedding", "head"}
    assert built(ENCODER).inventory.matmuls[-1].of == "encoder.embedding"
    assert built(PAIR).inventory.matmuls[-1].of == "decoder.embedding"


def test_the_encoder_of_a_pair_reads_the_memory_and_the_decoder_the_new_tokens():
    """M = 7 encoder tokens, T = 11 of the decoder; a second pass, T = 1 with a past of 11, leaves the encoder alone."""
    prefill, decode = Workload(new_tokens=11, memory_tokens=7), Workload(1, 1, 11, 7)
    flops = {m.path: (m.flops(prefill), m.flops(decode)) for m in built(PAIR).inventory.matmuls}
    assert flops["encoder.layers.feed_forward.up"] == (2 * 2 * 7 * 13 * 37, 0)
    assert flops["encoder.layers.attention.scores"] == (2 * 2 * 7 * 7 * 6 * 5, 0)
    assert flops["decoder.layers.cross_attention.k"] == (2 * 3 * 7 * 13 * 5 * 7, 0)
    assert flops["decoder.layers.cross_attention.q"] == (2 * 3 * 11 * 13 * 10 * 7, 2 * 3 * 13 * 10 * 7)
    assert flops["decoder.layers.cross_attention.scores"] == (2 * 3 * 11 * 7 * 10 * 7, 2 * 3 * 7 * 10 * 7)
    assert flops["decoder.layers.attention.scores"] == (2 * 3 * 66 * 6 * 5, 2 * 3 * 12 * 6 * 5)


def test_what_a_request_of_a_pair_holds():
    cached = {c.path: (c.kind, c.elements(Workload(2, 11, 0, 7))) for c in built(PAIR).inventory.cached}
    assert cached == {
        "decoder.layers.attention.k_cache": ("kv", 3 * 2 * 11 * 2 * 5),
        "decoder.layers.attention.v_cache": ("kv", 3 * 2 * 11 * 2 * 5),
        "decoder.layers.cross_attention.k_cache": ("cross", 3 * 2 * 7 * 5 * 7),
        "decoder.layers.cross_attention.v_cache": ("cross", 3 * 2 * 7 * 5 * 7),
    }


def test_an_encoder_alone_keeps_nothing_and_sees_both_ways():
    inventory = built(ENCODER).inventory
    assert not inventory.cached
    assert (inventory.has_cache, inventory.needs_memory, inventory.takes_memory) == (False, False, False)
    scores = next(m for m in inventory.matmuls if m.role == "scores")
    assert scores.flops(Workload(new_tokens=11)) == 2 * 2 * 11 * 11 * 6 * 5


def test_what_inventories_say_of_memory():
    pair, lone = built(PAIR).inventory, built(PAIR, encoder=None, share_embeddings=None).inventory
    assert (pair.has_cache, pair.needs_memory, pair.takes_memory) == (True, True, True)
    assert (lone.has_cache, lone.needs_memory, lone.takes_memory) == (True, False, True)


def test_a_decoder_whose_memory_comes_from_elsewhere_does_without_it_too():
    """BartForCausalLM: the weights of its cross-attention are held, and do nothing unless something is handed over."""
    lone = built(PAIR, encoder=None, share_embeddings=None).inventory
    cross = [m for m in lone.matmuls if ".cross_attention." in m.path]
    assert len(cross) == 6
    assert [m.flops(Workload(new_tokens=11)) for m in cross] == [0] * 6
    assert all(m.flops(Workload(new_tokens=11, memory_tokens=7)) for m in cross)
    assert [w.parameters for w in lone.weights if w.path.endswith("cross_attention.q")] == [3 * 13 * 10 * 7]


def test_cross_attention_stands_between_the_two_others_with_a_norm_of_its_own():
    paths = list(dict.fromkeys(r.path for r in built(PAIR).inventory.weights if r.path.startswith("decoder.layers")))
    names = [path.removeprefix("decoder.layers.") for path in paths]
    assert names.index("attention.output") < names.index("cross_attention_norm") < names.index("cross_attention.q")
    assert names.index("cross_attention.output") < names.index("feed_forward_norm")


def test_a_pooler_stands_beside_the_head():
    """D·D + D = 13·13 + 13 = 182, for one row of each of B texts."""
    pooled = built(ENCODER, pooler=True)
    assert sum(held(pooled).values()) - sum(held(built(ENCODER)).values()) == 182
    assert [m.flops(Workload(3, 11)) for m in pooled.inventory.matmuls if m.path == "pooler.dense"] == [2 * 3 * 13 * 13]


def test_a_pooler_of_a_pair_runs_once():
    """In the pass that starts a request, for one row of each of B texts."""
    pooled = built(PAIR, pooler=True)
    assert sum(held(pooled).values()) == 18_954 + 182
    (dense,) = [m for m in pooled.inventory.matmuls if m.path == "pooler.dense"]
    assert (dense.flops(Workload(3, 11, 0, 7)), dense.flops(Workload(3, 1, 11, 7))) == (2 * 3 * 13 * 13, 0)


def test_an_encoder_wider_than_its_decoder():
    """An encoder of D = 17 over a table of its own, 19·17 = 323; its layers 2·17·(6 + 2)·5 + 2·17·37 + 2·17 = 1,360 +
    1,258 + 34 = 2,652, x 2 = 5,304, and 17. Keys and values of the decoder's ten heads are made of 17 numbers: 2·4·5·7
    = 280 more in each of three layers, 840. Or a matrix of 17·13 + 13 = 234 comes first.
    """
    wide = {**PAIR["encoder"], "d_model": 17}
    layer = PAIR["decoder"]["layers"][0]
    asking = {"layers": [{**layer, "cross_attention": {**CROSS, "memory_width": 17}}]}
    direct = built(APART, encoder=wide, decoder=asking)
    assert sum(held(direct).values()) == 18_954 - 4_069 + 323 + 5_304 + 17 + 840
    projected = built(APART, encoder={**wide, "output_projection": True})
    assert sum(held(projected).values()) == 18_954 - 4_069 + 323 + 5_304 + 17 + 234
    flops = {m.path: m.flops(Workload(2, 11, 0, 7)) for m in projected.inventory.matmuls}
    assert flops["encoder.output_projection"] == 2 * 2 * 7 * 17 * 13
    assert flops["decoder.layers.cross_attention.k"] == 2 * 3 * 2 * 7 * 13 * 5 * 7


def test_an_attention_that_meets_the_encoders_tokens_too():
    """Of K = 2, H = 5: keys and values of M = 7 tokens by the matrices of the T = 11, each 2·13·10 FLOPs a token;
    of N = 6 heads 66 pairs of the decoder's own and 11·7 of both; 7 tokens are kept beside the 11. It has no weights
    of its own.
    """
    layer = {"attention": {**ATTENTION, "with_memory": True}, "feed_forward": {"d_ff": 41}}
    merged = built(PAIR, decoder={"layers": [{"repeat": 3, **layer}]})
    assert sum(held(merged).values()) == 18_954 - 3 * (2 * 13 * 15 * 7 + 13)
    work, step = Workload(1, 11, 0, 7), Workload(1, 1, 11, 7)
    flops: dict[str, list[int]] = {}
    for matmul in merged.inventory.matmuls:
        flops.setdefault(matmul.path, []).append(matmul.flops(work))
    assert flops["decoder.layers.attention.k"] == [2 * 3 * 11 * 13 * 10, 2 * 3 * 7 * 13 * 10]
    assert flops["decoder.layers.attention.scores"] == [2 * 3 * 66 * 6 * 5, 2 * 3 * 77 * 6 * 5]
    of_step = [m.flops(step) for m in merged.inventory.matmuls if m.path == "decoder.layers.attention.v"]
    assert of_step == [2 * 3 * 13 * 10, 0]
    cached = {c.path.rpartition(".")[2]: (c.kind, c.elements(work)) for c in merged.inventory.cached}
    assert cached["k_cache"] == ("kv", 3 * 11 * 10)
    assert cached["v_memory"] == ("cross", 3 * 7 * 10)


@pytest.mark.parametrize(("window", "pairs"), [(1, 11), (2, 21), (3, 31), (4, 40), (21, 121), (20, 121)])
def test_an_even_window_that_reaches_less_far_back(window, pairs):
    """Of 11 tokens, w = 4: itself, two later ones (10 + 9) and one earlier one (10): 40; w = 20 reaches all."""
    attention = {**ATTENTION, "window": window, "uneven_window": True}
    model = built(ENCODER, encoder={"layers": [{"attention": attention}]})
    seen = [sum(1 for key in range(11) if -((window - 1) // 2) <= key - query <= window // 2) for query in range(11)]
    assert sum(seen) == pairs if window < 20 else sum(seen) <= pairs
    scores = next(m for m in model.inventory.matmuls if m.role == "scores")
    assert scores.flops(Workload(new_tokens=11)) == 2 * sum(seen) * 6 * 5


def test_rows_beside_a_table():
    """Two tokens of 13 numbers, held where the table is."""
    assert sum(held(built(PAIR, embedding={"own_rows": 2})).values()) == 18_954 + 26
    assert held(built(PAIR, embedding={"own_rows": 2}))["decoder.embedding_rows"] == 26


def test_a_spare_table_is_held_and_never_multiplied():
    spare = built(PAIR, spare_table=True)
    assert sum(held(spare).values()) == 18_954 + 247
    assert spare.inventory.matmuls == built(PAIR).inventory.matmuls


def test_without_a_head_the_hidden_states_are_the_result():
    bare = built(ENCODER, head="none", tie_embeddings=None)
    assert not [r for r in bare.inventory.records if r.path.startswith("head")]
    assert sum(held(built(ENCODER)).values()) == sum(held(bare).values())


def test_the_norm_of_a_layers_attention_may_be_left_out():
    """ModernBERT's first layer."""
    layers = [{"attention": ATTENTION, "attention_norm": False}, {"attention": ATTENTION}]
    paths = {w.path for w in built(ENCODER, encoder={"layers": layers}).inventory.weights}
    assert "encoder.layers.1.attention_norm" in paths
    assert "encoder.layers.0.attention_norm" not in paths


@pytest.mark.parametrize(
    ("base", "changes", "where", "message"),
    [
        *(
            (base, {main: {**base[main], key: value}}, (main, key), OWN.format(key))
            for base, main in ((PAIR, "encoder"), (ENCODER, "encoder"), (PAIR, "decoder"))
            for key, value in (("d_model", 17), ("embedding", {"width": 7}))
        ),
        (
            ENCODER,
            {"encoder": {**ENCODER["encoder"], "output_projection": True}},
            ("encoder", "output_projection"),
            "it leads to a decoder",
        ),
        (
            APART,
            {"encoder": {**PAIR["encoder"], "d_model": 17}},
            ("decoder", "layers"),
            "`cross_attention` reads 13 numbers of a token, and the encoder gives 17",
        ),
        (ENCODER, {"share_embeddings": True}, ("share_embeddings",), "only an encoder and a decoder share a table"),
        (
            PAIR,
            {"encoder_vocab_size": 23},
            ("encoder_vocab_size",),
            "only an encoder beside a decoder has a table of its own, unless `share_embeddings`",
        ),
        (
            ENCODER,
            {"head": "none"},
            ("tie_embeddings",),
            "a head that is not there, or tells labels, has no table to tie",
        ),
        (
            ENCODER,
            {"encoder": PAIR["decoder"]},
            ("encoder", "layers"),
            "`cross_attention` is for a decoder",
        ),
        (
            PAIR,
            {"decoder": PAIR["encoder"]},
            ("decoder", "layers"),
            "no layer of the decoder looks at the encoder",
        ),
        *(
            (base, {"encoder": {**base["encoder"], **key}}, ("encoder", name), f"`{name}` is for a decoder")
            for base in (PAIR, ENCODER)
            for name, key in (
                ("altup", {"altup": {"inputs": 2}}),
                ("per_layer_input", {"per_layer_input": {"vocab_size": 17, "width": 7}}),
            )
        ),
    ],
)
def test_what_a_family_cannot_have(base, changes, where, message):
    error = refused(base, **changes)
    assert (str(error), error.where) == (message, where)
    assert error.hint


def test_a_model_without_any_stack():
    error = refused(ENCODER, encoder=None)
    assert (str(error), error.where) == ("no layers", ())


def layer_of(**changes):
    layer = {"attention": ATTENTION, "cross_attention": CROSS, "feed_forward": {"d_ff": 41}, **changes}
    return {"decoder": {"layers": [{key: value for key, value in layer.items() if value is not None}]}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parallel": "one_norm"}, "`parallel` is not for layers with `cross_attention`"),
        (
            {"cross_attention": {**CROSS, "window": 7}},
            "a `window` or `chunk` is not for `cross_attention`: it sees all of the memory",
        ),
        ({"attention_norm": False, "norms": "post"}, "`attention_norm: false` needs an attention, and `norms: pre`"),
        ({"attention_norm": False, "attention": None}, "`attention_norm: false` needs an attention, and `norms: pre`"),
    ],
)
def test_what_a_layer_cannot_have(changes, message):
    error = refused(PAIR, **layer_of(**changes))
    assert (str(error), error.where) == (message, ("decoder", "layers", 0))


def test_what_is_wrong_in_cross_attention_is_told_there():
    error = refused(PAIR, **layer_of(cross_attention={"heads": 6, "kv_heads": 4, "head_dim": 5}))
    assert error.where == ("decoder", "layers", 0, "cross_attention")


@pytest.mark.parametrize("base", [PAIR, ENCODER])
def test_the_full_form_builds_the_same_model_again(base):
    model = built(base)
    assert Architecture.model_validate(FullForm(model.model_dump())).inventory == model.inventory


def test_what_is_derived_is_told_for_both_stacks():
    facts = list(built(PAIR, **layer_of(cross_attention={"heads": 13})).derived_facts())
    assert "head_dim = d_model / heads = 13 / 13 = 1" in facts


@pytest.mark.parametrize("base", [PAIR, ENCODER])
def test_every_product_with_a_weight_has_that_weight(base):
    weights = {w.path: prod(w.axes.values()) for w in built(base).inventory.weights if type(w) is Weight}
    for matmul in built(base).inventory.matmuls:
        assert type(matmul) is Matmul
        if matmul.of is not None:
            sizes = [size for size in matmul.axes.values() if isinstance(size, int)]
            assert prod(sizes) == weights[matmul.of]


CONV = {"kind": "short_conv"}


@pytest.mark.parametrize("base", [PAIR, ENCODER])
@pytest.mark.parametrize(
    "layer",
    [
        {"mixer": CONV},
        {"attention": ATTENTION, "mixer_beside": CONV},
        {"attention": ATTENTION, "feed_forward": {"kind": "rwkv_channel", "d_ff": 37}},
    ],
)
def test_an_encoder_has_no_recurrence(base, layer):
    error = refused(base, encoder={"layers": [layer]})
    assert str(error) == "a recurrence looks back only: it is for a decoder"
    assert error.where == ("encoder", "layers")


def test_a_decoder_beside_an_encoder_may_mix():
    layer = {"mixer": CONV, "cross_attention": CROSS, "feed_forward": {"d_ff": 41}}
    inventory = built(PAIR, decoder={"layers": [layer]}).inventory
    assert {cached.kind for cached in inventory.cached} == {"state", "cross"}
