"""Gemma4ForCausalLM, and its unified sibling: full layers with heads of another size, per-layer inputs, experts beside.

Every sixth layer sees everything; where `attention_k_eq_v` says so its values are its keys.
"""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.borrowed import READS, lent, sharing
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, NO_POSITIONS, SLIDING, Written, rms_norm, types_by_period
from costcalc.sources.huggingface.gemma3n import ends, per_layer_input
from costcalc.sources.huggingface.sparse import attention, count, layers_by_kind, mixture, per_head, whole

PROPORTIONAL, PART = "proportional", "partial_rotary_factor"
USUAL_ROPE: dict[str, Written] = {
    FULL: {"rope_type": PROPORTIONAL, PART: 0.25, "rope_theta": 1_000_000.0},
    SLIDING: {"rope_theta": 10_000.0},
}
"""Of each type of layer, where `rope_parameters` is not written."""
FULL_KEYS = ("global_head_dim", "num_global_key_value_heads")
"""Of full layers, where `per_layer_config` is not written; the second one only with `attention_k_eq_v`."""
OVERRIDES, OVERRIDDEN = "per_layer_config", ("head_dim", "num_key_value_heads")
EXPERT_KEYS = ("num_experts", "top_k_experts", "moe_intermediate_size")


def read_gemma4(config: Config) -> Written:
    """With `enable_moe_block` a mixture stands beside each layer's network and reads the same stream."""
    activation, own = config.activation("hidden_activation"), count(config, "hidden_size_per_layer_input")
    block: Written = {}
    if config.flag("enable_moe_block"):
        block["feed_forward_beside"] = _mixture(config, activation)
    else:
        config.note(*EXPERT_KEYS)
    written = _read(config, activation, block)
    if not own:
        config.note("vocab_size_per_layer_input")
        return written
    return {**written, "decoder": {**written["decoder"], "per_layer_input": per_layer_input(config, activation)}}


def read_gemma4_unified(config: Config) -> Written:
    """Neither per-layer inputs nor experts."""
    return _read(config, config.activation("hidden_activation"), {})


def _read(config: Config, activation: str, block: Written) -> Written:
    """What both have in common; `block` is what a layer has beside that."""
    config.expect("use_bidirectional_attention", None, "vision")  # of images; text looks back only
    types = types_by_period(config, 6, full=-1)
    types = [*types[:-1], FULL]  # the class makes the last layer a full one, whatever is written
    makes, (heads, of_sizes) = sharing(config, types), _heads(config, types)
    norm, bias, window = rms_norm(config), config.flag("attention_bias"), config.size("sliding_window")
    core = {"bias": bias, "out_bias": bias, "scale": 1.0, "qk_norm": per_head(norm)}
    of_values, width = {**norm, "weight": False}, config.size("intermediate_size")
    same, wide = config.flag("attention_k_eq_v"), 2 if config.flag("use_double_wide_mlp") else 1

    def layer_of(word: str, made: str, sizes: str) -> Written:
        head_dim, kv_heads = of_sizes[sizes]
        own = {"v_norm": of_values, "values_from_keys": same and word == FULL} if made != READS else {}
        more = {**core, **own, "kv_heads": kv_heads, "window": window if word == SLIDING else None}
        return {
            "norm": norm,
            "norms": "sandwich",
            "positions": _rotations(config, word, head_dim),
            "attention": {**attention(config, head_dim=head_dim), **more},
            "feed_forward": {
                "kind": "gated",
                "d_ff": width * (wide if made == READS else 1),
                "activation": activation,
            },
            "layer_scale": "buffer",
            **block,
        }

    kinds = list(zip(types, makes, heads, strict=True))
    layers = lent(layers_by_kind(kinds, layer_of), types, makes)
    plainest = min((layer["positions"] for layer in layers), key=len)  # as defaults of the stack they add nothing
    return whole(config, norm, plainest, layers, **ends(config))


