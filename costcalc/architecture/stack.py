"""A stack of layers: which layers, in which order, and what stands below and above them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any

from pydantic import Discriminator, Tag, WrapValidator

from costcalc.architecture.altup import AltUp
from costcalc.architecture.block import Block
from costcalc.architecture.block_residuals import chosen, repeated
from costcalc.architecture.component import Component, Flag, Rule, RuleError, Size, Where
from costcalc.architecture.embedding import Embedding
from costcalc.architecture.hyper_connections import HyperConnections
from costcalc.architecture.lenders import check_choosers, check_lenders
from costcalc.architecture.norm import Norm
from costcalc.architecture.once import each_once, parts_of
from costcalc.architecture.padding import Padding, check_text, handed
from costcalc.architecture.per_layer_input import PerLayerInput
from costcalc.architecture.places import At, Stream
from costcalc.architecture.positions import LearnedPositions, NoPositions, Positions, has_one_table
from costcalc.architecture.recurrent_depth import Hierarchy, Loop
from costcalc.architecture.streams import check_streams, streams_ahead
from costcalc.inventory import Record

MOST_LAYERS = 100_000
TOO_DEEP = f"the layers add up to more than {MOST_LAYERS:,}"


def _entry_kind(entry: Any) -> str:
    is_pattern = "pattern" in entry if isinstance(entry, dict) else isinstance(entry, Pattern)
    return "pattern" if is_pattern else "block"


Entry = Annotated[
    Annotated[Block, Tag("block")] | Annotated["Pattern", Tag("pattern")],
    Discriminator(_entry_kind),
]
Entries = Annotated[tuple[Entry, ...], WrapValidator(each_once)]


class Pattern(Component):
    """A sequence of layers, written `repeat` times over; patterns nest."""

    repeat: Size = 1
    pattern: Entries

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Something is repeated."""
        yield len(self.pattern) > 0, "the pattern has no layers"


@dataclass(frozen=True, slots=True)
class Group:
    """One distinct block of a stack, at its path, for all the layers that are equal to it."""

    block: Block
    path: str
    times: int


