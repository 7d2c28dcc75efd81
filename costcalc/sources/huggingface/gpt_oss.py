"""GptOssForCausalLM (arXiv 2508.10925): a window in every other layer, the first included; sinks; experts with biases
and a bounded gate; a router with a bias.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import SLIDING, Written, rms_norm, types_by_period, windows_by_type
from costcalc.sources.huggingface.sparse import attention, head_size, layers_by_kind, mixture, rotations, whole


def read_gpt_oss(config: Config) -> Written:
    """`attention_bias` is on the output as well. Experts are gated by x · sigmoid(1.702 x), whatever `hidden_act`."""
    config.note("initial_context_length", "hidden_act")
    config.expect("experts_per_token", None, config["num_experts_per_tok"])  # a second name in published files
    config.expect("swiglu_alpha", 1.702)
    window, bias = config.size_or_none("sliding_window"), config.flag("attention_bias")
    types = types_by_period(config, 2, full=1)
    windows_by_type(config, types, window, why_none="`sliding_window` is null")
    norm, head_dim = rms_norm(config), head_size(config)
    positions = rotations(config, head_dim, theta=150_000.0)
    expert: Written = {
        "kind": "gated",
        "d_ff": config.size("intermediate_size"),
        "activation": "quick_gelu",
        "limit": config.number("swiglu_limit"),
        "up_shift": 1.0,
        "bias": True,
    }
    router = {"bias": True, "scores": "softmax_of_chosen"}
    network = mixture(config, expert, router=router, experts="num_local_experts")

    def layer_of(word: str) -> Written:
        reach = window if word == SLIDING else None
        return {
            "norm": norm,
            "positions": positions,
            "attention": attention(config, head_dim=head_dim, bias=bias, out_bias=bias, sinks=True, window=reach),
            "feed_forward": network,
        }

    return whole(config, norm, positions, layers_by_kind([(word,) for word in types], layer_of))


READERS = {"gpt_oss": read_gpt_oss}
CLASSES = {"gpt_oss": ("GptOssForCausalLM",)}
