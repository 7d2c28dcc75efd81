"""RwkvForCausalLM (RWKV-4, arXiv 2305.13048): time mixing and channel mixing in every layer, no positions."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import NO_POSITIONS, Written, layer_count, layer_norm
from costcalc.sources.huggingface.recurrent import agree
from costcalc.sources.huggingface.sparse import whole


def read_rwkv(config: Config) -> Written:
    """A norm of the embeddings; networks of four times the width where `intermediate_size` is null. States are as wide
    as the model, so that another `attention_hidden_size` cannot run.
    """
    config.note("rescale_every")  # weights and hidden states are halved together, to stay in the range of float16
    width = config.size("hidden_size")
    agree(config, attention_hidden_size=width)
    norm = layer_norm(config, "layer_norm_epsilon")
    layer: Written = {
        "norm": norm,
        "positions": NO_POSITIONS,
        "mixer": {"kind": "rwkv", "width": width},
        "feed_forward": {"kind": "rwkv_channel", "d_ff": config.size_or_none("intermediate_size") or 4 * width},
    }
    written = whole(config, norm, NO_POSITIONS, [layer] * layer_count(config), embedding={"norm": norm})
    return {**written, "context_length": config.size_or_none("context_length")}


READERS = {"rwkv": read_rwkv}
CLASSES = {"rwkv": ("RwkvForCausalLM",)}
