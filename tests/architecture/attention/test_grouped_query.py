import numpy as np
import pytest
from pydantic import ValidationError

from costcalc.architecture.attention import GroupedQuery
from costcalc.architecture.attention.qk_norm import PerHeadNorm, ProjectionNorm
from costcalc.architecture.component import RuleError
from costcalc.architecture.norm import LayerNorm, RMSNorm
from costcalc.architecture.places import CROSS, DECODER, ENCODER, SOURCE, At
from costcalc.inventory import (
    Asking,
    Cached,
    Context,
    CrossPairs,
    Matmul,
    Memory,
    MemoryPairs,
    Pairs,
    Tokens,
    Weight,
    Workload,
)

AT = At("decoder.layers.attention", times=3)
Q, K, V, OUTPUT, SCORES, VALUES = (
    f"decoder.layers.attention.{name}" for name in ("q", "k", "v", "output", "scores", "values")
)
PLAIN = GroupedQuery(heads=6, kv_heads=2, head_dim=5)
QUERIES, KEYS = {"N": 6, "H": 5}, {"K": 2, "H": 5}


def records(attention, d_model=13, stream=DECODER):
    return list(attention.records(AT, d_model, stream))


def weights(attention, d_model=13):
    return {
        r.path.removeprefix("decoder.layers.attention."): r for r in records(attention, d_model) if type(r) is Weight
    }


def total(attention, d_model):
    return sum(weight.parameters for weight in weights(attention, d_model).values()) // 3


def test_every_record_in_the_order_of_the_forward_pass():
    rows, core = {"B·T": Tokens()}, {"B·P": Pairs(), "N": 6, "H": 5}
    assert records(PLAIN) == [
        Weight(Q, {"D": 13, **QUERIES}, times=3),
        Matmul(Q, {**rows, "D": 13, **QUERIES}, times=3, of=Q),
        Weight(K, {"D": 13, **KEYS}, times=3),
        Matmul(K, {**rows, "D": 13, **KEYS}, times=3, of=K),
        Weight(V, {"D": 13, **KEYS}, times=3),
        Matmul(V, {**rows, "D": 13, **KEYS}, times=3, of=V),
        Matmul(SCORES, core, times=3, role="scores"),
        Matmul(VALUES, core, times=3, role="values"),
        Cached(f"{K}_cache", {"B·S": Context(), **KEYS}, times=3),
        Cached(f"{V}_cache", {"B·S": Context(), **KEYS}, times=3),
        Weight(OUTPUT, {**QUERIES, "D": 13}, times=3),
        Matmul(OUTPUT, {**rows, **QUERIES, "D": 13}, times=3, of=OUTPUT),
    ]


def test_parameters_worked_out():
    # 2·D·N·H + 2·D·K·H = 2 x 13 x 30 + 2 x 13 x 10 = 780 + 260
    assert total(PLAIN, 13) == 1_040


@pytest.mark.parametrize(
    ("attention", "d_model", "published"),
    [
        (GroupedQuery(heads=12, bias=True, out_bias=True), 768, 4 * 768**2 + 4 * 768),  # a GPT-2 block
        (GroupedQuery(heads=32), 4096, 4 * 4096**2),  # Llama-7B
        (GroupedQuery(heads=32, kv_heads=8), 4096, 41_943_040),  # Llama-3-8B and Mixtral: 2 x 4096^2 + 2 x 4096 x 1024
        (GroupedQuery(heads=16, kv_heads=8, head_dim=256), 3584, 44_040_192),  # Gemma-2-9B: 3584 x 256 x (16+8+8+16)
    ],
)
def test_parameters_of_published_layers(attention, d_model, published):
    assert total(attention, d_model) == published


def test_biases_on_queries_keys_and_values():
    held = weights(PLAIN.model_copy(update={"bias": True}))
    assert list(held) == ["q", "q_bias", "k", "k_bias", "v", "v_bias", "output"]
    assert (held["q_bias"].axes, held["k_bias"].axes, held["v_bias"].axes) == (QUERIES, KEYS, KEYS)


def test_a_bias_on_the_output_stands_apart():
    held = weights(PLAIN.model_copy(update={"out_bias": True}))
    assert list(held) == ["q", "k", "v", "output", "output_bias"]
    assert held["output_bias"] == Weight(f"{OUTPUT}_bias", {"D": 13}, times=3)


