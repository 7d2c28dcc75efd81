"""One layer: two sublayers on a residual stream, and where their norms stand."""

from __future__ import annotations

from collections.abc import Callable

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.augmented_residual import augmented
from costcalc.reference.feed_forward import feed_forward, two_beside
from costcalc.reference.grouped_query import cross_grouped_query, grouped_query
from costcalc.reference.kinds import of_kind
from costcalc.reference.latent import latent
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import ON_SCORES
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

Sublayer = Callable[[Array], Array]
"""(B, T, D) -> (B, T, D)."""
Normed = Callable[[Array, str], Array]
"""The layer's norm of an array, with the gain of this name."""

ATTENTION = {"grouped_query": grouped_query, "latent": latent}
CROSS_ATTENTION = {"grouped_query": cross_grouped_query}


def pre(x: Array, sublayer: Sublayer, normed: Normed, name: str, scale: float = 1.0) -> Array:
    """x + scale · sublayer(norm(x)) (arXiv 2002.04745, figure 1b)."""
    return x + scale * sublayer(normed(x, f"{name}_norm"))


def bare(x: Array, sublayer: Sublayer, normed: Normed, name: str, scale: float = 1.0) -> Array:
    """x + scale · sublayer(x), where what comes in has just been normed (ModernBERT's first layer, 2412.13663)."""
    del normed, name
    return x + scale * sublayer(x)


def post(x: Array, sublayer: Sublayer, normed: Normed, name: str, scale: float = 1.0) -> Array:
    """norm(x + scale · sublayer(x)) (arXiv 1706.03762, section 3.1)."""
    return normed(x + scale * sublayer(x), f"{name}_norm")


def output(x: Array, sublayer: Sublayer, normed: Normed, name: str, scale: float = 1.0) -> Array:
    """x + scale · norm(sublayer(x)) (OLMo-2, arXiv 2501.00656, equations 1 and 2)."""
    return x + scale * normed(sublayer(x), f"{name}_norm")


def sandwich(x: Array, sublayer: Sublayer, normed: Normed, name: str, scale: float = 1.0) -> Array:
    """x + scale · norm(sublayer(norm(x))), each norm with its own gain (Gemma-2, arXiv 2408.00118, section 2)."""
    return x + scale * normed(sublayer(normed(x, f"{name}_norm")), f"{name}_output_norm")


NORM_PLACES = {"pre": pre, "post": post, "output": output, "sandwich": sandwich}


def one_norm(x: Array, attend: Sublayer, feed: Sublayer, normed: Normed, scale: float = 1.0) -> Array:
    """x + attention(norm(x)) + feed_forward(norm(x)), one norm for both (PaLM, arXiv 2204.02311, section 2)."""
    same = normed(x, "norm")  # (B, T, D)
    return x + scale * attend(same) + scale * feed(same)


def two_norms(x: Array, attend: Sublayer, feed: Sublayer, normed: Normed, scale: float = 1.0) -> Array:
    """x + attention(norm(x)) + feed_forward(norm'(x)) (GPT-NeoX, arXiv 2204.06745, section 2.1)."""
    return x + scale * attend(normed(x, "attention_norm")) + scale * feed(normed(x, "feed_forward_norm"))


PARALLEL = {"one_norm": one_norm, "two_norms": two_norms}


def block(fields: Fields, x: Array, at: Scope, *, sight: Sight) -> Array:
    """One layer's output for the T new tokens. x: (B, T, D) -> (B, T, D).

    The residual stream takes each sublayer's output times one number, `residual_scale` (Granite).
    """
    scale = fields["residual_scale"]

    heard: list[Array] = []

    def attend(y: Array) -> Array:
        heard.append(y)  # (B, T, D)
        some, positions = fields["attention"], fields["positions"]
        added = of_kind(ON_SCORES, positions["kind"], "positions")(positions, some["heads"], at, sight)
        run = of_kind(ATTENTION, some["kind"], "attention")
        here = at.under("attention")
        return run(some, y, here, positions=positions, sight=sight, added=added, name=fields["name"])

    def ask(y: Array) -> Array:
        run = of_kind(CROSS_ATTENTION, fields["cross_attention"]["kind"], "cross-attention")
        return run(fields["cross_attention"], y, at.under("cross_attention"), sight=sight)

    def feed(y: Array) -> Array:
        if fields["feed_forward_beside"]:
            return two_beside(fields, y, at, residual=x, normed=normed)
        return feed_forward(fields["feed_forward"], y, at.under("feed_forward"), residual=x)

    def normed(y: Array, name: str) -> Array:
        return norm(fields["norm"], y, at, name)

    if fields["parallel"]:
        return of_kind(PARALLEL, fields["parallel"], "parallel block")(x, attend, feed, normed, scale)
    place = of_kind(NORM_PLACES, fields["norms"], "placement of norms")
    if fields["attention"]:
        x = (place if fields["attention_norm"] else bare)(x, attend, normed, "attention", scale)  # (B, T, D)
        if fields["augmented_residual"]:
            x = augmented(fields["augmented_residual"], x, heard[0], at, norm_of=fields["norm"])  # (B, T, D)
    if fields["cross_attention"]:
        asking = x if sight.asks else x[:, :0]  # with nobody to ask, its weights are held and left alone
        asked = place(asking, ask, normed, "cross_attention", scale)  # (B, T, D)
        x = asked if sight.asks else x
    if fields["feed_forward"]:
        x = place(x, feed, normed, "feed_forward", scale)  # (B, T, D)
    return x
