"""Every kind of component in every phase: what the pass recorded is what the inventory states, path by path.

And that nothing is left out: each kind and each choice that a field of an architecture offers occurs here, and the pass
reads each field.
"""

import re
from dataclasses import replace
from functools import cache, reduce
from itertools import product
from operator import getitem
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import numpy as np
import pytest

import costcalc
from costcalc.architecture import Architecture
from costcalc.architecture.component import Component
from costcalc.architecture.embedding import Embedding
from costcalc.inventory import Workload
from costcalc.reference import ACTIVATIONS, Arena, NoReferenceError, Request, Tape, forward
from costcalc.reference.asked import memory_width
from costcalc.reference.block import ATTENTION
from costcalc.reference.feed_forward import FEED_FORWARD
from costcalc.reference.tape import Product
from costcalc.verification.faults import KINDS, compare, stated

ARENA = Arena(4096, deviation=13**-0.5)
RNG = np.random.default_rng(0)
TEXT = RNG.integers(0, 19, (3, 23))

# V=19, D=13, N=6, K=2, H=5, F=37; two layers
CORE = {"heads": 6, "kv_heads": 2, "head_dim": 5}
NORMS = {
    "rms": {"kind": "rmsnorm"},
    "bare rms": {"kind": "rmsnorm", "weight": False},
    "layer": {"kind": "layernorm"},
    "layer without bias": {"kind": "layernorm", "bias": False},
    "layer without gain": {"kind": "layernorm", "weight": False},
    "bare layer": {"kind": "layernorm", "weight": False, "bias": False},
}
PREFILL = Workload(batch=3, new_tokens=11)
DECODE = Workload(batch=3, new_tokens=1, past_tokens=11)
FIVE_MORE = Workload(batch=3, new_tokens=5, past_tokens=12, logits="last")
PHASES = (PREFILL, DECODE, FIVE_MORE)
"""Each goes on where the one before ended."""
WITH_MEMORY = tuple(replace(workload, memory_tokens=7) for workload in PHASES)
ENCODER_PHASES = (PREFILL, Workload(batch=2, new_tokens=5))
"""Each is a text of its own."""


def small(*, attention=(), feed_forward=(), layer=(), **top):
    """The written form of a small decoder with these keys changed; None takes a sublayer away."""
    parts = {
        "attention": None if attention is None else {**CORE, **dict(attention)},
        "feed_forward": None if feed_forward is None else {"d_ff": 37, **dict(feed_forward)},
    }
    block = {"repeat": 2, **{key: value for key, value in parts.items() if value is not None}, **dict(layer)}
    return {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [block], **top}


# An encoder of two layers, alone, with the same sizes; and one below a decoder of three, whose layers ask 3 heads of 7.
LABELS = {"kind": "classifier", "labels": 5}
ASKED = {"heads": 3, "head_dim": 7}


def encoder(*, attention=(), layer=(), **top):
    """The written form of a small encoder alone."""
    block = {"repeat": 2, "attention": {**CORE, **dict(attention)}, "feed_forward": {"d_ff": 37}, **dict(layer)}
    return {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "encoder": {"layers": [block]}, **top}