@pytest.mark.parametrize(
    ("norm", "held"),
    [
        # per head: H numbers for all query heads, H for all key heads (Qwen3, Gemma-3)
        (PerHeadNorm(), {"q_norm": {"H": 5}, "k_norm": {"H": 5}}),
        # over the projection: N·H and K·H numbers (OLMo-2)
        (ProjectionNorm(), {"q_norm": {"N": 6, "H": 5}, "k_norm": {"K": 2, "H": 5}}),
        (
            PerHeadNorm(norm=LayerNorm()),
            {"q_norm": {"H": 5}, "q_norm_bias": {"H": 5}, "k_norm": {"H": 5}, "k_norm_bias": {"H": 5}},
        ),
        (ProjectionNorm(norm=LayerNorm(bias=False)), {"q_norm": {"N": 6, "H": 5}, "k_norm": {"K": 2, "H": 5}}),
        (PerHeadNorm(norm=RMSNorm(weight=False)), {}),
        (None, {}),
    ],
)
def test_qk_norm(norm, held):
    normed = records(PLAIN.model_copy(update={"qk_norm": norm}))
    norms = [Weight(f"decoder.layers.attention.{name}", axes, times=3) for name, axes in held.items()]
    assert normed[6 : 6 + len(norms)] == norms  # after q, k and v, before the scores
    assert [r for r in normed if r not in norms] == records(PLAIN)


def test_the_kind_of_qk_norm_is_read():
    assert GroupedQuery(heads=6, qk_norm={"kind": "projection"}).qk_norm == ProjectionNorm()
    assert GroupedQuery(heads=6, qk_norm={"kind": "per_head"}).qk_norm == PerHeadNorm(norm=RMSNorm())


def test_the_kind_is_the_only_one_so_far():
    assert GroupedQuery(heads=6).kind == "grouped_query"
    with pytest.raises(ValidationError):
        GroupedQuery(kind="latent", heads=6)


def test_a_window_limits_pairs_and_cache_and_no_weight():
    windowed = records(PLAIN.model_copy(update={"window": 7}))
    plain = records(PLAIN)
    core = {"B·P": Pairs(window=7), **QUERIES}
    assert [r for r in windowed if r not in plain] == [
        Matmul(SCORES, core, times=3, role="scores"),
        Matmul(VALUES, core, times=3, role="values"),
        Cached(f"{K}_cache", {"B·S": Context(window=7), **KEYS}, times=3),
        Cached(f"{V}_cache", {"B·S": Context(window=7), **KEYS}, times=3),
    ]


def test_a_stream_that_is_not_held_has_no_cache_and_may_look_both_ways():
    seen = records(PLAIN, stream=ENCODER)
    assert not [r for r in seen if type(r) is Cached]
    assert [r.axes["B·P"] for r in seen if "B·P" in r.axes] == [Pairs(causal=False)] * 2


def test_cross_attention_has_the_same_weights_and_asks_other_rows():
    """Keys and values of B x M rows, once and kept; queries of B x T rows; B x T x M pairs."""
    crossed = records(PLAIN, stream=CROSS)
    assert [r for r in crossed if type(r) is Weight] == [r for r in records(PLAIN) if type(r) is Weight]
    once, pairs = {"B·M": Memory(once=True)}, {"B·T·M": CrossPairs(), "N": 6, "H": 5}
    assert [r for r in crossed if type(r) is not Weight] == [
        Matmul(Q, {"B·T": Asking(), "D": 13, **QUERIES}, times=3, of=Q),
        Matmul(K, {**once, "D": 13, **KEYS}, times=3, of=K),
        Matmul(V, {**once, "D": 13, **KEYS}, times=3, of=V),
        Matmul(SCORES, pairs, times=3, role="scores"),
        Matmul(VALUES, pairs, times=3, role="values"),
        Cached(f"{K}_cache", {"B·M": Memory(), **KEYS}, times=3, kind="cross"),
        Cached(f"{V}_cache", {"B·M": Memory(), **KEYS}, times=3, kind="cross"),
        Matmul(OUTPUT, {"B·T": Asking(), **QUERIES, "D": 13}, times=3, of=OUTPUT),
    ]


