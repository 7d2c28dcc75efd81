"""DbrxForCausalLM: LayerNorms without biases, grouped heads, a mixture in every layer, sizes in two nested parts."""

from __future__ import annotations

from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.activations import ACTIVATIONS
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, rotatable, width_per_head
from costcalc.sources.huggingface.harmless import HARMLESS
from costcalc.sources.huggingface.sparse import whole

ATTENTION = {"kv_n_heads": 1}
"""Sizes of `attn_config`, and what they are by default."""
EXPERTS = {"ffn_hidden_size": 3584, "moe_num_experts": 4, "moe_top_k": 1}
"""Those of `ffn_config`."""
OF_FFN = ("ffn_act_fn", "moe_normalize_expert_weights")
NO_COUNT = ("attn_pdrop", "clip_qkv", "rope_theta", "moe_jitter_eps", "moe_loss_weight", "uniform_expert_assignment")


def read_dbrx(config: Config) -> Written:
    """The head is never tied. Without a base for RoPE in `attn_config` the class cannot be built."""
    config.expect("tie_word_embeddings", False)
    heads = config.size("num_attention_heads")
    of_attention, of_experts = _part(config, "attn_config", ATTENTION), _part(config, "ffn_config", EXPERTS)
    (kv_heads,) = (_size(config, "attn_config", of_attention, key, usual) for key, usual in ATTENTION.items())
    d_ff, experts, chosen = (_size(config, "ffn_config", of_experts, key, usual) for key, usual in EXPERTS.items())
    theta = of_attention.get("rope_theta")
    if isinstance(theta, bool) or not isinstance(theta, (int, float)) or theta <= 0:
        what = f"`rope_theta` in `attn_config` must be a number above 0, got {shown(theta)}"
        raise config.refusal(what, 'write "attn_config": {"rope_theta": 500000, ...}', "attn_config")
    norm: Written = {"kind": "layernorm", "bias": False}
    where: Written = {"kind": "rope", "theta": float(theta)}
    expert: Written = {"kind": "gated", "d_ff": d_ff, "activation": _activation(config, of_experts)}
    head_dim = rotatable(config, width_per_head(config), [where])
    layer = {
        "norm": norm,
        "positions": where,
        "attention": {"kind": "grouped_query", "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim},
        "feed_forward": {
            "kind": "mixture",
            "experts": experts,
            "experts_per_token": chosen,
            "expert": expert,
            "router": {"normalize": _normalized(of_experts)},
        },
    }
    config.expect("num_key_value_heads", None, kv_heads)
    return whole(config, norm, where, [layer] * layer_count(config))


def _part(config: Config, name: str, sizes: dict[str, int]) -> dict[str, Any]:
    """A nested part, of which every key is known."""
    part = {} if config[name] is None else config[name]
    if not isinstance(part, dict):
        raise config.refusal(f"`{name}` must be a mapping", f'write "{name}": {{}}', name)
    others = {"attn_config": ("model_type",), "ffn_config": ("model_type", "hidden_size", *OF_FFN)}[name]
    for key, value in part.items():
        if key in sizes or key in NO_COUNT or key in HARMLESS or key in others or value in (None, False):
            continue
        what = f"`{shown(key)[1:-1]}`: {shown(value)} in `{name}` is not read for dbrx and might change a cost"
        raise config.refusal(what, "describe the model in YAML instead", name, key)
    return part


def _size(config: Config, name: str, part: dict[str, Any], key: str, usual: int) -> int:
    value = part.get(key, usual)
    if type(value) is not int or not 1 <= value <= 10**12:
        what = f"`{key}` in `{name}` must be a whole number of at least 1, got {shown(value)}"
        raise config.refusal(what, f'write "{key}": {usual}', name, key)
    return value


def _activation(config: Config, part: dict[str, Any]) -> str:
    named = part.get("ffn_act_fn") or {"name": "silu"}
    word = named.get("name", "silu") if isinstance(named, dict) else None
    if word not in ACTIVATIONS:
        what = f"`ffn_act_fn` {shown(named)} names no activation that is read"
        raise config.refusal(what, 'write "ffn_act_fn": {"name": "silu"}', "ffn_config", "ffn_act_fn")
    return ACTIVATIONS[word]


def _normalized(part: dict[str, Any]) -> bool:
    """Weights are divided by their sum (1), or left alone (null); other norms of them change no count."""
    return part.get("moe_normalize_expert_weights", 1) is not None


READERS = {"dbrx": read_dbrx}
CLASSES = {"dbrx": ("DbrxForCausalLM",)}
