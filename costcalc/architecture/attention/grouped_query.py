"""Scaled dot-product attention with grouped key/value heads (arXiv 1706.03762 and 2305.13245).

kv_heads = heads is multi-head, 1 is multi-query (arXiv 1911.02150), anything between is grouped-query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from costcalc.architecture.attention.block_choice import BlockChoice
from costcalc.architecture.attention.projection_groups import ProjectionGroups
from costcalc.architecture.attention.qk_norm import QKNorm
from costcalc.architecture.component import Component, Flag, Name, PositiveFloat, Rule, Size, no_number
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import CrossPairs, Extent, Memory, MemoryPairs, Pairs, Record, Weight
from costcalc.units import several

ENTITY_QUERIES = ("q_word_entity", "q_entity_word", "q_entity_entity")


class GroupedQuery(Component):
    """`heads` query heads that share `kv_heads` key/value heads, each of `head_dim`.

    kv_heads: None means as many as heads. head_dim: None means d_model / heads. bias: on q, k and v; out_bias: on the
    output projection. window: each query sees the latest `window` keys, itself included, or in an encoder itself and
    `window // 2` keys to either side; None sees all. scale: what scores are multiplied by, None for 1 / sqrt(head_dim).
    softcap: scores become softcap * tanh(scores / softcap) (Gemma-2, arXiv 2408.00118). Neither changes a count; the
    forward pass needs them.

    key_bias: false where `bias` leaves k without one (Whisper). memory_width: numbers of each token that a
    cross-attention looks at, where they are not d_model (T5Gemma). with_memory: beside the keys of earlier tokens each
    query meets those of all of an encoder's, in one softmax, made by the same matrices and not turned by positions
    (T5Gemma-2, arXiv 2512.14856). uneven_window: in an encoder an even window reaches one place less back than on
    (the same).

    chunk: in place of a window, each query sees the keys of its own chunk of so many tokens, up to itself (Llama-4).
    v_dim: numbers of a value head, where they are not head_dim (MiMo-V2). sinks: a learned number for each head takes
    part in its softmax, and gets weight that goes to no value (gpt-oss). output_gate: the heads' outputs are multiplied
    by an activation of another product of the layer's input, one number "per_channel" or "per_head" (AFMoE);
    gate_bias: on that product, or one number "per_head" (Beam).
    values_from_keys: the projection to keys is that to values too, and both are cached (Gemma-4). v_norm: a norm of
    each value head. cache_of: keys and values are those of the nearest earlier layer of that `name` (Gemma-3n; Brandon
    et al., arXiv 2405.12981): this one makes and caches none; keeps_kv_weights: it holds their weights all the same.
    query_gain: N·H numbers multiply queries, squared, behind positions; gate_gain: as many those of the output gate, in
    front of its activation (Dory, after nGPT, arXiv 2410.01131).
    output_norm: of all heads' outputs together, before their product (BitNet b1.58, arXiv 2504.12285).
    block_choice: each query meets the keys of some blocks alone, which a small attention beside chooses (MiniMax-M3).
    entity_queries: three more projections to queries are held, between words and entities (LUKE, arXiv 2010.01057,
    section 3.2), of which a text without entities needs none. groups: projections in groups (SqueezeBERT).
    """

    kind: Literal["grouped_query"] = "grouped_query"
    heads: Size
    kv_heads: Size | None = None
    head_dim: Size | None = None
    bias: Flag = False
    key_bias: Flag = True
    out_bias: Flag = False
    qk_norm: QKNorm | None = None
    window: Size | None = None
    chunk: Size | None = None
    scale: PositiveFloat | None = None
    softcap: PositiveFloat | None = None
    v_dim: Size | None = None
    sinks: Flag = False
    output_gate: Literal["per_channel", "per_head"] | None = None
    gate_bias: Annotated[Literal[False, True, "per_head"], BeforeValidator(no_number)] = False
    gate_activation: Activation = "sigmoid"
    gate_gain: Flag = False
    query_gain: Flag = False
    values_from_keys: Flag = False
    v_norm: Norm | None = None
    cache_of: Name | None = None
    keeps_kv_weights: Flag = False
    memory_width: Size | None = None
    with_memory: Flag = False
    uneven_window: Flag = False
    output_norm: Norm | None = None
    block_choice: BlockChoice | None = None
    entity_queries: Flag = False
    groups: ProjectionGroups | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Heads divide evenly among key/value heads, and the model's width among heads unless head_dim is given."""
        yield from self._rules_of_groups(d_model)
        if self.kv_heads is not None:
            yield self.heads % self.kv_heads == 0, "heads {heads} is not a multiple of kv_heads {kv_heads}"
        if self.head_dim is None:
            yield (
                d_model % self.heads == 0,
                "d_model {d_model} is not a multiple of heads {heads}, and no head_dim is given",
            )
        yield (
            self.window is None or self.chunk is None,
            "`window` and `chunk` exclude each other",
            "take one of the two out",
        )
        yield (
            not self.values_from_keys or self.v_dim is None,
            "`values_from_keys` leaves no `v_dim` to choose",
            "take `v_dim` out",
        )
        yield self.cache_of is not None or not self.keeps_kv_weights, "`keeps_kv_weights` is for layers with `cache_of`"
        yield (
            self.bias or self.key_bias,
            "`key_bias: false` takes one of the biases of `bias` away",
            "write `bias: true`",
        )
        is_gated = self.output_gate is not None or self.gate_activation == "sigmoid"
        yield is_gated, "`gate_activation` belongs to an `output_gate`"
        yield self.output_gate is not None or not self.gate_bias, "`gate_bias` belongs to an `output_gate`"
        alone = (self.chunk, self.cache_of, self.block_choice, self.memory_width)
        yield (
            not self.with_memory or all(each is None for each in alone),
            "`with_memory` goes without `chunk`, `cache_of`, `block_choice` and `memory_width`",
            "take one of the two out",
        )
        yield self.window is not None or not self.uneven_window, "`uneven_window` is about a `window`", "write one"
        yield self.output_gate is not None or not self.gate_gain, "`gate_gain` belongs to an `output_gate`"
        yield from self._rules_of_choice()

    def _rules_of_choice(self) -> Iterator[Rule]:
        """Heads divide evenly among those that choose; its own keys stand for nothing else that limits what is seen."""
        if self.block_choice is None:
            return
        choosing, local = self.block_choice.heads, self.block_choice.local
        yield (
            self.heads % choosing == 0,
            f"heads {{heads}} is not a multiple of {choosing} heads of `block_choice`",
            "change one of the two",
        )
        yield (
            local <= self.block_choice.blocks,
            f"`local` {local} of {self.block_choice.blocks} blocks of `block_choice`: no more are chosen",
            "write fewer, or more `blocks`",
        )
        limits = (self.window, self.chunk, self.cache_of, self.softcap, self.v_dim)
        plain = all(limit is None for limit in limits) and not self.sinks
        said = "`block_choice` goes without `window`, `chunk`, `cache_of`, `softcap`, `v_dim` and `sinks`"
        yield plain, said, "take one of the two out"

    def _rules_of_groups(self, d_model: int) -> Iterator[Rule]:
        """Groups divide what a projection takes and gives."""
        if self.groups is not None:
            kv_heads, head_dim = self.sizes(d_model)
            of_values = kv_heads * (self.v_dim or head_dim)
            made = {"q": self.heads * head_dim, "k": kv_heads * head_dim, "v": of_values, "output": d_model}
            yield from self.groups.rules_for(d_model, made)

    def rotated(self, d_model: int) -> int:
        """Numbers of a head that rotary positions turn."""
        return self.sizes(d_model)[1]

    def sizes(self, d_model: int) -> tuple[int, int]:
        """(kv_heads, head_dim), derived where they were not written."""
        kv_heads = self.heads if self.kv_heads is None else self.kv_heads
        return kv_heads, d_model // self.heads if self.head_dim is None else self.head_dim

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """Key/value heads, head size where it divides, and the scale of scores."""
        _, head_dim = self.sizes(d_model)
        divides = {"head_dim": (d_model // self.heads, "d_model / heads")} if d_model % self.heads == 0 else {}
        scale = (head_dim**-0.5, "1 / sqrt(head_dim)")
        sizes = {"v_dim": (head_dim, "head_dim"), "memory_width": (None, "d_model")}
        return {"kv_heads": (self.heads, "heads"), **divides, **sizes, "scale": scale}

    def derived(self, d_model: int) -> Iterator[str]:
        """Head size and key/value heads, where they were not written."""
        kv_heads, head_dim = self.sizes(d_model)
        if self.head_dim is None:
            yield f"head_dim = d_model / heads = {d_model:,} / {self.heads} = {head_dim}"
        if self.kv_heads is None:
            yield f"kv_heads = heads = {kv_heads} (multi-head attention)"

    def summary(self, d_model: int) -> str:
        """One line for a reader: heads, head size, and what differs from the plain kind."""
        kv_heads, head_dim = self.sizes(d_model)
        values = "" if self.v_dim in (None, head_dim) else f", values of {self.v_dim}"
        parts = [f"{several(self.heads, 'query head')} on {several(kv_heads, 'key/value head')} of {head_dim}{values}"]
        if self.window is not None:
            parts.append(f"window {self.window:,}")
        parts += ["an encoder's tokens beside"] * self.with_memory
        if self.chunk is not None:
            parts.append(f"chunks of {self.chunk:,}")
        parts += ["sinks"] * self.sinks + ["values are the keys"] * self.values_from_keys
        if self.output_gate is not None:
            parts.append(f"output gate {self.output_gate.replace('_', ' ')}")
        if self.cache_of is not None:
            parts.append(f"keys and values of {self.cache_of}")
        if self.qk_norm is not None:
            parts.append(f"QK-norm {self.qk_norm.kind}")
        if self.memory_width is not None:
            parts.append(f"memory of {self.memory_width:,}")
        parts += ["output norm"] * (self.output_norm is not None)
        if self.block_choice is not None:
            parts.append(self.block_choice.summary())
        parts += ["queries of entities held"] * self.entity_queries
        if self.bias or self.out_bias:
            of_inputs = "q, k, v" if self.key_bias else "q, v"
            parts.append("biases on " + " and ".join([of_inputs] * self.bias + ["output"] * self.out_bias))
        return ", ".join(parts)

    def records(
        self, at: At, d_model: int, stream: Stream, *, inputs: Mapping[str, int] | None = None
    ) -> Iterator[Record]:
        """Projections D -> N·H, D -> K·H (twice) and N·H -> D; scores and weighted values over the pairs; the cache.

        inputs: the axes of what it reads, where that is not the model's width. Scores and values are counted for all N
        query heads: sharing keys shrinks the cache, not the core.
        """
        kv_heads, head_dim = self.sizes(d_model)
        of_value = {"H": head_dim} if self.v_dim is None or self.v_dim == head_dim else {"H_v": self.v_dim}
        queries, mixed = {"N": self.heads, "H": head_dim}, {"N": self.heads, **of_value}
        width: Mapping[str, int] = {"D": d_model}
        read = width if inputs is None else inputs
        asked = read if self.memory_width is None else {"D_memory": self.memory_width}
        yield from at.linear("q", stream.rows, read, queries, bias=self.bias, groups=self._groups_of("q"))
        for name in ENTITY_QUERIES if self.entity_queries else ():
            made = at.linear(name, stream.rows, read, queries, bias=self.bias)
            yield from (record for record in made if isinstance(record, Weight))
        yield from self._keys_and_values(at, asked, kv_heads, {"H": head_dim}, of_value, stream)
        normed = {"q": self.heads} if self._borrows else {"q": self.heads, "k": kv_heads}
        if self.qk_norm is not None:
            yield from self.qk_norm.records(at, heads=normed, head_dim=head_dim)
        yield from self._gate(at, stream, read, mixed)
        if self.query_gain:
            yield at.weight("query_gain", queries)
        if self.sinks:
            yield at.weight("sinks", {"N": self.heads})
        if self.block_choice is not None:
            yield from self.block_choice.records(at.under("block_choice"), read, stream)
        pairs = self._pairs(stream) if self.block_choice is None else self.block_choice.pairs()
        yield at.core("scores", {pairs.letters: pairs, **queries})
        yield at.core("values", {pairs.letters: pairs, **mixed})
        if self.with_memory:
            yield from self._of_memory(at, queries, mixed)
        if stream.held is not None and self.cache_of is None:
            held = stream.held(self.window, self.chunk)
            for name, size in (("k_cache", {"H": head_dim}), ("v_cache", of_value)):
                yield at.cached(name, {held.letters: held, "K": kv_heads, **size}, kind=stream.cache)
        if self.with_memory:
            for name, size in (("k_memory", {"H": head_dim}), ("v_memory", of_value)):
                yield at.cached(name, {Memory.letters: Memory(), "K": kv_heads, **size}, kind="cross")
        if self.output_norm is not None:
            yield from self.output_norm.records(at, "output_norm", mixed)
        groups = self._groups_of("output")
        yield from at.linear("output", stream.rows, mixed, width, bias=self.out_bias, groups=groups)

    def _groups_of(self, name: str) -> int | None:
        return None if self.groups is None else getattr(self.groups, name)

    def _pairs(self, stream: Stream) -> Extent:
        pairs = stream.pairs(self.window, self.chunk)
        return replace(pairs, uneven=True) if self.uneven_window and isinstance(pairs, Pairs | MemoryPairs) else pairs

    def _of_memory(self, at: At, queries: dict[str, int], mixed: dict[str, int]) -> Iterator[Record]:
        """The same over an encoder's tokens, all of which each query sees."""
        pairs = CrossPairs()
        yield at.core("scores", {pairs.letters: pairs, **queries})
        yield at.core("values", {pairs.letters: pairs, **mixed})

    def _gate(self, at: At, stream: Stream, read: Mapping[str, int], mixed: dict[str, int]) -> Iterator[Record]:
        """The product that gates what the heads give, its bias and its gains."""
        if self.output_gate is None:
            return
        made = mixed if self.output_gate == "per_channel" else {"N": self.heads}
        yield from at.linear("gate", stream.rows, read, made, bias=self.gate_bias is True)
        if self.gate_bias == "per_head":
            yield at.weight("gate_bias", {"N": self.heads})
        if self.gate_gain:
            yield at.weight("gate_gain", made)

    @property
    def _borrows(self) -> bool:
        """Whether another layer's keys and values are read, and no weights for own ones are held."""
        return self.cache_of is not None and not self.keeps_kv_weights

    def _keys_and_values(
        self,
        at: At,
        read: Mapping[str, int],
        kv_heads: int,
        of_key: dict[str, int],
        of_value: dict[str, int],
        stream: Stream,
    ) -> Iterator[Record]:
        """The weights of keys and values, unless another layer's are read; and the products of own ones."""
        made = [] if self._borrows else [("k", of_key)] if self.values_from_keys else [("k", of_key), ("v", of_value)]
        for name, size in made:
            bias = self.bias and (self.key_bias or name != "k")
            groups = self._groups_of(name)
            records = at.linear(name, stream.key_rows, read, {"K": kv_heads, **size}, bias=bias, groups=groups)
            yield from records if self.cache_of is None else [r for r in records if isinstance(r, Weight)]
            if self.with_memory:
                once = Memory(once=True)
                yield at.product(name, {once.letters: once, **read, "K": kv_heads, **size})
        if self.v_norm is not None and not self._borrows:
            yield from self.v_norm.records(at, "v_norm", of_value)
