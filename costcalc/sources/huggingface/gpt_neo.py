"""GPTNeoForCausalLM: GPT-2's blocks without scaled scores, and a window in every other layer, the second first."""

from __future__ import annotations

from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, layer_norm, layers_of

GLOBAL, LOCAL = "global", "local"
PATTERN: list[Any] = [[[GLOBAL, LOCAL], 12]]
"""The class default of `attention_types`: as deep as the class default, whatever the file says of the depth."""
EXAMPLE = 'write "attention_types": [[["global", "local"], 12]]'


def read_gpt_neo(config: Config) -> Written:
    """`attention_types` holds patterns and how often each is repeated; `intermediate_size` null is 4 x the width.

    A local layer sees `window_size` tokens, itself included; the library's own cache keeps all of them all the same.
    """
    width, positions = config.size("hidden_size"), config.size("max_position_embeddings")
    inner, window = config.size_or_none("intermediate_size"), config.size("window_size")
    norm, learned = layer_norm(config, "layer_norm_epsilon"), {"kind": "learned", "length": positions}
    windows = [window if word == LOCAL else None for word in _types(config)]
    attention = {"kind": "grouped_query", "heads": config.size("num_heads"), "out_bias": True, "scale": 1.0}
    network = {
        "kind": "dense",
        "d_ff": 4 * width if inner is None else inner,
        "activation": config.activation("activation_function"),
        "bias": True,
    }
    layers = layers_of({"norm": norm, "feed_forward": network}, attention, windows, [learned] * len(windows))
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": width,
        "context_length": positions,
        "tie_embeddings": config.flag("tie_word_embeddings"),
        "decoder": {"norm": norm, "positions": learned, "layers": layers},
    }


def _types(config: Config) -> list[str]:
    """One word a layer, from the patterns; `attention_layers` spells the same out."""
    layers, words = layer_count(config, "num_layers"), []
    written = PATTERN if config["attention_types"] is None else config["attention_types"]
    for item in written if isinstance(written, list) else [written]:
        match item:
            case [[*pattern], int(times)] if not isinstance(times, bool) and set(map(str, pattern)) <= {GLOBAL, LOCAL}:
                words += pattern * min(times, layers // max(len(pattern), 1) + 1)
            case _:
                what = f"`attention_types` holds {shown(item)}: a list of {GLOBAL} and {LOCAL}, and how often"
                raise config.refusal(what, EXAMPLE, "attention_types")
        if len(words) > layers:
            break
    if len(words) != layers:
        more = "more" if len(words) > layers else f"{len(words)}"
        what = f"`attention_types` is for {more} layers, and `num_layers` is {layers}"
        raise config.refusal(what, EXAMPLE, "attention_types")
    config.expect("attention_layers", None, words)
    return words


READERS = {"gpt_neo": read_gpt_neo}
CLASSES = {"gpt_neo": ("GPTNeoForCausalLM",)}
