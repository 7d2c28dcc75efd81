"""HrmTextForCausalLM (arXiv 2506.21734): a low and a high stack of equal layers take turns; attention is gated."""

from __future__ import annotations

from costcalc.sources.huggingface.config import MOST_LAYERS, Config
from costcalc.sources.huggingface.decoder import (
    Written,
    gated,
    layer_count,
    outline,
    rms_norm,
    rotary,
    rotatable,
    width_per_head,
)


def read_hrm_text(config: Config) -> Written:
    """No norm has numbers. Tokens of an instruction see one another where a text says which they are (`prefix_lm`):
    texts are counted as if nothing were said. The last cycles that carry gradients change no forward pass.
    """
    config.note("L_bp_cycles", "prefix_lm", "embedding_scale", "initializer_range", "num_key_value_heads")
    width_per_head(config)  # the class insists that it divides
    norm: Written = {**rms_norm(config), "weight": False}
    heads, bias, where = config.size("num_attention_heads"), config.flag("attention_bias"), rotary(config)
    attention = {
        "kind": "grouped_query",
        "heads": heads,
        "kv_heads": heads,
        "head_dim": rotatable(config, config.size("head_dim"), [where]),
        "bias": bias,
        "out_bias": bias,
        "output_gate": "per_channel",
        "gate_bias": bias,
    }
    layer = {
        "norm": norm,
        "positions": where,
        "attention": attention,
        "feed_forward": gated(config, bias=config.flag("mlp_bias")),
        "share_weights": True,
    }
    turns, rounds = config.size("L_cycles", largest=MOST_LAYERS), config.size("H_cycles", largest=MOST_LAYERS)
    each = _layers(config, rounds * (turns + 1))
    low = {"repeat": turns, "pattern": [{**layer} for _ in range(each)]}
    layers = [{"repeat": rounds, "pattern": [low, *({**layer} for _ in range(each))]}]
    stack = {"norm": norm, "positions": where, "final_norm": False, "layers": layers}
    hierarchy = {"low": each, "high": each, "low_turns": turns}
    scale = config.number_or_none("embedding_scale") or 1 / config.number("initializer_range")
    return {**outline(config), "embedding": {"scale": scale}, "decoder": {**stack, "hierarchy": hierarchy}}


def _layers(config: Config, passes: int) -> int:
    """Layers of either stack: `num_hidden_layers`, or beside `num_layers_per_stack` that times all of their passes."""
    layers, each = layer_count(config), config.size_or_none("num_layers_per_stack")
    if each is None:
        return layers
    if layers != each * passes:
        what = f"`num_hidden_layers` {layers} is not `num_layers_per_stack` {each} times {passes} passes"
        raise config.refusal(what, f'write "num_hidden_layers": {each * passes}', "num_hidden_layers")
    return each


READERS = {"hrm_text": read_hrm_text}
CLASSES = {"hrm_text": ("HrmTextForCausalLM",)}
