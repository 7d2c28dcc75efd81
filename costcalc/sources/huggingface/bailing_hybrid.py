"""BailingHybridForCausalLM (Ling-3): Kimi Delta Attention with a bounded decay, and latent attention whose heads are
behind a gate in the last layer of each group; DeepSeek-V3's experts.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, layer_count, rotary
from costcalc.sources.huggingface.delta import kimi_delta
from costcalc.sources.huggingface.kimi_linear import hybrid
from costcalc.sources.huggingface.latent import latent
from costcalc.sources.huggingface.recurrent import LINEAR
from costcalc.sources.huggingface.sparse import DENSE, SPARSE, count, dense_first, later_tokens, words


def read_bailing_hybrid(config: Config) -> Written:
    """`layer_types`, else attention in the last of each `layer_group_size` layers; decay and gate of full rank."""
    config.note("mtp_loss_scaling_factor")
    layers, every = layer_count(config), config.size("layer_group_size")
    types = config.layer_types(layers, (LINEAR, FULL))
    types = types or [LINEAR if (layer + 1) % every else FULL for layer in range(layers)]
    dense = count(config, "first_k_dense_replace")
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE)) or dense_first(layers, dense)
    attention = {**latent(config), "output_gate": "per_head"}
    later = later_tokens(config, "num_mtp_layers")
    return hybrid(config, types, kinds, mixer=_mixer(config), attention=attention, positions=rotary(config), **later)


def _mixer(config: Config) -> Written:
    """The class writes its sizes again under other names, and `head_dim` with another meaning: those win."""
    config.note("head_dim", "short_conv_kernel_size")
    floor = config["kda_lower_bound"]
    return kimi_delta(
        config,
        heads=config.size_or_none("linear_num_heads") or config.size("num_attention_heads"),
        head_dim=config.size_or_none("linear_head_dim") or config.size("head_dim"),
        taps=config.size_or_none("linear_conv_kernel_dim") or config.size("short_conv_kernel_size"),
        decay_floor=floor if config.flag("kda_safe_gate") else None,
    )


READERS = {"bailing_hybrid": read_bailing_hybrid}
CLASSES = {"bailing_hybrid": ("BailingHybridForCausalLM",)}
