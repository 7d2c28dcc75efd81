"""What a pass may be given, and by which models: texts, sources, memories, token types."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.request import Request
from costcalc.reference.stack import expanded


@dataclass(frozen=True, slots=True)
class Given:
    """What a pass is given. tokens, token_types: (B, T). source: (B, M), or (B, 0). memory: (B, M, D), or (B, 0, D)."""

    tokens: Array
    token_types: Array
    source: Array
    memory: Array


def checked(
    fields: Fields,
    tokens: Array,
    request: Request,
    *,
    source: Array | None,
    memory: Array | None,
    token_types: Array | None,
) -> Given:
    """The same as arrays, none of them absent; TypeError or ValueError for what does not go together."""
    tokens = np.asarray(tokens)
    if not isinstance(fields, dict) or not _are_rows(tokens):
        given = f"{type(fields).__name__} and {tokens.dtype} {tokens.shape}"
        raise TypeError(f"the fields of a model, model.model_dump(), and whole numbers (B, T) are needed, not {given}")
    request.check(tokens.shape[1])
    if fields["decoder"] is None and (request.past or request.arrays or request.kept is not None):
        raise ValueError("an encoder sees all of its tokens at once: its request has no past, and keeps nothing")
    return Given(
        tokens,
        _types(fields, tokens, token_types),
        _source(fields, tokens, request, source),
        _memory(fields, tokens, request, memory),
    )


def _are_rows(given: Array) -> bool:
    return given.ndim == 2 and np.issubdtype(given.dtype, np.integer)


def _types(fields: Fields, tokens: Array, token_types: Array | None) -> Array:
    if token_types is None:
        return np.zeros_like(tokens)
    if not fields["embedding"]["token_types"]:
        raise ValueError("this model has no token types")
    token_types = np.asarray(token_types)
    if not _are_rows(token_types):
        raise TypeError(f"token types are whole numbers (B, T), not {token_types.dtype} {token_types.shape}")
    if token_types.shape != tokens.shape:
        raise ValueError(f"token types {token_types.shape} are not those of tokens {tokens.shape}")
    return token_types


def _source(fields: Fields, tokens: Array, request: Request, source: Array | None) -> Array:
    is_pair = fields["encoder"] is not None and fields["decoder"] is not None
    if source is not None:
        _check_taken("a source", is_pair, "is for an encoder-decoder", request)
        source = np.asarray(source)
        if not _are_rows(source):
            raise TypeError(f"a source is whole numbers (B, M), not {source.dtype} {source.shape}")
        _check_texts("a source", source, tokens)
        return source
    if is_pair and request.past == 0:
        raise ValueError("an encoder-decoder needs a source, (B, M), in the pass that starts a request")
    if is_pair and not request.cross:
        raise ValueError("a request that goes on holds what its source gave, and this one holds nothing of a source")
    return np.zeros((len(tokens), 0), np.int64)


def _memory(fields: Fields, tokens: Array, request: Request, memory: Array | None) -> Array:
    width = memory_width(fields)
    if memory is None:
        return np.zeros((len(tokens), 0, width or fields["d_model"]), FLOAT)
    takes = width is not None and not fields["encoder"]
    _check_taken("a memory", takes, "is for a decoder alone that has cross-attention", request)
    memory = np.asarray(memory)
    if memory.ndim != 3 or memory.dtype.kind != "f" or memory.shape[2] != width:
        raise TypeError(f"a memory is numbers (B, M, {width}), not {memory.dtype} {memory.shape}")
    _check_texts("a memory", memory, tokens)
    return memory.astype(FLOAT)


def _looks_beside(layer: Fields) -> bool:
    """Whether its attention over earlier tokens is one over an encoder's too."""
    return bool(layer["attention"] and layer["attention"].get("with_memory"))


def memory_width(fields: Fields) -> int | None:
    """Numbers of each token that a decoder's cross-attention looks at; None where it has none."""
    layers = list(expanded(fields["decoder"]["layers"])) if fields["decoder"] else []
    asking = next((layer["cross_attention"] for layer in layers if layer["cross_attention"]), None)
    if asking is None:
        return fields["d_model"] if any(_looks_beside(layer) for layer in layers) else None
    width: int = asking["memory_width"] or fields["d_model"]
    return width


def _check_taken(what: str, takes: bool, whose: str, request: Request) -> None:
    if not takes:
        raise ValueError(f"{what} {whose}")
    if request.past:
        raise ValueError(f"{what} is given in the pass that starts a request, which holds what it gave from then on")


def _check_texts(what: str, given: Array, tokens: Array) -> None:
    if len(given) != len(tokens) or given.shape[1] == 0:
        raise ValueError(f"{what} has tokens for each of {len(tokens)} texts, not {given.shape}")
