"""The whole model: embedding, stack and head, and the inventory that every answer is folded from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema, model_validator

from costcalc.architecture.component import Component, Flag, Size
from costcalc.architecture.embedding import Embedding
from costcalc.architecture.head import Head
from costcalc.architecture.places import DECODER, At
from costcalc.architecture.stack import Group, Stack
from costcalc.architecture.written import full_form
from costcalc.errors import shown
from costcalc.inventory import Inventory, Record
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

    published_parameters: what the source prints, "174.6B" for a rounded figure. tie_embeddings: the head multiplies by
    the embedding's table instead of one of its own.
    """

    name: Line = "model"
    source: Line | None = None
    published_parameters: Published | None = None
    vocab_size: Size
    d_model: Size
    context_length: Size | None = None
    embedding: Embedding = Embedding()
    tie_embeddings: Flag = False
    head: Head = Head()
    decoder: Stack

    @model_validator(mode="before")
    @classmethod
    def _spell_out(cls, written: Any) -> Any:
        return full_form(written)

    @model_validator(mode="after")
    def _check_rules(self) -> Architecture:
        self.embedding.check(("embedding",), self.d_model)
        self.decoder.check(("decoder",), self.d_model)
        _ = self._groups  # two different layers of one name are found here
        return self

    def __copy__(self) -> Architecture:
        """A copy without what was derived, since `model_copy(update=...)` changes fields under it."""
        copied = super().__copy__()
        for name in ("inventory", "_groups"):
            copied.__dict__.pop(name, None)
        return copied

    @cached_property
    def _groups(self) -> tuple[list[Group], tuple[str, ...]]:
        return self.decoder.groups("decoder")

    @cached_property
    def inventory(self) -> Inventory:
        """Every record of the model, stated once."""
        groups, layout = self._groups
        records: list[Record] = []
        at = At("decoder")
        records += self.embedding.records(at, self.d_model, DECODER, vocab_size=self.vocab_size)
        records += self.decoder.records("decoder", groups, self.d_model, DECODER)
        records += self.head.records(
            self.d_model,
            vocab_size=self.vocab_size,
            embedding=self.embedding,
            tied=self.tie_embeddings,
            table_path="decoder.embedding",
        )
        return Inventory(tuple(records), {"decoder": layout})

    @property
    def longest(self) -> int | None:
        """Tokens beyond which a learned or stored position table has no row; None where nothing ends."""
        return self.decoder.positions.rows

    @property
    def groups(self) -> list[Group]:
        """The distinct blocks of the stack, each with its path and how many layers are equal to it."""
        return self._groups[0]

    def derived_facts(self) -> Iterator[str]:
        """What was not written but follows from what was, or from a default, one short sentence each."""
        facts: dict[str, None] = {}
        for group in self.groups:
            facts.update(dict.fromkeys(group.block.derived(self.d_model)))
        if self.decoder.final_norm is None:
            facts["a final norm" if self.decoder.has_final_norm else "no final norm (norms: post)"] = None
        if "tie_embeddings" not in self.model_fields_set:
            facts["the head has its own table (tie_embeddings is false unless written)"] = None
        yield from facts
