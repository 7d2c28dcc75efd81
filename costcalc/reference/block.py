"""One layer: sublayers on a residual stream, and where their norms stand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from costcalc.reference.affine import affine
from costcalc.reference.approximate import collisions, landmarks
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.augmented_residual import augmented
from costcalc.reference.bottleneck import bottlenecked
from costcalc.reference.compressed import compressed_attention
from costcalc.reference.condition import conditioned
from costcalc.reference.convolution import convolved
from costcalc.reference.convolved import convolved_attention
from costcalc.reference.differential import differential_attention
from costcalc.reference.disentangled import disentangled
from costcalc.reference.dynamic_mask import dynamic_mask_attention
from costcalc.reference.feed_forward import feed_forward, two_beside
from costcalc.reference.grouped_query import cross_grouped_query, grouped_query
from costcalc.reference.kinds import of_kind
from costcalc.reference.language_adapters import adapted
from costcalc.reference.latent import latent
from costcalc.reference.mixed_convolution import mixed_convolution
from costcalc.reference.mixers import mixer
from costcalc.reference.mixture_of_heads import mixture_of_heads
from costcalc.reference.multi_resolution import multi_resolution
from costcalc.reference.ngram import ngram_attention
from costcalc.reference.norm_gate import gated_norm
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import ON_SCORES
from costcalc.reference.profiled import profiled_attention
from costcalc.reference.shared_block import shared_block
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope
from costcalc.reference.transformer_xl import transformer_xl
from costcalc.reference.whole_text import block_sparse, global_local, local, sliding

Sublayer = Callable[[Array], Array]
"""(B, T, D) -> (B, T, D)."""
Normed = Callable[[Array, str], Array]
"""The layer's norm of an array, with the gain of this name."""
Join = Callable[[Array, Array, str], Array]
"""The residual stream behind a sublayer of this name: of the stream before it, and what the sublayer gives."""

BEFORE_SUBLAYERS = ("attention_norm", "mixer_norm", "cross_attention_norm", "feed_forward_norm")
ATTENTION: dict[str, Callable[..., Array]] = {
    "grouped_query": grouped_query,
    "latent": latent,
    "convolved": convolved_attention,
    "differential": differential_attention,
    "dynamic_mask": dynamic_mask_attention,
    "mixture_of_heads": mixture_of_heads,
    "compressed": compressed_attention,
    "profiled": profiled_attention,
    "sliding": sliding,
    "block_sparse": block_sparse,
    "local": local,
    "global_local": global_local,
    "ngram": ngram_attention,
    "disentangled": disentangled,
    "landmarks": landmarks,
    "collisions": collisions,
    "multi_resolution": multi_resolution,
    "mixed_convolution": mixed_convolution,
    "transformer_xl": transformer_xl,
}
CROSS_ATTENTION = {"grouped_query": cross_grouped_query}


def plain_sum(x: Array, y: Array, name: str) -> Array:
    """x + y. (B, T, D) each."""
    del name
    return x + y


def pre(x: Array, sublayer: Sublayer, normed: Normed, name: str, join: Join = plain_sum) -> Array:
    """x + sublayer(norm(x)) (arXiv 2002.04745, figure 1b)."""
    return join(x, sublayer(normed(x, f"{name}_norm")), name)


def bare(x: Array, sublayer: Sublayer, normed: Normed, name: str, join: Join = plain_sum) -> Array:
    """x + sublayer(x), where what comes in has just been normed (ModernBERT's first layer, 2412.13663)."""
    del normed
    return join(x, sublayer(x), name)


def post(x: Array, sublayer: Sublayer, normed: Normed, name: str, join: Join = plain_sum) -> Array:
    """norm(x + sublayer(x)) (arXiv 1706.03762, section 3.1)."""
    return normed(join(x, sublayer(x), name), f"{name}_norm")


def output(x: Array, sublayer: Sublayer, normed: Normed, name: str, join: Join = plain_sum) -> Array:
    """x + norm(sublayer(x)) (OLMo-2, arXiv 2501.00656, equations 1 and 2)."""
    return join(x, normed(sublayer(x), f"{name}_norm"), name)


def sandwich(x: Array, sublayer: Sublayer, normed: Normed, name: str, join: Join = plain_sum) -> Array:
    """x + norm(sublayer(norm(x))), each norm with its own gain (Gemma-2, arXiv 2408.00118, section 2)."""
    return join(x, normed(sublayer(normed(x, f"{name}_norm")), f"{name}_output_norm"), name)