def pair(*, asked=(), layer=(), decoder=(), **top):
    """The written form of a small encoder-decoder."""
    below = {"repeat": 2, "attention": CORE, "feed_forward": {"d_ff": 37}, **dict(layer)}
    block = {**below, "repeat": 3, "cross_attention": {**ASKED, **dict(asked)}, **dict(decoder)}
    stacks = {"encoder": {"layers": [below]}, "decoder": {"layers": [block]}}
    return {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", **stacks, **top}


def encoder_cases():
    """(name, written form) of what only encoders have, or have in another way."""
    for norms, norm in product(("pre", "post", "output", "sandwich"), NORMS):
        yield f"encoder {norms} {norm}", encoder(norm=NORMS[norm], layer={"norms": norms})
    yield "encoder pooled", encoder(pooler=True)
    yield "encoder without a head", encoder(pooler=True, head="none")
    for window in (1, 2, 5, 19, 20, 21, 1009):
        yield f"encoder window {window}", encoder(attention={"window": window}, positions="rope")
    yield "encoder without its first norm", encoder(layer={"attention_norm": False})
    for kind in ("none", "rope", "alibi", "relative", "sinusoidal"):
        yield f"encoder {kind}", encoder(positions=kind)
    for length, offset in ((23, 0), (23, 2)):
        positions = {"kind": "learned", "length": length, "offset": offset}
        yield f"encoder learned {length} {offset}", encoder(positions=positions)
    narrow = ({}, {"width": 7}, {"width": 7, "project": "after", "bias": True})
    for tied, embedding, transform in product((False, True), narrow, TRANSFORMS):
        if tied and transform.get("bias") == "spare":
            continue  # a tied head has one
        some = {"token_types": 3, "norm": {"kind": "layernorm"}, **embedding}
        name = f"encoder {'tied' if tied else 'untied'} {embedding} {TRANSFORMS.index(transform)}"
        yield name, encoder(tie_embeddings=tied, embedding=some, head=transform, positions=LEARNED)
    for of, bias, pooler in product(("token", "text"), (False, True), (False, True)):
        yield f"labels of each {of} {bias} {pooler}", encoder(head={**LABELS, "of": of, "bias": bias}, pooler=pooler)
    for width, bias in product((None, 7), (False, True)):
        before = {"transform": True, "transform_width": width, "transform_bias": bias}
        yield f"labels behind {width} {bias}", encoder(head={**LABELS, **before})
    for activation, norm in zip(ACTIVATIONS, [*NORMS, *NORMS], strict=False):
        before = {"transform": True, "activation": activation, "norm": NORMS[norm]}
        yield f"labels behind {activation} and {norm}", encoder(head={**LABELS, **before, "of": "text"})
    for activation, norm in zip(ACTIVATIONS, [*NORMS, *NORMS], strict=False):
        head = {"transform": True, "activation": activation, "norm": NORMS[norm]}
        yield f"encoder's {activation} before {norm}", encoder(head=head, tie_embeddings=True)
    yield from cases_of_berts_kin()
    albert = {"share_weights": True, "norms": "post", "repeat": 3}
    yield "shared weights", encoder(layer=albert, embedding={"width": 7, "project": "after"}, norm="layernorm")
    one, other = ({**CORE, "kv_heads": 3}, {"heads": 2, "head_dim": 3})
    groups = [
        {"name": "a", "repeat": 2, "share_weights": True, "attention": one},
        {"name": "b", "repeat": 3, "share_weights": True, "attention": one},
        {"name": "c", "repeat": 2, "attention": other, "feed_forward": {"d_ff": 37}},
        {"repeat": 2, "share_weights": True, "attention": one},
        {"repeat": 2, "share_weights": True, "attention": one},
    ]
    yield "several groups that share", encoder(encoder={"layers": groups})
    turns = [{"repeat": 2, "pattern": [{**groups[0], "name": None}, {"attention": other}]}]
    yield "a group that shares in every turn of its pattern", encoder(encoder={"layers": turns})
    for per_layer in (False, True):
        relative = {"kind": "relative", "buckets": 7, "max_distance": 11, "per_layer": per_layer}
        yield f"shared, relative, per layer {per_layer}", encoder(positions=relative, layer={"share_weights": True})


def cases_of_berts_kin():
    """(name, written form) of what encoders have that are BERT with differences."""
    rope = {"kind": "rope", "stored": "frozen", "length": 23, "width": 4, "values": True}
    yield "encoder with stored rotations, of values too", encoder(positions=rope)
    both = {"kind": "learned_and_relative", "length": 23, "offset": 2, "buckets": 7, "max_distance": 11}
    yield "encoder learned and relative", encoder(positions=both)
    uses = ({"use": "added"}, {"use": "joined", "width": 11}, {"use": "held", "width": 2}, {"use": "held"})
    tables = [{"name": f"table_{index}", "rows": 3 + index, **use} for index, use in enumerate(uses)]
    embedding = {"width": 7, "bias": True, "tables": tables, "norm": "layernorm", "token_types": 2}
    yield "encoder with further tables", encoder(embedding=embedding)
    added = {"width": 7, "project": "after", "tables": [tables[0], tables[3]]}
    yield "encoder with further tables below a projection", encoder(embedding=added)
    for more in ({"inner": 17}, {"width": 29}, {"inner": 17, "width": 29, "transform_bias": False}):
        yield f"encoder's head with {more}", encoder(head={"transform": True, "norm": NORMS["layer"], **more})
    for predicts, width, norm in ((False, 13, "rms"), ("tied", 7, "layer"), ("own", 7, "layer")):
        entities = {"rows": 31, "width": width, "length": 23, "token_types": 2, "norm": NORMS[norm]}
        some = {"predicts": predicts, **entities}
        yield (
            f"encoder with entities {predicts}",
            encoder(entities=some, attention={"entity_queries": True, "bias": True}),
        )
    for weights, trimmed, to, back in (
        ("own", True, True, True),
        ("shared", False, True, True),
        ("own", False, False, True),
    ):
        asked = {"weights": weights, "trimmed": trimmed, "to_position": to, "from_position": back, "key_bias": to}
        attention = {"kind": "disentangled", "heads": 6, "span": 5, **asked}
        rows = {"kind": "relative_rows", "span": 5, "norm": NORMS["rms" if to else "layer"] if not trimmed else None}
        rows |= {"length": 23} if trimmed else {"max_distance": 11}
        beside = {"taps": 3, "groups": 3, "activation": "gelu"} if trimmed else {"taps": 1}
        layer = {"attention": attention, "norms": "post", "convolution": beside}
        yield f"disentangled {weights} {trimmed} {to}", encoder(d_model=42, positions=rows, layer=layer)
    for activation in ACTIVATIONS:
        layer = {"convolution": {"taps": 3, "activation": activation}}
        yield f"encoder with a convolution, {activation}", encoder(layer=layer)
    attention = {"kind": "disentangled", "heads": 6, "span": 19, "to_position": False, "from_position": False}
    rows = {"kind": "relative_rows", "span": 19}
    yield "disentangled from nothing", encoder(d_model=42, positions=rows, layer={"attention": attention})
    yield (
        "mixed convolution",
        encoder(d_model=42, layer={"attention": {"kind": "mixed_convolution", "heads": 3, "taps": 5}}),
    )
    groups = {"q": 2, "k": 3, "v": 1, "output": 6}
    network = {"d_ff": 36, "up_groups": 3, "down_groups": 2, "bias": True}
    in_groups = {"attention": {"heads": 6, "groups": groups, "bias": True, "out_bias": True}, "feed_forward": network}
    yield "encoder in groups", encoder(d_model=42, layer=in_groups)
    for segments in (None, 2):
        distances = {"kind": "transformer_xl", "heads": 6, "segments": segments}
        yield f"sinusoids of distances, {segments}", encoder(d_model=42, layer={"attention": distances})
    for activation, reads in zip(ACTIVATIONS, [*("own", "shared", None), *["own"] * 9], strict=False):
        norms, residual = ("pre", "plain") if reads == "own" else ("post", "normed")
        adapters = {"languages": 3, "width": 7, "reads": reads, "residual": residual, "activation": activation}
        yield f"adapters {reads} {activation}", encoder(layer={"adapters": adapters, "norms": norms}, norm="layernorm")
    yield "decoder with adapters", small(layer={"adapters": {"languages": 2, "width": 5}, "norms": "post"})
    plain = {"attention": {"heads": 3, "bias": True, "out_bias": True, "head_dim": 5}, "norms": "post", "repeat": 2}
    inside = ({"width": 15}, {"width": 15, "attends": "input", "spare": True, "networks": 2}, {"attends": "stream"})
    for bottleneck in inside:
        norm = {"kind": "layernorm", "normalized": False}
        narrow = {
            "embedding": {"width": 7, "neighbours": True},
            "head": {"transform": True, "norm": norm, "beside": True},
        }
        top = {"d_model": 42, "norm": norm, "tie_embeddings": True, **narrow}
        yield f"bottleneck {bottleneck}", encoder(layer={**plain, "bottleneck": bottleneck}, **top)
    yield "gated, a bias of its output", small(feed_forward={"kind": "gated", "out_bias": True})


def pair_cases():
    """(name, written form) of encoders with decoders, and of decoders that ask others."""
    for norms, norm in product(("pre", "post", "output", "sandwich"), NORMS):
        yield f"pair {norms} {norm}", pair(norm=NORMS[norm], layer={"norms": norms})
    for kv_heads, bias in product((None, 1, 3), (False, True)):
        yield f"pair {kv_heads} {bias}", pair(asked={"kv_heads": kv_heads, "bias": bias, "out_bias": bias})
    for kind, norm in product(("per_head", "projection"), NORMS):
        yield f"pair {kind} {norm}", pair(asked={"qk_norm": {"kind": kind, "norm": NORMS[norm]}})
    yield "pair scaled and capped", pair(asked={"scale": 0.3, "softcap": 2.0})
    yield "pair, heads derived", pair(d_model=42, asked={"head_dim": None})
    for kind, per_layer in product(("relative", "alibi", "rope", "sinusoidal", "none"), (False, True)):
        if kind == "relative" or not per_layer:
            yield (
                f"pair {kind} {per_layer}",
                pair(positions={"kind": kind, **({"per_layer": True} if per_layer else {})}),
            )
    yield "pair learned", pair(positions=LEARNED)
    yield "pair without feed-forward", pair(decoder={"feed_forward": None})
    yield "pair that only asks", pair(decoder={"attention": None})
    yield "pair that shares a table", pair(share_embeddings=True, tie_embeddings=True, embedding={"scale": 3.0})
    yield "pair tied, two tables", pair(tie_embeddings=True)
    yield "pair of two vocabularies", pair(encoder_vocab_size=29)
    yield "pair with a scaled head", pair(tie_embeddings=True, head={"scale": 13**-0.5, "bias": "buffer"})
    yield "pair without a head", pair(head="none")
    for of in ("token", "text"):
        yield f"pair with labels of each {of}", pair(head={**LABELS, "of": of, "transform": True})
    yield "pair with shared layers", pair(layer={"share_weights": True})
    yield "pair with windows", pair(layer={"attention": {**CORE, "window": 5}}, positions="rope")
    yield "pair with normed embeddings", pair(embedding={"norm": "rmsnorm", "token_types": 2, "width": 7})
    yield from wide_pair_cases()
    yield from merged_cases()
    yield from ngram_cases()
    asks = [{"attention": CORE, "cross_attention": ASKED}, {"attention": CORE, "norms": "post"}]
    yield "pair that asks in one layer", {**pair(), "decoder": {"layers": asks}}


def merged_cases():
    """(name, written form) of decoders whose attention meets an encoder's tokens beside their own earlier ones."""
    merged = {**CORE, "with_memory": True}
    for window, positions in product((None, 5), ("rope", "none", "alibi", "relative")):
        reads = {"attention": {**merged, "window": window}, "cross_attention": None}
        own = {**CORE, "window": 4, "uneven_window": True} if window else CORE
        written = pair(layer={"attention": own}, decoder=reads, positions=positions)
        yield f"pair merged {window} {positions}", written
    both = {"attention": {**merged, "bias": True, "sinks": True, "qk_norm": "per_head", "v_dim": 7}}
    yield "pair merged, and asking", pair(decoder=both, share_embeddings=True, embedding={"own_rows": 2})
    yield "merged, asking others", small(attention={"with_memory": True, "values_from_keys": True})
    yield "pair with rows of their own", pair(embedding={"own_rows": 1, "width": 7}, tie_embeddings=True)
    for window in (1, 2, 3, 4, 20, 21, 1008):
        yield f"encoder uneven window {window}", encoder(attention={"window": window, "uneven_window": True})


def ngram_cases():
    """(name, written form) of a main stream and streams that look ahead."""
    where = {"positions": LEARNED, "embedding": {"norm": "layernorm", "scale": 2.0}}
    for streams, bias in product((1, 2, 5), (False, True)):
        some = {"kind": "ngram", "heads": 3, "head_dim": 5, "streams": streams, "buckets": 7, "max_distance": 11}
        reads = {"attention": {**some, "bias": bias, "out_bias": bias}}
        yield (
            f"pair of {streams} streams {bias}",
            pair(decoder={**reads, "norms": "post"}, tie_embeddings=bias, **where),
        )
        yield f"{streams} streams {bias}", small(layer={**reads, "cross_attention": ASKED}, **where)
    some = {"kind": "ngram", "heads": 2, "scale": 0.3, "head_dim": None}
    yield "streams, heads derived", small(layer={"attention": some}, d_model=14, head="none", **where)
    routed = {"attention": {**some, "head_dim": 3}, "feed_forward": MIXTURE}
    yield "streams to experts", pair(decoder=routed, **where)


def wide_pair_cases():
    """(name, written form) of encoders that are wider than their decoders, or of another bottom; spare tables."""
    written = pair(pooler=True, spare_table=True)
    yield "pair pooled, with a spare table", written
    own = {**written["encoder"], "embedding": {"norm": "rmsnorm", "token_types": 3, "width": 7, "project": "after"}}
    yield "pair with an embedding of its own", {**written, "encoder": own}
    for tied, shared in product((False, True), (False, True)):
        wide = pair(tie_embeddings=tied, asked={"memory_width": 17})
        layers = [{**wide["encoder"]["layers"][0], "share_weights": shared}]
        yield f"wide encoder {tied} {shared}", {**wide, "encoder": {"layers": layers, "d_model": 17}}
    projected = {**written, "encoder": {**own, "d_model": 17, "output_projection": True}}
    yield "wide encoder projected", projected
    yield "projected to the same width", {**written, "encoder": {**written["encoder"], "output_projection": True}}


LEARNED = {"kind": "learned", "length": 23, "offset": 2}
TRANSFORMS = (
    {},
    {"bias": "buffer"},
    {"transform": True, "norm": None, "transform_bias": False, "activation": "relu"},
    {"transform": True, "norm": {"kind": "layernorm"}, "bias": True},
    {"transform": True, "norm": {"kind": "layernorm"}, "bias": "spare"},
)


def asking_cases():
    """(name, written form) of decoders alone whose layers ask another model's tokens."""
    asking = {"cross_attention": ASKED}
    for norms in ("pre", "post", "output", "sandwich"):
        yield f"asking {norms}", small(layer={**asking, "norms": norms}, norm="layernorm")
    yield "asking wider ones", small(layer={"cross_attention": {**ASKED, "memory_width": 17, "bias": True}})
    for biases in ({"bias": True, "key_bias": False}, {"bias": True, "key_bias": False, "out_bias": True}):
        yield f"asking {biases}", small(layer={"cross_attention": {**ASKED, **biases}}, attention=biases)
    yield "asking only", small(layer=asking, attention=None, feed_forward=None)
    for norms, gated in product(("pre", "post", "output", "sandwich"), (False, True)):
        needing = {**asking, "needs_memory": True, "sublayer_gates": gated, "norms": norms, "attention": None}
        below = {"attention": CORE, "feed_forward": {"d_ff": 37}, "sublayer_gates": not gated}
        layers = [below, {**needing, "feed_forward": {"d_ff": 29}}, below]
        yield f"needing a memory {norms} {gated}", {**small(), "layers": layers}
    for norms in ("pre", "post", "output", "sandwich"):
        even = {"d_model": 14, "layer": {"norms": norms, "conditioned": 3}}
        yield f"conditioned {norms}", small(**even)
    yield "needing a memory alone", small(layer={**asking, "needs_memory": True}, attention=None, feed_forward=None)
    yield "alibi", small(positions={"kind": "alibi", "max_bias": 4.0, "slope_scale": 0.5})
    for kind in ("relative", "alibi"):
        yield f"asking {kind}", small(layer=asking, positions=kind)
    for per_layer, buckets in product((False, True), (4, 7, 32)):
        relative = {"kind": "relative", "per_layer": per_layer, "buckets": buckets, "max_distance": 19}
        yield f"relative {per_layer} {buckets}", small(positions=relative)
    some = [{"positions": "none", "attention": {"heads": 1, "head_dim": 3}}, {"attention": CORE}]
    yield "relative in one of two", small(positions="relative", layers=some)
    yield "shared decoder", small(layer={"share_weights": True})
    yield "decoder without its first norm", small(layer={"attention_norm": False})
    yield "decoder without a head", small(head="none")
    yield "labels of a decoder", small(head=LABELS)
    yield "decoder with types", small(embedding={"token_types": 2, "norm": "rmsnorm"})


LATENT = {"kind": "latent", "heads": 3, "kv_rank": 11, "nope_dim": 5, "rope_dim": 2, "v_dim": 7}
MIXTURE = {"kind": "mixture", "experts": 8, "experts_per_token": 3, "expert": {"kind": "gated", "d_ff": 17}}
GATE_OF_VALUES = {"v_dim": 7, "output_gate": "per_channel"}
LIMITED = {"kind": "gated", "limit": 0.5, "up_shift": 1.0, "activation": "quick_gelu"}


def attention_cases():
    """(name, written form) of what an attention may have beside heads, biases and a window."""
    for chunk in (1, 5, 11, 12, 13, 1009):
        yield f"chunk {chunk}", small(attention={"chunk": chunk}, positions="rope")
    some = {
        "values of 7": {"v_dim": 7},
        "values of a head": {"v_dim": 5},
        "sinks": {"sinks": True},
        "values from keys": {"values_from_keys": True, "bias": True, "qk_norm": "per_head"},
        "values from keys, normed": {"values_from_keys": True, "v_norm": {"kind": "rmsnorm", "weight": False}},
        "values normed": {"v_norm": "rmsnorm", "v_dim": 7, "kv_heads": 3},
        "values normed by the layer": {"v_norm": "layernorm"},
        "gate per channel": GATE_OF_VALUES,
        "gate with a bias": {"output_gate": "per_channel", "gate_bias": True},
        "gate with a bias of a head": {"output_gate": "per_channel", "gate_bias": "per_head"},
        "gate per head": {"output_gate": "per_head", "bias": True, "sinks": True, "window": 5},
    }
    for name, attention in some.items():
        yield name, small(attention=attention)
        yield f"encoder with {name}", encoder(attention=attention)
        if "window" not in attention:
            yield f"pair with {name}", pair(asked=attention)
    for activation in ACTIVATIONS:
        yield f"gate {activation}", small(attention={"output_gate": "per_head", "gate_activation": activation})
    for norm in NORMS:
        yield f"each_head {norm}", small(attention={"qk_norm": {"kind": "each_head", "norm": NORMS[norm]}})
    yield "pair each_head", pair(asked={"qk_norm": "each_head", "kv_heads": 1})
    normed = {**CORE, "qk_norm": "per_head", "v_norm": "rmsnorm", "bias": True}
    for reach in ({}, {"window": 5}, {"chunk": 5}):
        makes = {"name": "makes", "attention": {**normed, **reach}, "positions": "rope"}
        for keeps in (False, True):
            reads = {"attention": {**normed, **reach, "cache_of": "makes", "keeps_kv_weights": keeps}}
            layers = [
                {"repeat": 2, "pattern": [makes, {"name": "other", "attention": CORE}, {"name": "reads", **reads}]}
            ]
            yield f"reads {reach} {keeps}", small(layers=layers, positions="rope")
    for block, blocks, local in ((1, 3, 2), (3, 2, 1), (5, 1, 1), (128, 16, 1)):
        choice = {"heads": 3, "head_dim": 7, "block": block, "blocks": blocks, "local": local}
        for norm in ("rmsnorm", "layernorm"):
            some = {"block_choice": {**choice, "norm": norm}, "scale": 0.3, "kv_heads": 2, "qk_norm": "per_head"}
            yield (
                f"{blocks} blocks of {block} {norm}",
                small(attention=some, positions={"kind": "rope", "rotary_dim": 4}),
            )
    yield "blocks nowhere", small(attention={"block_choice": {"heads": 1, "head_dim": 3, "block": 2, "blocks": 2}})
    yield "parallel, scaled", small(layer={"residual_scale": 0.3, "parallel": "two_norms"})
    for norms in ("pre", "post", "output", "sandwich"):
        yield f"{norms}, scaled", small(layer={"residual_scale": 0.3, "norms": norms})


DIFFERENTIAL = {"kind": "differential", "heads": 12, "kv_heads": 4, "head_dim": 6}
OF_HEADS = {"kind": "mixture_of_heads", "heads": 6, "kv_heads": 3, "head_dim": 4, "experts": 7}


MASKED = {"kind": "dynamic_mask", "heads": 6, "kv_heads": 3, "head_dim": 4, "keys": 5}


def sphere_cases():
    """(name, written form) of lengths of 1, gains of queries, gates, networks, streams and logits, and of turns."""
    unit = {"kind": "rmsnorm", "weight": False, "unit": True}
    for norm in (unit, *NORMS.values()):
        yield f"sphere {norm}", small(norm=norm, layer={"norms": "sphere", "residual_scale": 0.05})
        yield f"sphere pair {norm}", pair(norm=norm, layer={"norms": "sphere"})
    yield "unit gains", small(norm={"kind": "rmsnorm", "unit": True})
    for gate, gain in (("per_channel", True), ("per_head", True), ("per_head", False)):
        some = {"query_gain": True, "output_gate": gate, "gate_gain": gain, "v_dim": 7}
        yield f"gains {gate} {gain}", small(attention=some, positions="rope")
    yield "gains of those who ask", pair(asked={"output_gate": "per_channel", "gate_gain": True, "query_gain": False})
    yield "gains of a network", small(feed_forward={"kind": "gated", "gains": True})
    yield "gains of experts", mixed(expert={"kind": "gated", "d_ff": 17, "gains": True})
    yield "gains of logits", small(head={"scales": True}, tie_embeddings=True)
    for norms in ("pre", "post", "output", "sandwich"):
        yield f"gains of streams {norms}", small(layer={"residual_gain": True, "norms": norms})
    one, other = ({"attention": CORE, "feed_forward": {"d_ff": d_ff}, "share_weights": True} for d_ff in (37, 11))
    for turns, low_turns in product((1, 2), (1, 3)):
        low = {"repeat": low_turns, "pattern": [{**one, "name": "a"}, {**one, "name": "b"}]}
        layers = [{"repeat": turns, "pattern": [low, {**other, "name": "c"}]}]
        hierarchy = {"low": 2, "high": 1, "low_turns": low_turns}
        yield f"two modules, {turns} {low_turns}", small(norm=unit, layers=layers, hierarchy=hierarchy)
        again = [{"name": "d", **CORE_LAYER}, {"repeat": turns, "pattern": [{**one, "name": "e"}]}]
        loop = {"before": 1, "layers": 1, "turns": turns}
        yield (
            f"a loop of {turns} {low_turns}",
            small(norm=unit, layers=[*again, {"name": "f", **CORE_LAYER}], loop=loop),
        )


CORE_LAYER = {"attention": CORE, "feed_forward": {"d_ff": 17}}


def other_attention_cases():
    """(name, written form) of differential attention, of mixtures of heads, and of a bias beside experts."""
    for bias, norm in product((False, True), NORMS):
        yield f"differential {bias} {norm}", latent({**DIFFERENTIAL, "bias": bias, "norm": NORMS[norm]})
    for bias in (False, True):
        yield f"mixture of heads {bias}", latent({**OF_HEADS, "out_bias": bias})
        yield f"experts, bias {bias}", mixed(out_bias=bias, norm="rmsnorm")
    for keys, bias, norm in product((1, 5, 11, 13, 1009), (False, True), ("rms", "layer")):
        yield f"dynamic mask {keys} {bias} {norm}", latent({**MASKED, "keys": keys, "bias": bias, "norm": NORMS[norm]})
    for kind in ("none", "alibi", "relative", "sinusoidal"):
        yield f"dynamic mask {kind}", latent({**MASKED, "scale": 0.3}, positions=kind)
    yield "dynamic mask, further", latent(CORE, multi_token={"layer": {"attention": MASKED}})
    for name, some in (("differential", DIFFERENTIAL), ("mixture of heads", OF_HEADS)):
        for window in (1, 5, 11, 13, 1009):
            yield f"{name}, window {window}", latent({**some, "window": window, "scale": 0.3})
        for kind in ("none", "alibi", "relative", "sinusoidal"):
            yield f"{name} {kind}", latent(some, positions=kind)
        block = {"repeat": 2, "attention": some, "feed_forward": {"d_ff": 37}}
        yield f"{name} of an encoder", {**encoder(), "encoder": {"layers": [block]}}
        yield f"{name}, further", latent(CORE, multi_token={"layer": {"attention": some}})


def summed_cases():
    """(name, written form) of gates behind norms, of means of what is summed, and of networks for the next layer."""
    for before, norms in product(("all", "attention"), ("pre", "sandwich")):
        layer = {"norm_gate": {"rank": 3, "before": before}, "norms": norms, "residual_mean": norms == "sandwich"}
        yield f"gate of {before} norms {norms}", small(layer=layer)
    for later in ({"d_ff": 41}, {"kind": "gated", "d_ff": 41}, MIXTURE):
        layers = [{"attention": CORE, "feed_forward": {"d_ff": 37}, "shortcut": later} for _ in range(2)]
        yield f"shortcut of {later.get('kind')}", small(layers=[*layers, {"attention": CORE}])


def inside_cases():
    """(name, written form) of numbers and norms inside of an attention or a network, and of a head of fewer rows."""
    for norm in NORMS:
        inside = {"kind": "gated", "inner_norm": NORMS[norm], "bias": True}
        yield f"normed inside, {norm}", small(attention={"output_norm": NORMS[norm]}, feed_forward=inside)
    yield "asking, normed inside", pair(asked={"output_norm": "rmsnorm", "v_dim": 5})
    for kind in ("dense", "gated"):
        yield f"{kind} xielu", small(feed_forward={"kind": kind, "activation": "xielu"})
        yield f"experts of {kind} xielu", mixed(expert={"kind": kind, "d_ff": 17, "activation": "xielu"})
    yield "experts normed inside", mixed(expert={"kind": "gated", "d_ff": 17, "inner_norm": "layernorm"})
    for bias in (False, True, "spare", "buffer"):
        yield f"head of some rows, bias {bias}", small(head={"rows": 11, "bias": bias})


def latent_cases():
    """(name, written form) of latent attention."""
    for q_rank, bias, positions in product((None, 17), (False, True), ("rope", "none")):
        attention = {**LATENT, "q_rank": q_rank, "bias": bias, "out_bias": not bias}
        yield f"latent {q_rank} {bias} {positions}", latent(attention, positions=positions)
    for norm in NORMS:
        yield f"latent {norm}", latent({**LATENT, "q_rank": 17, "norm": NORMS[norm]})
    yield "latent, one head", latent({**LATENT, "heads": 1})
    yield "latent, scaled and capped", latent({**LATENT, "scale": 0.3, "softcap": 2.0})
    for activation in ACTIVATIONS:
        yield f"latent gate {activation}", latent({**LATENT, "output_gate": "per_head", "gate_activation": activation})
    yield "latent gate per channel", latent({**LATENT, "output_gate": "per_channel", "q_rank": 17})
    yield from indexed_cases()
    yield "latent encoder", encoder(layer={"attention": LATENT}, positions="rope")
    yield "latent pair", pair(layer={"attention": LATENT}, positions="rope")
    layers = [{"attention": LATENT}, {"attention": {**CORE, "window": 5}}]
    yield "latent and others", small(layers=layers, positions="rope")


def indexed_cases():
    """(name, written form) of latent attention over chosen keys, and of what else reads its latents."""
    for norm, rotates, top_k in zip(NORMS, ("first", "last") * 3, (1, 3, 5, 11, 12, 1009), strict=True):
        indexer = {"heads": 4, "head_dim": 9, "norm": NORMS[norm], "rotates": rotates}
        own = {**LATENT, "q_rank": 17, "top_k": top_k, "indexer": indexer}
        layers = [{"attention": own}, {"repeat": 2, "attention": {**own, "indexer": None}}]
        yield f"latent, chosen {norm} {top_k}", small(layers=layers, positions="rope")
    own["sinks"] = True
    yield "latent, chosen, sinks", latent(own, positions="none", multi_token={"layer": {"attention": own}})
    yield "latent sinks", latent({**LATENT, "sinks": True, "latent_scale": 2.5})
    for window in (1, 3, 5, 11, 12, 13, 1009):
        some = {**LATENT, "window": window, "rope_norm": window < 5}
        yield f"latent, window {window}", latent(some)
    yield "latent, window of an encoder", encoder(layer={"attention": some}, positions="rope")
    yield "latent, window of a pair", pair(layer={"attention": {**some, "window": 3}}, positions="rope")
    for reads in ("input", "query_latent"):
        gate = {"output_gate": "per_channel", "gate_reads": reads, "query_reads": "both", "q_rank": 17}
        yield f"latent gate of {reads}", latent({**LATENT, **gate})


def latent(attention, **top):
    """A small decoder with this attention."""
    block = {"repeat": 2, "attention": attention, "feed_forward": {"d_ff": 37}}
    return {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "positions": "rope", "layers": [block], **top}


def mixed(router=(), **changes):
    """A small decoder with a mixture."""
    return {
        **small(),
        "layers": [{"repeat": 2, "attention": CORE, "feed_forward": {**MIXTURE, "router": dict(router), **changes}}],
    }


def mixture_cases():
    """(name, written form) of mixtures of experts, and of what experts may have."""
    for scores, normalize, weigh in product(
        ("softmax", "sigmoid", "softmax_of_chosen"), (False, True), ("inputs", "outputs")
    ):
        yield f"{scores} {normalize} {weigh}", mixed({"scores": scores, "normalize": normalize, "weigh": weigh})
        groups = {"scores": scores, "groups": 4, "groups_per_token": 2, "normalize": normalize, "weigh": weigh}
        yield f"{scores} {normalize} {weigh} of groups", mixed(groups)
    for correction, bias in product((False, "buffer", "frozen", "trainable"), (False, True)):
        some = {"correction": correction, "bias": bias, "scale": 2.5}
        yield f"correction {correction} {bias}", mixed(some)
    for kind, bias in product(("dense", "gated"), (False, True)):
        one, other = ({"kind": kind, "d_ff": 17, "bias": bias}, {"kind": kind, "d_ff": 41, "bias": not bias})
        yield f"experts {kind} {bias}", mixed(expert=one)
        for gate in (False, True):
            yield f"experts {kind} {bias}, shared {gate}", mixed(expert=one, shared=other, shared_gate=gate)
    for norm in ("layernorm", "rmsnorm"):
        yield f"experts, then {norm}", mixed(norm=norm)
    for count in (1, 7, 8):
        yield f"{count} of 8 experts", mixed(experts_per_token=count)
    yield "one expert", mixed(experts=1, experts_per_token=1)
    yield "an unknown number of experts", mixed(experts_per_token=None)
    for kind in ("dense", "gated"):
        itself = {"skips": 5, "skip_gives": "input", "correction": "buffer", "normalize": False, "scale": 2.5}
        yield f"{kind} experts or the input", mixed(itself, unused=5, expert={"kind": kind, "d_ff": 17})
    yield "experts are handed all", mixed(dispatch="all", router={"weigh": "inputs", "scores": "sigmoid"})
    yield "limited experts", mixed(expert={**LIMITED, "d_ff": 17, "bias": True})
    yield "limited", small(feed_forward=LIMITED)
    for norms in ("pre", "post", "output", "sandwich"):
        yield f"experts {norms}", {**mixed(), "norm": "layernorm", "block": {"norms": norms}}
    yield "experts beside attention", {**mixed(), "block": {"parallel": "one_norm"}}
    yield "encoder of experts", encoder(layer={"feed_forward": MIXTURE})
    yield "pair of experts", pair(layer={"feed_forward": {**MIXTURE, "shared": {"d_ff": 41}}})
    layers = [
        {"attention": CORE, "feed_forward": {"d_ff": 37}},
        {"repeat": 2, "attention": CORE, "feed_forward": MIXTURE},
    ]
    yield "dense first", small(layers=layers)


def further_cases():
    """(name, written form) of decoders with modules that predict further tokens."""
    plain = {"attention": {**CORE, "bias": True}, "feed_forward": {"d_ff": 37}}
    for own_tables, norm in product((False, True), ("rmsnorm", "layernorm")):
        module = {"own_tables": own_tables, "norm": norm, "layer": plain}
        yield f"further {own_tables} {norm}", small(multi_token=module, not_counted=["vision tower"])
    correction = {**MIXTURE, "router": {"correction": "buffer"}, "shared": {"d_ff": 41}}
    module = {"repeat": 2, "own_tables": True, "layer": {"attention": LATENT, "feed_forward": correction}}
    yield "further, latent", latent(LATENT, multi_token=module)


OWN = {"vocab_size": 17, "width": 7}
STATES = {"inputs": 3}


def around_cases():
    """(name, written form) of what stands around sublayers and beside them (Gemma-3n, Gemma-4)."""
    for activation in ACTIVATIONS:
        yield f"per-layer inputs {activation}", small(per_layer_input={**OWN, "activation": activation})
    for inputs, active, own in product((2, 3), (0, 1), (None, OWN)):
        altup = {"inputs": inputs, "active": active}
        yield f"states {altup} {own}", small(altup=altup, **({"per_layer_input": own} if own else {}))
    for norm in NORMS:
        some = {"norm": NORMS[norm], "altup": STATES, "per_layer_input": OWN}
        yield f"states and inputs {norm}", small(**some, layer={"norms": "sandwich", "augmented_residual": {"rank": 3}})
        yield f"augmented {norm}", small(norm=NORMS[norm], layer={"augmented_residual": {"rank": 3}})
        for beside in ({"kind": "dense", "d_ff": 17}, {"kind": "gated", "d_ff": 17}, MIXTURE):
            layer = {"norms": "sandwich", "feed_forward_beside": beside}
            yield f"{beside['kind']} beside {norm}", small(norm=NORMS[norm], layer=layer)
    yield from summed_cases()
    yield "scaled layers", small(per_layer_input=OWN, layer={"layer_scale": "buffer"})
    yield "scaled states", small(altup=STATES, layer={"layer_scale": "buffer", "share_weights": True})
    scaled = {"norm": {"kind": "rmsnorm", "weight": False}, "input_scale": True, "expert_scale": True}
    for reads in ("input", "residual"):
        router = {**scaled, "reads": reads}
        beside = {"norms": "sandwich", "feed_forward_beside": {**MIXTURE, "router": router}}
        yield f"router of {reads} beside", small(layer=beside)
        yield f"router of {reads}", mixed(router)
        yield f"router of {reads}, normed", mixed({"reads": reads, "norm": "layernorm", "correction": "frozen"})
    yield "sparse", small(feed_forward={"kind": "gated", "sparsity": 0.7})
    yield "rope of a head", small(positions={"kind": "rope", "rotary_dim": 2, "frequencies": "head"})
    module = {"layer": {"attention": CORE, "feed_forward": {"d_ff": 37}, "layer_scale": "buffer"}}
    yield "further, of states", small(altup=STATES, per_layer_input=OWN, multi_token=module)


COMPRESSED = {
    "kind": "compressed",
    "heads": 6,
    "head_dim": 5,
    "q_rank": 17,
    "window": 4,
    "out_groups": 2,
    "out_rank": 7,
}
CHOICE = {"heads": 3, "head_dim": 7, "entries": 2}


def compressed_cases():
    """(name, written form) of compressed attention, hyper-connections, and experts that are looked up (DeepSeek-V4)."""
    rope = {"kind": "rope", "rotary_dim": 4}
    for rate, overlap, choice in product((1, 3, 5, 13), (False, True), (None, CHOICE)):
        some = {**COMPRESSED, "compression": {"rate": rate, "overlap": overlap, "choice": choice}}
        yield f"entries of {rate} {overlap} {choice is not None}", latent(some, positions=rope)
    for norm in NORMS:
        some = {**COMPRESSED, "norm": NORMS[norm], "scale": 0.3, "compression": {"rate": 3, "choice": CHOICE}}
        yield f"entries, {norm}", latent({**some, "window": 1009, "held_twice": norm == "layer"}, positions="none")
    yield "a window of keys that are values", latent({**COMPRESSED, "held_twice": True}, positions="rope")
    for streams, norm in product((1, 3), NORMS):
        connections = {"streams": streams, "iterations": 2, "eps": 0.01}
        yield f"{streams} parts {norm}", small(hyper_connections=connections, norm=NORMS[norm])
        apart = {**connections, "mixing": "none", "magnitude": 1.5}
        yield f"{streams} parts {norm}, not mixed", small(hyper_connections=apart, norm=NORMS[norm])
        with_mixer = small(attention=None, layer={"mixer": {"kind": "short_conv"}}, hyper_connections=connections)
        yield f"{streams} parts of a mixer {norm}", {**with_mixer, "norm": NORMS[norm]}
    looked_up = {"table": 19, "scores": "sqrt_softplus", "scale": 1.5}
    yield "experts that are looked up", mixed(looked_up)
    yield "experts that are looked up, in parts", {**mixed(looked_up), "hyper_connections": {"streams": 2}}
    yield "experts by roots of softplus", mixed({"scores": "sqrt_softplus", "correction": "buffer"})


PROFILED = {"kind": "profiled", "heads": 6, "kv_heads": 2, "head_dim": 5, "profiles": 3, "reach": 7, "taps": 3}
LIMITS = {"limit": 2.0, "profile_limit": 1.0, "v_norm": {"kind": "rmsnorm", "weight": False}}


def in_blocks(places, *, window=None):
    """Layers that read what blocks of them left: (finished blocks, whether one begins, what loops there are) each."""
    layers = []
    for sources, begins, loop in places:
        inputs = "one" if begins else "three"
        residuals = {"sources": sources, "starts_block": begins, "inputs": inputs, "loop": loop}
        layer = {"attention": {**PROFILED, "window": window}, "feed_forward": {"d_ff": 37}}
        layers.append({**layer, "block_residuals": residuals, "output_conv": {"taps": 4, "means": True}})
    return layers


def profiled_cases():
    """(name, written form) of attention with profiles of distances, and what goes with it (Inkling)."""
    for window, dynamic, limits in product((None, 4), (False, True), ({}, LIMITS)):
        more = {"window": window, "dynamic_taps": dynamic, "means": dynamic, **limits}
        yield f"profiled {window} {dynamic} {len(limits)}", latent({**PROFILED, **more}, positions="none")
    for norm in NORMS:
        own = {"head_norm": NORMS[norm], "v_norm": NORMS[norm], "scale": 0.2, "log_floor": 5.0, "log_alpha": 0.5}
        some = {**PROFILED, **own, "sinks": True, "output_gate": True}
        yield f"profiled {norm}", {**latent(some, positions="none"), "norm": NORMS[norm]}
    for means in (False, True):
        yield f"outputs convolved {means}", small(layer={"output_conv": {"taps": 3, "means": means}})
    blocks = [(0, True, None), (1, False, None), (1, True, None), (2, False, None)]
    yield "blocks of two", small(layers=in_blocks(blocks), residual_sources=3)
    yield "one block", small(layers=in_blocks(blocks[:2], window=3), norm="layernorm")
    for passes in (1, 3):
        loop = {"passes": passes, "sources": 1, "rank": 5}
        again = [blocks[0], blocks[1], (1, True, loop), (2, False, loop), (2, True, None)]
        yield f"blocks in a loop of {passes}", small(layers=in_blocks(again), residual_sources=4)
    capped = {"kind": "gated", "gate_cap": 1.0, "up_cap": 0.5, "out_gain": True}
    yield "capped factors", small(feed_forward=capped)
    parts = {"scores": "sigmoid", "shared_parts": 2, "gain": True, "correction": "buffer"}
    yield "shared parts that have scores", mixed(parts, shared={"kind": "gated", "d_ff": 34})


MIXERS = {
    "mamba1": {"d_inner": 14, "d_state": 3, "dt_rank": 5},
    "mamba2": {"heads": 6, "head_dim": 5, "d_state": 7, "groups": 3, "chunk": 4},
    "gated_delta": {"heads": 6, "key_dim": 5, "value_dim": 7, "chunk": 4},
    "lightning": {"heads": 3, "head_dim": 5, "chunk": 4},
    "short_conv": {},
    "rg_lru": {"width": 15, "heads": 3},
    "rwkv": {"width": 17},
    "mlstm": {"heads": 3, "qk_dim": 5, "v_dim": 7},
}
"""A small mixer of each kind; chunks end within each text."""
OF_MIXERS = {
    "mamba1": (
        {"heads": 2, "inner_norms": True, "bias": True, "d_conv": 3},
        {"inner_norms": "without_gain", "conv_bias": False},
    ),
    "mamba2": (
        {"bias": True, "out_bias": True, "conv_bias": False, "groups": 1, "d_conv": 3},
        {"norm_before_gate": True},
        {"gated_norm": False},
    ),
    "gated_delta": (
        {"key_heads": 2, "conv_bias": True, "d_conv": 3, "double_beta": True, "gate_activation": "sigmoid"},
        {"decay": "per_channel", "decay_rank": 3, "gate_rank": 2, "decay_floor": -5.0},
        {"decay": "per_channel"},
    ),
    "short_conv": ({"bias": True, "d_conv": 4},),
    "rg_lru": ({"d_conv": 3},),
    "mlstm": ({"bias": True, "gate_softcap": 3.0},),
}
"""Other choices of each kind."""
CHOSEN = ("mamba1", "mamba2", "gated_delta", "lightning", "rg_lru")
"""Kinds that have an activation to choose."""


def recurrent_cases():
    """(name, written form) of mixers, alone, beside attention and with blocks that layers share."""
    for kind, sizes in MIXERS.items():
        of_kind = {"kind": kind, **sizes}
        yield f"mixer {kind}", small(attention=None, layer={"mixer": of_kind})
        for number, more in enumerate(OF_MIXERS.get(kind, ())):
            yield f"mixer {kind} {number}", small(attention=None, layer={"mixer": {**of_kind, **more}})
        for dtype in ("bf16", "fp16") if kind != "short_conv" else ():
            yield f"mixer {kind} {dtype}", small(attention=None, layer={"mixer": {**of_kind, "state_dtype": dtype}})
        for activation in ACTIVATIONS if kind in CHOSEN else ():
            some = {**of_kind, "activation": activation}
            yield f"mixer {kind} {activation}", small(attention=None, layer={"mixer": some})
        yield f"mixer {kind} beside", small(layer={"mixer_beside": of_kind, "residual_scale": 0.3}, norm="layernorm")
        for norms in ("post", "output", "sandwich"):
            yield f"mixer {kind} {norms}", small(attention=None, layer={"mixer": of_kind, "norms": norms})
    channel = {"kind": "rwkv_channel", "d_ff": 37}
    yield (
        "mixing of channels",
        small(attention=None, layer={"mixer": {"kind": "rwkv", "width": 17}, "feed_forward": channel}),
    )
    yield "mixing of channels only", small(attention=None, layer={"feed_forward": channel}, norm="layernorm")
    beside = {"norms": "sandwich", "feed_forward_beside": channel}
    yield "mixing of channels beside", small(layer=beside)
    inside = ({}, {"latent_bias": True, "shared": {"d_ff": 41}})
    for more in inside:
        yield f"experts on few numbers {more}", mixed(latent_dim=7, **more)
    one = {"attention": {"heads": 2, "head_dim": 13}, "feed_forward": {"kind": "gated", "d_ff": 37}}
    adapted = {**one, "attention_adapter_rank": 3, "feed_forward_adapter_rank": 5}
    of_two = {"mixer": {"kind": "mamba2", **MIXERS["mamba2"]}}
    for name, block in {"shared block": one, "shared block with adapters": adapted}.items():
        layers = [
            {
                "repeat": 2,
                "pattern": [{"name": "hybrid", **of_two, "shared_block": block}, {"name": "plain", **of_two}],
            },
            {"name": "other", **of_two, "shared_block": {**block, "weights": "others"}},
        ]
        yield name, small(layers=layers, positions="rope")
    dense = {**one, "feed_forward": {"d_ff": 37, "bias": True}}
    yield "shared block, dense", small(layers=[{"repeat": 3, **of_two, "shared_block": dense}], norm="layernorm")
    layers = [{"mixer": {"kind": kind, **sizes}, "feed_forward": {"d_ff": 37}} for kind, sizes in MIXERS.items()]
    yield "mixers of all kinds", small(layers=[*layers, {"attention": CORE}])


CONVOLVED = {"kind": "convolved", **CORE}


def convolved_cases():
    """(name, written form) of convolved attention, shifted and scaled sums, and routers with networks (ZAYA1)."""
    for taps, group_taps, bias in product((1, 2, 4), (1, 2, 3), (False, True)):
        sizes = {"taps": taps, "group_taps": group_taps, "bias": bias}
        yield f"convolved {taps} {group_taps} {bias}", latent({**CONVOLVED, **sizes})
    for window in (1, 5, 11, 13, 1009):
        yield f"convolved, window {window}", latent({**CONVOLVED, "window": window, "scale": 0.3})
    for kind in ("none", "alibi", "relative", "sinusoidal"):
        yield f"convolved {kind}", latent({**CONVOLVED, "heads": 3, "kv_heads": 1, "head_dim": 4}, positions=kind)
    yield "convolved, shared weights", latent(CONVOLVED, block={"share_weights": True, "residual_affine": True})
    yield "convolved, further", latent(CORE, multi_token={"layer": {"attention": CONVOLVED, "residual_affine": True}})
    shifted = {"residual_affine": True}
    for norms, norm in product(("pre", "post", "output", "sandwich"), NORMS):
        yield f"shifted {norms} {norm}", small(norm=NORMS[norm], layer={**shifted, "norms": norms})
        yield f"shifted pair {norms} {norm}", pair(norm=NORMS[norm], layer={**shifted, "norms": norms})
    yield "shifted asking", small(layer={**shifted, "cross_attention": ASKED})
    yield "shifted, scaled", small(layer={**shifted, "residual_scale": 0.3, "attention_norm": False})
    yield "shifted mixer", small(attention=None, layer={**shifted, "mixer": {"kind": "short_conv"}})
    for width in ({}, {"width": 7}, {"width": 7, "project": "after", "bias": True, "norm": "rmsnorm"}):
        yield f"shifted embedding {width}", small(embedding={"affine": True, **width}, tie_embeddings=True)
        yield f"shifted embedding of an encoder {width}", encoder(embedding={"affine": True, **width})
    yield from network_cases()


def network_cases():
    """(name, written form) of routers with networks, and with choices of no expert."""
    for name, norm in NORMS.items():
        first = {"width": 7, "norm": norm}
        routers = [{"network": {**first, "carried": carried}} for carried in (False, True, True)]
        routers += [{}, {"network": {"width": 5, "carried": True}}]  # there is no earlier one of this width
        layers = [{"attention": CORE, "feed_forward": {**MIXTURE, "router": router}} for router in routers]
        yield f"networks before routers, {name}", small(layers=layers)
    for skips, chosen in product((0, 1, 5), (1, 3)):
        for router in ({"correction": "buffer"}, {"expert_scale": True, "bias": True, "scores": "sigmoid"}):
            some = {**router, "skips": skips}
            yield f"{chosen} of 8 and {skips}, {'correction' in router}", mixed(some, experts_per_token=chosen)
            some = {**some, "normalize": False, "network": {"width": 7, "carried": True}}
            yield (
                f"{chosen} by network of 8 and {skips}, {'correction' in router}",
                mixed(some, experts_per_token=chosen),
            )
    yield "a network of what comes in", mixed({"reads": "residual", "network": {"width": 7}})
    module = {"repeat": 2, "layer": {"feed_forward": {**MIXTURE, "router": {"network": {"width": 7, "carried": True}}}}}
    yield "further, with a network", small(multi_token=module)


def long_cases():
    """(name, written form) of encoders that mix or attend in other ways than each token with each."""
    for norms in ("pre", "post", "output", "sandwich"):
        yield f"transformed {norms}", whole_text({"mixer": "fourier", "norms": norms}, norm="layernorm")
    yield "transformed beside attention", encoder(layer={"mixer_beside": "fourier"})
    yield "pair transformed", pair_over({"mixer": "fourier", "feed_forward": {"d_ff": 37}})
    for name, attention, more in whole_texts():
        yield f"{name}", whole_text({"attention": attention}, **more)
        stack = {key: more[key] for key in ("padding", "global_tokens") if key in more}
        over = pair_over({"attention": attention, "feed_forward": {"d_ff": 37}})
        yield f"pair {name}", {**over, "encoder": {**over["encoder"], **stack}}
    for kind in ("rope", "alibi", "relative", "sinusoidal"):
        for name, attention, more in (*whole_texts(),)[::2]:
            yield f"{name} {kind}", whole_text({"attention": attention}, positions=kind, **more)
    first = {attention["kind"]: (name, attention, more) for name, attention, more in whole_texts()}
    for name, attention, more in first.values():  # the size of a head derived: 42 / 6 = 7
        derived = {key: value for key, value in attention.items() if key != "head_dim"}
        yield f"{name}, heads derived", whole_text({"attention": derived}, d_model=42, **more)
    sums = {"kind": "relative", "buckets": 7, "max_distance": 11, "of_sums": True}
    yield "sums at distances", whole_text({"attention": SUMS}, positions=sums)
    yield "pooled decoder", small(pooler=True)


WHOLE = {"heads": 6, "head_dim": 5}
SUMS = {"kind": "local", **WHOLE, "window": 5, "summed": 3, "norm": "rmsnorm"}


def whole_texts():
    """(name, attention, keys of its stack) of each kind that reads a whole text."""
    padding = {"padding": {"multiple": 4}}
    for first, window in ((0, 2), (0, 5), (1, 4), (3, 5), (13, 4), (1, 40)):
        yield f"sliding {first} {window}", {"kind": "sliding", **WHOLE, "window": window, "first": first}, padding
    yield "sliding without biases", {"kind": "sliding", **WHOLE, "window": 4, "bias": False, "out_bias": False}, {}
    for block, drawn in ((1, 0), (1, 2), (2, 0), (2, 1), (4, 3)):
        beyond = {"padding": {"multiple": block, "beyond": (5 + 2 * drawn) * block}}
        yield f"blocks {block} {drawn}", {"kind": "block_sparse", **WHOLE, "block": block, "random": drawn}, beyond
    plain = {"bias": False, "out_bias": False, "scale": 0.3}
    yield "blocks without biases", {"kind": "block_sparse", **WHOLE, "block": 2, "random": 0, **plain}, {}
    for window in (1, 5, 7, 41):
        yield f"local {window}", {"kind": "local", **WHOLE, "window": window}, {}
    yield "local with biases", {"kind": "local", **WHOLE, "window": 5, "bias": True, "out_bias": True}, {}
    for name, norm in NORMS.items():
        yield f"sums {name}", {**SUMS, "norm": norm}, {}
    for summed in (1, 2, 7, 11, 12):
        yield f"sums of {summed}", {**SUMS, "summed": summed, "scale": 0.3}, {}
    for block, staggered, bias in product((1, 2, 4, 5, 12), (False, True), (False, True)):
        attention = {"kind": "global_local", **WHOLE, "block": block, "staggered": staggered, "bias": bias}
        beside = {"global_tokens": 3, "padding": {"multiple": block}}
        yield f"beside {block} {staggered} {bias}", {**attention, "out_bias": not bias}, beside
    yield "colliding", {"kind": "collisions", **WHOLE, "taps": 3}, {}
    yield "colliding without biases", {"kind": "collisions", **WHOLE, "bias": False, "out_bias": False, "bits": 3}, {}
    for landmarks, taps in ((None, None), (None, 5), (2, 3), (11, None), (17, 1)):
        yield f"landmarks {landmarks} {taps}", {"kind": "landmarks", **WHOLE, "landmarks": landmarks, "taps": taps}, {}
    for block, blocks, coarse in ((3, 5, True), (3, 5, False), (4, 100, True), (1, 7, True), (32, 1, False)):
        some = {"kind": "multi_resolution", **WHOLE, "block": block, "blocks": blocks, "coarse": coarse}
        yield f"two resolutions {block} {blocks} {coarse}", some, {}
    yield "two resolutions, scaled", {**some, "scale": 0.3, "bias": False, "out_bias": False}, {}
    plain = {"kind": "landmarks", **WHOLE, "landmarks": 3, "steps": 2, "scale": 0.3}
    yield "landmarks without biases", {**plain, "bias": False, "out_bias": False}, {}
    scaled = {"kind": "sliding", **WHOLE, "window": 4, "scale": 0.3}
    yield "sliding, scaled", scaled, {}
    yield "beside, scaled", {"kind": "global_local", **WHOLE, "block": 4, "scale": 0.3}, {"global_tokens": 1}


def whole_text(layer, **top):
    """A small encoder of two such layers."""
    block = {"repeat": 2, "feed_forward": {"d_ff": 37}, **layer}
    return {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "encoder": {"layers": [block]}, **top}


def pair_over(layer, **top):
    """A small encoder-decoder with an encoder of two such layers."""
    return {**pair(**top), "encoder": {"layers": [{"repeat": 2, **layer}]}}


def cases():
    """(name, written form) of every case."""
    yield from long_cases()
    yield from convolved_cases()
    yield from recurrent_cases()
    yield from encoder_cases()
    yield from pair_cases()
    yield from asking_cases()
    yield from attention_cases()
    yield from inside_cases()
    yield from other_attention_cases()
    yield from sphere_cases()
    yield from latent_cases()
    yield from mixture_cases()
    yield from further_cases()
    yield from around_cases()
    yield from compressed_cases()
    yield from profiled_cases()
    for norms, norm in product(("pre", "post", "output", "sandwich"), NORMS):
        yield f"{norms} {norm}", small(norm=NORMS[norm], layer={"norms": norms})
    for parallel, norm in product(("one_norm", "two_norms"), NORMS):
        yield f"{parallel} {norm}", small(norm=NORMS[norm], layer={"parallel": parallel})
    for norms, lacking in product(("pre", "post", "output", "sandwich"), ("attention", "feed_forward")):
        yield f"{norms} without {lacking}", small(norm="layernorm", layer={"norms": norms}, **{lacking: None})
    for kind, norm in product(("per_head", "projection"), NORMS):
        yield f"{kind} {norm}", small(attention={"qk_norm": {"kind": kind, "norm": NORMS[norm]}})
    for bias, out_bias in product((False, True), repeat=2):
        yield f"biases {bias} {out_bias}", small(attention={"bias": bias, "out_bias": out_bias})
    for kv_heads in (None, 1, 2, 3, 6):
        yield f"{kv_heads} key heads", small(attention={"kv_heads": kv_heads})
        # the size of a head derived: 42 / 6 = 7
        yield f"{kv_heads} key heads of 7", small(d_model=42, attention={"kv_heads": kv_heads, "head_dim": None})
    for window in (1, 5, 11, 13, 1009):
        yield f"window {window}", small(attention={"window": window})
    yield "scale", small(attention={"scale": 0.3})
    yield "softcap", small(attention={"softcap": 2.0})
    yield "learned", small(positions={"kind": "learned", "length": 23})
    for stored in ("no", "frozen", "buffer"):
        length = {} if stored == "no" else {"length": 29}
        yield f"sinusoidal {stored}", small(positions={"kind": "sinusoidal", "stored": stored, **length})
    yield "no positions", small(positions="none")
    for rotary_dim in (None, 2, 4):
        yield f"rope {rotary_dim}", small(positions={"kind": "rope", "theta": 100.0, "rotary_dim": rotary_dim})
    yield (
        "rope in some layers",
        small(
            layers=[
                {"positions": "rope", "attention": CORE},
                {"positions": {"kind": "rope", "theta": 7.0}, "attention": CORE},
                {"positions": "none", "attention": CORE},
            ]
        ),
    )
    yield "none above learned", small(positions={"kind": "learned", "length": 23}, layer={"positions": "none"})
    for kind, activation in product(("dense", "gated"), ACTIVATIONS):
        yield f"{kind} {activation}", small(feed_forward={"kind": kind, "activation": activation})
    for kind in ("dense", "gated"):
        yield f"{kind} biased", small(feed_forward={"kind": kind, "bias": True})
    narrow = ({}, {"width": 7}, {"width": 7, "bias": True})
    for tied, embedding, bias in product((False, True), narrow, (False, True)):
        name = f"{'tied' if tied else 'untied'} {embedding}{' biased head' if bias else ''}"
        yield name, small(tie_embeddings=tied, embedding=embedding, head={"bias": bias})
    yield "scaled embedding", small(embedding={"scale": 13**0.5})
    yield "capped logits", small(head={"softcap": 3.0})
    for norms, final_norm in product(("pre", "post"), (True, False, None)):
        yield f"final norm {final_norm} above {norms}", small(layer={"norms": norms}, final_norm=final_norm)
    yield "some of everything", SOME_OF_EVERYTHING


SOME_OF_EVERYTHING = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": "rmsnorm",
    "positions": "rope",
    "layers": [
        {"name": "first", "feed_forward": {"kind": "gated", "d_ff": 41}},
        {
            "repeat": 2,
            "pattern": [
                {"repeat": 2, "pattern": [{"name": "local", "attention": {**CORE, "window": 3}}]},
                {"name": "global", "attention": CORE, "feed_forward": {"d_ff": 37}, "parallel": "one_norm"},
            ],
        },
        {"name": "last", "attention": {**CORE, "kv_heads": 3}, "norms": "post", "norm": "layernorm"},
    ],
}
CASES = dict(cases())


