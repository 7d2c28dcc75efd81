"""Attention with grouped key/value heads (arXiv 2305.13245), pass by pass with what is cached (arXiv 1911.02150)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from costcalc.reference.activations import ACTIVATIONS
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.block_choice import mixed_of_chosen, scored
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.positions import TURNED
from costcalc.reference.scaled_dot_product import attention_weights, back_to, seen_from
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def split_heads(x: Array, heads: int) -> Array:
    """(B, T, heads·H) -> (B, heads, T, H): each head reads H of the numbers (arXiv 1706.03762, section 3.2.2).

    Raises ValueError for another shape, or heads that do not divide it.
    """
    x = np.asarray(x)
    if x.ndim != 3 or heads < 1 or x.shape[-1] % heads:
        raise ValueError(f"(B, T, heads·H) is needed, with {heads} heads, not {x.shape}")
    batch, tokens, width = x.shape
    return x.reshape(batch, tokens, heads, width // heads).transpose(0, 2, 1, 3)


def join_heads(x: Array) -> Array:
    """(B, heads, T, H) -> (B, T, heads·H): the heads' outputs beside each other (arXiv 1706.03762, section 3.2.2).

    Raises ValueError for another shape.
    """
    x = np.asarray(x)
    if x.ndim != 4:
        raise ValueError(f"(B, heads, T, H) is needed, not {x.shape}")
    batch, heads, tokens, head_dim = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, tokens, heads * head_dim)


def per_head(fields: Fields, x: Array, heads: int, at: Scope, name: str) -> Array:
    """One norm over each head's H numbers, with one gain for all heads (arXiv 2302.05442; Qwen3, 2505.09388).

    (B, T, heads·H) -> (B, heads, T, H).
    """
    return norm(fields["norm"], split_heads(x, heads), at, name)


def projection(fields: Fields, x: Array, heads: int, at: Scope, name: str) -> Array:
    """One norm over all heads' numbers together (OLMo-2, arXiv 2501.00656). (B, T, heads·H) -> (B, heads, T, H)."""
    return split_heads(norm(fields["norm"], x, at, name), heads)


def each_head(fields: Fields, x: Array, heads: int, at: Scope, name: str) -> Array:
    """One norm over each head's H numbers, each head with its own gain (Command-R+). (B, T, N·H) -> (B, N, T, H)."""
    split = split_heads(x, heads)  # (B, heads, T, H)
    return norm(fields["norm"], split, at, name, gains=(heads, 1, split.shape[-1]))  # (B, heads, T, H) * (heads, 1, H)


QK_NORMS: dict[str, Callable[[Fields, Array, int, Scope, str], Array]] = {
    "per_head": per_head,
    "projection": projection,
    "each_head": each_head,
}


def grouped_query(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
    d_model: int | None = None,
) -> Array:
    """Self-attention of T new tokens over themselves and what the request holds. x: (B, T, D) -> (B, T, D).

    name: of the layer, under which others find its keys and values. d_model: D where x has another width (Zamba).
    """
    width = x.shape[-1] if d_model is None else d_model
    here = sight.start + np.arange(x.shape[1])  # (T)
    turn = of_kind(TURNED, positions["kind"], "positions")
    beside = None
    q = turn(positions, queries(fields, x, at, d_model=width), here)  # (B, N, T, H)
    if fields.get("query_gain"):
        q = q * at.gain("query_gain", q.shape[1] * q.shape[3]).reshape(-1, 1, q.shape[3]) ** 2 * FLOAT(q.shape[3])
    if fields.get("entity_queries"):
        queries_of_entities(fields, x[:, :0], at, d_model=width)
    if fields["cache_of"] is not None:
        k, v = _of_another(fields, x, at, sight, d_model=width)  # (B, K, S, H), (B, K, S, v)
    else:
        k, v = keys_and_values(fields, _and_memory(fields, x, sight), at, d_model=width)  # (B, K, T or T + M, H)
        k, v, beside = _kept_apart(fields, k, v, x.shape[1], at, sight)
        k = turn(positions, k, here)  # (B, K, T, H)
        v = turn(positions, v, here) if positions.get("values") else v  # (B, K, T, v)
        if sight.request is not None:
            reach = fields["window"] if fields["chunk"] is None else fields["chunk"]
            k = sight.request.extended(at.named("k_cache"), k, window=reach)  # (B, K, S, H)
            v = sight.request.extended(at.named("v_cache"), v, window=reach)  # (B, K, S, v)
        if name is not None:
            sight.made[name] = k, v
    if fields.get("block_choice"):
        chosen = scored(fields["block_choice"], x, at.under("block_choice"), positions=positions, sight=sight)
        scale = fields["scale"] or 1 / math.sqrt(q.shape[-1])
        mixed = mixed_of_chosen(q, k, v, at, chosen=chosen, scale=scale)  # (B, N, T, H)
        return _projected_back(fields, x, mixed, at, d_model=width)
    factors = {factor: fields[factor] for factor in ("scale", "softcap", "window", "chunk")}
    factors |= {"sinks": _sinks(fields, at), "uneven": bool(fields.get("uneven_window")), "beside": beside}
    mixed = mixed_values(q, k, v, at, **factors, causal=sight.causal, added=added, start=sight.start)
    return _projected_back(fields, x, mixed, at, d_model=width)