def sphere(x: Array, sublayer: Sublayer, normed: Normed, name: str, join: Join = plain_sum) -> Array:
    """x, normed, and rates of the way from there to norm(sublayer(x)) (nGPT, arXiv 2410.01131, equations 10 and 11)."""
    x = normed(x, f"{name}_norm")  # (B, T, D)
    return join(x, normed(sublayer(x), f"{name}_output_norm") - x, name)


NORM_PLACES = {"pre": pre, "post": post, "output": output, "sandwich": sandwich, "sphere": sphere}


def one_norm(x: Array, attend: Sublayer, feed: Sublayer, normed: Normed, scale: float = 1.0) -> Array:
    """x + attention(norm(x)) + feed_forward(norm(x)), one norm for both (PaLM, arXiv 2204.02311, section 2)."""
    same = normed(x, "norm")  # (B, T, D)
    return x + scale * attend(same) + scale * feed(same)


def two_norms(x: Array, attend: Sublayer, feed: Sublayer, normed: Normed, scale: float = 1.0) -> Array:
    """x + attention(norm(x)) + feed_forward(norm'(x)) (GPT-NeoX, arXiv 2204.06745, section 2.1)."""
    return x + scale * attend(normed(x, "attention_norm")) + scale * feed(normed(x, "feed_forward_norm"))


PARALLEL = {"one_norm": one_norm, "two_norms": two_norms}


@dataclass(slots=True)
class Sublayers:
    """What a layer does to numbers of its T new tokens, (B, T, D) -> (B, T, D) each.

    stream: (B, T, D), the residual stream in front of the present sublayer. heard: what the attention was given.
    used: names of norms that have been taken once; once more, they have the same gains (X-MOD).
    """

    fields: Fields
    at: Scope
    sight: Sight
    stream: Array
    heard: Array | None = None
    used: set[str] = field(default_factory=set)

    def normed(self, y: Array, name: str) -> Array:
        """A norm of the layer, with the gain of this name; before an attention, rows beside the text have their own."""
        beside = self.sight.global_tokens if name == "attention_norm" else 0
        at = self.at if name not in self.used else replace(self.at, lender=self.at.lender or self.at.path)
        self.used.add(name)
        rows = norm(self.fields["norm"], y[:, beside:], at, name)  # (B, T, D)
        if self.fields["norm_gate"] and name in BEFORE_SUBLAYERS:
            rows = gated_norm(self.fields["norm_gate"], rows, self.at, name)  # (B, T, D)
        if not beside:
            return rows
        more = norm(self.fields["norm"], y[:, :beside], self.at, f"global_{name}")  # (B, G, D)
        return np.concatenate([more, rows], axis=1)

    def behind(self, y: Array, name: str) -> Array:
        """What a sublayer gave, and a convolution of it (Inkling). (B, T, D) -> (B, T, D)."""
        how = self.fields.get("output_conv")
        if how is None:
            return y
        mixed = y + convolved(y, self.at.under(f"{name}_conv"), taps=how["taps"], bias=False, sight=self.sight)
        return mixed / FLOAT(np.sqrt(how["taps"] + 1)) if how["means"] else mixed

    def join(self, x: Array, y: Array, name: str) -> Array:
        """x + scale · y (Granite), with x and y shifted and scaled first, channel by channel, in ZAYA1.

        x: (B, T, D), the stream; y: (B, T, D), what a sublayer of this name gave. Of a mean, all terms so far weigh the
        same (`depth_scaled_residual_add` of Beam). A gate is the tanh of one number (Llama 3, arXiv 2407.21783, section
        7; Flamingo, 2204.14198, figure 4).
        """
        y = self.behind(y, name)
        if self.fields["sublayer_gates"]:
            y = np.tanh(self.at.parameter(f"{name}_gate", 1)) * y
        if self.fields["residual_affine"]:
            x, y = affine(x, self.at, f"{name}_residual"), affine(y, self.at, f"{name}_output")
        if self.fields["residual_mean"]:
            terms = 2 * self.sight.layer + (3 if name == "feed_forward" else 2)  # the first is the stream's start
            return x * FLOAT(math.sqrt((terms - 1) / terms)) + y * FLOAT(1 / math.sqrt(terms))
        if self.fields["residual_gain"]:
            x = x * self.at.gain(f"{name}_residual_gain", x.shape[-1])  # `DogeDecoderLayer`
        if self.fields["norms"] == "sphere":
            y = y * np.abs(self.at.gain(f"{name}_rate", x.shape[-1]))
        x = x + self.fields["residual_scale"] * y
        if name == "feed_forward" and self.fields.get("adapters"):
            return adapted(self.fields["adapters"], x, self.at, normed=self.normed)
        return x

    def attend(self, y: Array) -> Array:
        """The attention; and a mixer that reads the same, added (Falcon-H1, arXiv 2507.22448)."""
        fields, sight, self.heard = self.fields, self.sight, y
        some, positions = fields["attention"], fields["positions"]
        added = of_kind(ON_SCORES, positions["kind"], "positions")(positions, some["heads"], self.at, sight)
        run = of_kind(ATTENTION, some["kind"], "attention")
        here = self.at.under("attention")
        y_of = run(some, y, here, positions=positions, sight=sight, added=added, name=fields["name"])  # (B, T, D)
        return y_of + self.mix(y, "mixer_beside") if fields["mixer_beside"] else y_of

    def mix(self, y: Array, name: str = "mixer") -> Array:
        """A recurrent mixer."""
        return mixer(self.fields[name], y, self.at.under(name), sight=self.sight, norm_of=self.fields["norm"])

    def ask(self, y: Array) -> Array:
        """Attention over another stack's tokens."""
        some, here = self.fields["cross_attention"], self.at.under("cross_attention")
        return of_kind(CROSS_ATTENTION, some["kind"], "cross-attention")(some, y, here, sight=self.sight)

    def feed(self, y: Array) -> Array:
        """A network, or two."""
        fields, here = self.fields, self.at.under("feed_forward")
        if fields["conditioned"]:
            y = y * (1 + conditioned(fields["conditioned"], y.shape[-1], self.at.under("condition")))  # (B, T, D)
        if fields["feed_forward_beside"]:
            return two_beside(fields, y, self.at, residual=self.stream, normed=self.normed, sight=self.sight)
        some: dict[str, Any] = {"residual": self.stream, "sight": self.sight}
        if fields["shortcut"]:
            later = feed_forward(fields["shortcut"], y, self.at.under("shortcut"), **some)  # (B, T, D)
            self.sight.shortcuts[self.sight.layer + 1] = later
        return feed_forward(fields["feed_forward"], y, here, **some)