class Stack(Component):
    """Layers, and the norm on top of them (there by default, except with norms: post).

    altup: the residual stream is several states (Gemma-3n). per_layer_input: each layer adds something of its own
    embedding of each token (Gemma-3n, Gemma-4). hyper_connections: the residual stream has several parts, which each
    sublayer mixes (DeepSeek-V4). All of these are in all layers. residual_sources: the norm on top reads a weighted
    mean of so many, the stream and what blocks of layers left (Inkling-2). hierarchy, loop: layers run several times,
    and something happens between their turns (HRM-Text, Dory).

    d_model, embedding: of an encoder beside a decoder, where they are not the model's (`EncoderDecoderModel`, T5Gemma).
    output_projection: what it gives goes through a matrix with a bias to the decoder's d_model (`EncoderDecoderModel`).
    embedding of each token (Gemma-3n, Gemma-4). Either is in all layers. padding: what kernels of an encoder are handed
    of a text. global_tokens: learned rows that go through all layers beside the text, and end there (Pegasus-X).
    """

    norm: Norm
    positions: Positions = NoPositions()
    final_norm: Flag | None = None
    altup: AltUp | None = None
    hyper_connections: HyperConnections | None = None
    residual_sources: Size | None = None
    per_layer_input: PerLayerInput | None = None
    hierarchy: Hierarchy | None = None
    loop: Loop | None = None
    d_model: Size | None = None
    embedding: Embedding | None = None
    output_projection: Flag = False
    padding: Padding | None = None
    global_tokens: Size | None = None
    layers: Entries

    @property
    def has_final_norm(self) -> bool:
        """As written, or else unless the last layer ends in a norm of its own."""
        return _last_block(self.layers).norms != "post" if self.final_norm is None else self.final_norm

    @property
    def depth(self) -> int:
        """How many layers, repeats multiplied out."""
        return _depth(self.layers)

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """A final norm, unless the last layer ends in a norm of its own; the model's width."""
        norms = _last_block(self.layers).norms
        return {"final_norm": (norms != "post", f"norms: {norms}"), "d_model": (None, "the model's d_model")}

    def rules(self, d_model: int) -> Iterator[Rule]:
        """A bound on the layers, since layouts list every one."""
        yield len(self.layers) > 0, "there are no layers"
        yield self.depth <= MOST_LAYERS, TOO_DEEP
        others = (self.altup, self.per_layer_input)
        yield (
            self.hyper_connections is None or others == (None, None),
            "`hyper_connections` go without `altup` and `per_layer_input`",
            "take one of them out",
        )
        yield from self._rules_of_turns()

    def _rules_of_turns(self) -> Iterator[Rule]:
        """One state of layers that run several times, and a norm between them that holds nothing."""
        yield self.hierarchy is None or self.loop is None, "`hierarchy` and `loop` exclude each other", "take one out"
        for turns in (self.hierarchy, self.loop):
            if turns is None:
                continue
            yield from turns.rules_of(self.depth)
            is_bare = not self.norm.weight and not getattr(self.norm, "bias", False)
            said = "the norm between turns of layers has no numbers of its own"
            yield is_bare, said, "write a norm with `weight: false`"
            states = (self.altup, self.hyper_connections)
            said = "layers in turns have one state, without `altup` and `hyper_connections`"
            yield states == (None, None), said, "take one of the two out"

    def check(self, where: Where, d_model: int) -> None:
        """The rules of the stack, then those of every entry."""
        super().check((*where, "layers"), d_model)
        if self.embedding is not None:
            self.embedding.check((*where, "embedding"), d_model)
        self.positions.check((*where, "positions"), d_model)
        if self.altup is not None:
            self.altup.check((*where, "altup"), d_model)
        self._check_entries(self.layers, (*where, "layers"), d_model)
        self._check_relative(where)
        if _last_block(self.layers).shortcut is not None:
            message = "the last layer has a `shortcut`, and its result is added behind the next one"
            raise RuleError(message, (*where, "layers"), "write one more layer, or take it out there")
        self._check_shared_blocks(where)
        around = ("altup", "per_layer_input", "hyper_connections", "padding", "global_tokens", "loop", "hierarchy")
        is_plain = all(getattr(self, key) is None for key in around) and isinstance(self.positions, LearnedPositions)
        check_streams(self._blocks(), is_plain=is_plain, where=where)
        self._check_text(where)
        check_lenders(self.layers, where, d_model)
        check_choosers(self.layers, (*where, "layers"))

    def _check_entries(self, entries: tuple[Block | Pattern, ...], where: Where, d_model: int) -> None:
        seen: set[tuple[int, ...]] = set()
        for index, entry in enumerate(entries):
            if isinstance(entry, Pattern):
                entry.check((*where, index), d_model)
                self._check_entries(entry.pattern, (*where, index, "pattern"), d_model)
                continue
            if (parts := parts_of(entry)) in seen:
                continue
            seen.add(parts)
            entry.check((*where, index), d_model)
            if self.hyper_connections is not None:
                self.hyper_connections.check_block(entry, (*where, index))
            if entry.positions.added and entry.positions != self.positions:
                message = f"{entry.positions.kind} positions are added once, below all layers"
                raise RuleError(message, (*where, index, "positions"), "write them on the stack, not on a layer")
            if has_one_table(entry.positions) and entry.positions != self.positions:
                message = "relative positions have one table for all layers"
                raise RuleError(message, (*where, index, "positions"), "write them on the stack, or `per_layer: true`")

    def _check_relative(self, where: Where) -> None:
        """The one table of relative positions has a column for each head, so that all layers have as many."""
        heads = self._relative_heads() if has_one_table(self.positions) else {0}
        if len(heads) != 1:
            found = f"layers of {' and '.join(map(str, sorted(heads)))} heads" if heads else "no layer with attention"
            message = f"one table of relative positions is for {found}"
            raise RuleError(message, (*where, "positions"), "write `per_layer: true`, or the same heads everywhere")

    def _blocks(self) -> list[Block]:
        """The distinct ones."""
        blocks: list[Block] = []
        _order(self.layers, blocks, {})
        return blocks

    @property
    def streams_ahead(self) -> int:
        """Streams of a text that look ahead of the main one."""
        return streams_ahead(list(_leaves(self.layers)))

    def _check_shared_blocks(self, where: Where) -> None:
        """One set of weights is for layers that are equal in all else: others would count it once more."""
        blocks: list[Block] = []
        _order(self.layers, blocks, {})
        sets = Counter(block.shared_block.weights for block in blocks if block.shared_block is not None)
        for name, count in sets.items():
            if count > 1:
                message = f"{count} layers that are not equal have a `shared_block` of the weights {name!r}"
                hint = "write `weights:` and another name in one of them, or make all their keys equal, `name` too"
                raise RuleError(message, (*where, "layers"), hint)

    def _check_text(self, where: Where) -> None:
        blocks: list[Block] = []
        _order(self.layers, blocks, {})
        attentions = [block.attention for block in blocks]
        check_text(where, attentions, self.positions, padding=self.padding, global_tokens=self.global_tokens)

    def _relative_heads(self) -> set[int]:
        blocks: list[Block] = []
        _order(self.layers, blocks, {})
        return {b.attention.heads for b in blocks if b.attention is not None and has_one_table(b.positions)}

    def groups(self, name: str) -> tuple[list[Group], tuple[str, ...]]:
        """The distinct blocks of this stack, and the group's path of each layer in order.

        Paths are `decoder.layers` when all layers are equal, else `decoder.layers.<name or first layer index>`.
        """
        if len(self.layers) == 1 and isinstance(self.layers[0], Block):
            block, path = self.layers[0], f"{name}.layers"  # the common case, spared the hashing
            return [Group(block, path, block.repeat)], (path,) * block.repeat
        blocks: list[Block] = []
        order = _order(self.layers, blocks, {})
        paths = _paths(f"{name}.layers", blocks, order, (name,))
        times = Counter(order)
        groups = [Group(block, paths[index], times[index]) for index, block in enumerate(blocks)]
        return groups, tuple([paths[index] for index in order])

    def records(self, name: str, groups: list[Group], d_model: int, stream: Stream) -> Iterator[Record]:
        """What all layers have in common, each group's layers, the final norm."""
        at, stream = At(name), handed(stream, self.padding, self.global_tokens)
        if self.global_tokens is not None:
            yield at.weight("global_tokens", {"more": self.global_tokens, "D": d_model}, table=True)
        if self.per_layer_input is not None:
            yield from self.per_layer_input.below(at, d_model, stream, self.norm, layers=self.depth)
        if self.altup is not None:
            yield from self.altup.below(at, d_model, stream)
        if self.streams_ahead:
            yield at.weight("ngram_embedding", {"ahead": self.streams_ahead, "D": d_model}, table=True)
        if has_one_table(self.positions):
            yield from self.positions.bias_records(at, *self._relative_heads())
        if self.hierarchy is not None:
            yield from self.hierarchy.records(at, d_model)
        for group in groups:
            yield from self._layer_records(group, d_model, stream)
        if self.altup is not None:
            yield from self.altup.above(at, d_model, stream)
        if self.hyper_connections is not None:
            yield from self.hyper_connections.above(at, d_model, stream)
        if self.residual_sources is not None:
            yield from chosen(at.under("block_residuals"), "above", d_model, stream, sources=self.residual_sources)
        if self.has_final_norm:
            yield from self.norm.records(at, "final_norm", {"D": d_model})

    def _layer_records(self, group: Group, d_model: int, stream: Stream) -> Iterator[Record]:
        """A block, and what the stack puts around each."""
        at, block = At(group.path, group.times, group.block.share_weights), group.block
        if self.altup is not None:
            yield from self.altup.layer_records(at, d_model, stream, block.norm)
        if self.hyper_connections is not None:
            yield from self.hyper_connections.layer_records(at, d_model, stream, block)
        yield from repeated(block, block.records(at, d_model, stream), at)
        if block.block_residuals is not None and block.block_residuals.loop is not None:
            yield from block.block_residuals.loop.records(at.under("messages"), d_model, stream)
        if self.per_layer_input is not None:
            yield from self.per_layer_input.layer_records(at, d_model, stream, block.norm)


