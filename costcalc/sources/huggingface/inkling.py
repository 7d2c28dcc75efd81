"""InklingForCausalLM and Inkling2ForCausalLM: windows and layers that see everything, both with profiles of distances
and short convolutions; of the second also residuals by attention over blocks of layers.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, rms_norm
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    gated,
    later_tokens,
    layers_by_kind,
    mixture,
    numbered,
    whole,
    words,
)

WHOLE, WINDOW = "hybrid", "hybrid_sliding"
NAMES = {WHOLE: "global", WINDOW: "local"}
PERIOD = 6
"""Of so many layers the last one sees everything, where nothing else is said."""
OF_HEADS = ("num_attention_heads", "num_key_value_heads", "head_dim")
NOWHERE: Written = {"kind": "none"}


def read_inkling(config: Config) -> Written:
    """Experts for all tokens have scores beside the others, whatever `shared_expert_sink`. The head is as wide as the
    table, whatever `unpadded_vocab_size`: what is beyond that is dropped. Nothing is tied.
    """
    config.note(
        "local_layer_ids",
        "dense_mlp_idx",
        "shared_expert_sink",
        "unpadded_vocab_size",
        "rms_norm_eps_moe_gate",
        "logits_mup_width_multiplier",
    )
    config.note("chain_hidden_post_norm", "mtp_hidden_states_first", "mtp_local_layer_ids", "number_of_conv_states")
    config.note("log_scaling_alpha", "log_scaling_n_floor")
    config.values["tie_word_embeddings"] = False
    layers, norm = layer_count(config), rms_norm(config)
    types = config.layer_types(layers, (WHOLE, WINDOW)) or _types(config, layers)
    networks = _networks(config, layers)
    taps = config.size("conv_kernel_size")
    made = {DENSE: {**gated(config, _width(config)), "out_gain": True}, SPARSE: _experts(config)}

    def layer_of(kind: str, network: str) -> Written:
        is_whole = kind == WHOLE
        core = _attention(config, is_whole=is_whole)
        growth = _growth(config) if is_whole and config["log_scaling_n_floor"] is not None else {}
        of_heads = {"head_norm": norm, "scale": 1 / core["head_dim"]}
        return {
            "norm": norm,
            "positions": NOWHERE,
            "attention": {**core, **of_heads, **growth},
            "output_conv": {"taps": taps},
            "feed_forward": made[network],
        }

    kinds = list(zip(types, networks, strict=True))
    head = {"kind": "vocabulary", "scale": 1 / config.number("logits_mup_width_multiplier")}
    written = whole(config, norm, NOWHERE, layers_by_kind(kinds, layer_of), embedding={"norm": norm}, head=head)
    return {**written, **later_tokens(config, "num_mtp_layers")}


def read_inkling2(config: Config, loop: Written | None = None, looped: tuple[int, int] = (0, 0)) -> Written:
    """Which block a layer begins, and how many are finished before it, tells layers apart. Nothing is tied.

    looped: the first layer that runs several times, and the first behind those.
    """
    config.note("log_scaling_alpha", "log_scaling_n_floor", "number_of_conv_states", "hidden_act")
    config.note("qk_l2_clip_threshold", "rel_l2_clip_threshold", "mlp_gate_softcap", "mlp_up_softcap")
    config.expect("scoring_func", "sigmoid")
    config.values["tie_word_embeddings"] = False
    layers, norm = layer_count(config), rms_norm(config)
    types = config.layer_types(layers, (WHOLE, WINDOW)) or _types(config, layers)
    block, taps = config.size("n_layers_per_attn_res_block"), config.size("conv_kernel_size")
    cores = {word: _second_attention(config, norm, is_whole=word == WHOLE) for word in dict.fromkeys(types)}
    experts = _second_experts(config)

    def layer_of(kind: str, place: str, begins: str, again: str) -> Written:
        residuals: Written = {"sources": int(place), "starts_block": begins == "begin", "loop": loop if again else None}
        return {
            "norm": norm,
            "positions": NOWHERE,
            "attention": cores[kind],
            "output_conv": {"taps": taps, "means": True},
            "block_residuals": {**residuals, "inputs": "three" if kind == WHOLE else "one"},
            "feed_forward": experts,
        }

    first, behind = looped
    kinds = [
        (
            kind,
            str(-(-layer // block)),
            "begin" if layer % block == 0 else "within",
            "again" if first <= layer < behind else "",
        )
        for layer, kind in enumerate(types)
    ]
    made = _named(layers_by_kind(kinds, layer_of))
    head = {
        "kind": "vocabulary",
        "rows": config.size("unpadded_vocab_size"),
        "softcap": config.number("final_logit_softcapping"),
    }
    written = whole(config, norm, NOWHERE, made, embedding={"norm": norm}, head=head)
    written["decoder"]["residual_sources"] = -(-layers // block) + 1
    return written


def read_inkling2_loop(config: Config) -> Written:
    """The looped layers are whole blocks; published files may hold their keys in `loop_config`."""
    keys = {"core_start": "loop_layer_index_start", "core_end": "loop_layer_index_end"}
    keys |= {"num_passes": "loop_num_passes", "gate_rank": "loop_gate_rank"}
    older = config["loop_config"] or {}
    if not isinstance(older, dict):
        raise config.refusal("`loop_config` must hold the layers of the loop", "take it out", "loop_config")
    for key, value in older.items():
        if key not in keys:
            raise config.refusal(f"`{key}` of `loop_config` is not read", "take it out", "loop_config", key)
        config.values[keys[key]] = value
    first, behind, passes, rank = (config.size(key) for key in keys.values())
    layers, block = layer_count(config), config.size("n_layers_per_attn_res_block")
    if first % block or behind % block or not first < behind <= layers:
        what = f"the layers {first} to {behind} of {layers} that run again are no whole blocks of {block}"
        raise config.refusal(what, "change `loop_layer_index_end`", "loop_layer_index_end")
    loop = {"passes": passes, "sources": (behind - first) // block, "rank": rank}
    return read_inkling2(config, loop, (first, behind))


def _named(layers: list[Written]) -> list[Written]:
    """Names begin with a letter: the type of layer, then its number of finished blocks."""
    named: dict[int, Written] = {}
    for layer in layers:
        if id(layer) not in named:
            name = str(layer.get("name", "layer")).replace(WINDOW, NAMES[WINDOW]).replace(WHOLE, NAMES[WHOLE])
            named[id(layer)] = {**layer, "name": name if name[0].isalpha() else f"block_{name}"}
    return [named[id(layer)] for layer in layers]


def _types(config: Config, layers: int) -> list[str]:
    """Layers with a window by number, or all but each sixth."""
    if config["local_layer_ids"] is not None:
        local = numbered(config, "local_layer_ids", layers)
        return [WINDOW if layer in local else WHOLE for layer in range(layers)]
    return [WINDOW if (layer + 1) % PERIOD else WHOLE for layer in range(layers)]


def _networks(config: Config, layers: int) -> list[str]:
    """`mlp_layer_types`, or so many dense layers at first."""
    dense = config["dense_mlp_idx"]
    listed = words(config, "mlp_layer_types", layers, (DENSE, SPARSE))
    first = 0 if dense is None else config.whole("dense_mlp_idx")
    return listed or [DENSE if layer < first else SPARSE for layer in range(layers)]


def _width(config: Config) -> int:
    """Of a dense network; published files hold it apart, and the experts' in its place."""
    older = config["dense_intermediate_size"]
    return config.size("intermediate_size" if older is None else "dense_intermediate_size")


