"""Encoder-decoders whose encoders read long texts: LED, BigBird-Pegasus, Pegasus-X.

Their decoders are BART's (arXiv 1910.13461) in all but biases and positions; one table is for both stacks and the head.
LED (arXiv 2004.05150) has Longformer's attention in its encoder, BigBird-Pegasus (2007.14062) blocks that see a few
others, Pegasus-X (2208.04347) blocks that see themselves and learned rows beside the text.
"""

from __future__ import annotations

import math
from typing import Any

from costcalc.sources.huggingface.big_bird import over_blocks, sparse_blocks
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.longformer import attention_windows, windowed
from costcalc.sources.huggingface.pair import CAUSAL, NORM, WHOLE, Classes, Parts, bart_classes, one_table

PARTS: dict[str, Classes] = {
    "led": {name: parts for name, parts in bart_classes("LED").items() if parts != CAUSAL},
    "bigbird_pegasus": bart_classes("BigBirdPegasus"),
    "pegasus_x": {name: parts for name, parts in bart_classes("PegasusX").items() if parts != CAUSAL},
}


def read_led(config: Config) -> Written:
    """Learned positions of both stacks, in tables of their own lengths; norms behind each sublayer."""
    parts, sides = _parts(config), {}
    for side in parts.stacks:
        length = config.size(f"max_{side}_position_embeddings")
        sides[side] = _stack(config, side, norms="post", positions={"kind": "learned", "length": length}, bias=True)
    encoder = sides["encoder"]
    (layer,) = encoder["layers"]
    windows = attention_windows(config, layer.pop("repeat"))
    sides["encoder"] = {**encoder, **windowed(layer, {**layer["attention"], "kind": "sliding"}, windows)}
    length = config.size("max_encoder_position_embeddings")
    return _whole(config, parts, sides, length=length, bias="buffer", norm=NORM)


def read_bigbird_pegasus(config: Config) -> Written:
    """Norms before each sublayer. The decoder attends in full; `use_bias` is of all projections of all attentions."""
    parts = _parts(config)
    length, bias = config.size("max_position_embeddings"), config.flag("use_bias")
    learned: Written = {"kind": "learned", "length": length}
    sides = {side: _stack(config, side, norms="pre", positions=learned, bias=bias) for side in parts.stacks}
    blocks = sparse_blocks(config)
    if blocks is not None and "encoder" in sides:
        encoder = sides["encoder"]
        sides["encoder"] = over_blocks(encoder, encoder["layers"][0]["attention"], blocks)
    return _whole(config, parts, sides, length=length, bias="buffer", scale=_scale(config))


def read_pegasus_x(config: Config) -> Written:
    """Sinusoids without end; every second layer's blocks begin half a block earlier, if `stagger_local_blocks`."""
    parts, positions = _parts(config), {"kind": "sinusoidal"}
    config.note("max_position_embeddings")  # a remark: sinusoids are computed as they are needed
    sides = {side: _stack(config, side, norms="pre", positions=positions, bias=False) for side in parts.stacks}
    block, beside, staggers = config.size("block_size"), config.size("num_global_tokens"), config.flag(STAGGER)
    if staggers and block % 2:
        what = f"`block_size` {block} is odd, and blocks begin half a block earlier in every second layer"
        raise config.refusal(what, "write an even `block_size`", "block_size")
    (layer,) = sides["encoder"]["layers"]
    depth = layer.pop("repeat")
    attention = {**layer["attention"], "kind": "global_local", "block": block}
    kinds = [{**layer, "attention": {**attention, "staggered": staggered}} for staggered in (False, True)]
    layers = [{**kinds[0], "repeat": depth}]
    if staggers:
        named = [{**kind, "name": name} for kind, name in zip(kinds, ("plain", "staggered"), strict=True)]
        layers = [{"repeat": depth // 2, "pattern": named}] if depth > 1 else []
        layers += [named[0]] * (depth % 2)
    encoder = {**sides["encoder"], "padding": {"multiple": block}, "global_tokens": beside, "layers": layers}
    length = config.size("max_position_embeddings")
    return _whole(config, parts, {**sides, "encoder": encoder}, length=length, bias=False, scale=_scale(config))


STAGGER = "stagger_local_blocks"


def _parts(config: Config) -> Parts:
    return PARTS[config.model_type][config.model_class]


def _scale(config: Config) -> float:
    return math.sqrt(config.size("d_model")) if config.flag("scale_embedding") else 1.0


def _stack(config: Config, side: str, *, norms: str, positions: Written, bias: bool) -> Written:
    """Equal layers with full attention, in a decoder with cross-attention."""
    heads, width = config.size(f"{side}_attention_heads"), config.size("d_model")
    if width % heads:
        what = f"`d_model` {width} is not a multiple of `{side}_attention_heads` {heads}"
        raise config.refusal(what, "change one of the two", f"{side}_attention_heads")
    attention: Written = {"kind": "grouped_query", "heads": heads, "bias": bias, "out_bias": bias}
    network = {"kind": "dense", "d_ff": config.size(f"{side}_ffn_dim"), "bias": True}
    network["activation"] = config.activation("activation_function")
    layer: Written = {"repeat": layer_count(config, f"{side}_layers"), "norm": NORM, "norms": norms}
    layer |= {"positions": positions, "attention": attention, "feed_forward": network}
    if side == "decoder":
        layer["cross_attention"] = attention
    return {"norm": NORM, "positions": positions, "layers": [layer]}


def _whole(
    config: Config,
    parts: Parts,
    sides: Written,
    *,
    length: int,
    bias: str | bool,
    scale: float = 1.0,
    norm: Written | None = None,
) -> Written:
    """The full form; bias: of the logits of the whole model."""
    if parts == CAUSAL:
        config.note("is_encoder_decoder", "is_decoder", "add_cross_attention")
        config.note("encoder_layers", "encoder_ffn_dim", "encoder_attention_heads")
    else:
        config.expect("is_encoder_decoder", True)
        config.expect("is_decoder", None, False)
    head: dict[str, Any] = {"kind": "vocabulary", "bias": bias if parts == WHOLE else False}
    return {
        "d_model": config.size("d_model"),
        "context_length": length,
        "embedding": {"scale": scale, **({} if norm is None else {"norm": norm})},
        **one_table(config, parts),
        **({"tie_embeddings": False} if parts == CAUSAL else {}),  # BigBird-Pegasus' causal class never ties them
        "head": head if parts.head else {"kind": "none"},
        **sides,
    }


READERS = {"led": read_led, "bigbird_pegasus": read_bigbird_pegasus, "pegasus_x": read_pegasus_x}
CLASSES = {model_type: tuple(parts) for model_type, parts in PARTS.items()}
