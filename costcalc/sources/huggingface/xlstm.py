"""xLSTMForCausalLM (xLSTM-7B, arXiv 2503.13427): mLSTM and a gated network in every layer, no positions."""

from __future__ import annotations

import math

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import NO_POSITIONS, Written, layer_count
from costcalc.sources.huggingface.recurrent import agree, state_dtype
from costcalc.sources.huggingface.sparse import whole

REMARKS = """
    autocast_kernel_dtype cell_norm_eps chunk_size chunkwise_kernel eps force_bos_token_insert
    forget_gate_bias_init_range igate_bias_init_range max_inference_chunksize mode norm_reduction_force_float32
    return_last_states sequence_kernel step_kernel
"""
"""Of kernels, of what the weights are drawn from before training, and of tokenizers."""
SWITCHES = """
    add_embedding_dropout add_forward_backend_padding add_post_norm add_qk_norm
"""
"""What published files may name, and the class has none of."""
WHOLE = 64
"""Queries, keys and values are cached at widths rounded up to multiples of it: others cannot run."""


def read_xlstm(config: Config) -> Written:
    """Sizes are factors of the width. The head's table is its own: the class ties none."""
    config.note(*REMARKS.split(), "ffn_proj_factor", "gate_soft_cap", "output_logit_soft_cap")
    config.overrule("tie_word_embeddings", False)  # the class ties nothing
    config.expect("use_bias", False)  # its norms would have some as well
    config.expect("weight_mode", "single", "fused")
    agree(config, add_out_norm=True, add_post_blocks_norm=True, slstm_at=[])
    agree(config, **dict.fromkeys(SWITCHES.split(), False))
    width, layers = config.size("hidden_size"), layer_count(config)
    agree(config, embedding_dim=width, num_blocks=layers, logits_soft_cap=config["output_logit_soft_cap"])
    norm: Written = {"kind": "rmsnorm", "eps": config.number("norm_eps")}
    step = config.size("ffn_round_up_to_multiple_of")
    d_ff = int((width * config.number("ffn_proj_factor") + step - 1) // step) * step
    layer: Written = {
        "norm": norm,
        "positions": NO_POSITIONS,
        "mixer": _mixer(config, width),
        "feed_forward": {"kind": "gated", "d_ff": d_ff, "activation": "silu", "bias": False},
    }
    softcap = config.number_or_none("output_logit_soft_cap")
    head = {"kind": "vocabulary", "softcap": softcap}
    return whole(config, norm, NO_POSITIONS, [layer] * layers, head=head)


def _mixer(config: Config, width: int) -> Written:
    heads = config.size("num_heads")
    v_dim = _of_head(config, "v_dim_factor", width, heads)
    agree(config, head_dim=v_dim)
    return {
        "kind": "mlstm",
        "heads": heads,
        "qk_dim": _of_head(config, "qk_dim_factor", width, heads),
        "v_dim": v_dim,
        "bias": False,
        "gate_softcap": config.number_or_none("gate_soft_cap"),
        "state_dtype": state_dtype(config, "inference_state_dtype"),
    }


def _of_head(config: Config, key: str, width: int, heads: int) -> int:
    """A factor of the width, rounded down, over the heads."""
    config.note(key)
    numbers = math.floor(width * config.number(key))
    if not numbers or numbers % WHOLE or numbers % heads:
        what = f"`{key}` of `hidden_size` {width} gives {numbers} numbers, which {heads} heads or steps of {WHOLE} miss"
        raise config.refusal(what, f"make it a multiple of {WHOLE} and of the heads", key)
    return numbers // heads


READERS = {"xlstm": read_xlstm}
CLASSES = {"xlstm": ("xLSTMForCausalLM",)}