def _attention(config: Config, *, is_whole: bool) -> Written:
    """Layers with a window have heads of their own, and profiles as long as it."""
    of, window = "" if is_whole else "swa_", config.size("sliding_window_size")
    config.note("rel_extent", *(f"{word}{key}" for word in ("", "swa_") for key in OF_HEADS))
    heads, kv_heads, head_dim = (config.size(f"{of}{key}") for key in OF_HEADS)
    if heads % kv_heads:
        what = f"`{of}num_attention_heads` {heads} is not a multiple of `{of}num_key_value_heads` {kv_heads}"
        raise config.refusal(what, "change one of the two", f"{of}num_key_value_heads")
    return {
        "kind": "profiled",
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "profiles": config.size("d_rel"),
        "reach": config.size("rel_extent") if is_whole else window,
        "taps": config.size("conv_kernel_size"),
        "window": None if is_whole else window,
    }


def _growth(config: Config) -> Written:
    return {"log_floor": config.number("log_scaling_n_floor"), "log_alpha": config.number("log_scaling_alpha")}


def _second_attention(config: Config, norm: Written, *, is_whole: bool) -> Written:
    limits = {"limit": config.number("qk_l2_clip_threshold"), "profile_limit": config.number("rel_l2_clip_threshold")}
    more: Written = {"dynamic_taps": True, **_growth(config)} if is_whole else {}
    v_norm = {**norm, "weight": False}
    own = {"means": True, "v_norm": v_norm, "sinks": True, "output_gate": True}
    return {**_attention(config, is_whole=is_whole), **limits, **own, **more}


def _experts(config: Config) -> Written:
    """Of Inkling: with `dense_intermediate_size` beside it, `intermediate_size` is the experts' width."""
    older = config["dense_intermediate_size"]
    config.note("moe_intermediate_size", "intermediate_size")
    width = config.size("moe_intermediate_size" if older is None else "intermediate_size")
    parts = config.size("n_shared_experts")
    router = {
        "correction": "buffer",
        "scores": "sigmoid",
        "normalize": True,
        "scale": config.number("route_scale"),
        "shared_parts": parts,
        "gain": True,
    }
    config.note("route_scale")
    expert, shared = gated(config, width), gated(config, parts * width)
    return mixture(config, expert, router=router, shared=shared, experts="n_routed_experts")


def _second_experts(config: Config) -> Written:
    """Of Inkling-2: factors of the gate are bounded; the activation is silu, whatever `hidden_act`."""
    caps = {"gate_cap": config.number("mlp_gate_softcap"), "up_cap": config.number("mlp_up_softcap")}
    expert = {"kind": "gated", "d_ff": config.size("moe_intermediate_size"), "activation": "silu", **caps}
    router = {"correction": "buffer", "scores": "sigmoid", "normalize": True, "scale": config.number("route_scale")}
    return mixture(config, expert, router=router, experts="n_routed_experts")


READERS = {"inkling_text": read_inkling, "inkling2_text": read_inkling2, "inkling2_loop_text": read_inkling2_loop}
CLASSES = {
    "inkling_text": ("InklingForCausalLM",),
    "inkling2_text": ("Inkling2ForCausalLM",),
    "inkling2_loop_text": ("Inkling2LoopForCausalLM",),
}
