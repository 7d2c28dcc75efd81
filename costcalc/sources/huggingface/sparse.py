"""What mixtures of experts share: a router, experts of one width, experts for all tokens, layers that are not alike.

A lineage module states what differs in fields; nothing here looks at a model's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from costcalc.errors import shown
from costcalc.inventory import FURTHER_TOKENS
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, SLIDING, Written, floor_width_per_head, outline, rope_mapping
from costcalc.sources.layers import merged_layers

CHUNKED = "chunked_attention"
DENSE, SPARSE = "dense", "sparse"
"""Words of `layer_types` and `mlp_layer_types`."""

ROTATED, UNROTATED = "rope", "nope"

NAMES = {FULL: "global", SLIDING: "local", CHUNKED: "chunked"}
"""What layers of a kind are called, where it is not the word itself."""

PART = "partial_rotary_factor"
ROPE_KEYS = ("rope_parameters", "rope_scaling", "rope_theta", PART)


# ------------------------------------------------------------------------------------------------------ the whole


def whole(config: Config, norm: Written, positions: Written, layers: list[Written], **more: Any) -> Written:
    """The full form; `layers` has one entry a layer, the same object for equal ones."""
    stack = {"norm": norm, "positions": positions, "layers": merged_layers(layers)}
    return {**outline(config), **more, "decoder": stack}


def layers_by_kind(kinds: Sequence[tuple[str, ...]], layer_of: Callable[..., Written]) -> list[Written]:
    """One entry a layer, made once for each kind, which is a word for each way in which layers differ.

    Where there are several kinds, each is named by the words that tell it from the others: local, global_dense.
    """
    distinct = list(dict.fromkeys(kinds))
    telling = list(range(len(distinct[0])))
    for place in reversed(telling):
        rest = [other for other in telling if other != place]
        if len({tuple(kind[other] for other in rest) for kind in distinct}) == len(distinct):
            telling = rest
    made = {}
    for kind in distinct:
        name = "_".join(NAMES.get(kind[place], kind[place]) for place in telling)
        made[kind] = {**({"name": name} if name else {}), **layer_of(*kind)}
    return [made[kind] for kind in kinds]


def later_tokens(config: Config, *keys: str) -> Written:
    """Layers that guess tokens further on, as a part that is not counted, where one of `keys` says that there are."""
    there = [config[key] for key in keys]
    return {"not_counted": [FURTHER_TOKENS]} if any(there) else {}


# --------------------------------------------------------------------------------------------------- the attention


def attention(config: Config, *, head_dim: int, **more: Any) -> Written:
    """Grouped-query attention; key/value heads are as many as heads where their key is null."""
    return {
        "kind": "grouped_query",
        "heads": config.size("num_attention_heads"),
        "kv_heads": config.size_or_none("num_key_value_heads"),
        "head_dim": head_dim,
        **more,
    }


def head_size(config: Config) -> int:
    """`head_dim` where it is written, else hidden_size // num_attention_heads, rounded down as the classes do."""
    return config.size_or_none("head_dim") or floor_width_per_head(config)


def per_head(norm: Written) -> Written:
    """QK-norm over each head's numbers."""
    return {"kind": "per_head", "norm": norm}


def rotations(
    config: Config, head_dim: int, *, theta: float, part: float | None = None, word: str | None = None
) -> Written:
    """RoPE. Its base and the part of a head that it turns: in `rope_scaling` or else `rope_parameters` (there in the
    entry of `word`, a type of layer, if that has one), beside them, or else the class's own.

    part: None where the class always turns the whole head.
    """
    config.note(*ROPE_KEYS)
    new = rope_mapping(config)
    inner = new if word is None else new.get(word, new)
    own = inner if isinstance(inner, dict) else {}
    base, share = (config.values.get(key) if own.get(key) is None else own[key] for key in ("rope_theta", PART))
    written = {"kind": "rope", "theta": theta if base is None else base}
    turned = _rotated(config, head_dim, part if share is None else share, whole=part is None)
    return written if part is None else {**written, "rotary_dim": turned}


def _rotated(config: Config, head_dim: int, share: object, *, whole: bool) -> int:
    """Numbers of a head that are turned: rounded down, and then up to pairs, as the frequencies of the classes are."""
    share = 1 if share is None else share
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1 or (whole and share != 1):
        what = f"`{PART}` must be {'1' if whole else 'a number above 0 and up to 1'}, got {shown(share)}"
        raise config.refusal(what, f'write "{PART}": 1.0', PART)
    turned = int(head_dim * share)
    turned += turned % 2
    if not 0 < turned <= head_dim:
        key = "head_dim" if config.values.get("head_dim") is not None else "hidden_size"
        why = f"a head of {head_dim} is odd" if turned else f"`{PART}` {share:g} of a head of {head_dim} gives none"
        raise config.refusal(f"RoPE rotates pairs, and {why}", f"change `{key}`", key)
    return turned


# ----------------------------------------------------------------------------------------------------- the experts


def gated(config: Config, width: int, *, bias: bool = False) -> Written:
    """A gated network of the class's one activation."""
    return {"kind": "gated", "d_ff": width, "activation": config.activation("hidden_act"), "bias": bias}


