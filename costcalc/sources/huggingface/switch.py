"""Mixtures in encoders and decoders: Switch Transformers (arXiv 2101.03961) and NLLB-MoE (arXiv 2207.04672).

In every n-th layer the network is a mixture whose router sends each token to one expert, or to two. An expert takes no
more tokens than its capacity; which those are is not known, so costs count every token's choices.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.marian import M2M_100
from costcalc.sources.huggingface.pair import BARE, ENCODER, WHOLE, Classes, bart_like
from costcalc.sources.huggingface.sparse import DENSE, SPARSE, count
from costcalc.sources.huggingface.t5 import attention, norm_of, relative
from costcalc.sources.layers import merged_layers

SWITCH: Classes = {
    "SwitchTransformersForConditionalGeneration": WHOLE,
    "SwitchTransformersModel": BARE,
    "SwitchTransformersEncoderModel": ENCODER,
}
NLLB: Classes = {"NllbMoeForConditionalGeneration": WHOLE, "NllbMoeModel": BARE}


def read_switch(config: Config) -> Written:
    """T5's layers; of the best scores of one expert each, the first ones of a text that fit into its capacity."""
    parts = SWITCH[config.model_class]
    config.note("is_encoder_decoder", "is_decoder", "add_cross_attention", "router_dtype", "add_router_probs")
    config.note("router_ignore_padding_tokens", "num_sparse_encoder_layers", "num_sparse_decoder_layers")
    if parts != ENCODER:
        config.expect("is_encoder_decoder", True)
    else:
        config.expect("is_decoder", None, False)
    norm, positions, tied = norm_of(config), relative(config), config.flag("tie_word_embeddings")
    dense: Written = {
        "kind": "dense",
        "d_ff": config.size("d_ff"),
        "activation": config.activation("dense_act_fn"),
        "bias": False,
    }
    router: Written = {"scores": "softmax", "normalize": False, "bias": config.flag("router_bias")}
    sparse = _experts(config, dense, router, used=1, capacity=config.size("expert_capacity"))
    core = attention(config)
    layer: Written = {"norm": norm, "positions": positions, "attention": core}
    sides = {"encoder": layer, "decoder": {**layer, "cross_attention": core}}
    depth = _depths(config)
    step = {side: _step(config, side, depth[side]) for side in parts.stacks}
    stacks: Written = {}
    for side in parts.stacks:
        kinds = [
            SPARSE if step[side] and index % step[side] == 1 % step[side] else DENSE for index in range(depth[side])
        ]
        stacks[side] = {"norm": norm, "positions": positions, "layers": _layers(sides[side], kinds, dense, sparse)}
    head: Written = {"kind": "vocabulary", "scale": config.size("d_model") ** -0.5 if tied else 1.0}
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": config.size("d_model"),
        "tie_embeddings": tied and parts.head,
        "share_embeddings": tied and parts != ENCODER,
        "spare_table": not tied,
        "head": head if parts.head else {"kind": "none"},
        **stacks,
    }


def _depths(config: Config) -> dict[str, int]:
    """Layers of each side; a decoder of null has as many as the encoder under the class's own name for them."""
    encoder, own = layer_count(config, "num_layers"), config.size_or_none("num_decoder_layers")
    return {"encoder": encoder, "decoder": _early(config) if own is None else layer_count(config, "num_decoder_layers")}


def _early(config: Config) -> int:
    """`num_layers` before other names of it are known to the class, as what it derives from it is."""
    renamed = "num_layers" not in config.written and "num_layers" in config.data
    return int(config.defaults["num_layers"]) if renamed else layer_count(config, "num_layers")


def _step(config: Config, side: str, depth: int) -> int:
    """Of so many layers one is sparse; 0 for none. As written, or the layers by the number of sparse ones."""
    key = f"{side}_sparse_step"
    if config[key] is not None:
        return count(config, key)
    layers = _early(config) if side == "encoder" else depth
    sparse = count(config, f"num_sparse_{side}_layers")
    return layers // sparse if sparse else layers


def read_nllb_moe(config: Config) -> Written:
    """M2M-100 with two experts for a token, weighed by their part of both scores.

    While a text is read, not trained on, experts take all tokens where `moe_eval_capacity_token_fraction` is 1.
    (`transformers` 5.24 runs only two experts, one of them on all tokens but those that chose it: ours are the two.)
    """
    parts = NLLB[config.model_class]
    config.note("router_dtype", "router_ignore_padding_tokens", "batch_prioritized_routing")
    config.note("normalize_router_prob_before_dropping", "moe_token_dropout", "expert_capacity")
    config.expect("second_expert_policy", "all")
    config.expect("moe_eval_capacity_token_fraction", 1, 1.0)
    written = bart_like(config, M2M_100, parts)
    for side in parts.stacks:
        (layer,) = written[side]["layers"]
        depth, step = layer.pop("repeat"), count(config, f"{side}_sparse_step")
        router: Written = {"scores": "softmax", "bias": config.flag("router_bias")}
        sparse = _experts(config, layer["feed_forward"], router, used=2)
        kinds = [SPARSE if step and (index + 1) % step == 0 else DENSE for index in range(depth)]
        written[side]["layers"] = _layers(layer, kinds, layer["feed_forward"], sparse)
    return written


def _experts(config: Config, expert: Written, router: Written, *, used: int, capacity: int | None = None) -> Written:
    return {
        "kind": "mixture",
        "experts": config.size("num_experts"),
        "experts_per_token": used,
        "expert": expert,
        "router": router,
        "capacity": capacity,
    }


def _layers(layer: Written, kinds: list[str], dense: Written, sparse: Written) -> list[Written]:
    """One entry a layer, named by its network where there are both."""
    named = len(set(kinds)) > 1
    made = {
        kind: {**({"name": kind} if named else {}), **layer, "feed_forward": network}
        for kind, network in ((DENSE, dense), (SPARSE, sparse))
    }
    return merged_layers([made[kind] for kind in kinds])


READERS = {"switch_transformers": read_switch, "nllb-moe": read_nllb_moe}
CLASSES = {"switch_transformers": tuple(SWITCH), "nllb-moe": tuple(NLLB)}