@cache
def model(case):
    return costcalc.load(CASES[case])


def given(fields, workload):
    """What a pass that starts a request is given beside its tokens."""
    if workload.memory_tokens == 0:
        return {}
    if fields["encoder"] is not None:
        return {"source": TEXT[: workload.batch, -workload.memory_tokens :]}
    return {"memory": RNG.normal(size=(workload.batch, workload.memory_tokens, memory_width(fields)))}


def passed(fields, *workloads):
    """The tapes of passes of these workloads, one after the other; before the first, one that leaves its past."""
    request, tapes, past = Request(), [], workloads[0].past_tokens
    if past:
        before = TEXT[: workloads[0].batch, :past]
        forward(fields, before, tape=Tape(ARENA), request=request, **given(fields, workloads[0]))
    for workload in workloads:
        new = TEXT[: workload.batch, request.past : request.past + workload.new_tokens]
        tapes.append(Tape(ARENA))
        more = {} if request.past else given(fields, workload)
        some = {"logits": workload.logits, "latent": workload.latent}
        forward(fields, new, tape=tapes[-1], request=request, **some, **more)
    return tapes


def phases(arch):
    """The workloads of a model's passes."""
    if arch.decoder is None:
        return ENCODER_PHASES
    some = WITH_MEMORY if arch.encoder is not None else PHASES
    return some if arch.head.kind != "none" else tuple(replace(workload, logits="all") for workload in some)