def _heads(config: Config, types: list[str]) -> tuple[list[str], dict[str, tuple[int, int]]]:
    """Of each layer a word for its size of a head and its number of key/value heads; and what each word says."""
    usual = config.size("head_dim"), config.size("num_key_value_heads")
    if config[OVERRIDES] is not None or OVERRIDES in config.data:  # a written null overrides nothing, and stands for it
        config.note(*FULL_KEYS)  # the class reads them where it has no overrides
        sizes = _overridden(config, types, usual) if config[OVERRIDES] is not None else [usual] * len(types)
    else:
        full = config.size(FULL_KEYS[0]), usual[1]
        if config[FULL_KEYS[1]] is not None and config.flag("attention_k_eq_v"):
            full = full[0], config.size(FULL_KEYS[1])
        sizes = [full if word == FULL else usual for word in types]
    for head_dim, _ in sizes:
        if head_dim % 2:
            raise config.refusal(f"RoPE rotates pairs, and a head of {head_dim} is odd", "change its size", "head_dim")
    words = {size: f"heads{size[1]}x{size[0]}" for size in sizes}
    return [words[size] for size in sizes], {word: size for size, word in words.items()}


def _overridden(config: Config, types: list[str], usual: tuple[int, int]) -> list[tuple[int, int]]:
    """What `per_layer_config` says of layers by number: nothing but the two sizes, the same for all of one type."""
    written, layers, sizes = config[OVERRIDES], len(types), [usual] * len(types)
    hint = 'such as {"5": {"head_dim": 512}}'
    if not isinstance(written, dict):
        raise config.refusal(f"`{OVERRIDES}` must hold layers by number, got {shown(written)}", hint, OVERRIDES)
    for number, own in written.items():
        is_layer = str(number).isdecimal() and int(number) < layers
        if not is_layer or not isinstance(own, dict) or own.keys() - set(OVERRIDDEN):
            what = f"`{OVERRIDES}` has {shown(number)}: {shown(own)}, where layers 0 to {layers - 1} may have"
            raise config.refusal(f"{what} {' and '.join(OVERRIDDEN)}", hint, OVERRIDES, number)
        for value in own.values():
            if type(value) is not int or value < 1:
                raise config.refusal(f"`{OVERRIDES}` has {shown(value)}, which is no size", hint, OVERRIDES, number)
        sizes[int(number)] = own.get("head_dim", usual[0]), own.get("num_key_value_heads", usual[1])
    if len(set(zip(types, sizes, strict=True))) > len(set(types)):
        raise config.refusal(f"`{OVERRIDES}` makes layers of one type differ, which the class refuses", hint, OVERRIDES)
    return sizes


def _rotations(config: Config, word: str, head_dim: int) -> Written:
    """RoPE of one type of layer. "proportional" is of the first pairs of a whole head, at that head's frequencies."""
    new = config["rope_parameters"]
    own = new.get(word) if isinstance(new, dict) else USUAL_ROPE[word]
    own = own if isinstance(own, dict) else {}
    theta = own.get("rope_theta")
    turned: Written = {"kind": "rope", "theta": USUAL_ROPE[word]["rope_theta"] if theta is None else theta}
    if own.get("rope_type") != PROPORTIONAL:
        return turned
    share = own.get(PART, 1.0)
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        what = f"`{PART}` must be a number from 0 to 1, got {shown(share)}"
        raise config.refusal(what, f'write "{PART}": 0.25', "rope_parameters")
    pairs = int(share * head_dim // 2)
    if not pairs:
        return NO_POSITIONS
    return turned if 2 * pairs == head_dim else {**turned, "rotary_dim": 2 * pairs, "frequencies": "head"}


def _mixture(config: Config, activation: str) -> Written:
    """The router reads the residual stream, normed and scaled; each expert's weight is scaled last of all."""
    router = {
        "reads": "residual",
        "norm": {**rms_norm(config), "weight": False},
        "input_scale": True,
        "expert_scale": True,
    }
    expert = {"kind": "gated", "d_ff": config.size("moe_intermediate_size"), "activation": activation}
    return mixture(config, expert, router=router, used="top_k_experts")


READERS = {"gemma4_text": read_gemma4, "gemma4_unified_text": read_gemma4_unified}
CLASSES = {"gemma4_text": ("Gemma4ForCausalLM",), "gemma4_unified_text": ("Gemma4UnifiedForCausalLM",)}