def block(fields: Fields, x: Array, at: Scope, *, sight: Sight) -> Array:
    """One layer's output for the T new tokens. x: (B, T, D) -> (B, T, D)."""
    parts = Sublayers(fields, at, sight, x)
    if fields.get("bottleneck"):

        def feed(y: Array, place: Scope) -> Array:
            return feed_forward(fields["feed_forward"], y, place, residual=y, sight=sight)

        return bottlenecked(fields, x, at, sight=sight, feed=feed)
    if fields["parallel"]:
        run = of_kind(PARALLEL, fields["parallel"], "parallel block")
        return run(x, parts.attend, parts.feed, parts.normed, fields["residual_scale"])
    place = of_kind(NORM_PLACES, fields["norms"], "placement of norms")
    if fields["attention"]:
        around = place if fields["attention_norm"] else bare
        x = around(x, parts.attend, parts.normed, "attention", parts.join)  # (B, T, D)
        if fields["augmented_residual"] and parts.heard is not None:
            x = augmented(fields["augmented_residual"], x, parts.heard, at, norm_of=fields["norm"])  # (B, T, D)
    if fields["mixer"]:
        x = place(x, parts.mix, _beside_stream(parts), "mixer", parts.join)  # (B, T, D)
    whole = x
    if fields["cross_attention"]:
        asking = x if sight.asks else x[:, :0]  # with nobody to ask, its weights are held and left alone
        asked = place(asking, parts.ask, parts.normed, "cross_attention", parts.join)  # (B, T, D)
        x = asked if sight.asks or fields["needs_memory"] else x
    if fields["feed_forward"]:
        parts.stream = x
        x = place(x, parts.feed, parts.normed, "feed_forward", parts.join)  # (B, T, D)
    if sight.layer in sight.shortcuts:
        x = x + sight.shortcuts[sight.layer]  # (B, T, D)
    return x if sight.asks or not fields["needs_memory"] else whole


def _beside_stream(parts: Sublayers) -> Normed:
    """The norm in front of a mixer: of the stream, and what a shared block gives, added (Zamba, arXiv 2405.16712)."""
    if not parts.fields["shared_block"]:
        return parts.normed
    beside = shared_block(parts.fields, parts.stream, parts.at, sight=parts.sight)  # (B, T, D)
    return lambda y, name: parts.normed(y + beside, name)