def faults(arch, workload, tape):
    return compare(arch.inventory, workload, tape, phase="phase")[1]


def paths(amounts):
    """All paths of stated amounts, of any sort."""
    return {path for kind in KINDS for path in amounts[kind]}


def recorded_paths(tape):
    return {*tape.parameters, *tape.products, *tape.cached}


@pytest.mark.parametrize("case", CASES)
def test_what_is_recorded_is_what_is_stated(case):
    arch = model(case)
    some = [phases(arch)]
    if "asking" in case:  # with nobody to ask, too
        some.append(WITH_MEMORY)
    for workloads in some:
        for workload, tape in zip(workloads, passed(arch.model_dump(), *workloads), strict=True):
            check_recorded(arch, workload, tape)


def check_recorded(arch, workload, tape):
    totals, found = compare(arch.inventory, workload, tape, phase="phase")
    if arch.inventory.unstated:  # how much is multiplied is not told; what is held is
        assert {fault.kind for fault in found} <= {"FLOPs"}
        return
    assert found == []
    assert [total.stated for total in totals] == [total.recorded for total in totals]
    parameters, flops, cached, buffers, extra = (total.recorded for total in totals)
    held = costcalc.parameters(arch)
    assert (parameters, buffers, extra) == (held.total, held.buffers, held.extra)
    assert flops == costcalc.flops(arch, workload).forward
    context, memory = workload.past_tokens + workload.new_tokens, workload.memory_tokens
    cache = costcalc.kv_cache(arch, context, batch=workload.batch, memory_tokens=memory)
    kinds = {kind: sum(tape.cached[path] for path in tape.cached if tape.cached_kinds[path] == kind) for kind in CACHES}
    held = (cache.elements, cache.cross_elements, cache.state_elements)
    assert kinds == dict(zip(CACHES, (elements or 0 for elements in held), strict=True))
    assert cached == sum(kinds.values())


