"""FalconH1ForCausalLM (arXiv 2507.22448): in every layer Mamba-2 beside the attention, then a gated network.

Its many multipliers change no count.
"""

from __future__ import annotations

from costcalc.sources.huggingface.bamba import mamba2
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, free_head_dim, gated, layer_count, rms_norm
from costcalc.sources.huggingface.sparse import attention, rotations, whole


def read_falcon_h1(config: Config) -> Written:
    """`mamba_d_ssm` is the width inside of the mixer, null for `mamba_expand` times the model's; `projectors_bias` is
    on its projection out, and its norm is there if `mamba_rms_norm` says so.
    """
    config.expect("mamba_use_mlp", None, True)
    config.expect("attn_layer_indices", None)
    config.note("mlp_expansion_factor", "mamba_expand")  # of what is not written here
    layers, norm, head_dim = layer_count(config), rms_norm(config), free_head_dim(config)
    positions, bias = rotations(config, head_dim, theta=1e4), config.flag("attention_bias")
    inner = config.size_or_none("mamba_d_ssm")
    if inner is None:
        inner = config.size("mamba_expand") * config.size("hidden_size")
    has_norm, before = config.flag("mamba_rms_norm"), config.flag("mamba_norm_before_gate")
    mixer = mamba2(
        config,
        inner,
        out_bias=config.flag("projectors_bias"),
        gated_norm=has_norm,
        norm_before_gate=before and has_norm,
    )
    layer: Written = {
        "norm": norm,
        "positions": positions,
        "attention": attention(config, head_dim=head_dim, bias=bias, out_bias=bias),
        "mixer_beside": mixer,
        "feed_forward": gated(config, bias=config.flag("mlp_bias")),
    }
    return whole(config, norm, positions, [layer] * layers)


READERS = {"falcon_h1": read_falcon_h1}
CLASSES = {"falcon_h1": ("FalconH1ForCausalLM",)}
