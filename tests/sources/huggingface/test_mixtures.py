"""Readers of mixtures: totals worked out, dialects of real files, and what is refused instead of guessed."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters

Config = dict[str, Any]

# V=19, D=42, N=6, K=2, H=10, F=37, 5 experts of 11 of which a token uses 2, L=3: N·H = 60.
D, NH, KH, F, M, E, X, L, V = 42, 60, 20, 37, 11, 5, 2, 3, 19
SIZES: Config = {
    "vocab_size": V,
    "hidden_size": D,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "intermediate_size": F,
    "num_hidden_layers": L,
    "tie_word_embeddings": False,
}
ROUTED: Config = {"num_experts": E, "num_experts_per_tok": X, "moe_intermediate_size": M}
LOCAL: Config = {"num_local_experts": E, "num_experts_per_tok": X}
DEEPSEEK: Config = {
    "n_routed_experts": 6,
    "num_experts_per_tok": X,
    "n_shared_experts": 2,
    "moe_intermediate_size": M,
}
OWN: dict[str, Config] = {
    "mixtral": LOCAL,
    "phimoe": LOCAL,
    "qwen2_moe": {**ROUTED, "shared_expert_intermediate_size": 13},
    "qwen3_moe": ROUTED,
    "gpt_oss": {**LOCAL, "sliding_window": 7},
    "llama4_text": {**LOCAL, "num_experts_per_tok": 1, "intermediate_size_mlp": 17, "attention_chunk_size": 7},
    "mimo_v2_flash": {
        **DEEPSEEK,
        "n_shared_experts": None,
        "num_key_value_heads": 1,
        "head_dim": 18,
        "v_head_dim": 14,
        "sliding_window": 7,
    },
    "olmoe": {"num_experts": E, "num_experts_per_tok": X, "hidden_size": 48, "head_dim": 8},
    "flex_olmo": {"num_experts": E, "num_experts_per_tok": X},
    "granitemoe": LOCAL,
    "granitemoeshared": {**LOCAL, "shared_intermediate_size": 13},
    "granitemoe_swa": {**LOCAL, "sliding_window": 7},
    "ernie4_5_moe": {"moe_num_experts": E, "moe_k": X, "moe_intermediate_size": M},
    "glm4_moe": DEEPSEEK,
    "sarvam_moe": DEEPSEEK,
    "solar_open": DEEPSEEK,
    "dots1": DEEPSEEK,
    "minimax_m2": LOCAL,
    "hy_v3": ROUTED,
    "hunyuan_v1_moe": {"num_experts": E, "moe_topk": X},
    "exaone_moe": {**ROUTED, "sliding_window": 7},
    "cohere2_moe": {"num_experts": E, "num_experts_per_tok": X, "sliding_window": 7},
    "mellum": ROUTED,
    "afmoe": {**ROUTED, "sliding_window": 7},
    "aria_text": {"moe_num_experts": E, "moe_topk": X},
    "flint": {**ROUTED, "shared_expert_intermediate_size": 13, "sliding_window": 7},
    "kolibri1": {**ROUTED, "shared_expert_intermediate_size": 13, "sliding_window": 7},
    "laguna": {**ROUTED, "shared_expert_intermediate_size": 13, "sliding_window": 7, "head_dim": 20},
}
SMALL = {name: {"model_type": name, **SIZES, **own} for name, own in OWN.items()}

# Of one layer: q and output 2·D·N·H, k and v 2·D·K·H; a gated network of width w is 3·D·w.
ATTENTION = 2 * D * NH + 2 * D * KH
TABLES = 2 * V * D


def _network(width: int) -> int:
    return 3 * D * width


def _total(config: Config) -> int:
    return parameters(load(config)).total


def _layers(config: Config) -> list[Any]:
    """The block of each layer, in order."""
    arch = load(config)
    block_of = {group.path: group.block for group in arch.groups}
    return [block_of[path] for path in arch.inventory.layout["decoder"]]


def _names(config: Config) -> list[str]:
    return [path.rpartition(".")[2] for path in load(config).inventory.layout["decoder"]]


def _windows(config: Config) -> list[int | None]:
    return [block.attention.window for block in _layers(config)]


def _kinds(config: Config) -> str:
    """S for a layer of experts, D for one with a network."""
    return "".join("S" if block.feed_forward.kind == "mixture" else "D" for block in _layers(config))


# ---------------------------------------------------------------------------------------------------- worked-out sums

ROUTER = D * E
EXPERTS = E * _network(M)
WIDE = E * _network(F)


@pytest.mark.parametrize(
    ("config", "layer", "more"),
    [
        # A layer, two norms of D included; then what stands beside the layers, tables and final norm apart.
        (SMALL["mixtral"], ATTENTION + ROUTER + WIDE + 2 * D, 0),
        # LayerNorms have a bias each; all four projections, and the head, where the file says so.
        (SMALL["phimoe"], ATTENTION + ROUTER + WIDE + 4 * D, D),
        (
            {**SMALL["phimoe"], "attention_bias": True, "lm_head_bias": True},
            ATTENTION + NH + 2 * KH + D + ROUTER + WIDE + 4 * D,
            D + V,
        ),
        # Biases of q, k and v; a shared expert and its gate of D numbers.
        (SMALL["qwen2_moe"], ATTENTION + NH + 2 * KH + ROUTER + EXPERTS + _network(13) + D + 2 * D, 0),
        ({**SMALL["qwen2_moe"], "qkv_bias": False}, ATTENTION + ROUTER + EXPERTS + _network(13) + D + 2 * D, 0),
        # A norm of H on queries and one on keys.
        (SMALL["qwen3_moe"], ATTENTION + 20 + ROUTER + EXPERTS + 2 * D, 0),
        # Biases of all four projections, of the router and of each expert (2·F + D); a sink for each of 6 heads.
        (SMALL["gpt_oss"], ATTENTION + NH + 2 * KH + D + 6 + ROUTER + E + WIDE + E * (2 * F + D) + 2 * D, 0),
        # A shared expert of the width of the others; norms of queries and keys without a weight.
        (SMALL["llama4_text"], ATTENTION + ROUTER + WIDE + _network(F) + 2 * D, 0),
        # QK-norms of N·H and K·H; D = 48, N·H = 48, K·H = 16.
        (
            SMALL["olmoe"],
            2 * 48 * 48 + 2 * 48 * 16 + 48 + 16 + 48 * E + E * 3 * 48 * F + 2 * 48,
            2 * V * 48 + 48 - TABLES - D,
        ),
        (SMALL["flex_olmo"], ATTENTION + NH + KH + ROUTER + WIDE + 2 * D, 0),
        (SMALL["granitemoe"], ATTENTION + ROUTER + WIDE + 2 * D, 0),
        (SMALL["granitemoeshared"], ATTENTION + ROUTER + WIDE + _network(13) + 2 * D, 0),
        (SMALL["granitemoe_swa"], ATTENTION + 6 + ROUTER + WIDE + 2 * D, 0),
        # Six experts and two shared ones.
        (SMALL["solar_open"], ATTENTION + D * 6 + 8 * _network(M) + 2 * D, 0),
        (SMALL["dots1"], ATTENTION + 20 + D * 6 + 8 * _network(M) + 2 * D, 0),
        (SMALL["minimax_m2"], ATTENTION + NH + KH + ROUTER + WIDE + 2 * D, 0),
        # The shared expert is one more of the same width.
        (SMALL["hunyuan_v1_moe"], ATTENTION + 20 + ROUTER + WIDE + _network(F) + 2 * D, 0),
        # One norm, of D numbers without a bias, for both sublayers.
        ({**SMALL["cohere2_moe"], "num_shared_experts": 2}, ATTENTION + ROUTER + WIDE + 2 * _network(F) + D, 0),
        (SMALL["mellum"], ATTENTION + 20 + ROUTER + EXPERTS + 2 * D, 0),
        # Two shared experts of F.
        (SMALL["aria_text"], ATTENTION + ROUTER + WIDE + 2 * _network(F) + 2 * D, 0),
        # Four norms.
        (SMALL["kolibri1"], ATTENTION + 20 + ROUTER + EXPERTS + _network(13) + 4 * D, 0),
        # A gate of D x N·H on the heads' outputs, four norms; two shared experts; a correction that is held, not
        # trained.
        (
            {**SMALL["afmoe"], "num_dense_layers": 0},
            ATTENTION + D * NH + 20 + ROUTER + E + EXPERTS + 2 * _network(M) + 4 * D,
            0,
        ),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_layers_that_are_all_alike(config, layer, more):
    tables = V * D if load(config).tie_embeddings else TABLES
    assert _total(config) == tables + L * layer + D + more
    assert _kinds(config) == "SSS"


@pytest.mark.parametrize(
    ("config", "attention", "sparse", "dense"),
    [
        # The first layer dense; of six experts and two shared ones.
        (SMALL["glm4_moe"], ATTENTION, D * 6 + 8 * _network(M), _network(F)),
        (SMALL["sarvam_moe"], ATTENTION + 20, D * 6 + 8 * _network(M), _network(F)),
        # One shared expert of M.
        (SMALL["hy_v3"], ATTENTION + 20, ROUTER + EXPERTS + _network(M), _network(F)),
        (SMALL["exaone_moe"], ATTENTION + 20, ROUTER + EXPERTS + _network(M), _network(F)),
        # q and output 2·D·N·H, k and v 2·D·K·H of H = 20, a gate of D x N, two norms of H; a correction that is held.
        (
            SMALL["laguna"],
            2 * D * 120 + 2 * D * 40 + D * 6 + 2 * 20,
            ROUTER + E + EXPERTS + _network(13),
            _network(F),
        ),
        # Two shared ones, and a correction that is a parameter.
        (SMALL["ernie4_5_moe"], ATTENTION, ROUTER + E + EXPERTS + 2 * _network(M), _network(F)),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_a_first_layer_that_is_dense(config, attention, sparse, dense):
    tables = V * D if load(config).tie_embeddings else TABLES
    assert _total(config) == tables + 3 * (attention + 2 * D) + dense + 2 * sparse + D
    assert _kinds(config) == "DSS"
    assert _names(config) == ["dense", "sparse", "sparse"]


def test_active_parameters_leave_out_the_other_experts():
    for model_type, width in (("mixtral", F), ("qwen3_moe", M), ("minimax_m2", F)):
        count = parameters(load(SMALL[model_type]))
        assert count.total - count.active == L * (E - X) * _network(width)


def test_flops_are_of_the_chosen():
    # T = 11 after 13; each token is multiplied with the router and with two experts.
    counted = flops(load(SMALL["mixtral"]), Workload(new_tokens=11, past_tokens=13))
    assert counted.weights == 2 * 11 * (L * (ATTENTION + ROUTER + X * _network(F)) + V * D)
    assert counted.attention == L * 4 * NH * sum(13 + i for i in range(1, 12))


def test_a_correction_is_a_buffer_or_a_parameter_that_is_not_trained():
    for model_type in ("glm4_moe", "dots1", "minimax_m2", "hy_v3", "exaone_moe", "mimo_v2_flash", "kolibri1"):
        arch = load(SMALL[model_type])
        sparse = _kinds(SMALL[model_type]).count("S")
        assert parameters(arch).buffers == sparse * _layers(SMALL[model_type])[-1].feed_forward.experts
    for model_type in ("afmoe", "ernie4_5_moe", "laguna"):
        count = parameters(load(SMALL[model_type]))
        assert (count.total - count.trainable, count.buffers) == (2 * E, 0)


def test_mimo_has_heads_by_kind_of_layer():
    config = {**SMALL["mimo_v2_flash"], "num_hidden_layers": 7}
    assert _windows(config) == [None, 7, 7, 7, 7, None, 7]
    assert _kinds(config) == "DSSSSSS"
    assert _names(config) == ["global_dense", *["local_sparse"] * 4, "global_sparse", "local_sparse"]
    full, local = (_layers(config)[index].attention for index in (0, 1))
    assert (full.kv_heads, local.kv_heads, full.v_dim, full.sinks, local.sinks) == (1, 2, 14, False, True)
    assert _layers(config)[1].positions.rotary_dim == 6  # 0.334 of 18, rounded down
    # 24 tokens: 2 layers keep all, 1 head of 18 + 14; 5 keep 7 tokens, 2 heads.
    assert kv_cache(load(config), 24).elements == 2 * 24 * 32 + 5 * 7 * 2 * 32


# ---------------------------------------------------------------------------------------- which layer is of which kind


@pytest.mark.parametrize(
    ("model_type", "changes", "kinds"),
    [
        ("qwen2_moe", {"decoder_sparse_step": 2}, "DSD"),
        ("qwen3_moe", {"decoder_sparse_step": 3}, "DDS"),
        ("qwen3_moe", {"mlp_only_layers": [1]}, "SDS"),
        ("qwen3_moe", {"mlp_only_layers": None}, "SSS"),
        ("qwen3_moe", {"mlp_only_layers": [0, 3]}, "DSS"),  # the library itself writes layers that are not there
        ("qwen3_moe", {"decoder_sparse_step": 2, "mlp_only_layers": [1]}, "DDD"),
        ("llama4_text", {"interleave_moe_layer_step": 2}, "DSD"),
        ("llama4_text", {"interleave_moe_layer_step": 2, "moe_layers": [0, 2]}, "SDS"),
        ("llama4_text", {"moe_layers": []}, "DDD"),
        ("mimo_v2_flash", {"mlp_layer_types": ["sparse", "dense", "dense"]}, "SDD"),
        ("mimo_v2_flash", {"moe_layer_freq": [1, 0, 1]}, "SDS"),
        ("ernie4_5_moe", {"moe_layer_start_index": 0, "moe_layer_end_index": 1}, "SSD"),
        ("ernie4_5_moe", {"moe_layer_start_index": 0, "moe_layer_interval": 2}, "DSD"),
        ("ernie4_5_moe", {"moe_layer_start_index": 2}, "DDS"),
        ("glm4_moe", {"first_k_dense_replace": 2}, "DDS"),
        ("glm4_moe", {"first_k_dense_replace": 7}, "DDD"),
        ("dots1", {"first_k_dense_replace": None}, "SSS"),
        ("dots1", {"first_k_dense_replace": 1}, "DSS"),
        ("hy_v3", {"mlp_layer_types": ["sparse", "sparse", "dense"]}, "SSD"),
        ("exaone_moe", {"first_k_dense_replace": 0}, "SSS"),
        ("exaone_moe", {"mlp_layer_types": ["sparse", "dense", "sparse"]}, "SDS"),
        ("cohere2_moe", {"first_k_dense_replace": 2}, "DDS"),
        ("mellum", {"mlp_layer_types": ["dense", "sparse", "dense"]}, "DSD"),
        ("afmoe", {"num_dense_layers": 2}, "DDS"),
        ("flint", {}, "DDS"),
        ("flint", {"mlp_only_layers": []}, "SSS"),
        ("flint", {"mlp_only_layers": [2], "decoder_sparse_step": 2}, "DSD"),
    ],
)
def test_which_layers_have_experts(model_type, changes, kinds):
    assert _kinds({**SMALL[model_type], **changes}) == kinds


@pytest.mark.parametrize(
    ("model_type", "changes", "windows"),
    [
        ("mixtral", {"sliding_window": 5}, [5] * 5),
        ("mixtral", {"sliding_window": None}, [None] * 5),
        ("phimoe", {"sliding_window": 5}, [5] * 5),
        ("qwen2_moe", {"sliding_window": 5}, [None] * 5),
        ("qwen2_moe", {"sliding_window": 0}, [None] * 5),  # as the class itself writes it where the switch is off
        ("qwen2_moe", {"sliding_window": 5, "use_sliding_window": True}, [5, None, 5, None, 5]),
        (
            "qwen2_moe",
            {"sliding_window": 5, "use_sliding_window": True, "max_window_layers": 3},
            [5, None, 5, None, None],
        ),
        ("qwen3_moe", {"sliding_window": 5, "use_sliding_window": True}, [5] * 5),
        ("qwen3_moe", {"sliding_window": 5}, [None] * 5),
        ("gpt_oss", {}, [7, None, 7, None, 7]),
        ("granitemoe_swa", {}, [None, 7, 7, 7, None]),
        ("dots1", {"sliding_window": 5, "max_window_layers": 3}, [None, None, None, 5, 5]),
        ("dots1", {"sliding_window": None, "max_window_layers": 3}, [None] * 5),
        ("dots1", {"sliding_window": 5}, [None] * 5),
        ("exaone_moe", {}, [7, 7, 7, None, 7]),
        ("exaone_moe", {"sliding_window_pattern": 2}, [7, None, 7, None, 7]),
        ("exaone_moe", {"sliding_window": None}, [None] * 5),
        ("cohere2_moe", {}, [7, 7, 7, None, 7]),
        ("cohere2_moe", {"first_k_dense_replace": 2, "sliding_window_pattern": 2}, [None, None, 7, None, 7]),
        ("cohere2_moe", {"first_k_dense_replace": 3, "prefix_dense_sliding_window_pattern": 2}, [7, None, 7, 7, 7]),
        ("mellum", {}, [None] * 5),
        ("afmoe", {}, [7, 7, 7, None, 7]),
        ("afmoe", {"global_attn_every_n_layers": 3}, [7, 7, None, 7, 7]),
        (
            "afmoe",
            {"global_attn_every_n_layers": 3, "layer_types": ["full_attention"] * 2 + ["sliding_attention"] * 3},
            [None, None, 7, 7, 7],
        ),
        ("flint", {}, [None, None, 7, 7, None]),
        ("kolibri1", {}, [7, 7, 7, 7, None]),
        ("mimo_v2_flash", {"sliding_window_size": 7, "sliding_window": 7}, [None, 8, 8, 8, 8]),
        ("mimo_v2_flash", {"hybrid_layer_pattern": [1, 0, 0, 1, 1]}, [7, None, None, 7, 7]),
    ],
)
def test_which_layers_have_a_window(model_type, changes, windows):
    config = {**SMALL[model_type], "num_hidden_layers": 5, **changes}
    assert _windows(config) == windows
    words = ["full_attention" if window is None else "sliding_attention" for window in windows]
    if model_type not in ("phimoe", "olmoe"):
        assert _windows({**config, "layer_types": words}) == windows


@pytest.mark.parametrize(
    ("model_type", "rotated"),
    [
        ("mixtral", "RRRRR"),
        ("exaone_moe", "RRR-R"),
        ("cohere2_moe", "RRR-R"),
        ("afmoe", "RRR-R"),
        ("flint", "--RR-"),
        ("kolibri1", "RRRR-"),
        ("llama4_text", "RRR-R"),
    ],
)
def test_layers_without_positions(model_type, rotated):
    layers = _layers({**SMALL[model_type], "num_hidden_layers": 5})
    assert "".join("R" if block.positions.kind == "rope" else "-" for block in layers) == rotated


def test_layers_that_are_rotated_after_all():
    exaone = {**SMALL["exaone_moe"], "sliding_window": None, "layer_types": ["full_attention"] * 3}
    kolibri = {**SMALL["kolibri1"], "sliding_window": None, "layer_types": ["full_attention"] * 3}
    dense = {**SMALL["cohere2_moe"], "first_k_dense_replace": 3}
    for config in (exaone, kolibri, dense):
        assert {block.positions.kind for block in _layers(config)} == {"rope"}
    patterned = {**dense, "prefix_dense_sliding_window_pattern": 2}
    assert [block.positions.kind for block in _layers(patterned)] == ["rope", "none", "rope"]
    bases = _layers({**SMALL["granitemoe_swa"], "layer_rope_theta": [7.0, 0, 5e5]})
    assert [getattr(block.positions, "theta", None) for block in bases] == [7.0, None, 5e5]


def test_laguna_has_heads_by_layer():
    config = {**SMALL["laguna"], "num_attention_heads_per_layer": [6, 4, 8], "gating": "per-element"}
    assert [block.attention.heads for block in _layers(config)] == [6, 4, 8]
    assert _names(config) == ["heads6", "heads4", "heads8"]
    assert {block.attention.gate_activation for block in _layers(config)} == {"softplus"}
    # Against 6 heads a layer and a gate for each: D x 18 heads x (20 + 20 of q and output, 20 of the gate, not 1).
    assert _total(config) - _total(SMALL["laguna"]) == D * 18 * 19
    types = ["full_attention", "sliding_attention", "full_attention"]
    turned = [block.positions for block in _layers({**config, "layer_types": types})]
    assert [(where.theta, where.rotary_dim) for where in turned] == [(5e5, 10), (1e4, 20), (5e5, 10)]


def test_llama4_layers():
    config = {**SMALL["llama4_text"], "num_hidden_layers": 5}
    chunks = [block.attention.chunk for block in _layers(config)]
    assert chunks == [7, 7, 7, None, 7]
    assert [block.attention.qk_norm is None for block in _layers(config)] == [False, False, False, True, False]
    assert _names(config) == ["chunked", "chunked", "chunked", "global", "chunked"]
    assert {block.attention.qk_norm for block in _layers({**config, "use_qk_norm": False})} == {None}
    # Published files hold an empty list for the class's own pattern, or one with a number for each layer, or more.
    assert load({**config, "no_rope_layers": []}) == load(config)
    assert load({**config, "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0]}).inventory == load(config).inventory
    none = _layers({**config, "attention_chunk_size": None})
    assert [block.attention.chunk for block in none] == [None] * 5
    assert [block.positions.kind for block in none] == ["rope"] * 3 + ["none", "rope"]
    by_word = ["full_attention", "chunked_attention"] * 2 + ["full_attention"]
    assert [b.attention.chunk for b in _layers({**config, "layer_types": by_word})] == [None, 7, None, 7, None]


# ---------------------------------------------------------------------------------------------- what shows in no total


def test_routers():
    router_of = {name: _layers(config)[-1].feed_forward.router for name, config in SMALL.items()}
    of_chosen = {name for name, router in router_of.items() if router.scores == "softmax_of_chosen"}
    assert of_chosen == {"gpt_oss", "granitemoe", "granitemoeshared", "granitemoe_swa", "cohere2_moe", "aria_text"}
    sigmoid = {name for name, router in router_of.items() if router.scores == "sigmoid"}
    assert sigmoid == {
        "llama4_text", "mimo_v2_flash", "glm4_moe", "sarvam_moe", "solar_open", "dots1", "minimax_m2", "hy_v3",
        "exaone_moe", "afmoe", "flint", "kolibri1", "laguna",
    }  # fmt: skip
    unnormed = {name for name, router in router_of.items() if not router.normalize}
    assert unnormed == {"phimoe", "qwen2_moe", "qwen3_moe", "llama4_text", "olmoe", "flex_olmo", "dots1", "kolibri1"}
    assert {name for name, router in router_of.items() if router.bias} == {"gpt_oss"}
    assert {name for name, router in router_of.items() if router.weigh == "inputs"} == {"llama4_text"}
    assert (router_of["exaone_moe"].scale, router_of["hy_v3"].scale) == (2.5, 2.826)


def test_constants_of_the_forward_pass():
    granite = load(
        {
            **SMALL["granitemoe"],
            "embedding_multiplier": 12,
            "logits_scaling": 4,
            "attention_multiplier": 0.125,
            "residual_multiplier": 0.25,
        }
    )
    block = granite.groups[0].block
    assert (granite.embedding.scale, granite.head.scale) == (12.0, 0.25)
    assert (block.attention.scale, block.residual_scale) == (0.125, 0.25)
    expert = _layers(SMALL["gpt_oss"])[0].feed_forward.expert
    assert (expert.activation, expert.limit, expert.up_shift) == ("quick_gelu", 7.0, 1.0)
    assert load({**SMALL["afmoe"], "mup_enabled": True}).embedding.scale == pytest.approx(42**0.5)
    assert load({**SMALL["cohere2_moe"], "logit_scale": 0.25}).head.scale == 0.25
    assert _layers({**SMALL["aria_text"], "hidden_act": "gelu"})[0].feed_forward.expert.activation == "silu"
    grouped = {**SMALL["glm4_moe"], "n_group": 3, "topk_group": 2, "routed_scaling_factor": 1.5}
    router = _layers(grouped)[-1].feed_forward.router
    assert (router.groups, router.groups_per_token, router.scale) == (3, 2, 1.5)


def test_the_rotated_part_of_a_head():
    """Rounded down, and then up to pairs, as the frequencies of the classes are."""
    head = {"head_dim": 14}
    assert _layers({**SMALL["glm4_moe"], **head})[0].positions.rotary_dim == 8  # half of 14 are 7
    assert _layers({**SMALL["sarvam_moe"], **head})[0].positions.rotary_dim == 14
    assert _layers(SMALL["mixtral"])[0].positions.rotary_dim is None
    assert _layers({**SMALL["minimax_m2"], **head, "rotary_dim": 6})[0].positions.rotary_dim == 6
    both = {**SMALL["minimax_m2"], **head, "rotary_dim": 6, "partial_rotary_factor": 0.3}
    assert _layers(both)[0].positions.rotary_dim == 4
    inside = {"rope_parameters": {"rope_theta": 7.0, "partial_rotary_factor": 0.25}, "partial_rotary_factor": 1.0}
    positions = _layers({**SMALL["glm4_moe"], **head, **inside})[0].positions
    assert (positions.theta, positions.rotary_dim) == (7.0, 4)


@pytest.mark.parametrize(
    ("model_type", "theta"),
    [("mixtral", 1e6), ("qwen3_moe", 1e4), ("gpt_oss", 150_000.0), ("llama4_text", 5e5), ("minimax_m2", 5e6)],
)
def test_the_base_of_rotations_in_every_dialect(model_type, theta):
    config = SMALL[model_type]
    for more, base in (
        ({}, theta),
        ({"rope_theta": 50.0, "rope_scaling": None}, 50.0),
        ({"rope_parameters": {"rope_theta": 9.0, "rope_type": "default"}, "rope_theta": 50.0}, 9.0),
        ({"rope_scaling": {"rope_theta": 7.0}, "rope_parameters": {"rope_theta": 9.0}}, 7.0),
        ({"rope_scaling": {"factor": 2.0, "type": "linear"}, "rope_theta": 50.0}, 50.0),
    ):
        assert load({**config, **more}).decoder.positions.theta == base


def test_bases_by_type_of_layer():
    types = ["full_attention", "sliding_attention", "full_attention"]
    nested = {"full_attention": {"rope_theta": 9.0}, "sliding_attention": {"rope_theta": 7.0}}
    for model_type, usual in (("mellum", [5e5, 1e4, 5e5]), ("mimo_v2_flash", [5e6, 1e4, 5e6])):
        config = {**SMALL[model_type], "layer_types": types}
        assert [block.positions.theta for block in _layers(config)] == usual
        config["rope_parameters"] = nested
        assert [block.positions.theta for block in _layers(config)] == [9.0, 7.0, 9.0]
    old = {**SMALL["mimo_v2_flash"], "layer_types": types, "rope_theta": 90.0, "swa_rope_theta": 70.0}
    assert [block.positions.theta for block in _layers(old)] == [90.0, 70.0, 90.0]


# ----------------------------------------------------------------------------------------------- dialects of real files

LATER = "multi-token-prediction layers"


@pytest.mark.parametrize(
    ("model_type", "more"),
    [
        ("glm4_moe", {"num_nextn_predict_layers": 1}),
        ("exaone_moe", {"num_nextn_predict_layers": 1}),
        ("ernie4_5_moe", {"num_nextn_predict_layers": 1}),
        ("mellum", {"num_mtp_layers": 1}),
        ("mellum", {"num_nextn_predict_layers": 1}),
        ("minimax_m2", {"num_mtp_modules": 3, "use_mtp": True, "mtp_transformer_layers": 1}),
    ],
)
def test_layers_that_guess_further_tokens_are_named_and_not_counted(model_type, more):
    off = dict.fromkeys(more, 0)
    if "use_mtp" in more:
        off["use_mtp"] = False
    with_them, without = load({**SMALL[model_type], **more}), load({**SMALL[model_type], **off})
    assert (with_them.not_counted, without.not_counted) == ((LATER,), ())
    assert with_them.inventory.records == without.inventory.records


MINIMAX_REMARKS: Config = {
    "attn_type_list": [1, 1, 1],
    "layernorm_full_attention_beta": 1.0,
    "layernorm_linear_attention_beta": 1.0,
    "layernorm_mlp_beta": 1.0,
    "mlp_intermediate_size": 8192,
    "qk_norm_type": "per_layer",
    "scoring_func": "sigmoid",
    "shared_intermediate_size": 0,
    "shared_moe_mode": "sigmoid",
    "use_qk_norm": True,
    "use_routing_bias": True,
}
MIMO_REMARKS: Config = {
    "add_full_attention_sink_bias": False,
    "add_swa_attention_sink_bias": True,
    "attention_chunk_size": 6,
    "attention_value_scale": 0.707,
    "hybrid_layer_pattern": [0, 1, 1],
    "layernorm_epsilon": 1e-05,
    "moe_layer_freq": [0, 1, 1],
    "routed_scaling_factor": None,
    "scoring_func": "sigmoid",
    "sliding_window": 6,
    "sliding_window_size": 6,
    "swa_head_dim": 18,
    "swa_num_attention_heads": 6,
    "swa_num_key_value_heads": 2,
    "swa_rope_theta": 10000,
    "swa_v_head_dim": 14,
    "topk_method": "noaux_tc",
}
HUNYUAN_REMARKS: Config = {
    "attention_head_dim": 10,
    "cla_share_factor": 2,
    "dense_list": [4096, 0],
    "group_limited_greedy": False,
    "kv_lora_rank": None,
    "mlp_bias": False,
    "moe_drop_tokens": False,
    "moe_intermediate_size": [F] * 3,
    "moe_layer_num_skipped": 0,
    "moe_topk": [X] * 3,
    "norm_type": "rms",
    "num_shared_expert": [1] * 3,
    "pool_type": "last",
    "routed_scaling_factor": 1.0,
    "use_cla": False,
    "use_mixed_mlp_moe": True,
    "use_mla": False,
    "use_qk_norm": True,
    "use_rotary_pos_emb": True,
    "vit_type": None,
}


@pytest.mark.parametrize(
    ("model_type", "more"),
    [
        ("mixtral", {"router_aux_loss_coef": 0.02, "router_jitter_noise": 0.1, "output_router_logits": True}),
        ("qwen3_moe", {"max_window_layers": 48, "use_qk_norm": True, "shared_expert_intermediate_size": 0}),
        ("gpt_oss", {"experts_per_token": X, "initial_context_length": 4096, "swiglu_limit": 7.0}),
        ("gpt_oss", {"quantization_config": {"quant_method": "mxfp4"}, "hidden_act": "silu"}),
        ("llama4_text", {"attn_temperature_tuning": 4, "attn_scale": 0.1, "floor_scale": 8192}),
        ("mimo_v2_flash", MIMO_REMARKS),
        ("minimax_m2", MINIMAX_REMARKS),
        ("hunyuan_v1_moe", HUNYUAN_REMARKS),
        ("olmoe", {"clip_qkv": None}),
        ("glm4_moe", {"partial_rotary_factor": 0.5, "moe_layer_freq": 1}),
        ("dots1", {"scoring_func": "noaux_tc", "topk_method": "noaux_tc", "use_sliding_window": False,
                   "sliding_window": None, "moe_layer_freq": 1, "pretraining_tp": 1}),
        ("solar_open", {"first_k_dense_replace": 0, "use_qk_norm": False, "partial_rotary_factor": 1.0}),
        ("sarvam_moe", {"moe_router_enable_expert_bias": True, "moe_shared_expert_intermediate_size": M,
                        "score_function": "sigmoid", "router_dtype": "fp32", "use_bias": False}),
        ("ernie4_5_moe", {"moe_capacity": [64, 64, 64], "moe_use_aux_free": True, "use_rmsnorm": True}),
        ("exaone_moe", {"sliding_window_pattern": "LLLG", "is_moe_layer": [False, True, True],
                        "topk_method": "noaux_tc", "layer_types": ["sliding_attention"] * 3}),
        ("afmoe", {"score_func": "sigmoid", "route_norm": True, "n_group": 1, "topk_group": 1, "num_expert_groups": 1,
                   "num_limited_groups": 1, "load_balance_coeff": 0.001, "use_grouped_mm": True}),
    ],
)  # fmt: skip
def test_what_published_files_spell_out_beside_it(model_type, more):
    plain = load(SMALL[model_type])
    told = load({**SMALL[model_type], **more})
    assert told.inventory == plain.inventory
    assert told.decoder == plain.decoder


@pytest.mark.parametrize(
    ("model_type", "old", "new"),
    [
        ("mixtral", "num_experts", "num_local_experts"),
        ("qwen3_moe", "num_local_experts", "num_experts"),
        ("gpt_oss", "num_experts", "num_local_experts"),
        ("sarvam_moe", "num_experts", "n_routed_experts"),
        ("sarvam_moe", "num_shared_experts", "n_shared_experts"),
        ("ernie4_5_moe", "num_experts_per_tok", "moe_k"),
        ("hunyuan_v1_moe", "num_experts_per_tok", "moe_topk"),
        ("olmoe", "num_local_experts", "num_experts"),
    ],
)
def test_a_second_name_of_a_field(refusal, model_type, old, new):
    config = SMALL[model_type]
    renamed = {old if key == new else key: value for key, value in config.items()}
    assert load(renamed).inventory == load(config).inventory
    refusal({**config, old: config[new] + 1})


def test_phis_own_class_name():
    named = {"architectures": ["PhiMoEForCausalLM"], "auto_map": {"AutoModelForCausalLM": "modeling_phimoe.PhiMoE"}}
    assert load({**SMALL["phimoe"], **named}).inventory == load(SMALL["phimoe"]).inventory


# ------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize("model_type", SMALL)
def test_more_experts_used_than_there_are(refusal, model_type):
    used = next(key for key in ("num_experts_per_tok", "moe_k", "moe_topk") if key in SMALL[model_type])
    error = refusal({**SMALL[model_type], used: 7})
    assert f"`{used}`" in error.what


@pytest.mark.parametrize(
    ("model_type", "changes", "word"),
    [
        ("mixtral", {"num_local_experts": 0}, "`num_local_experts` must be a whole number"),
        ("mixtral", {"num_experts_per_tok": None}, "`num_experts_per_tok` must be a whole number"),
        ("mixtral", {"partial_rotary_factor": 0.5}, "`partial_rotary_factor` must be 1"),
        ("mixtral", {"head_dim": 9}, "RoPE rotates pairs, and a head of 9 is odd"),
        ("mixtral", {"sliding_window": 5, "layer_types": ["full_attention"] * 3}, "`layer_types` has 'full_attention'"),
        ("phimoe", {"num_experts_per_tok": 1}, "`num_experts_per_tok`: 1"),
        ("qwen2_moe", {"mlp_only_layers": [-1]}, "`mlp_only_layers` has -1, but the layers are 0 to 2"),
        ("qwen2_moe", {"mlp_only_layers": 1}, "`mlp_only_layers` must be a list of layers, got 1"),
        ("qwen2_moe", {"mlp_only_layers": [True]}, "`mlp_only_layers` has true"),
        ("qwen2_moe", {"decoder_sparse_step": 0}, "`decoder_sparse_step` must be a whole number"),
        ("qwen2_moe", {"layer_types": ["sliding_attention"] * 3}, "`layer_types` has 'sliding_attention'"),
        ("qwen2_moe", {"use_sliding_window": True, "sliding_window": None}, "`sliding_window` is null"),
        ("qwen3_moe", {"shared_expert_intermediate_size": 13}, "`shared_expert_intermediate_size`: 13"),
        ("gpt_oss", {"layer_types": ["full_attention"] * 2}, "`layer_types` must be a list of 3 words, got 2 entries"),
        ("gpt_oss", {"layer_types": ["chunked_attention"] * 3}, "`layer_types` has 'chunked_attention'"),
        ("gpt_oss", {"sliding_window": None}, "`sliding_window` is null"),
        ("gpt_oss", {"experts_per_token": 3}, "`experts_per_token`: 3"),
        ("gpt_oss", {"swiglu_alpha": 1.0}, "`swiglu_alpha`: 1"),
        ("gpt_oss", {"swiglu_limit": "x"}, "`swiglu_limit` must be a number above 0"),
        ("llama4_text", {"no_rope_layers": [1, 0]}, "`no_rope_layers` must be a list of 3 numbers 0 or 1"),
        ("llama4_text", {"no_rope_layers": [1, 0, 2]}, "`no_rope_layers` must be a list of 3 numbers 0 or 1"),
        ("llama4_text", {"no_rope_layers": 4}, "`no_rope_layers` must be a list of 3 numbers 0 or 1"),
        ("llama4_text", {"moe_layers": ["1"]}, "`moe_layers` has '1', but the layers are 0 to 2"),
        ("llama4_text", {"layer_types": ["sliding_attention"] * 3}, "`layer_types` has 'sliding_attention'"),
        (
            "llama4_text",
            {"attention_chunk_size": None, "layer_types": ["chunked_attention"] * 3},
            "but `attention_chunk_size` is null",
        ),
        ("mimo_v2_flash", {"hybrid_layer_pattern": [0, 1]}, "`hybrid_layer_pattern` must be a list of 3 numbers"),
        ("mimo_v2_flash", {"hybrid_layer_pattern": [0, 1, 2]}, "`hybrid_layer_pattern` has 2, which is not read"),
        (
            "mimo_v2_flash",
            {"moe_layer_freq": [1, 1, 1], "mlp_layer_types": ["dense", "sparse", "sparse"]},
            "`moe_layer_freq` and another list of the layers disagree",
        ),
        ("mimo_v2_flash", {"swa_num_key_value_heads": 1}, "`swa_num_key_value_heads`: 1"),
        ("mimo_v2_flash", {"swa_head_dim": 14}, "`swa_head_dim`: 14"),
        ("mimo_v2_flash", {"add_full_attention_sink_bias": True}, "`add_full_attention_sink_bias`: true"),
        ("mimo_v2_flash", {"n_shared_experts": 1}, "`n_shared_experts`: 1"),
        ("mimo_v2_flash", {"partial_rotary_factor": 0.05}, "RoPE rotates pairs, and `partial_rotary_factor` 0.05"),
        ("olmoe", {"head_dim": 10}, "`head_dim`: 10"),
        ("olmoe", {"hidden_size": 50}, "`hidden_size` 50 is not a multiple of `num_attention_heads` 6"),
        ("granitemoe_swa", {"layer_rope_theta": [0, 1e4]}, "`layer_rope_theta` must be a list of 3 numbers, got 2"),
        ("granitemoe_swa", {"layer_rope_theta": [0, 1e4, -1]}, "`layer_rope_theta` has -1"),
        ("granitemoeshared", {"shared_intermediate_size": -1}, "`shared_intermediate_size` must be at least 0"),
        ("ernie4_5_moe", {"moe_layer_interval": 0}, "`moe_layer_interval` must be a whole number"),
        ("ernie4_5_moe", {"moe_use_aux_free": False}, "`moe_use_aux_free`: false"),
        ("glm4_moe", {"n_group": 4}, "`n_routed_experts` 6 is not a multiple of 4 groups"),
        ("glm4_moe", {"n_group": 3, "topk_group": 4}, "`topk_group` 4, but there are 3 groups"),
        (
            "glm4_moe",
            {"n_group": 3, "num_experts_per_tok": 3},
            "`num_experts_per_tok` 3, of 1 groups of 2 experts each",
        ),
        ("glm4_moe", {"n_group": 6, "topk_group": 3}, "6 groups of `n_routed_experts` 6: of each, the two largest"),
        ("glm4_moe", {"scoring_func": "softmax"}, "`scoring_func`: 'softmax'"),
        ("glm4_moe", {"partial_rotary_factor": 1.5}, "`partial_rotary_factor` must be a number above 0 and up to 1"),
        ("glm4_moe", {"partial_rotary_factor": "x"}, "`partial_rotary_factor` must be a number above 0 and up to 1"),
        ("solar_open", {"first_k_dense_replace": 1}, "`first_k_dense_replace`: 1"),
        ("dots1", {"sliding_window": 5, "use_sliding_window": False}, "`use_sliding_window`: false"),
        ("dots1", {"n_routed_experts": None}, "`n_routed_experts` must be a whole number"),
        ("minimax_m2", {"attn_type_list": [1, 0, 1]}, "`attn_type_list`: a list"),
        ("minimax_m2", {"shared_intermediate_size": 8}, "`shared_intermediate_size`: 8"),
        ("hy_v3", {"num_shared_experts": 0}, "`num_shared_experts` must be a whole number"),
        ("hy_v3", {"mlp_layer_types": ["dense", "moe", "dense"]}, "`mlp_layer_types` has 'moe', which is not read"),
        ("hunyuan_v1_moe", {"moe_topk": [2, 2, 1]}, "`moe_topk` must be a whole number"),
        ("hunyuan_v1_moe", {"num_shared_expert": [1, 1, 2]}, "`num_shared_expert`"),
        ("hunyuan_v1_moe", {"use_cla": True}, "`use_cla`: true"),
        ("exaone_moe", {"is_moe_layer": [True, True, True]}, "`is_moe_layer`"),
        ("exaone_moe", {"sliding_window_pattern": "LLLG"}, "`sliding_window_pattern` must be a whole number"),
        ("cohere2_moe", {"expert_selection_fn": "tanh"}, "`expert_selection_fn`: 'tanh'"),
        ("afmoe", {"n_group": 2}, "`n_group`: 2"),
        ("afmoe", {"route_norm": False}, "`route_norm`: false"),
        ("laguna", {"num_attention_heads_per_layer": [6, 0, 6]}, "must be a list of 3 whole numbers from 1"),
        ("laguna", {"num_attention_heads_per_layer": 6}, "must be a list of 3 whole numbers from 1"),
        ("laguna", {"gating": "softplus"}, "`gating`: 'softplus'"),
        ("laguna", {"gating": False}, "`gating`: false"),
        ("laguna", {"moe_apply_router_weight_on_input": True}, "`moe_apply_router_weight_on_input`: true"),
        ("aria_text", {"hidden_size": 50}, "`hidden_size` 50 is not a multiple of `num_attention_heads` 6"),
        ("mellum", {"layer_types": ["sliding_attention"] * 3, "sliding_window": None}, "`sliding_window` is null"),
    ],
)
def test_bad_values_are_refused_by_their_key(refusal, model_type, changes, word):
    assert word in refusal({**SMALL[model_type], **changes}).what


@pytest.mark.parametrize("model_type", SMALL)
def test_a_key_that_nobody_reads_is_refused(refusal, model_type):
    for key, value in (("num_kv_shared_layers", 1), ("a_key_of_tomorrow", 1), ("vision_config", {"depth": 2})):
        assert f"`{key}`" in refusal({**SMALL[model_type], key: value}).what