def mixture(
    config: Config,
    expert: Written,
    *,
    router: Written,
    shared: Written | None = None,
    experts: str = "num_experts",
    used: str = "num_experts_per_tok",
    may_be_unknown: bool = False,
    **more: Any,
) -> Written:
    """`experts` and `used` are the keys of how many there are, and of how many each token uses.

    may_be_unknown: whether the class can be built without the second, although it cannot run then.
    """
    number = config.size(experts)
    is_known = not may_be_unknown or config[used] is not None
    chosen = config.size(used) if is_known else 1
    if chosen > number:
        what = f"`{used}` {chosen} of `{experts}` {number}: no more are there"
        raise config.refusal(what, "change one of the two", used)
    of_groups = "topk_group"
    groups, reached = router.get("groups", 1), router.get("groups_per_token", 1)
    if number % groups:
        raise config.refusal(f"`{experts}` {number} is not a multiple of {groups} groups", "change one", experts)
    if "groups" in router and router["scores"] == "sigmoid" and number // groups < 2:
        what = f"{groups} groups of `{experts}` {number}: of each, the two largest scores are added up"
        raise config.refusal(what, "make groups of two experts or more", experts)
    if reached > groups:
        what = f"`{of_groups}` {reached}, but there are {groups} groups"
        raise config.refusal(what, f'write "{of_groups}": {groups}', of_groups)
    if chosen > reached * (number // groups):
        what = f"`{used}` {chosen}, of {reached} groups of {number // groups} experts each: {groups} are there"
        raise config.refusal(what, f"change `{used}` or the groups", used)
    return {
        "kind": "mixture",
        "experts": number,
        "experts_per_token": chosen if is_known else None,
        "expert": expert,
        "shared": shared,
        "router": router,
        **more,
    }


def corrected_router(config: Config, **more: Any) -> Written:
    """DeepSeek-V3's (arXiv 2412.19437, section 2.1.2): sigmoids, a correction for choosing alone, groups, a factor."""
    config.expect("scoring_func", None, "sigmoid", "noaux_tc")  # dots.llm1 calls it by the method
    config.expect("topk_method", None, "noaux_tc")
    return {
        "correction": "buffer",
        "scores": "sigmoid",
        "normalize": config["norm_topk_prob"] is not None and config.flag("norm_topk_prob"),
        "scale": config.number_or_none("routed_scaling_factor") or 1.0,
        "groups": config.size_or_none("n_group") or 1,
        "groups_per_token": config.size_or_none("topk_group") or 1,
        **more,
    }


def shared_experts(config: Config, key: str, width: int, *, bias: bool = False) -> Written | None:
    """As many experts of one width for all tokens as `key` says, which are one of so many times the width."""
    number = count(config, key)
    return gated(config, number * width, bias=bias) if number else None


def count(config: Config, key: str) -> int:
    """A whole number from 0; null is 0."""
    return 0 if config[key] is None else whole_number(config, key)


def whole_number(config: Config, key: str) -> int:
    """A whole number from 0."""
    number = config.whole(key)
    if number < 0:
        raise config.refusal(f"`{key}` must be at least 0, got {number}", f'write "{key}": 0', key)
    return number


# ------------------------------------------------------------------------------------------- what each layer is


def words(config: Config, key: str, layers: int, known: tuple[str, ...]) -> list[str] | None:
    """A list of one known word a layer; None where the key is null or absent."""
    return _by_layer(config, key, layers, known, "words")


def marked(config: Config, key: str, layers: int, *, off: str, on: str) -> list[str] | None:
    """A list of a 0 or a 1 for each layer, as the words for them; None where the key is null or absent."""
    marks = _by_layer(config, key, layers, (0, 1), "numbers 0 or 1")
    return None if marks is None else [on if mark else off for mark in marks]


def _by_layer(config: Config, key: str, layers: int, known: Iterable[Any], what: str) -> list[Any] | None:
    listed = config[key]
    if listed is None:
        return None
    if not isinstance(listed, list) or len(listed) != layers:
        got = f"{len(listed)} entries" if isinstance(listed, list) else shown(listed)
        raise config.refusal(f"`{key}` must be a list of {layers} {what}, got {got}", "one for each layer", key)
    for index, value in enumerate(listed):
        if value not in known:
            hint = f"one of: {', '.join(str(word) for word in known)}"
            raise config.refusal(f"`{key}` has {shown(value)}, which is not read", hint, key, index)
    return listed


def numbered(config: Config, key: str, layers: int) -> frozenset[int]:
    """A list of layers by number, from 0; null is an empty one. The classes pass over layers that are not there."""
    listed = config[key]
    if listed is None:
        return frozenset()
    if not isinstance(listed, list):
        raise config.refusal(f"`{key}` must be a list of layers, got {shown(listed)}", f'write "{key}": [0]', key)
    for index, value in enumerate(listed):
        if type(value) is not int or value < 0:
            what = f"`{key}` has {shown(value)}, but the layers are 0 to {layers - 1}"
            raise config.refusal(what, "write the numbers of layers", key, index)
    return frozenset(listed)


def agreed(config: Config, first: list[str] | None, second: list[str] | None, key: str) -> list[str] | None:
    """What two keys say of the layers, the second under `key`; where both do, the same."""
    if first is not None and second is not None and first != second:
        raise config.refusal(f"`{key}` and another list of the layers disagree", "keep one of the two", key)
    return second if first is None else first


def dense_first(layers: int, dense: int) -> list[str]:
    """The first `dense` layers have one network each, the others experts."""
    return [DENSE if layer < dense else SPARSE for layer in range(layers)]
