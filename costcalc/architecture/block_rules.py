"""What must hold between the parts of a layer, in the words of those who write one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from costcalc.architecture.attention import Disentangled, GroupedQuery, Latent
from costcalc.architecture.block_residuals import rules_of_residuals
from costcalc.architecture.component import Rule
from costcalc.architecture.feed_forward import Mixture
from costcalc.architecture.positions import OfDistances, RotaryPositions
from costcalc.architecture.relative_rows import RelativeRows

if TYPE_CHECKING:
    from costcalc.architecture.block import Block

SUBLAYERS = ("attention", "mixer", "cross_attention", "feed_forward")
"""In the order in which they run."""


def rules_of_layer(block: Block, d_model: int) -> Iterator[Rule]:
    """All of them, in the order in which a writer is told."""
    yield from _of_sublayers(block, d_model)
    yield from _of_memory(block)
    yield from _of_attention(block)
    yield from _of_parallel(block)
    yield from _of_rotation(block, d_model)
    yield from _of_distances(block)
    yield from _of_bottleneck(block, d_model)
    yield from _of_what_is_beside(block)
    yield from _of_plain_layers(block)
    yield from rules_of_residuals(block)


def _of_sublayers(block: Block, d_model: int) -> Iterator[Rule]:
    """A layer does something, and an attention and a mixer are two."""
    yield (
        any(getattr(block, name) is not None for name in SUBLAYERS),
        "a layer needs `attention`, `mixer` or `feed_forward`",
    )
    yield (
        block.attention is None or block.mixer is None,
        "`attention` and `mixer` exclude each other",
        "write two layers, or `mixer_beside` for one that reads what the attention reads",
    )
    is_alone = block.feed_forward is not None and not block.parallel
    yield block.conditioned is None or is_alone, "`conditioned` is for a `feed_forward`, and not `parallel`"
    yield block.conditioned is None or d_model % 2 == 0, "`conditioned` needs an even d_model, not {d_model}"
    looks_elsewhere_only = block.cross_attention is not None and block.attention is None and block.mixer is None
    yield (
        not block.needs_memory or looks_elsewhere_only,
        "`needs_memory` is for a layer with `cross_attention`, and without `attention` or `mixer`",
    )
    yield not (block.parallel and block.sublayer_gates), "`sublayer_gates` is not for `parallel` layers"


def _of_memory(block: Block) -> Iterator[Rule]:
    """Who looks at an encoder sees all of it."""
    if block.cross_attention is not None:
        yield not block.parallel, "`parallel` is not for layers with `cross_attention`"
        yield (
            block.cross_attention.window is None and block.cross_attention.chunk is None,
            "a `window` or `chunk` is not for `cross_attention`: it sees all of the memory",
        )
        yield block.cross_attention.cache_of is None, "`cache_of` is not for `cross_attention`"
        yield block.cross_attention.block_choice is None, "`block_choice` is not for `cross_attention`"
    looks_at_itself = isinstance(block.attention, GroupedQuery) and block.attention.memory_width is not None
    yield not looks_at_itself, "`memory_width` is for `cross_attention`", "take it out"


def _of_attention(block: Block) -> Iterator[Rule]:
    """Experts are not shared by layers; kinds that turn their own numbers have rotary positions or none."""
    routes = any(
        isinstance(network, Mixture) for network in (block.feed_forward, block.feed_forward_beside, block.shortcut)
    )
    yield (
        not (block.share_weights and routes),
        "layers that share experts: how many of them a token uses in all of its turns is not known",
        "write `share_weights: false`",
    )
    if isinstance(block.attention, GroupedQuery) and block.attention.block_choice is not None:
        yield (
            block.positions.kind in ("rope", "none") or block.positions.added,
            "`block_choice` goes with rotary positions or none of its own, not {positions.kind}",
        )
    if isinstance(block.attention, Latent):
        yield (
            block.positions.kind in ("rope", "none") or block.positions.added,
            "latent attention has rotary positions or none of its own, not {positions.kind}",
        )


def _of_parallel(block: Block) -> Iterator[Rule]:
    """Parallel needs two sublayers and norms before them."""
    has_both = block.attention is not None and block.feed_forward is not None
    has_left_out = block.attention is not None and block.norms == "pre" and not block.parallel
    yield block.attention_norm or has_left_out, "`attention_norm: false` needs an attention, and `norms: pre`"
    yield not block.parallel or has_both, "`parallel` needs both `attention` and `feed_forward`"
    yield not block.parallel or block.norms == "pre", "`parallel` goes with `norms: pre`, not with {norms}"
    is_one_sum = not (block.parallel and (block.residual_affine or block.residual_gain))
    said = "`residual_affine` and `residual_gain` are for sublayers one after another"
    yield is_one_sum, said, "write `parallel: false`"


def _of_rotation(block: Block, d_model: int) -> Iterator[Rule]:
    """Rotation fits into a head."""
    if block.attention is not None and isinstance(block.positions, RotaryPositions):
        rotary_dim, head_dim = block.positions.rotary_dim, block.attention.rotated(d_model)
        if rotary_dim is not None:
            yield rotary_dim <= head_dim, f"rotary_dim {rotary_dim} is more than head_dim {head_dim}"
            yield rotary_dim % 2 == 0, f"rotary_dim {rotary_dim} is odd: RoPE rotates pairs"


def _of_bottleneck(block: Block, d_model: int) -> Iterator[Rule]:
    """What stands behind a network, and what holds a whole layer."""
    if block.adapters is not None:
        yield block.feed_forward is not None and not block.parallel, "`adapters` stand behind a `feed_forward`"
    if block.bottleneck is not None:
        is_plain = isinstance(block.attention, GroupedQuery) and block.attention.kv_heads in (
            None,
            block.attention.heads,
        )
        yield (
            is_plain and block.feed_forward is not None and block.norms == "post",
            "a `bottleneck` holds multi-head attention and a `feed_forward`, with `norms: post`",
        )
        if isinstance(block.attention, GroupedQuery):
            inner = block.bottleneck.inner(d_model)
            yield inner % block.attention.heads == 0, f"{inner} is not a multiple of heads {block.attention.heads}"


def _of_plain_layers(block: Block) -> Iterator[Rule]:
    """What only layers have whose sublayers stand one after another, behind norms or without scales."""
    before = block.norms in ("pre", "sandwich") and not block.parallel
    yield block.norm_gate is None or before, "`norm_gate` stands behind norms in front of sublayers"
    scaled = block.residual_affine or block.residual_scale != 1.0 or block.parallel
    yield not (block.residual_mean and scaled), "`residual_mean` is a sum of its own: it goes with no other scale"
    reads = block.feed_forward is not None and block.norms == "pre" and not block.parallel
    yield block.shortcut is None or reads, "a `shortcut` reads what a `feed_forward` reads, behind a norm before it"


def _of_distances(block: Block) -> Iterator[Rule]:
    """Disentangled attention and a table of rows for distances need each other."""
    spans = [
        block.attention.span if isinstance(block.attention, Disentangled) else None,
        block.positions.span if isinstance(block.positions, RelativeRows) else None,
    ]
    yield (
        block.attention is None or spans[0] == spans[1],
        "disentangled attention goes with positions of the kind `relative_rows`, of the same `span`",
        "write both, or neither",
    )


def _of_what_is_beside(block: Block) -> Iterator[Rule]:
    """What stands beside a sublayer needs it, and norms where its own are."""
    yield (
        block.mixer_beside is None or block.attention is not None,
        "`mixer_beside` stands beside an `attention`",
        "write `mixer` for one that stands alone",
    )
    yield (
        block.shared_block is None or (block.mixer is not None and block.norms == "pre"),
        "a `shared_block` is for a layer with a `mixer`, which reads its result, and `norms: pre`",
    )
    yield (
        block.shared_block is None or not isinstance(block.positions, OfDistances),
        "a `shared_block` has no relative positions",
        "write `positions: rope`, or `none`",
    )
    yield (
        block.shared_block is None or not block.share_weights,
        "`share_weights` shares all of a layer, `shared_block` a part of it",
        "take one of the two out",
    )
    if block.augmented_residual is not None:
        has_norm = block.attention is not None and block.norms in ("pre", "sandwich") and block.attention_norm
        yield (
            has_norm and not block.parallel,
            "`augmented_residual` reads what the attention reads: it needs one with a norm before it",
        )
    if block.feed_forward_beside is not None:
        yield block.feed_forward is not None, "`feed_forward_beside` stands beside a `feed_forward`"
        yield block.norms == "sandwich", "`feed_forward_beside` goes with `norms: sandwich`, not with {norms}"