CACHES = ("kv", "cross", "state")


@pytest.mark.parametrize("form", ["expanded", "absorbed"])
@pytest.mark.parametrize("case", [case for case in CASES if "latent" in case])
def test_both_forms_of_latent_attention_are_stated(case, form):
    arch = model(case)
    workloads = [replace(workload, latent=form) for workload in phases(arch)]
    for workload, tape in zip(workloads, passed(arch.model_dump(), *workloads), strict=True):
        check_recorded(arch, workload, tape)


@pytest.mark.parametrize("case", [case for case in CASES if re.match("mixer (mamba2|gated_delta|lightning)", case)])
def test_both_forms_of_scans_are_stated(case):
    """Eleven tokens, and five after twelve; a decode step is not chunked."""
    arch, request = model(case), Request()
    for workload in PHASES:
        new = TEXT[: workload.batch, request.past : request.past + workload.new_tokens]
        tape = Tape(ARENA)
        forward(arch.model_dump(), new, tape=tape, request=request, logits=workload.logits, chunked=True)
        told = arch.inventory if workload == DECODE else arch.inventory.chunked
        assert compare(told, workload, tape, phase="phase")[1] == []


@pytest.mark.parametrize("chunk", [1, 2, 5, 7, 11, 12, 1009])
@pytest.mark.parametrize(("past", "new"), [(0, 11), (4, 7), (10, 1), (11, 1), (12, 1), (3, 13)])
def test_chunks_that_end_before_behind_and_within_the_text(chunk, past, new):
    local = {"attention": {**CORE, "chunk": chunk}, "feed_forward": {"d_ff": 37}}
    arch = costcalc.load(small(positions="rope", layers=[{"repeat": 2, "pattern": [local, {"attention": CORE}]}]))
    workload = Workload(batch=3, new_tokens=new, past_tokens=past)
    (tape,) = passed(arch.model_dump(), workload)
    assert faults(arch, workload, tape) == []
    # 2·N·H·B·P, and 2·K·H·B numbers for each token that is held, one of two arrays
    pairs = sum(key // chunk == (past + i) // chunk for i in range(new) for key in range(past + 1 + i))
    assert tape.flops()["decoder.layers.0.attention.scores"] == 2 * 30 * 3 * pairs
    assert tape.cached["decoder.layers.2.attention.k_cache"] == 10 * 3 * min(past + new, chunk)


@pytest.mark.parametrize("window", [1, 2, 10, 11, 12, 13, 1009])
@pytest.mark.parametrize(("past", "new"), [(0, 11), (4, 7), (10, 1), (11, 1), (12, 1)])
def test_windows_on_either_side_of_the_text(window, past, new):
    local = {"attention": {**CORE, "window": window}, "feed_forward": {"d_ff": 37}}
    arch = costcalc.load(small(positions="rope", layers=[{"repeat": 2, "pattern": [local, {"attention": CORE}]}]))
    workload = Workload(batch=3, new_tokens=new, past_tokens=past)
    (tape,) = passed(arch.model_dump(), workload)
    assert faults(arch, workload, tape) == []
    # 2·N·H·B·P, and 2·K·H·B numbers for each token that is held, one of two arrays
    pairs = sum(past + 1 + i - key <= window for i in range(new) for key in range(past + 1 + i))
    assert tape.flops()["decoder.layers.0.attention.scores"] == 2 * 30 * 3 * pairs
    assert tape.flops()["decoder.layers.2.attention.values"] == 2 * 30 * 3 * pairs
    assert tape.cached["decoder.layers.2.attention.k_cache"] == 10 * 3 * min(past + new, window)
    assert tape.cached["decoder.layers.3.attention.v_cache"] == 10 * 3 * (past + new)


BY_HAND = small(
    positions="rope",
    layers=[{"repeat": 3, "attention": {**CORE, "window": 5}, "feed_forward": {"kind": "gated", "d_ff": 37}}],
)


@pytest.mark.parametrize(
    ("workload", "flops"),
    [
        # A layer: q 13·30, k, v 13·10 each, output 30·13, in all 1,040; gate, up and down 3·13·37 = 1,443: 2,483.
        # Prefill: 3·11 = 33 rows, 2·33·2,483 = 163,878; pairs of a sequence with window 5: 1 + 2 + 3 + 4 + 7·5 = 45,
        #   scores and values 2·2·3·45·30 = 16,200. Head 2·33·13·19 = 16,302. 3·180,078 + 16,302.
        (PREFILL, 556_536),
        # Decode: 2·3·2,483 = 14,898; each new token sees 5: 2·2·3·5·30 = 1,800. Head 2·3·13·19 = 1,482.
        (DECODE, 3 * 16_698 + 1_482),
        # Five more: 2·15·2,483 = 74,490; 5·5 pairs: 2·2·3·25·30 = 9,000. The head for the last of them only.
        (FIVE_MORE, 3 * 83_490 + 1_482),
    ],
)
def test_one_model_by_hand(workload, flops):
    arch = costcalc.load(BY_HAND)
    (tape,) = passed(arch.model_dump(), workload)
    # Three layers of 2,483 and two gains of 13; a final gain of 13; two tables of 19·13 = 247.
    assert sum(elements for elements, _ in tape.parameters.values()) == 3 * 2_509 + 13 + 2 * 247
    assert sum(tape.flops().values()) == flops
    # 2·K·H·B·5 = 300 a layer.
    assert sum(tape.cached.values()) == 900
    assert {role for _, role in tape.parameters.values()} == {"trainable"}
    assert faults(arch, workload, tape) == []


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("head_dim", [5, 7])
def test_shared_key_heads_shrink_keys_and_caches_but_not_the_core(kv_heads, head_dim):
    arch = costcalc.load(small(attention={"kv_heads": kv_heads, "head_dim": head_dim}))
    (tape,) = passed(arch.model_dump(), PREFILL)
    at = "decoder.layers.1.attention"
    assert tape.parameters[f"{at}.k"][0] == 13 * kv_heads * head_dim
    assert tape.cached[f"{at}.v_cache"] == 3 * 11 * kv_heads * head_dim
    assert tape.flops()[f"{at}.scores"] == tape.flops()[f"{at}.values"] == 2 * 3 * 66 * 6 * head_dim  # 11·12 / 2 pairs
    assert tape.flops()[f"{at}.q"] == tape.flops()[f"{at}.output"] == 2 * 33 * 13 * 6 * head_dim


def test_a_tied_head_multiplies_by_the_embedding():
    tied, untied = (passed(model(f"{word} {{}}").model_dump(), PREFILL)[0] for word in ("tied", "untied"))
    assert (tied.of["head"], untied.of["head"]) == ("decoder.embedding", "head")
    assert tied.flops()["head"] == untied.flops()["head"] == 2 * 33 * 13 * 19
    assert "head" not in tied.parameters


# Completeness: what an architecture may say, against what the cases say.

REMARKS = {
    ("Architecture", "name"),
    ("Architecture", "source"),
    ("Architecture", "published_parameters"),
    ("Architecture", "context_length"),
    ("Architecture", "not_counted"),
    ("Mixture", "dispatch"),
    ("Mixture", "capacity"),
    ("SharedBlock", "weights"),
    ("Stack", "padding"),
    *(("Padding", field) for field in ("multiple", "beyond")),
    *((owner, "state_dtype") for owner in ("Mamba1", "Mamba2", "GatedDelta", "Lightning", "RGLRU", "RWKV", "MLSTM")),
}
"""Fields that only tell a reader something, how kernels are called, how states are stored, what is equal."""
NUMBER, WORD = "a number", "a word"


def choices(annotation):
    """What a field of this type may hold: component classes, literal values, True and False, None, or a number."""
    origin = get_origin(annotation)
    if origin is Literal:
        yield from get_args(annotation)
    elif origin is Annotated:
        yield from choices(get_args(annotation)[0])
    elif origin in (Union, UnionType, tuple):
        for inner in get_args(annotation):
            yield from choices(inner) if inner is not Ellipsis else ()
    elif annotation in (None, type(None)):
        yield None
    elif annotation is bool:
        yield from (True, False)
    elif annotation in (int, float):
        yield NUMBER
    elif annotation is str:
        yield WORD
    elif origin is None and isinstance(annotation, type) and issubclass(annotation, Component):
        yield annotation
    else:
        raise TypeError(f"{annotation} is a type of field that this test does not know")


def offered(root):
    """(class, field, choice) of everything that `root` and the classes inside it may say; classes by name."""
    found, classes = set(), [root]
    for owner in classes:  # grows while it is walked
        for field, info in owner.model_fields.items():
            if (owner.__name__, field) in REMARKS:
                continue
            for choice in choices(info.annotation):
                if isinstance(choice, type):
                    classes += [choice] if choice not in classes else []
                    found.add((owner.__name__, field, choice.__name__))
                else:
                    found.add((owner.__name__, field, choice))
    return found


def fields_of(component):
    """(name, value) of each field, which a model that has derived something does not iterate over alone."""
    return [(field, getattr(component, field)) for field in type(component).model_fields]


def said(component):
    """(class, field, choice) of everything that one architecture says."""
    for field, value in fields_of(component):
        for held in value if isinstance(value, tuple) else [value]:
            if isinstance(held, Component):
                yield type(component).__name__, field, type(held).__name__
                yield from said(held)
            else:
                is_number = isinstance(held, int | float) and not isinstance(held, bool)
                is_word = isinstance(held, str) and (type(component).__name__, field, WORD) in everything_offered()
                yield type(component).__name__, field, NUMBER if is_number else WORD if is_word else held


class Noted(dict):
    """The fields of a component, which note the class and the name of each field that is read."""

    def __init__(self, component, read):
        super().__init__((field, noted(value, read)) for field, value in fields_of(component))
        self.owner, self.read = type(component).__name__, read

    def __getitem__(self, field):
        self.read.add((self.owner, field))
        return super().__getitem__(field)

    def get(self, field, default=None):
        self.read.add((self.owner, field))
        return super().get(field, default)


def noted(value, read):
    """`model_dump` of a value, in which every mapping notes what is read."""
    if isinstance(value, Component):
        return Noted(value, read)
    return tuple(noted(inner, read) for inner in value) if isinstance(value, tuple) else value


@cache
def everything_offered():
    return offered(Architecture)


SCANS = ("mixer mamba2", "mixer gated_delta", "mixer lightning")


def unread(some=CASES):
    """(class, field) of every field that no pass of these cases reads."""
    read = set()
    for case in some:
        fields, start = Noted(model(case), read), phases(model(case))[0]
        for chunked in (False, True) if case in SCANS else (False,):
            more = given(model(case).model_dump(), start)
            forward(fields, TEXT[: start.batch, :2], tape=Tape(ARENA), chunked=chunked, **more)
    return ({(owner, field) for owner, field, _ in everything_offered()} | REMARKS) - read


def kinds():
    """Names of the classes that have a `kind`."""
    return {owner for owner, field, _ in everything_offered() if field == "kind"}


def test_the_walk_finds_the_kinds():
    assert kinds() >= {"GroupedQuery", "Dense", "Gated", "LayerNorm", "RMSNorm", "PerHeadNorm", "ProjectionNorm"}
    assert ("Block", "parallel", "two_norms") in everything_offered()
    assert ("Pattern", "pattern", "Pattern") in everything_offered()
    assert ("GroupedQuery", "window", None) in everything_offered()


def test_every_choice_occurs_in_a_case():
    assert everything_offered() - {what for case in CASES for what in said(model(case))} == set()


def test_the_pass_reads_every_field_that_is_not_a_remark():
    assert unread() == REMARKS


def test_noted_fields_are_what_the_pass_is_given():
    for case in CASES:
        assert Noted(model(case), set()) == model(case).model_dump()


# Of each kind: a case that has it, what its paths look like there, and whether it has any.
ALL = {
    "GroupedQuery": ("biases True True", r"decoder\.layers\.\d\.attention\..*", True),
    "Dense": ("dense biased", r"decoder\.layers\.\d\.feed_forward\..*", True),
    "Gated": ("gated biased", r"decoder\.layers\.\d\.feed_forward\..*", True),
    "LayerNorm": ("sandwich layer", r".*norm(_bias)?", True),
    "RMSNorm": ("sandwich rms", r".*norm", True),
    "PerHeadNorm": ("per_head layer", r".*\.[qk]_norm(_bias)?", True),
    "ProjectionNorm": ("projection layer", r".*\.[qk]_norm(_bias)?", True),
    "EachHeadNorm": ("each_head layer", r".*\.[qk]_norm(_bias)?", True),
    "Latent": ("latent 17 True rope", r"decoder\.layers\.\d\.attention\..*", True),
    "Convolved": ("convolved 2 3 True", r"decoder\.layers\.\d\.attention\..*", True),
    "Differential": ("differential True rms", r"decoder\.layers\.\d\.attention\..*", True),
    "DynamicMask": ("dynamic mask 5 True rms", r"decoder\.layers\.\d\.attention\..*", True),
    "MixtureOfHeads": ("mixture of heads True", r"decoder\.layers\.\d\.attention\..*", True),
    "Compressed": ("entries of 5 True True", r"decoder\.layers\.\d\.attention\..*", True),
    "Landmarks": ("landmarks 2 3", r"encoder\.layers\.\d\.attention\..*", True),
    "Collisions": ("colliding", r"encoder\.layers\.\d\.attention\..*", True),
    "MultiResolution": ("two resolutions 3 5 True", r"encoder\.layers\.\d\.attention\..*", True),
    "Sliding": ("sliding 3 5", r"encoder\.layers\.\d\.attention\..*", True),
    "BlockSparse": ("blocks 2 0", r"encoder\.layers\.\d\.attention\..*", True),
    "Local": ("sums rms", r"encoder\.layers\.\d\.attention\..*", True),
    "GlobalLocal": ("beside 4 True True", r"encoder\.layers\.\d\.attention\..*", True),
    "NGram": ("2 streams True", r"decoder\.layers\.\d\.attention\..*", True),
    "Profiled": ("profiled None True 0", r"decoder\.layers\.\d\.attention\..*", True),
    "Mixture": ("correction buffer True", r"decoder\.layers\.\d\.feed_forward\..*", True),
    **{
        owner: (f"mixer {kind}", r"decoder\.layers\.\d\.mixer\..*", True)
        for owner, kind in zip(
            ("Mamba1", "Mamba2", "GatedDelta", "Lightning", "ShortConv", "RGLRU", "RWKV", "MLSTM"), MIXERS, strict=True
        )
    },
    "Fourier": ("transformed pre", r"encoder\.layers\.\d\.mixer\..*", True),
    "RWKVChannel": ("mixing of channels", r"decoder\.layers\.\d\.feed_forward\..*", True),
    "NoPositions": ("no positions", r".*(position|rope|rotary|sinus).*", False),
    "LearnedPositions": ("learned", r"decoder\.positions", True),
    "SinusoidalPositions": ("sinusoidal frozen", r"decoder\.positions", True),
    "RotaryPositions": ("rope 4", r".*(position|rope|rotary|sinus).*", False),
    "RelativePositions": ("pair relative False", r"(en|de)coder\.positions", True),
    "MixedConvolution": ("mixed convolution", r"encoder\.layers\.\d\.attention\..*", True),
    "TransformerXL": ("sinusoids of distances, 2", r"encoder\.layers\.\d\.attention\..*", True),
    "Disentangled": ("disentangled own True True", r"encoder\.layers\.\d\.attention\..*", True),
    "RelativeRows": ("disentangled own True True", r"encoder\.(positions|distances)", True),
    "LearnedAndRelativePositions": ("encoder learned and relative", r"encoder\.(positions|distances)", True),
    "AlibiPositions": ("pair alibi False", r".*(position|slope|alibi).*", False),
    "VocabularyHead": ("encoder tied {} 3", r"head.*", True),
    "ClassifierHead": ("labels behind 7 True", r"head.*", True),
    "NoHead": ("encoder without a head", r"head.*", False),
}


@pytest.mark.parametrize("kind", ALL)
def test_a_kind_records_something_where_something_is_stated(kind):
    case, pattern, has_paths = ALL[kind]
    arch = model(case)
    assert any(owner == kind for owner, _, _ in said(arch))
    for workload, tape in zip(phases(arch), passed(arch.model_dump(), *phases(arch)), strict=True):
        told = {path for path in paths(stated(arch.inventory, workload)) if re.fullmatch(pattern, path)}
        done = {path for path in recorded_paths(tape) if re.fullmatch(pattern, path)}
        assert told == done
        assert bool(told) == has_paths


def test_every_kind_is_asked_what_it_records():
    assert set(ALL) == kinds()


@pytest.mark.parametrize(("stored", "role"), [("no", None), ("frozen", "frozen"), ("buffer", "buffer")])
def test_stored_sinusoids_are_recorded_with_their_role(stored, role):
    (tape,) = passed(model(f"sinusoidal {stored}").model_dump(), PREFILL)
    assert tape.parameters.get("decoder.positions", (0, None)) == (0 if role is None else 29 * 13, role)


# The checks above, shown to fail when they should.


class Latent(Component):
    kind: Literal["latent"] = "latent"
    rank: int


class Planted(Component):
    attention: Latent | None = None
    layers: tuple[Annotated[Embedding, "one"] | Latent, ...] = ()


def test_a_kind_that_is_in_no_case_is_found():
    assert offered(Planted) == {
        ("Planted", "attention", "Latent"),
        ("Planted", "attention", None),
        ("Planted", "layers", "Embedding"),
        ("Planted", "layers", "Latent"),
        ("Latent", "kind", "latent"),
        ("Latent", "rank", NUMBER),
        ("Embedding", "width", None),
        ("Embedding", "width", NUMBER),
        ("Embedding", "bias", True),
        ("Embedding", "bias", False),
        ("Embedding", "scale", NUMBER),
        ("Embedding", "project", "before"),
        ("Embedding", "project", "after"),
        ("Embedding", "token_types", None),
        ("Embedding", "token_types", NUMBER),
        ("Embedding", "norm", None),
        *(("Embedding", "norm", norm) for norm in ("LayerNorm", "RMSNorm")),
        ("Embedding", "affine", True),
        ("Embedding", "affine", False),
        ("Embedding", "tables", "EmbeddingTable"),
        ("Embedding", "own_rows", "a number"),
        ("Embedding", "own_rows", None),
        *(("Embedding", "neighbours", choice) for choice in (True, False)),
        *((owner, field, choice) for owner, field, choice in everything_offered() if owner == "EmbeddingTable"),
        *((owner, field, choice) for owner, field, choice in everything_offered() if owner in ("LayerNorm", "RMSNorm")),
    }
    without = {what for case in CASES if "gated" not in case for what in said(model(case))}
    assert ("Gated", "activation", "relu_squared") in everything_offered() - without


def test_a_field_of_an_unknown_type_is_found():
    with pytest.raises(TypeError, match="does not know"):
        list(choices(list[str]))


def test_a_field_that_is_not_read_is_found(monkeypatch):
    def lazy(fields, x, at):
        hidden = at.linear("up", x, fields["d_ff"], bias=fields["bias"], groups=fields["up_groups"])
        return at.linear("down", hidden, x.shape[-1], bias=fields["bias"], groups=fields["down_groups"])

    some = ["dense silu", "dense biased", "gated silu"]
    before = unread(some)
    monkeypatch.setitem(FEED_FORWARD, "dense", lazy)
    assert unread(some) - before == {("Dense", "activation")}


LAYER = ("decoder", "layers", 0)
MIXED = (*LAYER, "feed_forward")


@pytest.mark.parametrize(
    ("case", "where", "key", "what"),
    [
        ("rope None", (*LAYER, "attention"), "kind", "attention"),
        ("rope None", (*LAYER, "feed_forward"), "kind", "feed-forward"),
        ("rope None", (*LAYER, "feed_forward"), "activation", "activation"),
        ("gated gelu", (*LAYER, "feed_forward"), "activation", "activation"),
        ("rope None", (*LAYER, "positions"), "kind", "positions"),
        ("rope None", ("decoder", "positions"), "kind", "positions"),
        ("rope None", (*LAYER, "norm"), "kind", "norm"),
        ("rope None", ("decoder", "norm"), "kind", "norm"),
        ("rope None", LAYER, "norms", "placement of norms"),
        ("rope None", LAYER, "parallel", "parallel block"),
        ("per_head rms", (*LAYER, "attention", "qk_norm"), "kind", "QK-norm"),
        ("gate per head", (*LAYER, "attention"), "output_gate", "output gate"),
        ("gate per head", (*LAYER, "attention"), "gate_activation", "activation"),
        ("latent 17 True rope", (*LAYER, "positions"), "kind", "positions"),
        ("latent rms", (*LAYER, "attention", "norm"), "kind", "norm"),
        ("differential True rms", (*LAYER, "positions"), "kind", "positions"),
        ("mixture of heads True", (*LAYER, "positions"), "kind", "positions"),
        ("dynamic mask 5 True rms", (*LAYER, "positions"), "kind", "positions"),
        ("experts gated True", (*MIXED, "expert"), "kind", "expert"),
        ("experts gated True, shared True", (*MIXED, "shared"), "kind", "shared expert"),
        ("experts gated True", (*MIXED, "router"), "scores", "scores of a router"),
        ("experts gated True", (*MIXED, "router"), "weigh", "weight of an expert"),
        ("router of residual", (*MIXED, "router"), "reads", "reading of a router"),
        ("router of residual", (*MIXED, "router", "norm"), "kind", "norm"),
        ("dense beside rms", (*LAYER, "feed_forward_beside"), "kind", "feed-forward"),
        ("per-layer inputs silu", ("decoder", "per_layer_input"), "activation", "activation"),
        ("rope of a head", (*LAYER, "positions"), "frequencies", "frequencies"),
        ("convolved 2 2 True", (*LAYER, "attention"), "kind", "attention"),
        ("convolved 2 2 True", (*LAYER, "positions"), "kind", "positions"),
        ("networks before routers, rms", (*MIXED, "router", "network", "norm"), "kind", "norm"),
        ("mixer mamba1", (*LAYER, "mixer"), "kind", "mixer"),
        ("mixer mamba1", (*LAYER, "mixer"), "activation", "activation"),
        ("mixer mamba2", (*LAYER, "mixer"), "activation", "activation"),
        ("mixer lightning", (*LAYER, "mixer"), "activation", "activation"),
        ("mixer rwkv beside", (*LAYER, "mixer_beside"), "kind", "mixer"),
        ("shared block, dense", (*LAYER, "shared_block", "feed_forward"), "kind", "shared network"),
        ("shared block, dense", (*LAYER, "positions"), "kind", "positions"),
        ("transformed pre", ("encoder", "layers", 0, "mixer"), "kind", "mixer"),
    ],
)
def test_a_kind_without_a_forward_pass_is_an_error(case, where, key, what):
    fields = model(case).model_dump()
    reduce(getitem, where, fields)[key] = "newest"
    with pytest.raises(NoReferenceError, match=f"^{what} of kind newest has no forward pass$"):
        passed(fields, PREFILL)


def test_an_attention_that_does_nothing_is_a_difference_at_each_of_its_parts(monkeypatch):
    monkeypatch.setitem(ATTENTION, "grouped_query", lambda fields, x, at, **others: x)
    arch = model("biases True True")
    found = faults(arch, PREFILL, *passed(arch.model_dump(), PREFILL))
    names = ["q", "q_bias", "k", "k_bias", "v", "v_bias", "output", "output_bias"]
    at = "decoder.layers.attention"
    assert {(fault.kind, fault.path) for fault in found} == {
        *{("parameters", f"{at}.{name}") for name in names},
        *{("FLOPs", f"{at}.{name}") for name in ("q", "k", "v", "scores", "values", "output")},
        *{("cached elements", f"{at}.{name}") for name in ("k_cache", "v_cache")},
    }
    assert {(fault.layers, fault.recorded) for fault in found} == {((0, 1), None)}


def test_a_feed_forward_that_does_nothing_is_a_difference(monkeypatch):
    monkeypatch.setitem(FEED_FORWARD, "gated", lambda fields, x, at: x)
    arch = model("gated silu")
    found = faults(arch, DECODE, *passed(arch.model_dump(), DECODE))
    at = "decoder.layers.feed_forward"
    assert {(fault.kind, fault.path) for fault in found} == {
        (kind, f"{at}.{name}") for kind in ("parameters", "FLOPs") for name in ("gate", "up", "down")
    }


# Of each sort of record: where the tape holds it, how it comes to hold a little more, and by how much.
LITTLE_MORE = {
    "parameters": ("parameters", lambda record: (record[0] + 1, record[1]), 1),
    "FLOPs": ("products", lambda record: [*record, Product(1, 1, 1, 1)], 2),
    "cached elements": ("cached", lambda record: record + 1, 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_is_missing_or_a_little_off_is_exactly_one_difference(kind):
    arch = model("some of everything")
    (tape,) = passed(arch.model_dump(), DECODE)
    name, little_more, difference = LITTLE_MORE[kind]
    held = getattr(tape, name)
    for path, record in list(held.items()):
        del held[path]
        (fault,) = faults(arch, DECODE, tape)
        assert (fault.kind, fault.recorded) == (kind, None)
        assert fault.path.rpartition(".")[2] == path.rpartition(".")[2]
        held[path] = little_more(record)
        (fault,) = faults(arch, DECODE, tape)
        assert (fault.kind, fault.recorded - fault.stated) == (kind, difference)
        held[path] = record
    assert faults(arch, DECODE, tape) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda tape: tape.products.update({"decoder.layers.1.attention.gate": tape.products["head"]}),
        lambda tape: tape.parameters.update({"decoder.norm": (13, "trainable")}),
        lambda tape: tape.parameters.update({"head": (247, "frozen")}),
        lambda tape: tape.of.update({"head": "decoder.embedding"}),
        lambda tape: tape.cached.update({"decoder.layers.0.attention.c_cache": 330}),
    ],
)
def test_a_record_too_many_or_of_another_sort_is_exactly_one_difference(change):
    arch = model("biases False False")
    (tape,) = passed(arch.model_dump(), PREFILL)
    change(tape)
    assert len(faults(arch, PREFILL, tape)) == 1
