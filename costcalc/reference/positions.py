"""Where a token stands: sinusoids, learned rows, and rotations of queries and keys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields, floats
from costcalc.reference.kinds import of_kind
from costcalc.reference.tape import Scope


def sinusoidal(positions: Array, width: int) -> Array:
    """The encodings of arXiv 1706.03762, section 3.5: sin(p / 10000^(2i/D)) at 2i and the cosine at 2i + 1.

    positions: (T), or one. Result: (T, D), or (D); float64.
    """
    pairs = np.arange(0, width, 2)  # (⌈D/2⌉)
    angles = np.asarray(positions)[..., None] / 10_000 ** (pairs / width)  # (T, ⌈D/2⌉)
    table = np.empty((*angles.shape[:-1], width))  # (T, D)
    table[..., 0::2] = np.sin(angles)
    table[..., 1::2] = np.cos(angles[..., : width // 2])  # an odd width ends in a sine
    return table


def rope(
    x: Array,
    positions: Array,
    *,
    theta: float = 10_000.0,
    rotary_dim: int | None = None,
    pairs: str = "halves",
    of_head: bool = False,
) -> Array:
    """Rotary position embedding (arXiv 2104.09864, eq. 34): pair i of a vector at position p turns by p / theta^(2i/R).

    x: (..., T, H); positions: (T), or one for all; result: as x, or one row for each position if x is one vector. Only
    the first R = rotary_dim numbers turn (None: all), of an odd R all but the last. pairs: "halves" pairs number i with
    i + R/2 (GPT-NeoX, and LLaMA in transformers), "adjacent" 2i with 2i + 1 (the paper, GPT-J): the same rotations of
    numbers in another order, which a model's weights have to be in. of_head: pairs and frequencies are those of all H
    numbers, of which the first R/2 pairs turn (Gemma-4). Raises ValueError for another word, for more numbers than
    there are, and for a theta that is not above 0.
    """
    if pairs not in ("halves", "adjacent"):
        raise ValueError(f'pairs are "halves" or "adjacent", not {pairs!r}')
    x = floats(x)
    rotated = x.shape[-1] if rotary_dim is None else rotary_dim
    if not 0 < rotated <= x.shape[-1]:
        raise ValueError(f"of {x.shape[-1]} numbers {rotated} cannot turn")
    if not theta > 0:
        raise ValueError(f"theta is above 0, not {theta}")
    rotated -= rotated % 2  # R
    whole = x.shape[-1] if of_head else rotated  # H or R
    angles = np.asarray(positions)[..., None] * theta ** (-np.arange(0, rotated, 2) / whole)  # (T, R/2)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)  # (T, R/2) each
    if pairs == "halves":
        first, second = slice(0, rotated // 2), slice(whole // 2, whole // 2 + rotated // 2)
    else:
        first, second = slice(0, rotated, 2), slice(1, rotated, 2)
    a, b = x[..., first], x[..., second]  # (..., T, R/2) each
    shape = np.broadcast_shapes(x.shape[:-1], angles.shape[:-1])  # (..., T)
    result = np.broadcast_to(x, (*shape, x.shape[-1])).copy()  # (..., T, H)
    result[..., first] = a * cos - b * sin
    result[..., second] = a * sin + b * cos
    return result


def nothing_added(fields: Fields, x: Array, positions: Array, at: Scope) -> Array:
    """The embeddings as they are: positions are absent, or act inside each attention."""
    del fields, positions, at
    return x


def learned_added(fields: Fields, x: Array, positions: Array, at: Scope) -> Array:
    """A trained row for each position (arXiv 1705.03122, section 3.1; GPT-2, BERT). x: (B, T, D); positions: (T).

    The first rows may belong to no position (two in RoBERTa, BART and OPT, whose rows begin behind a padding token's).
    """
    table = at.table("positions", fields["length"], x.shape[-1])
    return x + table.rows(positions + fields["offset"])  # (B, T, D) + (T, D)


def learned_beside_rows(fields: Fields, x: Array, positions: Array, at: Scope) -> Array:
    """A trained row for each position where a model has them beside rows of distances (DeBERTa). x: (B, T, D)."""
    return x if fields["length"] is None else learned_added({**fields, "offset": 0}, x, positions, at)


def sinusoidal_added(fields: Fields, x: Array, positions: Array, at: Scope) -> Array:
    """A sinusoid for each position, computed here or read from a stored table. x: (B, T, D); positions: (T)."""
    width = x.shape[-1]
    if fields["stored"] != "no":
        return x + at.table("positions", fields["length"], width, role=fields["stored"]).rows(positions)
    return x + sinusoidal(positions, width).astype(FLOAT)  # (B, T, D) + (T, D)


def table_of_sines(fields: Fields, x: Array, positions: Array, at: Scope) -> Array:
    """The embeddings as they are; a table of sines and cosines may be held beside them (RoFormer). x: (B, T, D)."""
    if fields["stored"] != "no":
        at.table("positions", fields["length"], fields["width"], role=fields["stored"]).rows(positions)  # (T, width)
    return x


def not_turned(fields: Fields, x: Array, positions: Array) -> Array:
    """Queries or keys as they are."""
    del fields, positions
    return x


def rope_turned(fields: Fields, x: Array, positions: Array) -> Array:
    """Queries or keys rotated by their positions. x: (B, heads, T, H); positions: (T)."""
    of_head = of_kind({"rotated": False, "head": True}, fields["frequencies"], "frequencies")
    turned = {"theta": fields["theta"], "rotary_dim": fields["rotary_dim"], "of_head": of_head}
    return rope(x, positions, **turned)  # (B, heads, T, H)


ADDED: dict[str, Callable[[Fields, Array, Array, Scope], Array]] = {
    "none": nothing_added,
    "learned": learned_added,
    "sinusoidal": sinusoidal_added,
    "rope": table_of_sines,
    "relative": nothing_added,
    "alibi": nothing_added,
    "learned_and_relative": learned_added,
    "relative_rows": learned_beside_rows,
}
"""What each kind does to the embeddings, once, below the layers."""

TURNED: dict[str, Callable[[Fields, Array, Array], Array]] = {
    "none": not_turned,
    "learned": not_turned,
    "sinusoidal": not_turned,
    "rope": rope_turned,
    "relative": not_turned,
    "alibi": not_turned,
    "learned_and_relative": not_turned,
    "relative_rows": not_turned,
}
"""What each kind does to queries and keys, in every attention."""
