"""Entries that stand for many tokens (DeepSeek-V4: `DeepseekV4HCACompressor`, `DeepseekV4CSACompressor`).

Every m tokens become one entry: each of its numbers is a mean of theirs, weighed by a softmax over the tokens. What is
left of a text behind its last entry waits, and meets nobody until the entry is made.
"""

from __future__ import annotations

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.positions import TURNED
from costcalc.reference.recurrence import kept_of
from costcalc.reference.scaled_dot_product import softmax
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

BOTH = ("kv", "weights")
"""What an entry is a mean of, and what the mean is weighed by, of which e^x is taken."""


def entries(how: Fields, x: Array, at: Scope, *, width: int, norm_of: Fields, positions: Fields, sight: Sight) -> Array:
    """All entries so far, those of the new tokens last. x: (B, T, D) -> (B, C, width).

    An entry stands where the first of its tokens does.
    """
    rate, series = how["rate"], 2 if how["overlap"] else 1
    new = {name: at.linear(name, x, series * width, bias=False) for name in BOTH}  # (B, T, s·H) each
    places = at.parameter("places", rate, series * width)  # (m, s·H)
    rows = {name: np.concatenate([held(at, sight, f"waiting_{name}", new[name]), new[name]], axis=1) for name in BOTH}
    whole = rows["kv"].shape[1] // rate  # c new entries
    first = sight.start - (rows["kv"].shape[1] - x.shape[1])  # where the first of these tokens stands
    cut = {name: by_entry(rows[name], rate) for name in BOTH}  # (B, c, m, s·H) each
    cut["weights"] = cut["weights"] + places
    before = {
        name: held(at, sight, f"overlapping_{name}", new[name][..., :width]) if how["overlap"] else None
        for name in BOTH
    }
    met = [joined(cut[name], before[name], width, empty) for name, empty in zip(BOTH, (0, -np.inf), strict=True)]
    shares = softmax(met[1].swapaxes(-1, -2)).swapaxes(-1, -2)  # (B, c, m or 2m, H)
    made = norm(norm_of, (met[0] * shares).sum(axis=2), at, "norm")  # (B, c, H)
    turn = of_kind(TURNED, positions["kind"], "positions")
    made = turn(positions, made[:, None], first + rate * np.arange(whole))[:, 0]  # (B, c, H)
    earlier = held(at, sight, "entries", made)  # (B, C - c, H)
    _keep(how, at, sight, rows, cut, before, earlier, made, tokens=x.shape[1])
    return np.concatenate([earlier, made], axis=1)


def by_entry(rows: Array, rate: int) -> Array:
    """Rows of whole entries. (B, r, s) -> (B, r // m, m, s)."""
    whole = rows.shape[1] // rate
    return rows[:, : whole * rate].reshape(rows.shape[0], whole, rate, rows.shape[-1])


def joined(cut: Array, before: Array | None, width: int, empty: float) -> Array:
    """What each entry is made of: of its own tokens the second series, and the first of those before them.

    cut: (B, c, m, 2H), or of one series (B, c, m, H), which it stays; before: (B, m or 0, H); (B, c, 2m, H). There is
    nothing before a text.
    """
    if before is None:
        return cut
    batch, whole, rate, _ = cut.shape
    first = np.full((batch, 1, rate, width), empty, FLOAT) if before.shape[1] == 0 else before[:, None]
    earlier = np.concatenate([first, cut[..., :width]], axis=1)[:, :whole]  # (B, c, m, H)
    return np.concatenate([earlier, cut[..., width:]], axis=2)  # (B, c, 2m, H)


def held(at: Scope, sight: Sight, name: str, like: Array) -> Array:
    """What a request holds under this name, at first nothing: (B, any, H), of the width of `like`."""
    if sight.request is None or at.named(name) not in sight.request.arrays:
        return like[:, :0]
    return sight.request.arrays[at.named(name)]


def _keep(
    how: Fields,
    at: Scope,
    sight: Sight,
    rows: dict[str, Array],
    cut: dict[str, Array],
    before: dict[str, Array | None],
    earlier: Array,
    made: Array,
    *,
    tokens: int,
) -> None:
    """Of the new tokens those that stay: the entries that they fill, the tokens behind those, the last entry's own."""
    if sight.request is None:
        return
    rate, width = how["rate"], made.shape[-1]
    stays = rows["kv"].shape[1] - tokens + kept_of(sight, tokens)
    whole = stays // rate
    arrays = sight.request.arrays
    arrays[at.named("entries")] = np.concatenate([earlier, made[:, :whole]], axis=1)
    for name in BOTH:
        arrays[at.named(f"waiting_{name}")] = rows[name][:, whole * rate : stays]
        was = before[name]
        if was is not None:
            arrays[at.named(f"overlapping_{name}")] = cut[name][:, whole - 1, :, :width] if whole else was


def chosen_entries(
    how: Fields, x: Array, latent: Array, at: Scope, *, norm_of: Fields, positions: Fields, sight: Sight
) -> list[Array]:
    """By new token, which entries before it are met: (B, c) of places, in their order.

    x: (B, T, D); latent: (B, T, R), what queries are made of. A score is the sum over heads of a weight times
    relu(q·k) (`DeepseekV4IndexerScorer`), on entries of another width.
    """
    choice = how["choice"]
    heads, width = choice["heads"], choice["head_dim"]
    keys = entries(how, x, at, width=width, norm_of=norm_of, positions=narrower(positions, width), sight=sight)
    batch, tokens, _ = x.shape
    here = sight.start + np.arange(tokens)  # (T)
    q = at.linear("q_up", latent, heads * width, bias=False).reshape(batch, tokens, heads, width)  # (B, T, N_i, H_i)
    turn = of_kind(TURNED, positions["kind"], "positions")
    q = turn(narrower(positions, width), q.transpose(0, 2, 1, 3), here)  # (B, N_i, T, H_i)
    weights = at.linear("head_weights", x, heads, bias=False)  # (B, T, D) x (D, N_i)
    found = []
    for token in range(tokens):
        before = (here[token] + 1) // how["rate"]  # entries that are whole
        scores = at.product("scores", q[:, :, token], keys[:, :before].swapaxes(-1, -2))  # (B, N_i, c)
        liked = (np.maximum(scores, 0) * weights[:, token, :, None]).sum(axis=1)  # (B, c)
        best = np.argsort(-liked, axis=-1, kind="stable")[:, : choice["entries"]]
        found.append(np.sort(best, axis=-1))
    return found


def narrower(positions: Fields, width: int) -> Fields:
    """The same positions for heads of another width: as many numbers turn, if there are so many."""
    if positions.get("rotary_dim") is None:
        return positions
    return {**positions, "rotary_dim": min(positions["rotary_dim"], width)}
