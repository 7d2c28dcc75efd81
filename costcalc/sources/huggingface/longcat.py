"""LongcatFlashForCausalLM (LongCat-Flash, arXiv 2509.01322): layers of two attentions and two networks each, with a
mixture of experts between them whose result is added at the end, and choices that are no expert's.

Its layers are two layers here, as its own cache has them.
"""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import MOST_LAYERS, Config
from costcalc.sources.huggingface.decoder import Written, rms_norm, rotary
from costcalc.sources.huggingface.latent import TRAINING, agrees, block, latent
from costcalc.sources.huggingface.sparse import gated, later_tokens, layers_by_kind, mixture, whole, whole_number

FIRST, SECOND = "first", "second"
FACTORS = ("mla_scale_q_lora", "mla_scale_kv_lora")
"""Switches of published files: what latents are multiplied by."""


def read_longcat_flash(config: Config) -> Written:
    """All of a token's choices of `zero_expert_num` give its own numbers back. The class holds first matrices for
    those too, which nothing meets.
    """
    config.note("head_dim", *TRAINING, *FACTORS)  # rotations are of `qk_rope_head_dim`, as published files have it
    config.expect("attention_method", None, "MLA")
    config.expect("zero_expert_type", None, "identity")
    layers, attention, experts = _layers(config), _attention(config), _experts(config)
    network = gated(config, config.size("ffn_hidden_size"))

    def layer_of(half: str) -> Written:
        return block(config, attention, network, **({"shortcut": experts} if half == FIRST else {}))

    made = layers_by_kind([(FIRST,), (SECOND,)] * layers, layer_of)
    later = later_tokens(config, "num_nextn_predict_layers")
    return whole(config, rms_norm(config), rotary(config), made, **later)


def _layers(config: Config) -> int:
    """`num_layers`; `num_hidden_layers` is twice that, and stands for it where it is alone."""
    key, double = "num_layers", config["num_hidden_layers"]
    if double is not None:
        both = config.size("num_hidden_layers", largest=2 * MOST_LAYERS)
        if both % 2 or (key in config.data and config.data[key] != both // 2):
            what = f"`num_hidden_layers` {shown(double)} is not twice `{key}`: a layer has two attentions"
            raise config.refusal(what, f"write `{key}` alone", "num_hidden_layers")
        config.values[key] = both // 2
    return config.size(key, largest=MOST_LAYERS)


def _attention(config: Config) -> Written:
    """Queries times √(width / rank of their latent), the other latent the same way (section 2.3.1)."""
    attention, width = latent(config), config.size("hidden_size")
    q_rank = config.size("q_lora_rank")
    of_head = attention["nope_dim"] + attention["rope_dim"]
    factors = {"scale": (width / q_rank / of_head) ** 0.5, "latent_scale": (width / attention["kv_rank"]) ** 0.5}
    return {**attention, **factors}


def _experts(config: Config) -> Written:
    """`router_bias` is no field of the class, and is read all the same."""
    none = whole_number(config, "zero_expert_num")
    bias = config["router_bias"] is not None and config.flag("router_bias")
    router: Written = {"bias": bias, "correction": "buffer", "normalize": False}
    router |= {"scale": config.number("routed_scaling_factor"), "skips": none}
    router |= {"skip_gives": "input"} if none else {}
    expert = gated(config, config.size("expert_ffn_hidden_size"))
    agrees(config, "norm_topk_prob", False, "the chosen scores are not divided by their sum")
    experts = mixture(config, expert, router=router, experts="n_routed_experts", used="moe_topk")
    return {**experts, "unused": none}


READERS = {"longcat_flash": read_longcat_flash}
CLASSES = {"longcat_flash": ("LongcatFlashForCausalLM",)}
