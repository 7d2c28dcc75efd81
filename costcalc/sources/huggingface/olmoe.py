"""OlmoeForCausalLM (arXiv 2409.02060): QK-norm over the whole projection, norms before; FlexOlmoForCausalLM (arXiv
2507.07024): the same with its norms on the output of each sublayer.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, floor_width_per_head, layer_count, rms_norm
from costcalc.sources.huggingface.sparse import attention, gated, head_size, mixture, rotations, whole


def read_olmoe(config: Config) -> Written:
    """The norm over queries is as wide as the model, so a head is its heads' share. `clip_qkv` changes no count."""
    config.note("clip_qkv")
    derived = floor_width_per_head(config)
    config.expect("head_dim", None, derived)
    width, heads = config.size("hidden_size"), config.size("num_attention_heads")
    if width % heads:
        what = f"`hidden_size` {width} is not a multiple of `num_attention_heads` {heads}"
        raise config.refusal(what, "change one of the two", "hidden_size")
    return _read(config, derived, theta=1e4, norms="pre")


def read_flex_olmo(config: Config) -> Written:
    """The output of attention and of the experts is normed, not their input."""
    return _read(config, head_size(config), theta=500_000.0, norms="output")


def _read(config: Config, head_dim: int, *, theta: float, norms: str) -> Written:
    """`attention_bias` is on the output as well."""
    layers, bias, norm = layer_count(config), config.flag("attention_bias"), rms_norm(config)
    config.layer_types(layers, (FULL,))
    positions = rotations(config, head_dim, theta=theta)
    expert = gated(config, config.size("intermediate_size"))
    layer: Written = {
        "norm": norm,
        "norms": norms,
        "positions": positions,
        "attention": attention(
            config, head_dim=head_dim, bias=bias, out_bias=bias, qk_norm={"kind": "projection", "norm": norm}
        ),
        "feed_forward": mixture(config, expert, router={"normalize": config.flag("norm_topk_prob")}),
    }
    return whole(config, norm, positions, [layer] * layers)


READERS = {"olmoe": read_olmoe, "flex_olmo": read_flex_olmo}
CLASSES = {"olmoe": ("OlmoeForCausalLM",), "flex_olmo": ("FlexOlmoForCausalLM",)}