def test_the_encoder_of_a_pair_asks_the_memory_of_itself():
    windowed = records(PLAIN.model_copy(update={"window": 7}), stream=SOURCE)
    assert not [r for r in windowed if type(r) is Cached]
    rows = [r.axes["B·M"] for r in windowed if "B·M" in r.axes]
    assert rows == [Memory(once=True)] * 4
    assert [r.axes["B·M·M"] for r in windowed if "B·M·M" in r.axes] == [MemoryPairs(window=7)] * 2


def test_head_dim_and_kv_heads_follow_from_what_is_written():
    assert GroupedQuery(heads=6).sizes(30) == (6, 5)  # 30 / 6 = 5
    assert GroupedQuery(heads=6, kv_heads=2).sizes(30) == (2, 5)
    assert GroupedQuery(heads=6, head_dim=7).sizes(30) == (6, 7)
    assert PLAIN.sizes(13) == (2, 5)


def test_as_many_key_heads_as_query_heads_is_multi_head_attention():
    assert records(GroupedQuery(heads=6, kv_heads=6, head_dim=5)) == records(GroupedQuery(heads=6, head_dim=5))


def test_sharing_key_heads_shrinks_cache_and_projections_but_not_the_core():
    one_pass = Workload(new_tokens=11, past_tokens=7)
    many, one = (records(GroupedQuery(heads=6, kv_heads=k, head_dim=5)) for k in (6, 1))
    cached = [sum(r.elements(one_pass) for r in each if type(r) is Cached) for each in (many, one)]
    core = [[r.flops(one_pass) for r in each if getattr(r, "role", "") in ("scores", "values")] for each in (many, one)]
    assert cached == [3240, 540]  # 2 x 18 x K x 5 x 3: a sixth
    assert core == [[25_740, 25_740]] * 2  # 2 x P x N x H x 3 with P = 77 + 66 = 143


@pytest.mark.parametrize(
    ("attention", "d_model", "message"),
    [
        (GroupedQuery(heads=6, kv_heads=4, head_dim=5), 13, "heads 6 is not a multiple of kv_heads 4"),
        (GroupedQuery(heads=2, kv_heads=6, head_dim=5), 13, "heads 2 is not a multiple of kv_heads 6"),
        (GroupedQuery(heads=6), 13, "d_model 13 is not a multiple of heads 6, and no head_dim is given"),
        (GroupedQuery(heads=17), 13, "d_model 13 is not a multiple of heads 17, and no head_dim is given"),
    ],
)
def test_heads_that_do_not_divide_are_refused(attention, d_model, message):
    with pytest.raises(RuleError) as caught:
        attention.check(("decoder", "layers", 0, "attention"), d_model)
    assert str(caught.value) == message
    assert caught.value.where == ("decoder", "layers", 0, "attention")


@pytest.mark.parametrize(
    ("attention", "d_model"),
    [(PLAIN, 13), (GroupedQuery(heads=6, kv_heads=6), 30), (GroupedQuery(heads=6, kv_heads=1), 30)],
)
def test_heads_that_divide_pass(attention, d_model):
    attention.check((), d_model)


def test_what_was_derived_is_told():
    assert list(GroupedQuery(heads=6).derived(4_098)) == [
        "head_dim = d_model / heads = 4,098 / 6 = 683",
        "kv_heads = heads = 6 (multi-head attention)",
    ]
    assert list(PLAIN.derived(13)) == []


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({}, ""),
        ({"window": 4096}, ", window 4,096"),
        ({"qk_norm": PerHeadNorm()}, ", QK-norm per_head"),
        ({"bias": True}, ", biases on q, k, v"),
        ({"out_bias": True}, ", biases on output"),
        ({"bias": True, "out_bias": True}, ", biases on q, k, v and output"),
    ],
)
def test_one_line_for_a_reader(changes, more):
    text = PLAIN.model_copy(update=changes).summary(13)
    assert text == f"6 query heads on 2 key/value heads of 5{more}"


def test_one_line_for_a_reader_derives_what_was_not_written():
    assert GroupedQuery(heads=6).summary(78) == "6 query heads on 6 key/value heads of 13"


