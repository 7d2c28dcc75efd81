"""Linear attention and other recurrent families: dialects of published files, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import load, parameters

Config = dict[str, Any]

# V=19, D=60, N=6, K=2, H=10, F=37, L=5.
SIZES: Config = {
    "vocab_size": 19,
    "hidden_size": 60,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 37,
    "num_hidden_layers": 5,
}
DELTA: Config = {
    "head_dim": 10,
    "linear_num_key_heads": 3,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 11,
    "linear_value_head_dim": 13,
}
EXPERTS: Config = {"num_experts": 7, "moe_intermediate_size": 23, "num_experts_per_token": 2}
LATENT: Config = {"kv_lora_rank": 17, "qk_nope_head_dim": 7, "qk_rope_head_dim": 4, "v_head_dim": 9}
QWEN: Config = {"model_type": "qwen3_5_text", **SIZES, **DELTA}
NEXT: Config = {
    **{**QWEN, "model_type": "qwen3_next"},
    **{"num_experts": 7, "num_experts_per_tok": 2, "moe_intermediate_size": 23},
}
OLMO: Config = {"model_type": "olmo_hybrid", **SIZES}
INNER: Config = {"full_attn_layers": [2, 5], "kda_layers": [1, 3, 4], "head_dim": 11, "num_heads": 3}
KIMI: Config = {
    "model_type": "kimi_linear",
    **{**SIZES, **EXPERTS, **LATENT},
    **{"num_key_value_heads": 6, "linear_head_dim": 11, "linear_num_heads": 3},
}
LING: Config = {
    "model_type": "bailing_hybrid",
    **{**SIZES, **EXPERTS, **LATENT},
    **{"num_key_value_heads": 6, "num_expert_group": 1, "topk_group": 1, "head_dim": 11, "layer_group_size": 2},
}
MINIMAX: Config = {"model_type": "minimax", **SIZES, "num_local_experts": 7, "head_dim": 10}
TEXT_01: Config = {
    "model_type": "minimax_text_01",
    **SIZES,
    **{"num_local_experts": 7, "num_experts_per_tok": 2, "head_dim": 10, "hidden_act": "silu", "postnorm": True},
    **{"rms_norm_eps": 1e-5, "tie_word_embeddings": False, "attn_type_list": [0, 1, 0, 0, 1], "rotary_dim": 4},
}
LFM2: Config = {"model_type": "lfm2", **SIZES, "full_attn_idxs": [1]}
LFM2_MOE: Config = {
    "model_type": "lfm2_moe",
    **{**SIZES, "num_experts": 7, "layer_types": ["conv", "full_attention", "conv", "conv", "full_attention"]},
}
GRIFFIN: Config = {"model_type": "recurrent_gemma", **SIZES, "head_dim": 10}
RWKV: Config = {"model_type": "rwkv", "vocab_size": 19, "hidden_size": 42, "num_hidden_layers": 3}
XLSTM: Config = {"model_type": "xlstm", "vocab_size": 19, "hidden_size": 128, "num_hidden_layers": 3, "num_heads": 4}


def _names(config: Config) -> list[str]:
    """What each layer is called."""
    return [path.rpartition(".")[2] for path in load(config).inventory.layout["decoder"]]


def _mixer(config: Config) -> Any:
    """The mixer of the first layer that has one."""
    return next(group.block.mixer for group in load(config).groups if group.block.mixer is not None)


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (QWEN, "linear linear linear attention linear"),
        ({**QWEN, "full_attention_interval": 2}, "linear attention linear attention linear"),
        ({**NEXT, "decoder_sparse_step": 2}, "linear_dense linear_sparse linear_dense attention_sparse linear_dense"),
        (OLMO, "linear linear linear attention linear"),
        ({**OLMO, "num_hidden_layers": 3}, "linear linear attention"),
        (KIMI, "linear_dense linear_sparse linear_sparse linear_sparse attention_sparse"),
        ({**KIMI, "linear_attn_config": INNER, "first_k_dense_replace": 0}, "linear attention linear linear attention"),
        (LING, "linear_dense attention_dense linear_sparse attention_sparse linear_sparse"),
        (MINIMAX, "attention lightning attention lightning attention"),
        ({**MINIMAX, "attn_type_list": [0, 0, 1, 0, 0]}, "lightning lightning attention lightning lightning"),
        (TEXT_01, "lightning attention lightning lightning attention"),
        (LFM2, "conv attention conv conv conv"),
        (LFM2_MOE, "conv_dense attention_dense conv_sparse conv_sparse attention_sparse"),
        ({**LFM2, "model_type": "lfm3", "full_attn_idxs": None, "head_dim": 10}, "conv conv global conv local"),
        (GRIFFIN, "recurrent recurrent attention recurrent recurrent"),
        ({**GRIFFIN, "block_types": ["attention", "recurrent"]}, "attention recurrent attention recurrent attention"),
    ],
)
def test_what_the_layers_are(config, names):
    config = {key: value for key, value in config.items() if value is not None}
    assert _names(config) == names.split()


def test_a_module_that_guesses_a_token_further_on_is_beside_the_total():
    """A projection of 2D·D and three norms, beside a layer that attends: as in the published checkpoints of one."""
    there = {"mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False}
    plain, held, unknown = (load({**QWEN, **more}) for more in ({}, there, {**there, "mtp_num_hidden_layers": 2}))
    # D·(2·N·H + 2·K·H), two gains of H, N·H·D; 3·D·F; two norms.
    layer = 60 * (2 * 60 + 2 * 20) + 2 * 10 + 60 * 60 + 3 * 60 * 37 + 2 * 60
    assert parameters(held).total == parameters(plain).total == parameters(unknown).total
    assert parameters(held).extra == 2 * 60 * 60 + 3 * 60 + layer
    assert (parameters(plain).extra, parameters(unknown).extra) == (0, 0)
    assert (held.not_counted, unknown.not_counted) == ((), ("multi-token-prediction layers",))


def test_what_states_are_stored_in():
    assert _mixer(QWEN).state_dtype == "fp32"
    assert _mixer({**QWEN, "mamba_ssm_dtype": "bfloat16"}).state_dtype == "bf16"
    assert _mixer({**XLSTM, "inference_state_dtype": "float16"}).state_dtype == "fp16"


def test_sizes_of_linear_layers_that_a_file_leaves_out():
    """OLMo-Hybrid: heads of the attention, keys of three quarters of the width over them, values of twice as many."""
    mixer = _mixer(OLMO)
    assert (mixer.heads, mixer.key_heads, mixer.key_dim, mixer.value_dim) == (6, 6, 45 // 6, 2 * (45 // 6))
    assert _mixer({**OLMO, "linear_num_key_heads": 3}).key_dim == 45 // 3


def test_the_inner_config_of_kimi_wins():
    """As its class reads it: `linear_head_dim` beside it is what the class assumed."""
    inner = {"head_dim": 5, "num_heads": 2, "short_conv_kernel_size": 3}
    mixer = _mixer({**KIMI, "linear_attn_config": inner})
    assert (mixer.heads, mixer.key_dim, mixer.value_dim, mixer.d_conv) == (2, 5, 5, 3)
    assert (mixer.decay_rank, mixer.gate_rank, mixer.gate_activation) == (5, 5, "sigmoid")


def test_names_that_the_class_of_ling_writes_again():
    """`head_dim` is then the size that attention rotates."""
    again = {"head_dim": 4, "linear_head_dim": 11, "linear_num_heads": 6, "linear_conv_kernel_dim": 4}
    assert load({**LING, **again}).inventory == load(LING).inventory
    assert _mixer(LING).decay_floor == -5
    assert _mixer({**LING, "kda_safe_gate": False}).decay_floor is None


def test_rotations_that_are_switched_off():
    kinds = {group.block.positions.kind for group in load(OLMO).groups if group.block.attention is not None}
    assert kinds == {"rope"}
    arch = load({**OLMO, "rope_parameters": {"rope_type": "default", "rope_theta": None}})
    assert {group.block.positions.kind for group in arch.groups} == {"none"}


def test_residual_factors_that_the_norm_after_them_leaves_a_ratio_of():
    """alpha·x + beta·f(x) under a norm is x + beta/alpha·f(x), where both sublayers of a layer have the same."""
    factors = {f"{part}_{kind}_factor": value for part in ("full_attn", "linear_attn", "mlp") for kind, value in _AB}
    arch = load({**MINIMAX, **factors})
    assert {group.block.residual_scale for group in arch.groups} == {0.5}
    assert {group.block.norms for group in arch.groups} == {"post"}
    mixed = load({**MINIMAX, **factors, "linear_attn_beta_factor": 3})
    assert {group.block.residual_scale for group in mixed.groups} == {0.5, 1.0}
    assert mixed.inventory == load(MINIMAX).inventory


_AB = (("alpha", 4), ("beta", 2))


def test_files_of_minimax_own_code_are_the_same_model():
    types = ["linear_attention", "full_attention", "linear_attention", "linear_attention", "full_attention"]
    same = {**MINIMAX, "layer_types": types, "num_experts_per_tok": 2}
    assert load(TEXT_01).inventory == load(same).inventory
    assert load({**TEXT_01, "model_type": "minimax_m1"}).inventory == load(TEXT_01).inventory
    turned = {g.block.positions.rotary_dim for g in load(TEXT_01).groups if g.block.attention is not None}
    assert turned == {4}


def test_old_names_of_lfm2_win():
    """`block_ff_dim` 53: two thirds are 35, rounded up to 256; and a head of its own."""
    arch = load({**LFM2, "block_ff_dim": 530, "tie_embedding": False, "block_multiple_of": 100})
    assert {group.block.feed_forward.d_ff for group in arch.groups} == {400}  # 353 of 530
    assert arch.tie_embeddings is False
    exact = load({**LFM2, "block_auto_adjust_ff_dim": False})
    assert {group.block.feed_forward.d_ff for group in exact.groups} == {37}
    # two thirds of 100 are 66 before the factor, and 99 after; not 100
    factor = {"block_ffn_dim_multiplier": 1.5, "block_multiple_of": 1, "block_ff_dim": 100}
    assert {group.block.feed_forward.d_ff for group in load({**LFM2, **factor}).groups} == {99}


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({**QWEN, "attn_output_gate": False}, "`attn_output_gate`: false"),
        ({**QWEN, "output_gate_type": "sigmoid"}, "`output_gate_type`: 'sigmoid'"),
        ({**QWEN, "linear_num_key_heads": 4}, "`linear_num_value_heads` 6 is not a multiple of `linear_num_key_heads`"),
        ({**QWEN, "mamba_ssm_dtype": "float64"}, "`mamba_ssm_dtype` 'float64' is not a dtype"),
        ({**QWEN, "linear_decay": 1}, "`linear_decay`: 1 is not read"),
        (
            {**QWEN, "full_attention_interval": 2, "layer_types": ["linear_attention"] * 4 + ["full_attention"]},
            "`full_attention_interval` and another list of the layers disagree",
        ),
        ({**OLMO, "layer_types": ["full_attention"] * 5}, "all layers are full_attention: the class wants both kinds"),
        ({**OLMO, "num_hidden_layers": 1}, "all layers are full_attention"),
        ({**KIMI, "mla_use_nope": False}, "`mla_use_nope`: false"),
        ({**KIMI, "moe_layer_freq": 2}, "`moe_layer_freq`: 2"),
        ({**KIMI, "linear_attn_config": 7}, "`linear_attn_config` must hold sizes, got 7"),
        ({**KIMI, "linear_attn_config": {"rank": 7}}, "`rank` of `linear_attn_config` is not read"),
        ({**KIMI, "linear_attn_config": {"head_dim": 0}}, "`head_dim` of `linear_attn_config` must be a whole number"),
        ({**KIMI, "linear_attn_config": {**INNER, "kda_layers": [1, 3]}}, "says of 4 of 5 layers what they are"),
        ({**KIMI, "linear_attn_config": {**INNER, "kda_layers": [1, 2, 3]}}, "`kda_layers` must be a list of layers"),
        ({**KIMI, "linear_attn_config": {**INNER, "kda_layers": [0, 3, 4]}}, "`kda_layers` must be a list of layers"),
        ({**KIMI, "linear_attn_config": INNER, "layer_types": ["linear_attention"] * 5}, "`layer_types` and another"),
        ({**KIMI, "auto_map": {"AutoModel": "modeling_mine.Model"}}, "`auto_map` names code of its own"),
        ({**MINIMAX, "sliding_window": 7}, "`sliding_window`: 7"),
        ({**MINIMAX, "postnorm": False}, "`postnorm`: false"),
        (
            {**MINIMAX, "layer_types": ["full_attention"] * 5, "attn_type_list": [0, 0, 1, 0, 0]},
            "`attn_type_list` and another list of the layers disagree",
        ),
        ({**TEXT_01, "postnorm": False}, "`postnorm`: false"),
        ({**TEXT_01, "shared_intermediate_size": 8}, "`shared_intermediate_size`: 8"),
        ({**TEXT_01, "attn_type_list": None}, "`attn_type_list` says which layers attend"),
        ({**TEXT_01, "attn_type_list": [0, 2, 0, 0, 1]}, "`attn_type_list` has 2, which is not read"),
        ({**LFM2, "block_use_swiglu": False}, "`block_use_swiglu` is false"),
        ({**LFM2, "conv_dim": 43}, "`conv_dim` is 43"),
        ({**LFM2_MOE, "layer_types": None}, "`layer_types` says which layers attend"),
        (
            {**GRIFFIN, "block_types": ["recurrent", "window"]},
            "`block_types` must be a list of recurrent and attention",
        ),
        ({**GRIFFIN, "block_types": []}, "`block_types` must be a list"),
        ({**GRIFFIN, "lru_width": 41}, "the RG-LRU's width 41 is not a multiple of `num_attention_heads` 6"),
        ({**GRIFFIN, "head_dim": 8}, "`head_dim` is 8, but by the other keys it is 10"),
        (
            {**GRIFFIN, "num_hidden_layers": 101, "block_types": ["attention"]},
            "`block_types` is repeated 100 times, which is fewer than 101 layers",
        ),
        ({**RWKV, "attention_hidden_size": 43}, "`attention_hidden_size` is 43, but by the other keys it is 42"),
        ({**XLSTM, "use_bias": True}, "`use_bias`: true"),
        ({**XLSTM, "slstm_at": [1]}, "`slstm_at` is not what the other keys say"),
        ({**XLSTM, "num_blocks": 4}, "`num_blocks` is 4, but by the other keys it is 3"),
        ({**XLSTM, "qk_dim_factor": 0.3}, "`qk_dim_factor` of `hidden_size` 128 gives 38 numbers"),
        # a null that the class cannot be built with
        *(
            ({**config, "num_key_value_heads": None}, "`num_key_value_heads` must be")
            for config in (QWEN, MINIMAX, LFM2, LFM2_MOE)
        ),
        ({**KIMI, "num_shared_experts": None}, "shared_experts` must be"),
        ({**LFM2_MOE, "num_dense_layers": None}, "`num_dense_layers` must be"),
        ({**XLSTM, "num_heads": 3}, "gives 128 numbers, which 3 heads or steps of 64 miss"),
    ],
)
def test_what_is_refused(refusal, config, what):
    assert what in refusal(config).what
