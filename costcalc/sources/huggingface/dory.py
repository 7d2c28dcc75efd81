"""DoryForCausalLM: nGPT (arXiv 2410.01131) with windows and gated attention, whose middle layers run several times."""

from __future__ import annotations

from costcalc.sources.huggingface.config import MOST_LAYERS, Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    SLIDING,
    Written,
    gated,
    layer_count,
    outline,
    rope_mapping,
    rotatable,
)
from costcalc.sources.huggingface.sparse import count
from costcalc.sources.layers import merged_layers

NORM: Written = {"kind": "rmsnorm", "weight": False, "unit": True, "eps": 1e-6}
BASES = {SLIDING: 1e4, FULL: 1e7}
MLP = "mlp"
PARTS = ("n_input_layers", "n_recurrent_layers", "n_output_layers")


def read_dory(config: Config) -> Written:
    """All norms make lengths 1 and have no numbers. In every turn of the middle layers each has a cache of its own:
    where only the last one keeps any (`last_loop`), the others look at what it kept, which is not described here.
    """
    config.note("initializer_range", *PARTS)
    config.expect("recurrent_kv_cache_mode", "per_loop")
    types, first, middle = _parts(config)
    turns = config.size("n_recurrent_loops", largest=MOST_LAYERS)
    made = {word: _layer(config, word) for word in dict.fromkeys(types)}
    before, after = types[:first], types[first + middle :]
    again = [{**made[word], "share_weights": turns > 1} for word in types[first : first + middle]]
    layers = [
        *(merged_layers([made[word] for word in before]) if before else []),
        *([{"repeat": turns, "pattern": again}] if again else []),
        *(merged_layers([made[word] for word in after]) if after else []),
    ]
    stack: Written = {"norm": NORM, "positions": made[types[0]]["positions"], "layers": layers}
    if again:
        stack["loop"] = {"before": first, "layers": middle, "turns": turns}
    return {**outline(config), "head": {"kind": "vocabulary", "scales": True}, "decoder": stack}


def _layer(config: Config, word: str) -> Written:
    bias, where = config.flag("attention_bias"), _positions(config, word)
    window = config.size("sliding_window") if word == SLIDING else None
    config.note("sliding_window", "ngpt_alpha_init")
    attention = {
        "kind": "grouped_query",
        "heads": config.size("num_attention_heads"),
        "kv_heads": config.size("num_key_value_heads"),
        "head_dim": rotatable(config, config.size("head_dim"), [where]),
        "bias": bias,
        "out_bias": bias,
        "qk_norm": {"kind": "per_head", "norm": NORM},
        "query_gain": True,
        "output_gate": "per_channel",
        "gate_gain": True,
        "output_norm": NORM,
        "window": window,
    }
    network = {**gated(config, bias=config.flag("mlp_bias")), "gains": True, "inner_norm": NORM}
    block = {"norm": NORM, "norms": "sphere", "residual_scale": config.number("ngpt_alpha_init"), "positions": where}
    return {**block, "attention": attention, "feed_forward": network}


def _positions(config: Config, word: str) -> Written:
    """Each type of layer has an entry of its own in `rope_parameters`, if those are not null."""
    config.note("rope_parameters", "rope_scaling", "rope_theta")
    every = rope_mapping(config)
    own = every.get(word) if every else {"rope_theta": BASES[word]}
    if not isinstance(own, dict) or own.get("rope_theta") is None:
        what, usual = f"`rope_parameters` has no entry for {word}", f'{{"{word}": {{"rope_theta": 10000.0}}}}'
        raise config.refusal(what, f'write "rope_parameters": {usual}', "rope_parameters")
    return {"kind": "rope", "theta": float(own["rope_theta"])}


def _parts(config: Config) -> tuple[list[str], int, int]:
    """The type of each layer; how many are in front of the loop, and in it. Published files list an attention and a
    network as two layers each.
    """
    listed, layers = config["layer_types"], layer_count(config)
    two = 2 if isinstance(listed, list) and MLP in listed else 1
    if isinstance(listed, list) and two == 2:
        pairs = [MLP if index % 2 else word for index, word in enumerate(listed)]
        if listed != pairs or len(listed) != layers or layers % 2:
            what = f"`layer_types` must be a list of {layers} words, of which every second is {MLP}"
            raise config.refusal(what, "an attention and a network each", "layer_types")
        config.values["layer_types"] = listed[::2]
    types = config.layer_types(layers // two, tuple(BASES))
    if types is None:
        types = [SLIDING if (index + 1) % 4 else FULL for index in range(layers)]
    first, last = count(config, "n_input_layers") // two, count(config, "n_output_layers") // two
    middle = config["n_recurrent_layers"]
    middle = len(types) - first - last if middle is None else count(config, "n_recurrent_layers") // two
    if middle < 0 or first + middle + last != len(types):
        what = f"`n_input_layers`, `n_recurrent_layers` and `n_output_layers` do not come to {len(types)} layers"
        raise config.refusal(what, "change one of the three", "n_recurrent_layers")
    return types, first, middle


READERS = {"dory": read_dory}
CLASSES = {"dory": ("DoryForCausalLM",)}