def _and_memory(fields: Fields, x: Array, sight: Sight) -> Array:
    """The new tokens, and an encoder's behind them where both are looked at together. (B, T, D) -> (B, T + M, D)."""
    if not fields.get("with_memory") or sight.memory is None:
        return x
    return np.concatenate([x, sight.memory], axis=1)


def _kept_apart(
    fields: Fields, k: Array, v: Array, tokens: int, at: Scope, sight: Sight
) -> tuple[Array, Array, tuple[Array, Array] | None]:
    """Keys and values of the new tokens, and those of an encoder's, which are made once: (B, K, M, H), (B, K, M, v)."""
    if not fields.get("with_memory") or sight.request is None or sight.memory is None:
        return k, v, None
    of_memory = (
        sight.request.once(at.named("k_memory"), k[:, :, tokens:]),
        sight.request.once(at.named("v_memory"), v[:, :, tokens:]),
    )
    return k[:, :, :tokens], v[:, :, :tokens], of_memory


def cross_grouped_query(fields: Fields, x: Array, at: Scope, *, sight: Sight) -> Array:
    """Attention of T new tokens over another stack's M (arXiv 1706.03762, section 3.2.3), which stand nowhere.

    Keys and values are made in the pass that starts a request, and kept for later ones. x: (B, T, D) -> (B, T, D).
    """
    if sight.request is None or sight.memory is None:
        raise ValueError("cross-attention needs tokens to look at, and a request that keeps them")
    width, texts = x.shape[-1], x.shape[:2]
    if len(x) != len(sight.memory):  # several streams of a text (ProphetNet) are that many more of its rows
        streams = len(x) // len(sight.memory)
        x = x.reshape(streams, len(sight.memory), *x.shape[1:]).swapaxes(0, 1)  # (B, streams, T, D)
        x = x.reshape(len(x), streams * texts[1], width)  # (B, streams·T, D)
    q = queries(fields, x, at, d_model=width)  # (B, N, T, H)
    memory = sight.memory  # (B, M, D), or of another width
    if memory.shape[-1] != (fields["memory_width"] or width):
        raise ValueError(f"tokens of {fields['memory_width'] or width} numbers are looked at, not {memory.shape}")
    k, v = keys_and_values(fields, memory, at, d_model=width)  # (B, K, M, H), (B, K, M, v)
    keys = sight.request.once(at.named("k_cache"), k)  # (B, K, M, H)
    values = sight.request.once(at.named("v_cache"), v)  # (B, K, M, v)
    factors = {name: fields[name] for name in ("scale", "softcap")}
    mixed = mixed_values(q, keys, values, at, **factors, causal=False, sinks=_sinks(fields, at))  # (B, N, T, v)
    y = _projected_back(fields, x, mixed, at, d_model=width)  # (B, T, D)
    if len(x) == texts[0]:
        return y
    return y.reshape(len(x), texts[0] // len(x), texts[1], width).swapaxes(0, 1).reshape(*texts, width)


def queries(fields: Fields, x: Array, at: Scope, *, d_model: int) -> Array:
    """(B, T, D) -> (B, N, T, H)."""
    width = fields["heads"] * _head_dim(fields, d_model)
    made = at.linear("q", x, width, bias=fields["bias"], groups=groups_of(fields, "q"))  # (B, T, D) x (D, N·H)
    return _normed(fields, made, at, "q", fields["heads"])


def queries_of_entities(fields: Fields, x: Array, at: Scope, *, d_model: int) -> None:
    """Of words that look at entities, entities at words, and entities at entities (LUKE, arXiv 2010.01057, eq. 5).

    x: (B, 0, D), no entities: the weights are held, and no rows meet them.
    """
    for name in ("q_word_entity", "q_entity_word", "q_entity_entity"):
        at.linear(name, x, fields["heads"] * _head_dim(fields, d_model), bias=fields["bias"])  # (B, 0, D) x (D, N·H)


def groups_of(fields: Fields, name: str) -> int | None:
    """In how many groups a projection is split (SqueezeBERT, arXiv 2006.11316); None where it is not."""
    return fields["groups"][name] if fields.get("groups") else None


def keys_and_values(fields: Fields, x: Array, at: Scope, *, d_model: int) -> tuple[Array, Array]:
    """(B, S, D) -> (B, K, S, H) and (B, K, S, v), with v = H unless values have a size of their own (MiMo-V2).

    One projection may be keys and values, before anything is done to the keys (Gemma-4).
    """
    kv_heads = fields["kv_heads"] or fields["heads"]
    bias = fields["bias"] and fields["key_bias"]
    of_keys, of_values = kv_heads * _head_dim(fields, d_model), kv_heads * _value_dim(fields, d_model)
    made = at.linear("k", x, of_keys, bias=bias, groups=groups_of(fields, "k"))  # (B, S, D) x (D, K·H)
    k, v = _normed(fields, made, at, "k", kv_heads), made  # (B, K, S, H), (B, S, K·H)
    if not fields["values_from_keys"]:
        v = at.linear("v", x, of_values, bias=fields["bias"], groups=groups_of(fields, "v"))  # (B, S, D) x (D, K·v)
    v = split_heads(v, kv_heads)  # (B, K, S, v)
    return k, v if fields["v_norm"] is None else norm(fields["v_norm"], v, at, "v_norm")


def _of_another(fields: Fields, x: Array, at: Scope, sight: Sight, *, d_model: int) -> tuple[Array, Array]:
    """Keys and values of the nearest earlier layer of a name (arXiv 2405.12981, section 3.1), all that it sees.

    Weights for own ones may be held all the same (Gemma-3n); no rows meet them.
    """
    if fields["keeps_kv_weights"]:
        keys_and_values(fields, x[:, :0], at, d_model=d_model)
    if fields["cache_of"] not in sight.made:
        raise ValueError(f"{at.path} looks at the keys of {fields['cache_of']}, and no earlier layer has made any")
    return sight.made[fields["cache_of"]]


def _projected_back(fields: Fields, x: Array, mixed: Array, at: Scope, *, d_model: int) -> Array:
    """The heads' outputs beside each other, gated by the layer's input, times a matrix (gates: arXiv 2505.06708).

    x: (B, T, D); mixed: (B, N, T, v); result: (B, T, D).
    """
    heads, v_dim = mixed.shape[1], mixed.shape[-1]
    if fields["output_gate"] is not None:
        width = of_kind({"per_channel": v_dim, "per_head": 1}, fields["output_gate"], "output gate")
        activation = of_kind(ACTIVATIONS, fields["gate_activation"], "activation")
        is_one_number = fields["gate_bias"] == "per_head"
        gate = at.linear("gate", x, heads * width, bias=fields["gate_bias"] is True)  # (B, T, N·v), or (B, T, N)
        if is_one_number:
            gate = gate + np.repeat(at.parameter("gate_bias", heads), width)  # + (N·v)
        if fields.get("gate_gain"):
            gate = gate * at.gain("gate_gain", heads * width) ** 2 * FLOAT(d_model**0.5)  # `DoryAttention`
        mixed = mixed * split_heads(activation(gate), heads)  # (B, N, T, v) * (B, N, T, v or 1)
    joined = join_heads(mixed)  # (B, T, N·v)
    if fields["output_norm"] is not None:
        joined = norm(fields["output_norm"], joined, at, "output_norm")  # SubLN, arXiv 2210.06423, section 3
    groups = groups_of(fields, "output")
    return at.linear("output", joined, d_model, bias=fields["out_bias"], groups=groups)  # (B, T, N·v) x (N·v, D)


def _sinks(fields: Fields, at: Scope) -> Array | None:
    """(N), or none."""
    return at.parameter("sinks", fields["heads"]) if fields["sinks"] else None


def _head_dim(fields: Fields, d_model: int) -> int:
    size: int = fields["head_dim"] or d_model // fields["heads"]
    return size


def _value_dim(fields: Fields, d_model: int) -> int:
    return fields["v_dim"] or _head_dim(fields, d_model)


def _normed(fields: Fields, y: Array, at: Scope, name: str, heads: int) -> Array:
    """Queries or keys, by head. (B, T, heads·H) -> (B, heads, T, H)."""
    if fields["qk_norm"] is None:
        return split_heads(y, heads)
    return of_kind(QK_NORMS, fields["qk_norm"]["kind"], "QK-norm")(fields["qk_norm"], y, heads, at, f"{name}_norm")


def mixed_values(
    q: Array,
    keys: Array,
    values: Array,
    at: Scope,
    *,
    scale: float | None = None,
    softcap: float | None = None,
    window: int | None = None,
    chunk: int | None = None,
    causal: bool = True,
    added: OfDistances | None = None,
    sinks: Array | None = None,
    start: int | None = None,
    uneven: bool = False,
    beside: tuple[Array, Array] | None = None,
) -> Array:
    """The weighted mean of the values for each query, which meets only the keys it may see.

    q: (B, N, T, H); keys: (B, K, S, H); values: (B, K, S, v); result: (B, N, T, v). Causal, the queries are the last T
    of the S tokens, otherwise they are the first. Query head n reads key head n // G, with G = N / K. scale: None for
    1 / √H. sinks: (N), what takes weight from all keys of a head. start: the position of the first query, where that is
    not S - T: of earlier tokens some may be gone. uneven: as in `seen_from`. beside: (B, K, M, H) and (B, K, M, v),
    keys and values that all queries meet as well.
    """
    batch, heads, tokens, head_dim = q.shape
    kv_heads, seen = keys.shape[1], keys.shape[2]
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    start = seen - tokens if start is None else start
    groups = q.reshape(batch, kv_heads, heads // kv_heads, tokens, head_dim)  # (B, K, G, T, H)
    sinks = None if sinks is None else sinks.reshape(*groups.shape[1:3], 1)  # (K, G, 1)
    mixed = np.empty((*groups.shape[:-1], values.shape[-1]), values.dtype)  # (B, K, G, T, v)
    for token in range(tokens):
        place = seen - tokens + token if causal else token  # among the S
        reach = back_to(start + token, window=window, chunk=chunk)
        sees = seen_from(place, seen, causal=causal, window=reach, uneven=uneven)
        met, weighed = keys[:, :, sees], values[:, :, sees]  # (B, K, s, H), (B, K, s, v)
        if beside is not None:
            met, weighed = (np.concatenate(both, axis=2) for both in zip((met, weighed), beside, strict=True))
        scores = at.product("scores", groups[..., token, :], met.swapaxes(-1, -2))  # (B, K, G, s)
        more = None if added is None else added(np.arange(seen)[sees] - place).reshape(*groups.shape[1:3], -1)
        if more is not None and beside is not None:
            more = np.pad(more, ((0, 0), (0, 0), (0, beside[0].shape[2])))  # what stands nowhere gets nothing
        weights = attention_weights(scores, scale=scale, softcap=softcap, added=more, sinks=sinks)  # (B, K, G, s)
        at.tape.watch_rows(weights)
        weights = weights if sinks is None else weights[..., :-1]  # what went to the sink is of no value
        mixed[..., token, :] = at.product("values", weights, weighed)  # (B, K, G, s) x (B, K, s, v)
    return mixed.reshape(batch, heads, tokens, values.shape[-1])