def test_qk_norms_of_derived_sizes():
    """Neither kv_heads nor head_dim is written: N = K = 6, H = 78 / 6 = 13."""
    norms = [r for r in records(GroupedQuery(heads=6, qk_norm=ProjectionNorm()), 78) if r.path.endswith("_norm")]
    assert [(norm.path.rpartition(".")[2], dict(norm.axes)) for norm in norms] == [
        ("q_norm", {"N": 6, "H": 13}),
        ("k_norm", {"K": 6, "H": 13}),
    ]


def test_a_sweep_gives_the_numbers_of_one_model_at_a_time():
    heads, kv_heads, head_dims = np.array([6, 10, 15]), np.array([2, 5, 3]), np.array([5, 7, 11])
    windows, models = np.array([3, 8, 29]), np.array([13, 17, 19])
    sizes = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dims, "window": windows}
    flags = {"bias": True, "out_bias": True, "qk_norm": ProjectionNorm()}
    swept = records(GroupedQuery.model_construct(**sizes, **flags), models)
    for index in range(3):
        one = {name: int(values[index]) for name, values in sizes.items()}
        assert_equal_at(index, swept, records(GroupedQuery(**one, **flags), int(models[index])))


def test_a_sweep_derives_head_dim_and_kv_heads():
    heads, models = np.array([6, 10, 15]), np.array([30, 70, 45])
    swept = records(GroupedQuery.model_construct(heads=heads), models)
    for index in range(3):
        assert_equal_at(index, swept, records(GroupedQuery(heads=int(heads[index])), int(models[index])))


def assert_equal_at(index, swept, one):
    one_pass = Workload(batch=2, new_tokens=11, past_tokens=7)
    for many, single in zip(swept, one, strict=True):
        assert many.path == single.path
        if type(single) is Weight:
            assert np.broadcast_to(many.parameters, 3)[index] == single.parameters
        elif type(single) is Matmul:
            assert many.flops(one_pass)[index] == single.flops(one_pass)
        else:
            assert many.elements(one_pass)[index] == single.elements(one_pass)


def test_a_sweep_masks_what_does_not_divide():
    swept = GroupedQuery.model_construct(heads=np.array([6, 6, 7]), kv_heads=np.array([2, 4, 7]))
    conditions = [np.asarray(condition).tolist() for condition, *_ in swept.rules(np.array([12, 12, 15]))]
    assert conditions[:2] == [[True, False, True], [True, True, False]]
    assert all(condition is True for condition in conditions[2:])  # what is no size holds for all


@pytest.mark.parametrize(
    ("fields", "message", "hint"),
    [
        ({"window": 7, "chunk": 5}, "`window` and `chunk` exclude each other", "take one of the two out"),
        ({"values_from_keys": True, "v_dim": 7}, "`values_from_keys` leaves no `v_dim` to choose", "take `v_dim` out"),
        ({"gate_activation": "silu"}, "`gate_activation` belongs to an `output_gate`", ""),
        ({"gate_bias": True}, "`gate_bias` belongs to an `output_gate`", ""),
    ],
)
def test_what_excludes_each_other(fields, message, hint):
    with pytest.raises(RuleError) as caught:
        GroupedQuery(heads=6, head_dim=5, **fields).check(("attention",), 13)
    assert (str(caught.value), caught.value.where, caught.value.hint) == (message, ("attention",), hint)


@pytest.mark.parametrize(("gate", "numbers"), [("per_head", 6), ("per_channel", 30)])
def test_a_gate_may_have_a_bias(gate, numbers):
    """Qwen3-Next's gates come out of one matrix with the queries, whose bias they then have a part of."""
    some = GroupedQuery(heads=6, kv_heads=2, head_dim=5, output_gate=gate, gate_bias=True)
    held = {
        r.path.rpartition(".")[2]: r.parameters for r in some.records(At("attention"), 13, DECODER) if type(r) is Weight
    }
    assert (held["gate"], held["gate_bias"]) == (13 * numbers, numbers)
    assert "q_bias" not in held


def test_an_output_norm_has_a_gain_for_each_number_of_all_heads():
    normed = PLAIN.model_copy(update={"output_norm": RMSNorm()})
    assert [r for r in records(normed) if r not in records(PLAIN)] == [
        Weight("decoder.layers.attention.output_norm", {"N": 6, "H": 5}, times=3)
    ]
    assert normed.summary(13).endswith("of 5, output norm")
