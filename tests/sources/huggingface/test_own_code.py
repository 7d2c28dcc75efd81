"""Types for which the library has no class, held to the parameters of the published checkpoints.

Each total is that of the tensors in the checkpoint whose page or paper is named; layers by hand where none is.
"""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import flops, kv_cache, load, parameters, verify
from costcalc.inventory import Workload

Config = dict[str, Any]

LLAMA: Config = {"hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False}
SEVEN: Config = {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32}


def _of(model_type: str, named: str, code: str | None = None, **keys: Any) -> Config:
    code_of = {} if code is None else {"auto_map": {"AutoModelForCausalLM": f"{code}.{named}"}}
    return {"model_type": model_type, "architectures": [named], **code_of, **keys}


QWEN = _of(
    *("qwen", "QWenLMHeadModel", "modeling_qwen"),
    **{**SEVEN, "intermediate_size": 22016, "kv_channels": 128, "vocab_size": 151936, "max_position_embeddings": 8192},
    **{"no_bias": True, "rotary_emb_base": 10000, "rotary_pct": 1.0, "layer_norm_epsilon": 1e-6, "seq_length": 8192},
    **{"emb_dropout_prob": 0.0, "attn_dropout_prob": 0.0, "scale_attn_weights": True, "use_dynamic_ntk": True},
    **{"use_flash_attn": "auto", "use_logn_attn": True, "tie_word_embeddings": False, "onnx_safe": None},
)
CHATGLM = _of(
    *("chatglm", "ChatGLMModel", "modeling_chatglm"),
    **{"hidden_size": 4096, "num_attention_heads": 32, "num_layers": 28, "ffn_hidden_size": 13696, "kv_channels": 128},
    **{"multi_query_attention": True, "multi_query_group_num": 2, "padded_vocab_size": 65024, "seq_length": 8192},
    **{"add_bias_linear": False, "add_qkv_bias": True, "rmsnorm": True, "original_rope": True, "post_layer_norm": True},
    **{"apply_residual_connection_post_layernorm": False, "layernorm_epsilon": 1e-5, "tie_word_embeddings": False},
    **{"apply_query_key_layer_scaling": True, "fp32_residual_connection": False, "bias_dropout_fusion": True},
)
BAICHUAN = _of("baichuan", "BaichuanForCausalLM", "modeling_baichuan", **LLAMA, model_max_length=4096)
OLMO = _of(
    *("hf_olmo", "OLMoForCausalLM", "modeling_olmo"),
    **{"d_model": 4096, "n_heads": 32, "n_layers": 32, "mlp_hidden_size": 22016, "mlp_ratio": 4, "vocab_size": 50280},
    **{"embedding_size": 50304, "weight_tying": False, "activation_type": "swiglu", "alibi": False, "rope": True},
    **{"attention_layer_norm": False, "block_type": "sequential", "include_bias": False, "max_sequence_length": 2048},
    **{"layer_norm_type": "default", "layer_norm_with_affine": False, "multi_query_attention": False},
    **{"init_device": "meta", "init_fn": "mitchell", "precision": "amp_bf16", "scale_logits": False},
)
OPENELM = _of(
    *("openelm", "OpenELMForCausalLM", "modeling_openelm"),
    **{"model_dim": 1280, "num_transformer_layers": 16, "head_dim": 64, "vocab_size": 32000, "ffn_dim_divisor": 256},
    num_query_heads=[12] * 5 + [16] * 7 + [20] * 4,
    num_kv_heads=[3] * 5 + [4] * 7 + [5] * 4,
    ffn_multipliers=[0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9, 2.13, 2.37, 2.6, 2.83, 3.07, 3.3, 3.53, 3.77, 4.0],
    **{"ffn_with_glu": True, "normalize_qk_projections": True, "share_input_output_layers": True},
    **{"activation_fn_name": "swish", "normalization_layer_name": "rms_norm", "rope_freq_constant": 10000},
    **{"num_gqa_groups": 4, "qkv_multipliers": [0.5, 1.0], "max_context_length": 2048, "rope_max_length": 4096},
)
PUBLISHED: dict[str, tuple[Config, int]] = {
    "internlm/internlm-7b": (
        _of(
            *("internlm", "InternLMForCausalLM", "modeling_internlm"),
            **{**LLAMA, **SEVEN, "intermediate_size": 11008, "vocab_size": 103168, "bias": True},
            rotary={"base": 10000, "type": "dynamic"},
        ),
        7_321_948_160,
    ),
    "internlm/internlm2-7b": (
        _of(
            *("internlm2", "InternLM2ForCausalLM", "modeling_internlm2"),
            **{**LLAMA, **SEVEN, "intermediate_size": 14336, "vocab_size": 92544, "num_key_value_heads": 8},
            **{"bias": False, "attn_implementation": "eager", "rope_theta": 1000000},
        ),
        7_737_708_544,
    ),
    "openbmb/MiniCPM-2B-sft-bf16": (
        _of(
            *("minicpm", "MiniCPMForCausalLM", "modeling_minicpm"),
            **{"hidden_size": 2304, "intermediate_size": 5760, "num_attention_heads": 36, "num_key_value_heads": 36},
            **{"num_hidden_layers": 40, "vocab_size": 122753, "scale_emb": 12, "dim_model_base": 256},
            **{"scale_depth": 1.4, "hidden_act": "silu", "rms_norm_eps": 1e-5},
        ),
        2_724_880_896,
    ),
    "OrionStarAI/Orion-14B-Base": (
        _of(
            *("orion", "OrionForCausalLM", "modeling_orion"),
            **{**LLAMA, "hidden_size": 5120, "intermediate_size": 15360, "num_attention_heads": 40},
            **{"num_hidden_layers": 40, "num_key_value_heads": 40, "vocab_size": 84608, "attention_bias": False},
        ),
        14_498_703_360,
    ),
    "stabilityai/stablelm-3b-4e1t": (
        _of(
            *("stablelm_epoch", "StableLMEpochForCausalLM", "modeling_stablelm_epoch"),
            **{"hidden_size": 2560, "intermediate_size": 6912, "num_attention_heads": 32, "num_heads": 32},
            **{"num_key_value_heads": 32, "num_hidden_layers": 32, "vocab_size": 50304, "norm_eps": 1e-5},
            **{"rope_pct": 0.25, "rope_theta": 10000, "rotary_scaling_factor": 1.0, "use_qkv_bias": False},
            **{"hidden_act": "silu", "tie_word_embeddings": False},
        ),
        2_795_443_200,
    ),
    "Qwen/Qwen-7B": (QWEN, 7_721_324_544),
    "baichuan-inc/Baichuan2-7B-Base": (
        {**BAICHUAN, **SEVEN, "intermediate_size": 11008, "vocab_size": 125696, "max_position_embeddings": 4096},
        7_505_973_248,
    ),
    "baichuan-inc/Baichuan-13B-Base": (
        {
            **BAICHUAN,
            **{"hidden_size": 5120, "intermediate_size": 13696, "num_attention_heads": 40, "num_hidden_layers": 40},
            "vocab_size": 64000,
        },
        13_264_901_120,
    ),
    "THUDM/chatglm3-6b": (CHATGLM, 6_243_584_000),
    "THUDM/glm-4-9b": ({**CHATGLM, "num_layers": 40, "padded_vocab_size": 151552, "rope_ratio": 500}, 9_399_951_360),
    "apple/OpenELM-270M": (OPENELM, 271_527_168),
    "allenai/OLMo-7B": (OLMO, 6_888_095_744),
    "allenai/OLMo-1B": (
        {**OLMO, "d_model": 2048, "n_heads": 16, "n_layers": 16, "mlp_hidden_size": 16384, "weight_tying": True},
        1_176_764_416,
    ),
    "tiiuae/falcon-7b": (
        _of(
            *("RefinedWebModel", "RWForCausalLM", "modelling_RW"),
            **{"hidden_size": 4544, "n_head": 71, "n_layer": 32, "vocab_size": 65024, "multi_query": True},
            **{"parallel_attn": True, "alibi": False, "bias": False},
        ),
        6_921_720_704,
    ),
    "tiiuae/falcon-40b": (
        _of(
            *("RefinedWeb", "RWForCausalLM", "modelling_RW"),
            **{"hidden_size": 8192, "n_head": 128, "n_head_kv": 8, "n_layer": 60, "vocab_size": 65024},
            **{"parallel_attn": True, "alibi": False, "bias": False},
        ),
        41_303_293_952,
    ),
    "microsoft/phi-2": (
        _of(
            *("phi-msft", "PhiForCausalLM", "modeling_phi"),
            **{"n_embd": 2560, "n_head": 32, "n_head_kv": None, "n_inner": None, "n_layer": 32, "n_positions": 2048},
            **{"rotary_dim": 32, "vocab_size": 51200, "activation_function": "gelu_new", "fused_dense": False},
            **{"flash_attn": False, "flash_rotary": False, "img_processor": None, "tie_word_embeddings": False},
        ),
        2_779_683_840,
    ),
    "databricks/dbrx-base": (
        _of(
            *("dbrx", "DbrxForCausalLM"),
            attn_config={"clip_qkv": 8, "kv_n_heads": 8, "model_type": "", "rope_theta": 500000},
            ffn_config={"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4, "model_type": ""},
            **{"d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352, "max_seq_len": 32768},
        ),
        131_596_523_520,
    ),
}
MIMO = _of(
    *("mimo", "MiMoForCausalLM", "modeling_mimo"),
    **{**LLAMA, "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"num_hidden_layers": 36, "head_dim": 128, "vocab_size": 151680, "num_nextn_predict_layers": 1},
    **{"attention_bias": True, "use_mrope": False, "use_sliding_window": False, "max_window_layers": 32},
)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_total(name):
    config, total = PUBLISHED[name]
    assert parameters(load(config)).total == total


def test_modules_that_guess_further_tokens_are_in_the_checkpoint_and_not_in_the_model():
    """XiaomiMiMo/MiMo-7B-Base: 7,833,409,536 numbers in its tensors."""
    count = parameters(load(MIMO))
    assert (count.total + count.extra, count.extra) == (7_833_409_536, 210_790_400)
    assert parameters(load({**MIMO, "num_nextn_predict_layers": 0})).extra == 0


# ------------------------------------------------------------------------------------------------- layers in lists

SMALL: Config = {"hidden_size": 96, "num_attention_heads": 6, "vocab_size": 101, **LLAMA}
SEEN = {"no_op": False, "replace_with_linear": False, "sparsify": None, "window_length": None, "num_sink_tokens": None}
NONE: Config = {**SEEN, "no_op": True}


def _block(group: int | None, ffn_mult: float | None) -> Config:
    """A layer whose query heads share key/value heads in such groups, and how wide its network is; None for none."""
    attention = NONE if group is None else {**SEEN, "n_heads_in_group": group}
    network = NONE if ffn_mult is None else {"no_op": False, "replace_with_linear": False, "ffn_mult": ffn_mult}
    return {"attention": {"n_heads_in_group": None, **attention}, "ffn": {"ffn_mult": None, **network}}


def _nemotron(*blocks: Config, **more: Any) -> Config:
    named = _of("nemotron-nas", "DeciLMForCausalLM", "modeling_decilm")
    return {**named, **SMALL, "num_hidden_layers": len(blocks), "block_configs": list(blocks), **more}


def test_layers_of_sizes_of_their_own():
    """D=96, N=6, H=16, V=101. Widths: 2/3·5.25·96 = 336, up to 512; 2/3·1·96 = 64, up to 256; 2/3·8.25·96 = 528 to 768.

    Layers: 2 key/value heads and 512; no attention and 256; 3 and none; nothing at all; 2 and 512 again; 1 and 768.
    """
    blocks = [_block(3, 5.25), _block(None, 1.0), _block(2, None), _block(None, None), _block(3, 5.25), _block(6, 8.25)]
    arch = load(_nemotron(*blocks))
    attentions = {kv: 2 * 96 * 96 + 2 * 96 * 16 * kv + 96 for kv in (1, 2, 3)}
    networks = {d_ff: 3 * 96 * d_ff + 96 for d_ff in (256, 512, 768)}
    layers = 2 * (attentions[2] + networks[512]) + networks[256] + attentions[3] + attentions[1] + networks[768]
    assert parameters(arch).total == 2 * 101 * 96 + layers + 96
    assert kv_cache(arch, 7).elements == 2 * 16 * (2 + 3 + 2 + 1) * 7
    assert verify(arch).agrees


@pytest.mark.parametrize(
    "change",
    [
        {"attention": {**SEEN, "n_heads_in_group": 3, "replace_with_linear": True}},
        {"attention": {**SEEN, "n_heads_in_group": 3, "window_length": 512}},
        {"attention": {**SEEN, "n_heads_in_group": 4}},
        {"attention": {**SEEN, "n_heads_in_group": None}},
        {"attention": {**SEEN, "n_heads_in_group": 3, "sparsify": "2:4"}},
        {"ffn": {"ffn_mult": None}},
        {"ffn": {"ffn_mult": 2.0, "moe": {"num_local_experts": 8}}},
        {"ffn": {"ffn_mult": 2.0, "hidden_act": "relu"}},
        {"mamba": {}},
    ],
)
def test_a_layer_that_does_something_else_is_refused(refusal, change):
    refusal(_nemotron({**_block(3, 5.25), **change}, _block(3, 5.25)))


def test_lists_of_another_length_are_refused(refusal):
    refusal(_nemotron(_block(3, 5.25), num_hidden_layers=2))
    refusal(_nemotron(_block(None, None)))
    refusal({**OPENELM, "num_kv_heads": [3]})
    refusal({**OPENELM, "ffn_multipliers": [0.5]})
    deci = _of("deci", "DeciLMForCausalLM", **SMALL, num_hidden_layers=3, intermediate_size=37)
    refusal({**deci, "num_key_value_heads_per_layer": [1, 2]})
    assert kv_cache(load({**deci, "num_key_value_heads_per_layer": [1, 3, 1]}), 7).elements == 2 * 16 * 5 * 7


# --------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("Qwen/Qwen-7B", {"kv_channels": 64}),
        ("Qwen/Qwen-7B", {"rotary_pct": 0.5}),
        ("Qwen/Qwen-7B", {"intermediate_size": 22015}),
        ("THUDM/chatglm3-6b", {"pre_seq_len": 128}),
        ("THUDM/chatglm3-6b", {"tie_word_embeddings": True}),
        ("THUDM/chatglm3-6b", {"rmsnorm": False}),
        ("THUDM/chatglm3-6b", {"inner_hidden_size": 16384}),
        ("openbmb/MiniCPM-2B-sft-bf16", {"num_experts": 8}),
        ("openbmb/MiniCPM-2B-sft-bf16", {"sparse_config": {"topk": 64}}),
        ("allenai/OLMo-7B", {"alibi": True}),
        ("allenai/OLMo-7B", {"layer_norm_with_affine": True}),
        ("allenai/OLMo-7B", {"embedding_size": 50000}),
        ("apple/OpenELM-270M", {"ffn_with_glu": False}),
        ("microsoft/phi-2", {"rotary_dim": 96}),
        ("databricks/dbrx-base", {"tie_word_embeddings": True}),
        ("tiiuae/falcon-40b", {"parallel_attn": False}),
        ("internlm/internlm-7b", {"num_key_value_heads": 8}),
        ("stabilityai/stablelm-3b-4e1t", {"num_heads": 16}),
        ("OrionStarAI/Orion-14B-Base", {"attention_bias": True}),
        ("baichuan-inc/Baichuan-13B-Base", {"auto_map": {"AutoModelForCausalLM": "other/code--modeling.Model"}}),
    ],
)
def test_what_would_build_something_else_is_refused(refusal, name, change):
    refusal({**PUBLISHED[name][0], **change})


def test_what_is_not_text_is_named():
    seeing = load({**QWEN, "visual": {"heads": 16, "layers": 48}})
    assert parameters(seeing).total == 7_721_324_544
    assert seeing.not_counted == ("vision tower",)


def test_the_larger_baichuan_has_no_rotary_positions():
    large, small = (load(PUBLISHED[f"baichuan-inc/{name}"][0]) for name in ("Baichuan-13B-Base", "Baichuan2-7B-Base"))
    assert (large.decoder.positions.kind, small.decoder.positions.kind) == ("alibi", "rope")
    assert (large.context_length, small.context_length) == (4096, 4096)


def test_costs_of_chatglm_by_hand():
    """A step after 47 tokens: 28 layers of 203,948,032 weights in products, a head of 65,024·4,096; 48 pairs.

    The cache: 28 layers of 2 groups of 128, twice, for each token.
    """
    arch = load(CHATGLM)
    matrices = 4096 * (4096 + 512) + 4096 * 4096 + 3 * 4096 * 13696
    pairs = 2 * 2 * 48 * 32 * 128
    step = flops(arch, Workload(new_tokens=1, past_tokens=47))
    assert step.forward == 28 * (2 * matrices + pairs) + 2 * 65024 * 4096
    assert kv_cache(arch, 48).elements == 28 * 2 * 2 * 128 * 48


LLAMA_KEYS = {
    "vocab_size": 97,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 80,
}
LLAMA_KEYS |= {"num_key_value_heads": 2, "tie_word_embeddings": False}


def costs(config):
    model = load(config)
    work = Workload(new_tokens=7, past_tokens=5)
    return parameters(model).total, flops(model, work).forward, kv_cache(model, 11).elements


@pytest.mark.parametrize("model_type", ["Yi", "aquila", "xverse"])
def test_what_is_a_llama_by_another_name_costs_as_one(model_type):
    """Heads of 8: 2·97·48 + 3·(2·48·48 + 2·48·16 + 3·48·80 + 2·48) + 48 = 62,640."""
    keys = LLAMA_KEYS if model_type == "Yi" else {**LLAMA_KEYS, "num_key_value_heads": 6}  # the other two have no fewer
    assert costs({**keys, "model_type": model_type}) == costs({**keys, "model_type": "llama"})
    assert parameters(load({**LLAMA_KEYS, "model_type": "llama"})).total == 62_640


@pytest.mark.parametrize(
    ("model_type", "key", "text"),
    [
        ("h2ovl_chat", "llm_config", "llama"),
        ("interns1", "text_config", "qwen3"),
        ("llava_mistral", None, "mistral"),
        ("llava_qwen", None, "qwen2"),
        ("ovis", "llm_config", "qwen2"),
    ],
)
def test_wrappers_of_own_code_cost_what_their_text_model_does(model_type, key, text):
    inner = {**LLAMA_KEYS, "model_type": text}
    config = {"model_type": model_type, **({key: inner} if key else LLAMA_KEYS)}
    assert costs(config) == costs(inner)
    assert parameters(load(config)).not_counted
