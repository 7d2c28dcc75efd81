"""What decoders with latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) share: its ranks and the sizes of a
head, positions in a part of a head alone, layers of one network each before layers of experts.

A lineage module states what differs in fields; nothing here looks at a model's name.
"""

from __future__ import annotations

from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, rms_norm, rope_mapping, rotary
from costcalc.sources.huggingface.sparse import DENSE, SPARSE, gated, layers_by_kind, mixture, shared_experts, whole

LATENT_NORM: Written = {"kind": "rmsnorm", "eps": 1e-6}
"""Of the latents: the classes leave their norms' own eps to them, whatever `rms_norm_eps` says."""

TRAINING = ("aux_loss_alpha", "ep_size", "moe_router_dtype", "router_aux_loss_coef", "rope_interleave", "seq_aux")
"""Keys of published files about training and kernels, and which numbers of a head make a pair."""


def latent(config: Config, *, v_dim: int | None = None, overwritten: bool = False) -> Written:
    """The attention. `attention_bias` is on the matrices that make latents, and on the output; never on queries that
    are made of the input, which is so where `q_lora_rank` is null.

    v_dim: numbers of a value head where its key may be null. overwritten: whether the class overwrites what is written
    of a head's numbers.
    """
    bias, heads, rope = config.flag("attention_bias"), config.size("num_attention_heads"), rotated_size(config)
    nope = config.size("qk_nope_head_dim")
    agrees(config, "num_key_value_heads", heads, f"all {heads} heads have keys of their own")
    if overwritten:
        config.note("head_dim", "qk_head_dim")
    else:
        agrees(config, "qk_head_dim", nope + rope, f"{nope} + {rope} numbers of a head make its scores")
    return {
        "kind": "latent",
        "heads": heads,
        "q_rank": config.size_or_none("q_lora_rank"),
        "kv_rank": config.size("kv_lora_rank"),
        "nope_dim": nope,
        "rope_dim": rope,
        "v_dim": config.size("v_head_dim") if v_dim is None else v_dim,
        "bias": bias,
        "out_bias": bias,
        "norm": LATENT_NORM,
    }


def rotated_size(config: Config) -> int:
    """Numbers of a head that are rotated, all of them: a part of the part is nothing that the classes can run."""
    rope = config.size("qk_rope_head_dim")
    if rope % 2:
        what = f"RoPE rotates pairs, and `qk_rope_head_dim` {rope} is odd"
        raise config.refusal(what, "change `qk_rope_head_dim`", "qk_rope_head_dim")
    share = rope_mapping(config).get("partial_rotary_factor", config["partial_rotary_factor"])
    if share not in (None, 1):
        what = f"`partial_rotary_factor` {shown(share)}: all of `qk_rope_head_dim` is rotated"
        raise config.refusal(what, "remove it", "partial_rotary_factor")
    return rope


def agrees(config: Config, key: str, implied: int, why: str) -> None:
    """Refuse a key that is written and says something else than follows from others: the classes cannot run that."""
    value = config[key]
    if key in config.data and value is not None and (isinstance(value, bool) or value != implied):
        raise config.refusal(f"`{key}` {shown(value)}, but {why}", f'write "{key}": {implied}, or remove it', key)


def experts(config: Config, *, router: Written, bias: bool = False, may_be_unknown: bool = False) -> Written:
    """A mixture of experts of `moe_intermediate_size`, and `n_shared_experts` of the same width for all tokens.

    bias: on those for all tokens alone. may_be_unknown: whether `num_experts_per_tok` may be null.
    """
    width = config.size("moe_intermediate_size")
    shared = shared_experts(config, "n_shared_experts", width, bias=bias)
    of_one = gated(config, width)
    more: dict[str, Any] = {"shared": shared, "may_be_unknown": may_be_unknown}
    return mixture(config, of_one, router=router, experts="n_routed_experts", **more)


def network(config: Config, *, bias: bool = False) -> Written:
    """One network for all tokens, of `intermediate_size`."""
    return gated(config, config.size("intermediate_size"), bias=bias)


def block(config: Config, attention: Written, feed_forward: Written, **more: Any) -> Written:
    """One layer."""
    return {
        "norm": rms_norm(config),
        "positions": rotary(config),
        "attention": attention,
        "feed_forward": feed_forward,
        **more,
    }


def model(
    config: Config,
    kinds: list[str],
    attention: Written,
    networks: Written,
    *,
    residual_scale: float = 1.0,
    **more: Any,
) -> Written:
    """The full form. kinds: a word a layer, which `networks` has a network for."""
    config.note(*TRAINING)
    config.layer_types(len(kinds), (FULL,))

    def layer_of(kind: str) -> Written:
        return block(config, attention, networks[kind], residual_scale=residual_scale)

    layers = layers_by_kind([(kind,) for kind in kinds], layer_of)
    return whole(config, rms_norm(config), rotary(config), layers, **more)


def two_kinds(config: Config, kinds: list[str], router: Written, *, bias: bool = False, **more: Any) -> Written:
    """The networks of layers of one each and of layers of experts, as far as `kinds` has them; no other key counts.

    more: of the experts.
    """
    config.note("intermediate_size", "moe_intermediate_size", "n_routed_experts", "n_shared_experts")
    config.note("num_experts_per_tok")
    networks: Written = {DENSE: network(config, bias=bias)} if DENSE in kinds else {}
    return {**networks, SPARSE: experts(config, router=router, bias=bias, **more)} if SPARSE in kinds else networks
