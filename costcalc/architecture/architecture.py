"""The whole model: embedding, stacks and head, and the inventory that every answer is folded from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema, model_validator

from costcalc.architecture.component import Component, Flag, RuleError, Size
from costcalc.architecture.embedding import Embedding
from costcalc.architecture.entities import Entities
from costcalc.architecture.families import check_family, family_of, streams_of
from costcalc.architecture.head import Head, VocabularyHead, pooler_records
from costcalc.architecture.multi_token import MultiToken
from costcalc.architecture.places import At
from costcalc.architecture.stack import Group, Stack
from costcalc.architecture.written import full_form
from costcalc.errors import shown
from costcalc.inventory import FirstTokens, Inventory, Matmul, Record, Sequences, Weight
from costcalc.units import PRINTED_COUNT, is_printed_count

LARGEST_PUBLISHED = 10**18


def _one_line(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("must be one line of printable text")
    return text


def _published(value: Any) -> int | str:
    is_whole = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_PUBLISHED
    if not is_whole and not (isinstance(value, str) and is_printed_count(value)):
        raise ValueError(f'must be a whole number, or a figure as printed, such as "174.6B", got {shown(value)}')
    return str(value) if isinstance(value, str) else int(value)


Line = Annotated[str, Field(strict=True, max_length=300), AfterValidator(_one_line)]
Published = Annotated[
    int | str,
    PlainValidator(_published),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": f"{PRINTED_COUNT}|^[0-9_]+$"}]}
    ),
]


class Architecture(Component):
    """What a transformer is, complete enough to state every parameter, matmul and cached element.

    published_parameters: what the source prints, "174.6B" for a rounded figure. decoder: a stack whose tokens look
    back, and are cached. encoder: a stack whose tokens look both ways; alone, or beside a decoder that looks at them.
    tie_embeddings: the head multiplies by the embedding's table (the decoder's, where there is one) instead of one of
    its own. share_embeddings: encoder and decoder look up one table. encoder_vocab_size: rows of the encoder's table,
    where it has its own of another size. spare_table: one more table is held that nothing looks up (untied models
    of `transformers` 5). pooler: a dense layer on the first token of each of an encoder's texts, beside the head
    (BERT). entities: what is held for entities beside the words (LUKE). multi_token: modules beside the model that
    predict further tokens; they are in no total. not_counted: names of parts that the source describes and nothing here
    holds, such as a vision tower.
    """

    name: Line = "model"
    source: Line | None = None
    published_parameters: Published | None = None
    vocab_size: Size
    encoder_vocab_size: Size | None = None
    d_model: Size
    context_length: Size | None = None
    embedding: Embedding = Embedding()
    tie_embeddings: Flag = False
    share_embeddings: Flag = False
    spare_table: Flag = False
    head: Head = VocabularyHead()
    pooler: Flag = False
    decoder: Stack | None = None
    encoder: Stack | None = None
    multi_token: MultiToken | None = None
    entities: Entities | None = None
    not_counted: tuple[Line, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _spell_out(cls, written: Any) -> Any:
        return full_form(written)

    @model_validator(mode="after")
    def _check_rules(self) -> Architecture:
        if not self.stacks:
            raise RuleError("no layers", (), "add `layers:` with at least one layer: `- repeat: 12`")
        self.embedding.check(("embedding",), self.d_model)
        self.head.check(("head",), self.d_model)
        for name, stack in self.stacks.items():
            stack.check((name,), self.width_of(name))
        if self.multi_token is not None:
            self.multi_token.check(("multi_token",), self.d_model)
        _ = self._groups  # two different layers of one name are found here
        check_family(self)
        return self

    def __copy__(self) -> Architecture:
        """A copy without what was derived, since `model_copy(update=...)` changes fields under it."""
        copied = super().__copy__()
        for name in ("inventory", "_groups"):
            copied.__dict__.pop(name, None)
        return copied

    @property
    def stacks(self) -> dict[str, Stack]:
        """The stacks there are, in the order in which a pass runs them."""
        named = {"encoder": self.encoder, "decoder": self.decoder}
        return {name: stack for name, stack in named.items() if stack is not None}

    @property
    def main(self) -> str:
        """The name of the stack that the head stands on: the decoder, or an encoder alone."""
        return "encoder" if self.decoder is None else "decoder"

    @property
    def family(self) -> str:
        """decoder-only, encoder-only or encoder-decoder."""
        return family_of(self)

    @cached_property
    def _groups(self) -> dict[str, tuple[list[Group], tuple[str, ...]]]:
        return {name: stack.groups(name) for name, stack in self.stacks.items()}

    @cached_property
    def inventory(self) -> Inventory:
        """Every record of the model, stated once."""
        records: list[Record] = []
        layout: dict[str, tuple[str, ...]] = {}
        for name, stream in streams_of(self).items():
            stack, (groups, layout[name]) = self.stacks[name], self._groups[name]
            at, width, vocab_size, some = At(name), self.width_of(name), self._table_of(name), stack.positions
            records += self.embedding_of(name).records(at, width, stream, some, vocab_size=vocab_size)
            records += stack.records(name, groups, width, stream)
            if stack.output_projection:
                of_both = {"D": width}, {"D_out": self.d_model}
                records += at.linear("output_projection", stream.rows, *of_both, bias=True)
        if self.entities is not None:
            records += self.entities.records(At("entities"), self.d_model)
            records += self.entities.head_records(At("entity_head"), self.d_model)
        if self.pooler:
            records += self._pooler_records()
        if self.spare_table:
            records.append(Weight("spare_embedding", {"V": self.vocab_size, "D": self.d_model}, table=True))
        records += self._head_records()
        if self.multi_token is not None:
            records += self.multi_token.records(self.d_model, vocab_size=self.vocab_size)
        return Inventory(tuple(records), layout, self.not_counted)

    def _head_records(self) -> Iterator[Record]:
        """Once for each token, or for each of its streams that look ahead."""
        ahead = self.stacks[self.main].streams_ahead
        made = self.head.records(
            self.d_model,
            vocab_size=self.vocab_size,
            embedding=self.embedding,
            tied=self.tie_embeddings,
            table_path=f"{self.main}.embedding",
        )
        for record in made:
            if ahead and isinstance(record, Matmul):
                yield record._replace(axes={**record.axes, "ahead": ahead})
            else:
                yield record

    def _pooler_records(self) -> Iterator[Record]:
        """Of an encoder's texts, beside a decoder once; of a decoder alone the first token, in the pass that has it."""
        if self.encoder is None:
            return pooler_records(self.d_model, FirstTokens())
        return pooler_records(self.width_of("encoder"), Sequences(self.main == "decoder"))

    def _table_of(self, stack: str) -> int | None:
        """Rows of a stack's own vocabulary table; None where it looks up the decoder's."""
        if stack == self.main:
            return self.vocab_size
        return None if self.share_embeddings else self.encoder_vocab_size or self.vocab_size

    def width_of(self, stack: str) -> int:
        """The width of a stack's residual stream."""
        return self.stacks[stack].d_model or self.d_model

    def embedding_of(self, stack: str) -> Embedding:
        """What is at the bottom of a stack."""
        return self.stacks[stack].embedding or self.embedding

    def longest(self, stack: str | None = None) -> int | None:
        """Tokens beyond which a stack's position table has no row; None where nothing ends. By default, the head's."""
        return self.stacks[stack or self.main].positions.rows

    @property
    def groups(self) -> list[Group]:
        """The distinct blocks of all stacks, each with its path and how many layers are equal to it."""
        return [group for groups, _ in self._groups.values() for group in groups]

    def derived_facts(self) -> Iterator[str]:
        """What was not written but follows from what was, or from a default, one short sentence each."""
        facts: dict[str, None] = {}
        for group in self.groups:
            facts.update(dict.fromkeys(group.block.derived(self.width_of(group.path.partition(".")[0]))))
        for name, stack in self.stacks.items():
            if stack.final_norm is None:
                whose = f" of the {name}" if len(self.stacks) > 1 else ""
                facts[f"a final norm{whose}" if stack.has_final_norm else f"no final norm{whose} (norms: post)"] = None
        if "tie_embeddings" not in self.model_fields_set and isinstance(self.head, VocabularyHead):
            facts["the head has its own table (tie_embeddings is false unless written)"] = None
        yield from facts
