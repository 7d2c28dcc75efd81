"""ModernBertForMaskedLM (arXiv 2412.13663): RoPE, gated networks, and a window in most layers; and its causal sibling.

The embeddings end in a norm, so that the first layer has none before its attention.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, SLIDING, Written, layer_count, width_per_head
from costcalc.sources.huggingface.encoder import BARE, CAUSAL, MASKED, Names, names, use_of, whole
from costcalc.sources.huggingface.task_heads import TEXTS
from costcalc.sources.layers import merged_layers

NAMES: dict[str, Names] = {
    "modernbert": names("ModernBert", causal=None),
    "modernbert-decoder": {
        CAUSAL: "ModernBertDecoderForCausalLM",
        BARE: "ModernBertDecoderModel",
        TEXTS: "ModernBertDecoderForSequenceClassification",
    },
}
NAME_OF = {FULL: "global", SLIDING: "local"}
THETA = {FULL: ("global_rope_theta", 160_000.0), SLIDING: ("local_rope_theta", 10_000.0)}
"""Of each type of layer, the old key of its base, and the class default."""
EVERY = 3
"""A layer in so many sees everything, where the file does not say."""


def read_modernbert(config: Config) -> Written:
    """`local_attention` is the whole window: half of it to either side, and the token itself."""
    config.expect("is_decoder", None, False)
    config.expect("sparse_prediction", False)  # logits for masked tokens only, in training
    return _whole(config, MASKED, config.size("local_attention"))


def read_modernbert_decoder(config: Config) -> Written:
    """Half of `local_attention` is what a token sees, itself and those before it."""
    local = config.size("local_attention")
    if local < 2:
        raise config.refusal(f"half of `local_attention` {local} is no token", "write at least 2", "local_attention")
    config.expect("sliding_window", None, local // 2)  # the class writes it beside the key that it follows
    return _whole(config, CAUSAL, local // 2)


def _whole(config: Config, usual: str, window: int) -> Written:
    norm = {"kind": "layernorm", "eps": config.number("norm_eps"), "bias": config.flag("norm_bias")}
    head = {
        "transform": True,
        "transform_bias": config.flag("classifier_bias"),
        "activation": config.activation("classifier_activation"),
        "norm": norm,
    }
    # A decoder's class scores each token, and reads the last one's.
    of_text = {"of": "token", "bias": config.flag("classifier_bias")} if usual == CAUSAL else {}
    return whole(
        config,
        use_of(config, NAMES),
        {"norm": norm, "positions": _rotary(config, FULL), "layers": _layers(config, norm, window)},
        is_decoder=usual == CAUSAL,
        head={**head, "bias": config.flag("decoder_bias")},
        tokens=head,
        texts={**head, **of_text},
        d_model=config.size("hidden_size"),
        context_length=config.size_or_none("max_position_embeddings"),
        embedding={"norm": norm},
    )


def _layers(config: Config, norm: Written, window: int) -> list[Written]:
    """The first layer, then the others merged."""
    head_dim, bias = width_per_head(config), config.flag("attention_bias")
    if head_dim % 2:
        raise config.refusal(f"RoPE rotates pairs, and a head of {head_dim} is odd", "change the heads", "hidden_size")
    attention = {"kind": "grouped_query", "heads": config.size("num_attention_heads"), "bias": bias, "out_bias": bias}
    network = {
        "kind": "gated",
        "d_ff": config.size("intermediate_size"),
        "activation": config.activation("hidden_activation"),
        "bias": config.flag("mlp_bias"),
    }
    layer_of = {
        word: {
            "name": NAME_OF[word],
            "norm": norm,
            "norms": "pre",
            "positions": _rotary(config, word),
            "attention": {**attention, "window": window if word == SLIDING else None},
            "feed_forward": network,
        }
        for word in (FULL, SLIDING)
    }
    first, *rest = _types(config)
    entries = [{**layer_of[first], "name": "first", "attention_norm": False, "repeat": 1}]
    return entries + merged_layers([layer_of[word] for word in rest]) if rest else entries


def _types(config: Config) -> list[str]:
    """`layer_types`, or from the older key: full attention in every so many layers, the first included."""
    layers, key = layer_count(config), "global_attn_every_n_layers"
    types = config.layer_types(layers, (FULL, SLIDING))
    every = config.size(key) if key in config.data else EVERY
    counted = [SLIDING if layer % every else FULL for layer in range(layers)]
    if types is not None and key in config.data and types != counted:
        raise config.refusal(f"`layer_types` and `{key}` disagree", "keep one of the two", key)
    return counted if types is None else types


def _rotary(config: Config, word: str) -> Written:
    """RoPE with the base of a type of layer: in `rope_scaling`, else `rope_parameters`, else the old key, else 160,000
    or 10,000.
    """
    key, theta = THETA[word]
    new = config["rope_parameters"]
    found = [config["rope_scaling"], new.get(word) if isinstance(new, dict) else None, {"rope_theta": config[key]}]
    bases = [place["rope_theta"] for place in found if isinstance(place, dict) and place.get("rope_theta") is not None]
    return {"kind": "rope", "theta": bases[0] if bases else theta}


READERS = {"modernbert": read_modernbert, "modernbert-decoder": read_modernbert_decoder}
CLASSES = {model_type: tuple(named.values()) for model_type, named in NAMES.items()}
