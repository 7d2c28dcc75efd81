"""Decoders by layer and in parallel: worked-out sums, old dialects, what no total shows, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters, verify

Config = dict[str, Any]

# V=19, D=48, N=6, K=2, H=8 where it is the width over the heads and 10 where the class lets it be said; F=37, L=3.
V, D, N, K, H, F, L = 19, 48, 6, 2, 8, 37, 3
SIZES: Config = {
    "vocab_size": V,
    "hidden_size": D,
    "num_attention_heads": N,
    "num_key_value_heads": K,
    "intermediate_size": F,
    "num_hidden_layers": L,
    "max_position_embeddings": 71,
}
MULTI = {key: value for key, value in SIZES.items() if key != "num_key_value_heads"}
GPT: Config = {"vocab_size": V, "n_embd": D, "n_head": N, "n_layer": L, "n_positions": 71}
NEO: Config = {
    "vocab_size": V,
    "hidden_size": D,
    "num_heads": N,
    "num_layers": L,
    "intermediate_size": F,
    "max_position_embeddings": 71,
    "attention_types": [[["global", "local"], 1], [["local"], 1]],
    "window_size": 5,
}
SMALL: dict[str, Config] = {
    "arcee": SIZES,
    "biogpt": MULTI,
    "codegen": {**GPT, "rotary_dim": 4},
    "cohere": SIZES,
    "cohere2": {**SIZES, "sliding_window": 5},
    "ctrl": {**GPT, "dff": F},
    "cwm": {**SIZES, "head_dim": 10, "sliding_window": 5},
    "ernie4_5": {**SIZES, "head_dim": 10},
    "exaone": {**SIZES, "head_dim": 10},
    "exaone4": {**SIZES, "sliding_window": 5},
    "gemma": {**SIZES, "head_dim": 10},
    "gemma3_text": {**SIZES, "head_dim": 10, "sliding_window": 5},
    "glm": {**SIZES, "head_dim": 16},
    "glm4": {**SIZES, "head_dim": 16},
    "gpt-sw3": {**GPT, "n_inner": F},
    "gpt_bigcode": {**GPT, "n_inner": F},
    "gpt_neo": NEO,
    "gpt_neox": {**MULTI, "rotary_pct": 0.5},
    "gpt_neox_japanese": {key: value for key, value in MULTI.items() if key != "intermediate_size"},
    "gptj": {**GPT, "n_inner": F, "rotary_dim": 4},
    "granite": SIZES,
    "granite_swa": {**SIZES, "sliding_window": 5},
    "helium": {**SIZES, "head_dim": 8},
    "hunyuan_v1_dense": {**SIZES, "head_dim": 10},
    "hyperclovax": SIZES,
    "internlm3": {**SIZES, "head_dim": 10},
    "iquestcoder": {**SIZES, "head_dim": 10},
    "jais2": SIZES,
    "ministral": {**SIZES, "head_dim": 10, "sliding_window": 5},
    "ministral3": {**SIZES, "head_dim": 10},
    "nanochat": SIZES,
    "nemotron": SIZES,
    "olmo": SIZES,
    "olmo2": SIZES,
    "olmo3": {**SIZES, "sliding_window": 5},
    "openai-gpt": GPT,
    "opt": {**{k: v for k, v in MULTI.items() if k != "intermediate_size"}, "ffn_dim": F},
    "persimmon": MULTI,
    "phi": SIZES,
    "phi3": SIZES,
    "seed_oss": {**SIZES, "head_dim": 10},
    "smollm3": SIZES,
    "stablelm": {**SIZES, "partial_rotary_factor": 0.5},
    "starcoder2": SIZES,
    "vaultgemma": {**SIZES, "head_dim": 10, "sliding_window": 5},
    "xglm": {"vocab_size": V, "d_model": D, "attention_heads": N, "num_layers": L, "ffn_dim": F},
}
TABLE, NORM = V * D, 2 * D
GATED, DENSE = 3 * D * F, 2 * D * F
DENSE_BIAS = F + D


def _attention(head_dim: int = H, kv_heads: int = K) -> int:
    """q and output D·N·H, k and v D·K·H."""
    return 2 * D * N * head_dim + 2 * D * kv_heads * head_dim


def _biases(head_dim: int = H, kv_heads: int = K) -> int:
    """Those of q, k and v."""
    return (N + 2 * kv_heads) * head_dim


def _small(model_type: str, **changes: Any) -> Config:
    return {"model_type": model_type, **SMALL[model_type], **changes}


def _blocks(config: Config) -> list[Any]:
    """The block of each layer, in order."""
    arch = load(config)
    block_of = {group.path: group.block for group in arch.groups}
    return [block_of[path] for path in arch.inventory.layout["decoder"]]


def _windows(config: Config) -> list[int | None]:
    return [block.attention.window for block in _blocks(config)]


def _positions(config: Config) -> list[str]:
    return [block.positions.kind for block in _blocks(config)]


# ---------------------------------------------------------------------------------------------------- worked-out sums


@pytest.mark.parametrize(
    ("config", "total"),
    [
        # Two RMSNorms a layer and one on top, a head of its own or not.
        (_small("gemma"), TABLE + L * (_attention(10) + GATED + 2 * D) + D),
        (_small("vaultgemma"), TABLE + L * (_attention(10) + GATED + 2 * D) + D),
        # Four norms, and two of H on queries and keys.
        (_small("gemma3_text"), TABLE + L * (_attention(10) + GATED + 4 * D + 2 * 10) + D),
        # One LayerNorm a layer, gains only; with `use_qk_norm` N·H gains for queries and K·H for keys.
        (_small("cohere"), TABLE + L * (_attention() + GATED + D) + D),
        (_small("cohere", use_qk_norm=True), TABLE + L * (_attention() + GATED + D + (N + K) * H) + D),
        (_small("cohere2", head_dim=10), TABLE + L * (_attention(10) + GATED + D) + D),
        # Positions 71·D; a bias on the output and two in the network; LayerNorms.
        (_small("gpt_neo"), TABLE + 71 * D + L * (_attention(H, N) + D + DENSE + DENSE_BIAS + 2 * NORM) + NORM),
        # Biases everywhere, two LayerNorms side by side, two tables.
        (
            _small("gpt_neox"),
            2 * TABLE + L * (_attention(H, N) + _biases(H, N) + D + DENSE + DENSE_BIAS + 2 * NORM) + NORM,
        ),
        (
            _small("gpt_neox", attention_bias=False),
            2 * TABLE + L * (_attention(H, N) + DENSE + DENSE_BIAS + 2 * NORM) + NORM,
        ),
        # 4·D wide; one bias of D in all.
        (_small("gpt_neox_japanese"), TABLE + L * (_attention(H, N) + 8 * D * D + 2 * NORM) + D + NORM),
        (_small("olmo"), 2 * TABLE + L * (_attention() + GATED)),
        # Norms of N·H and K·H numbers, and two of D on the outputs.
        (_small("olmo2"), 2 * TABLE + L * (_attention() + GATED + (N + K) * H + 2 * D) + D),
        (_small("olmo3"), 2 * TABLE + L * (_attention() + GATED + (N + K) * H + 2 * D) + D),
        (_small("exaone4"), 2 * TABLE + L * (_attention() + GATED + 2 * H + 2 * D) + D),
        (_small("smollm3"), TABLE + L * (_attention() + GATED + 2 * D) + D),
        # One LayerNorm, biases everywhere, one for each word on the head as well.
        (
            _small("phi"),
            2 * TABLE + V + L * (_attention() + _biases() + D + DENSE + DENSE_BIAS + NORM) + NORM,
        ),
        (
            _small("phi", qk_layernorm=True),
            2 * TABLE + V + L * (_attention() + _biases() + D + DENSE + DENSE_BIAS + NORM + 4 * H) + NORM,
        ),
        (_small("phi3"), 2 * TABLE + L * (_attention() + GATED + 2 * D) + D),
        (
            _small("starcoder2"),
            TABLE + L * (_attention() + _biases() + D + DENSE + DENSE_BIAS + 2 * NORM) + NORM,
        ),
        (_small("starcoder2", use_bias=False), TABLE + L * (_attention() + DENSE + 2 * NORM) + NORM),
        # N sinks a layer.
        (_small("granite_swa"), TABLE + L * (_attention() + GATED + 2 * D + N) + D),
        (_small("granite"), 2 * TABLE + L * (_attention() + GATED + 2 * D) + D),
        (_small("hyperclovax"), 2 * TABLE + L * (_attention() + GATED + 4 * D) + D),
        (_small("hyperclovax", use_post_norm=False), 2 * TABLE + L * (_attention() + GATED + 2 * D) + D),
        (_small("glm"), 2 * TABLE + L * (_attention(16) + _biases(16) + GATED + 2 * D) + D),
        (_small("glm4"), 2 * TABLE + L * (_attention(16) + _biases(16) + GATED + 4 * D) + D),
        (_small("seed_oss"), 2 * TABLE + L * (_attention(10) + _biases(10) + GATED + 2 * D) + D),
        (
            _small("seed_oss", attention_bias=False, attention_out_bias=True, mlp_bias=True),
            2 * TABLE + L * (_attention(10) + D + GATED + 2 * F + D + 2 * D) + D,
        ),
        (_small("arcee"), 2 * TABLE + L * (_attention() + DENSE + 2 * D) + D),
        (_small("helium", attention_bias=True), 2 * TABLE + L * (_attention() + _biases() + GATED + 2 * D) + D),
        (_small("nanochat"), 2 * TABLE + L * (_attention() + DENSE)),
        (_small("hunyuan_v1_dense"), 2 * TABLE + L * (_attention(10) + GATED + 2 * D + 2 * 10) + D),
        (
            _small("internlm3", qkv_bias=True, bias=True),
            2 * TABLE + L * (_attention(10) + _biases(10) + D + GATED + 2 * F + D + 2 * D) + D,
        ),
        # GPT-J: no bias in the attention, one LayerNorm, a bias for each word.
        (_small("gptj"), 2 * TABLE + V + L * (_attention(H, N) + DENSE + DENSE_BIAS + NORM) + NORM),
        (_small("gptj", n_inner=None), 2 * TABLE + V + L * (_attention(H, N) + 8 * D * D + 5 * D + NORM) + NORM),
        # Each head of queries and of keys with gains of its own.
        (_small("stablelm"), 2 * TABLE + L * (_attention() + GATED + 2 * NORM) + NORM),
        (
            _small("stablelm", qk_layernorm=True, use_parallel_residual=True, use_qkv_bias=True),
            2 * TABLE + L * (_attention() + _biases() + GATED + NORM + (N + K) * H) + NORM,
        ),
        (
            _small("persimmon"),
            2 * TABLE + L * (_attention(H, N) + _biases(H, N) + D + DENSE + DENSE_BIAS + 2 * NORM + 4 * H) + NORM,
        ),
        # One key/value head, and 71 rows of positions.
        (
            _small("gpt_bigcode"),
            TABLE + 71 * D + L * (_attention(H, 1) + _biases(H, 1) + D + DENSE + DENSE_BIAS + 2 * NORM) + NORM,
        ),
        # The first GPT: 4·D wide, no norm on top.
        (
            _small("openai-gpt"),
            TABLE + 71 * D + L * (_attention(H, N) + _biases(H, N) + D + 8 * D * D + 5 * D + 2 * NORM),
        ),
        # 71 + 2 rows of positions.
        (
            _small("opt"),
            TABLE + 73 * D + L * (_attention(H, N) + _biases(H, N) + D + DENSE + DENSE_BIAS + 2 * NORM) + NORM,
        ),
        # Rows of 13 and two projections; norms after the sums, none on top.
        (
            _small("opt", word_embed_proj_dim=13, do_layer_norm_before=False),
            V * 13 + 2 * 13 * D + 73 * D + L * (_attention(H, N) + _biases(H, N) + D + DENSE + DENSE_BIAS + 2 * NORM),
        ),
        (
            _small("opt", enable_bias=False, layer_norm_elementwise_affine=False),
            TABLE + 73 * D + L * (4 * D * D + DENSE),
        ),
        # Sinusoids are held nowhere.
        (
            _small("xglm"),
            TABLE + L * (_attention(H, N) + _biases(H, N) + D + DENSE + DENSE_BIAS + 2 * NORM) + NORM,
        ),
        (
            _small("ctrl"),
            TABLE + V + L * (_attention(H, N) + _biases(H, N) + D + DENSE + DENSE_BIAS + 2 * NORM) + NORM,
        ),
    ],
)
def test_totals(config, total):
    assert parameters(load(config)).total == total


@pytest.mark.parametrize("model_type", SMALL)
def test_the_reference_agrees(model_type):
    assert verify(load(_small(model_type))).agrees


# ------------------------------------------------------------------------------------------------------------ patterns

W, N_O = 5, None


@pytest.mark.parametrize(
    ("model_type", "layers", "windows"),
    [
        ("gemma3_text", 8, [W, W, W, W, W, N_O, W, W]),
        ("vaultgemma", 5, [W, N_O, W, N_O, W]),
        ("cohere2", 6, [W, W, W, N_O, W, W]),
        ("exaone4", 6, [W, W, W, N_O, W, W]),
        ("olmo3", 6, [W, W, W, N_O, W, W]),
        ("cwm", 6, [N_O, W, W, W, N_O, W]),
        ("granite_swa", 6, [N_O, W, W, W, N_O, W]),
        ("ministral", 3, [W, W, W]),
    ],
)
def test_the_pattern_that_a_class_has_where_nothing_is_written(model_type, layers, windows):
    """And where it does not divide the depth it breaks off."""
    config = _small(model_type, num_hidden_layers=layers)
    assert _windows(config) == windows
    names = {window: "full_attention" if window is None else "sliding_attention" for window in windows}
    spelled = {**config, "layer_types": [names[window] for window in windows]}
    assert load(spelled).inventory == load(config).inventory
    turned = {**config, "layer_types": [names[window] for window in windows[::-1]]}
    assert _windows(turned) == windows[::-1]


@pytest.mark.parametrize("model_type", ["gemma3_text", "cohere2", "exaone4"])
def test_the_older_key_of_a_pattern(model_type):
    config = _small(model_type, num_hidden_layers=7, sliding_window_pattern=3)
    assert _windows(config) == [W, W, None, W, W, None, W]
    words = ["full_attention" if window is None else "sliding_attention" for window in _windows(config)]
    assert load({**config, "layer_types": words}).inventory == load(config).inventory
    assert _windows({**config, "sliding_window_pattern": 1}) == [None] * 7


def test_letters_of_a_pattern():
    config = _small("exaone4", num_hidden_layers=7, sliding_window_pattern="LLG")
    assert _windows(config) == [W, W, None, W, W, None, W]
    assert _windows({**config, "sliding_window": None}) == [None] * 7
    words = ["full_attention", *["sliding_attention"] * 6]
    assert _windows({**config, "layer_types": words}) == [None, W, W, W, W, W, W]  # the class reads the list


def test_a_remark_of_gemma_3_beside_its_list():
    """The class writes `_sliding_window_pattern` and never reads it."""
    words = ["full_attention", "sliding_attention", "sliding_attention"]
    assert _windows(_small("gemma3_text", layer_types=words, _sliding_window_pattern=6)) == [None, W, W]
    assert _windows(_small("gemma3_text", _sliding_window_pattern=6)) == [W, W, W]


@pytest.mark.parametrize(
    ("types", "windows"),
    [
        ([[["global", "local"], 1], [["local"], 1]], [None, W, W]),
        ([[["local"], 3]], [W, W, W]),
        ([[["global", "global", "local"], 1]], [None, None, W]),
        ([[["global"], 1], [["local"], 0], [["global"], 2]], [None, None, None]),
    ],
)
def test_attention_types_of_gpt_neo(types, windows):
    config = _small("gpt_neo", attention_types=types)
    assert _windows(config) == windows
    words = ["global" if window is None else "local" for window in windows]
    assert load({**config, "attention_layers": words}).inventory == load(config).inventory


def test_gpt_neo_where_nothing_is_written():
    config = {key: value for key, value in _small("gpt_neo", num_layers=24).items() if key != "attention_types"}
    assert _windows(config) == [None, W] * 12


def test_layers_without_positions():
    assert _positions(_small("smollm3", num_hidden_layers=5)) == ["rope", "rope", "rope", "none", "rope"]
    assert _positions(_small("smollm3", no_rope_layer_interval=2)) == ["rope", "none", "rope"]
    assert _positions(_small("smollm3", no_rope_layers=[0, 1, 0])) == ["none", "rope", "none"]
    assert _positions(_small("cohere2", num_hidden_layers=5)) == ["rope", "rope", "rope", "none", "rope"]
    assert _positions(_small("exaone4", num_hidden_layers=4)) == ["rope", "rope", "rope", "none"]
    assert _positions(_small("exaone4", num_hidden_layers=4, sliding_window=None)) == ["rope"] * 4
    assert _positions(_small("granite_swa", layer_rope_theta=[0, 1e4, 0])) == ["none", "rope", "none"]


def test_windows_of_smollm3_go_to_the_layers_without_positions():
    config = _small("smollm3", num_hidden_layers=5, use_sliding_window=True, sliding_window=W)
    assert _windows(config) == [None, None, None, W, None]
    assert _windows({**config, "use_sliding_window": False}) == [None] * 5
    assert _windows({**config, "sliding_window": None}) == [None] * 5
    words = ["sliding_attention", *["full_attention"] * 4]
    assert _windows({**config, "layer_types": words}) == [W, None, None, None, None]


def test_the_base_of_each_kind_of_layer():
    def thetas(config: Config) -> list[float]:
        return [block.positions.theta for block in _blocks(config)]

    gemma = _small("gemma3_text", sliding_window_pattern=2)
    assert thetas(gemma) == [1e4, 1e6, 1e4]
    assert thetas({**gemma, "rope_theta": 7.0, "rope_local_base_freq": 5.0}) == [5.0, 7.0, 5.0]
    new = {"full_attention": {"rope_theta": 7.0}, "sliding_attention": {"rope_theta": 5.0}}
    assert thetas({**gemma, "rope_parameters": new}) == [5.0, 7.0, 5.0]
    assert thetas(_small("olmo3")) == [5e5] * 3
    assert thetas(_small("olmo3", rope_theta=7.0)) == [7.0] * 3
    assert thetas(_small("granite_swa", layer_rope_theta=[3.0, 5.0, 7.0])) == [3.0, 5.0, 7.0]


@pytest.mark.parametrize(
    ("model_type", "theta"),
    [("cohere", 5e5), ("smollm3", 2e6), ("helium", 1e5), ("ernie4_5", 5e5), ("exaone", 5e5), ("olmo", 1e4)],
)
def test_the_base_of_the_class(model_type, theta):
    (block, *_) = _blocks(_small(model_type))
    assert block.positions.theta == theta
    (block, *_) = _blocks(_small(model_type, rope_theta=7.0))
    assert block.positions.theta == 7.0
    (block, *_) = _blocks(_small(model_type, rope_parameters={"rope_theta": 7.0}))
    assert block.positions.theta == 7.0


@pytest.mark.parametrize(
    ("changes", "rotary_dim"),
    [
        ({}, 4),
        ({"partial_rotary_factor": 0.25}, 2),
        ({"partial_rotary_factor": 1}, None),
        ({"rope_parameters": {"partial_rotary_factor": 0.25}}, 2),
        ({"partial_rotary_factor": 1, "rope_scaling": {"partial_rotary_factor": 0.25}}, 2),
    ],
)
def test_a_part_of_each_head_is_rotated(changes, rotary_dim):
    assert [block.positions.rotary_dim for block in _blocks(_small("phi", **changes))] == [rotary_dim] * L


def test_what_no_total_shows():
    (block, *_) = _blocks(_small("cohere2"))
    assert (block.parallel, block.norm.kind, block.norm.bias) == ("one_norm", "layernorm", False)
    assert load(_small("cohere", logit_scale=0.25)).head.scale == 0.25
    (block, *_) = _blocks(_small("gpt_neo"))
    assert (block.attention.scale, block.feed_forward.activation) == (1.0, "gelu_new")
    assert [b.parallel for b in _blocks(_small("gpt_neox", use_parallel_residual=False))] == [False] * L
    assert [b.attention.out_bias for b in _blocks(_small("gpt_neox_japanese"))] == [False, False, True]
    assert [b.attention.out_bias for b in _blocks(_small("gpt_neox_japanese", num_hidden_layers=1))] == [True]
    multipliers = {"embedding_multiplier": 12, "residual_multiplier": 0.22, "attention_multiplier": 0.5}
    granite = load(_small("granite", **multipliers, logits_scaling=8))
    assert (granite.embedding.scale, granite.head.scale) == (12.0, 0.125)
    (block, *_) = _blocks(_small("granite", **multipliers))
    assert (block.residual_scale, block.attention.scale) == (0.22, 0.5)
    assert load(_small("hyperclovax", logits_scaling=8)).head.scale == 8.0
    (block, *_) = _blocks(_small("hyperclovax"))
    assert block.attention.scale is None
    assert {b.norms for b in _blocks(_small("olmo2"))} == {"output"}
    assert {b.norms for b in _blocks(_small("glm4"))} == {"sandwich"}
    assert {b.norms for b in _blocks(_small("openai-gpt"))} == {"post"}
    gemma = load(_small("gemma3_text", query_pre_attn_scalar=100))
    assert gemma.embedding.scale == 48**0.5
    assert gemma.groups[0].block.attention.scale == 0.1
    assert load(_small("gemma", hidden_act="gelu")).groups[0].block.feed_forward.activation == "gelu_tanh"
    assert load(_small("gemma", hidden_activation="relu")).groups[0].block.feed_forward.activation == "relu"
    assert load(_small("nanochat")).head.softcap == 15.0
    assert load(_small("opt")).longest() == 71


def test_caches_by_layer():
    """After 23 tokens a layer holds 2·K·H numbers of min(23, 5) of them, or of all."""
    assert kv_cache(load(_small("cohere2", num_hidden_layers=5)), 23).elements == 2 * K * H * (4 * 5 + 23)
    assert kv_cache(load(_small("gpt_neo")), 23).elements == 2 * N * H * (2 * 5 + 23)
    assert kv_cache(load(_small("phi3", sliding_window=5)), 23).elements == 2 * K * H * 3 * 5
    assert kv_cache(load(_small("gpt_bigcode")), 23).elements == 2 * H * 3 * 23


# --------------------------------------------------------------------------------------------------- keys of real files


@pytest.mark.parametrize(
    ("model_type", "keys"),
    [
        ("cohere2", {"layer_switch": 4, "order_of_interleaved_layers": "local_attn_first", "use_parallel_block": True}),
        ("cohere2", {"_sliding_window_pattern": 4, "position_embedding_type": "rope_gptj", "rotary_pct": 1.0}),
        ("gpt_bigcode", {"inference_runner": 0, "pad_key_length": True, "pre_allocate_kv_cache": False}),
        ("gptj", {"rotary": True, "scale_attn_weights": True, "gradient_checkpointing": False}),
        ("opt", {"output_projection": True, "prefix": "</s>", "_remove_final_layer_norm": False}),
        ("phi3", {"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False}),
        ("starcoder2", {"mlp_type": "default", "norm_type": "layer_norm", "residual_dropout": 0.1}),
        ("smollm3", {"max_window_layers": 28, "pretraining_tp": 2}),
        ("olmo", {"clip_qkv": 8.0}),
        ("gpt_neo", {"embed_dropout": 0, "resid_dropout": 0}),
        ("hunyuan_v1_dense", {"use_qk_norm": True, "use_cla": False}),
    ],
)
def test_keys_that_say_what_is_built_anyway(model_type, keys):
    assert load(_small(model_type, **keys)).inventory == load(_small(model_type)).inventory


def test_names_of_old_files():
    neox = _small("gpt_neox")
    new = {key: value for key, value in neox.items() if key != "rotary_pct"}
    assert load({**new, "partial_rotary_factor": 0.5}).inventory == load(neox).inventory
    gptj = {key: value for key, value in _small("gptj").items() if not key.startswith("n_") or key == "n_inner"}
    names = {"hidden_size": D, "num_attention_heads": N, "num_hidden_layers": L, "max_position_embeddings": 71}
    assert load({**gptj, **names}).inventory == load(_small("gptj")).inventory
    exaone = {key: value for key, value in _small("exaone").items() if key != "num_hidden_layers"}
    assert load({**exaone, "num_layers": L}).inventory == load(_small("exaone")).inventory


# ------------------------------------------------------------------------------------------------------------- wrappers


@pytest.mark.parametrize(
    ("wrapper", "text"),
    [
        ("aya_vision", _small("cohere2")),
        ("cohere2_vision", _small("cohere2", num_hidden_layers=5)),
        ("gemma3", _small("gemma3_text", num_hidden_layers=8)),
        ("mistral3", {"model_type": "mistral", **SIZES, "head_dim": 10, "sliding_window": None}),
        ("mistral3", _small("ministral3")),
        ("qwen2_vl", {"model_type": "qwen2_vl_text", **SIZES}),
        ("qwen2_5_vl", {"model_type": "qwen2_5_vl_text", **SIZES}),
        ("qwen3_vl", {"model_type": "qwen3_vl_text", **SIZES, "head_dim": 10}),
    ],
)
def test_the_text_model_of_a_wrapper(wrapper, text):
    vision = {"hidden_size": 64, "num_hidden_layers": 2}
    arch = load({"model_type": wrapper, "text_config": text, "vision_config": vision, "image_token_index": 7})
    usual = {"tie_word_embeddings": False} if wrapper.startswith("qwen") else {}
    alone = load({**text, **usual})
    assert arch.inventory.records == alone.inventory.records
    assert (parameters(arch).not_counted, parameters(alone).not_counted) == (("vision tower",), ())


def test_a_flat_file_of_qwen2_vl():
    text = {"tie_word_embeddings": False, **SIZES}
    other = {"vision_config": {"depth": 2}, "vision_token_id": 3, "image_token_id": 5}
    flat = load({"model_type": "qwen2_vl", **text, **other})
    nested = load({"model_type": "qwen2_vl", "text_config": text, **other})
    assert flat.inventory == nested.inventory
    assert flat.tie_embeddings is False


def test_a_flat_file_with_a_key_that_nobody_reads(refusal):
    flat = {"model_type": "qwen2_vl", **SIZES, "vision_config": {}, "no_such_key": 3}
    assert "`no_such_key`" in refusal(flat).what
    assert "`vocab_size`" in refusal({"model_type": "gemma3", **SIZES}).what


def test_mistral_3_is_not_tied_unless_it_says_so():
    text = {"model_type": "ministral3", **SIZES, "head_dim": 10}
    assert load({"model_type": "mistral3", "text_config": text}).tie_embeddings is False
    tied = {"model_type": "mistral3", "text_config": {**text, "tie_word_embeddings": True}}
    assert load(tied).tie_embeddings is True


# -------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("model_type", "key", "value"),
    [
        ("cohere", "logit_scale", None),
        ("cohere", "use_qk_norm", None),
        ("cohere2", "order_of_interleaved_layers", "global_attn_first"),
        ("cohere2", "use_parallel_block", False),
        ("cohere2", "_sliding_window_pattern", 3),
        ("cohere2", "layer_switch", 2),
        ("cohere2", "use_qk_norm", True),
        ("cohere2", "rotary_pct", 0.5),
        ("cohere2", "sliding_window", None),
        ("cohere2", "sliding_window", 0),
        ("cohere2", "sliding_window_pattern", 0),
        ("cohere2", "layer_types", ["local", "local", "global"]),
        ("cwm", "sliding_window", 0),
        ("cwm", "attention_bias", True),
        ("exaone4", "sliding_window_pattern", "LLX"),
        ("exaone4", "sliding_window_pattern", ""),
        ("exaone4", "sliding_window_pattern", 0),
        ("exaone4", "sliding_window_pattern", None),
        ("gemma3_text", "sliding_window_pattern", None),
        ("exaone4", "layer_types", ["full_attention"]),
        ("gemma", "use_bidirectional_attention", True),
        ("gemma", "hidden_activation", "xielu"),
        ("gemma3_text", "_sliding_window_pattern", 3),
        ("gemma3_text", "sliding_window_pattern", True),
        ("gemma3_text", "use_bidirectional_attention", True),
        ("gemma3_text", "query_pre_attn_scalar", 0),
        ("gpt_bigcode", "add_cross_attention", True),
        ("gpt_bigcode", "num_key_value_heads", 2),
        ("gpt_neo", "attention_types", [[["everywhere"], 3]]),
        ("gpt_neo", "attention_types", [["global", 3]]),
        ("gpt_neo", "attention_types", [[["global"], True]]),
        ("gpt_neo", "attention_types", [[["global"], "3"]]),
        ("gpt_neo", "attention_types", [[["global"], 2]]),
        ("gpt_neo", "attention_types", [[["global"], 10**9]]),
        ("gpt_neo", "attention_types", [[["global"] * 1000, 10**9]] * 1000),
        ("gpt_neo", "attention_types", [[[], 10**9]]),
        ("gpt_neo", "attention_types", "global"),
        ("gpt_neo", "attention_types", [[[["global"]], 3]]),
        ("gpt_neo", "attention_layers", ["global", "global", "local"]),
        ("gpt_neo", "window_size", 0),
        ("gpt_neox", "rotary_pct", 0),
        ("gpt_neox", "rotary_pct", 1.5),
        ("gpt_neox", "rotary_pct", True),
        ("gpt_neox", "rotary_pct", "x"),
        ("gpt_neox", "rotary_pct", 0.4),
        ("gpt_neox", "head_dim", 10),
        ("gpt_neox_japanese", "intermediate_size", 4 * D),
        ("gptj", "rotary_dim", None),
        ("gptj", "rotary", False),
        ("granite", "logits_scaling", 0),
        ("granite", "residual_multiplier", -1),
        ("granite_swa", "layer_rope_theta", [1e4]),
        ("granite_swa", "layer_rope_theta", [1e4, None, 1e4]),
        ("granite_swa", "layer_rope_theta", 1e4),
        ("helium", "head_dim", 10),
        ("hunyuan_v1_dense", "use_qk_norm", False),
        ("hunyuan_v1_dense", "use_cla", True),
        ("internlm3", "qkv_bias", True),
        ("iquestcoder", "clip_qkv", 8.0),
        ("iquestcoder", "use_sliding_window", True),
        ("ministral3", "layer_types", ["sliding_attention"] * 3),
        ("nanochat", "hidden_act", "xielu"),
        ("nemotron", "partial_rotary_factor", 0.1),
        ("olmo2", "layer_types", ["sliding_attention"] * 3),
        ("openai-gpt", "afn", "gelu_new"),
        ("opt", "output_projection", False),
        ("opt", "_remove_final_layer_norm", 1),
        ("phi", "head_dim", 10),
        ("phi", "partial_rotary_factor", 0.4),
        ("phi3", "sliding_window", 0),
        ("phi3", "full_attn_mod", 2),
        ("phi3", "lm_head_bias", True),
        ("smollm3", "no_rope_layer_interval", 0),
        ("smollm3", "no_rope_layers", [1, 0]),
        ("smollm3", "no_rope_layers", [1, 0, 2]),
        ("smollm3", "no_rope_layers", "101"),
        ("smollm3", "layer_types", ["sliding_attention"] * 3),
        ("starcoder2", "mlp_type", "gated"),
        ("starcoder2", "norm_type", "rms_norm"),
        ("xglm", "add_cross_attention", True),
    ],
)
def test_a_key_that_would_build_something_else(refusal, model_type, key, value):
    assert f"`{key}`" in refusal(_small(model_type, **{key: value})).what


@pytest.mark.parametrize(
    ("config", "what"),
    [
        (
            _small("gemma3_text", sliding_window_pattern=2, layer_types=["full_attention"] * 3),
            "`layer_types` and `sliding_window_pattern` disagree",
        ),
        (_small("opt", word_embed_proj_dim=13, tie_word_embeddings=False), "a head of its own over"),
        (_small("codegen", n_embd=42), "`n_embd` 42 is not a multiple of 4"),
        (_small("gemma", head_dim=7), "RoPE rotates pairs, and a head of 7 is odd"),
        (_small("gptj", rotary_dim=5), "rotary_dim 5 is odd"),
        (_small("gptj", rotary_dim=10), "rotary_dim 10 is more than head_dim 8"),
        (_small("gpt_neo", num_heads=5), "heads 5"),
        (_small("olmo", num_key_value_heads=4), "heads 6 is not a multiple of kv_heads 4"),
        (_small("gpt_neox", num_attention_heads=5), "`hidden_size` 48 is not a multiple of `num_attention_heads` 5"),
    ],
)
def test_what_cannot_be(refusal, config, what):
    assert what in refusal(config).what


def test_an_odd_head_without_rotation():
    """No layer is rotated, so a head may be of 7."""
    config = _small("granite_swa", layer_rope_theta=[0, 0, 0], head_dim=7)
    assert parameters(load(config)).total == TABLE + L * (_attention(7) + GATED + 2 * D + N) + D


EMBEDDING_GEMMA = {
    "model_type": "gemma3_text",
    "architectures": ["Gemma3TextModel"],
    "use_bidirectional_attention": True,
}
EMBEDDING_GEMMA |= {"vocab_size": 262144, "hidden_size": 768, "num_hidden_layers": 24, "head_dim": 256}
EMBEDDING_GEMMA |= {
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "intermediate_size": 1152,
    "sliding_window": 512,
}


def test_embedding_gemma_is_an_encoder():
    """Built by the library (transformers 5.24.0): 302,863,104 parameters, and FLOPs of 16 tokens."""
    model = load(EMBEDDING_GEMMA)
    assert model.family == "encoder-only"
    assert parameters(model).total == 302_863_104
    assert flops(model, Workload(new_tokens=16, counting="rectangle")).forward == 3_265_265_664
    assert kv_cache(model, 512).bytes is None


def test_a_language_model_that_sees_what_it_predicts_is_refused(refusal):
    said = refusal({**EMBEDDING_GEMMA, "architectures": ["Gemma3ForCausalLM"]})
    assert "`use_bidirectional_attention`: true of a Gemma3ForCausalLM is not read" in said.what
    assert "Gemma3TextModel" in said.hint
