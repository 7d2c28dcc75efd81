"""Cohere's Command models: parallel blocks with one norm, LayerNorms without biases, a scale on the logits.

Command-R and Aya (`cohere`) see everything in all layers. Command-R7B and Command-A (`cohere2`) have a window and RoPE
in most layers, and in every fourth neither.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    NO_POSITIONS,
    Written,
    free_head_dim,
    layer_count,
    layer_norm,
    llama_like,
    rotary,
    types_by_period,
    windows_by_type,
)

PATTERN, REMARK = "sliding_window_pattern", "_sliding_window_pattern"
PERIOD = 4
# Keys of the published files that neither class reads, and the only values that say what it builds.
BUILT: dict[str, tuple[object, ...]] = {
    "order_of_interleaved_layers": (None, "local_attn_first"),
    "position_embedding_type": (None, "rope_gptj"),
    "use_embedding_sharing": (None, True),
    "use_gated_activation": (None, True),
    "use_parallel_block": (None, True),
    "use_parallel_embedding": (None, False),
}


def read_cohere(config: Config) -> Written:
    """`use_qk_norm` gives each head of queries and of keys its own gains (Command-R+)."""
    own_norm = {"kind": "each_head", "norm": layer_norm(config, bias=False)}
    qk_norm = own_norm if config.flag("use_qk_norm") else None
    layers = layer_count(config)
    config.layer_types(layers, (FULL,))
    return _parallel(config, [None] * layers, [rotary(config)] * layers, {"qk_norm": qk_norm})


def read_cohere2(config: Config) -> Written:
    """Raw configs do not spell the pattern out, or say `sliding_window_pattern: 4`: sliding, sliding, sliding, full."""
    for key, allowed in BUILT.items():
        config.expect(key, *allowed)
    if config["layer_types"] is None and config[PATTERN] is None:
        config.expect(REMARK, None, PERIOD)
        config.expect("layer_switch", None, PERIOD)
    else:
        config.note(REMARK, "layer_switch")
    types = types_by_period(config, PERIOD, full=-1, key=PATTERN)
    windows = windows_by_type(config, types, config.size_or_none("sliding_window"), why_none="`sliding_window` is null")
    turned = rotary(config)
    return _parallel(config, windows, [NO_POSITIONS if word == FULL else turned for word in types], {})


def _parallel(config: Config, windows: list[int | None], positions: list[Written], attention: Written) -> Written:
    bias = config.flag("attention_bias")
    written = llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=free_head_dim(config),
        windows=windows,
        positions=positions,
        norm=layer_norm(config, bias=False),
        attention={"bias": bias, "out_bias": bias, **attention},
        block={"parallel": "one_norm"},
    )
    config.note("logit_scale")  # it changes no count
    return {**written, "head": {"kind": "vocabulary", "scale": config.number("logit_scale")}}


READERS = {"cohere": read_cohere, "cohere2": read_cohere2}
CLASSES = {"cohere": ("CohereForCausalLM",), "cohere2": ("Cohere2ForCausalLM",)}