_identity = attrgetter(*(field for field in Block.model_fields if field != "repeat"))
"""What makes two blocks equal: every field but how often they are repeated."""


def _depth(entries: tuple[Block | Pattern, ...]) -> int:
    return sum(e.repeat if isinstance(e, Block) else e.repeat * _depth(e.pattern) for e in entries)


def _leaves(entries: tuple[Block | Pattern, ...]) -> Iterator[Block]:
    for entry in entries:
        if isinstance(entry, Block):
            yield entry
        else:
            yield from _leaves(entry.pattern)


def _last_block(entries: tuple[Block | Pattern, ...]) -> Block:
    last = entries[-1]
    return last if isinstance(last, Block) else _last_block(last.pattern)


def _order(
    entries: tuple[Block | Pattern, ...], blocks: list[Block], seen: dict[Any, int], at: Where = ()
) -> list[int]:
    """The index in `blocks` of each layer's block; distinct blocks are added to `blocks`, and noted in `seen`."""
    order: list[int] = []
    for number, entry in enumerate(entries):
        if isinstance(entry, Block):
            own = (
                (*at, number) if entry.share_weights else None
            )  # layers share what was written once, not what is equal
            parts = (own, parts_of(entry))
            index = seen.get(parts)
            if index is None:
                index = seen[parts] = seen.setdefault((own, _identity(entry)), len(blocks))
            if index == len(blocks):
                blocks.append(entry)
            order += [index] * entry.repeat
        else:
            order += _order(entry.pattern, blocks, seen, (*at, number)) * entry.repeat
    return order


def _paths(prefix: str, blocks: list[Block], order: list[int], where: Where) -> list[str]:
    if len(blocks) == 1:
        return [prefix]
    first_layer: dict[int, int] = {}
    for layer, index in enumerate(order):
        first_layer.setdefault(index, layer)
    names = [block.name or str(first_layer[index]) for index, block in enumerate(blocks)]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        message = f"two different layers are both named {name!r}"
        raise RuleError(message, (*where, "layers"), "give each its own `name:`")
    return [f"{prefix}.{name}" for name in names]
