"""What stands on the last hidden states: a logit per vocabulary entry, or per label, or nothing; and the pooler.

The vocabulary's product is a matmul whether or not its table is tied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size, no_number
from costcalc.architecture.embedding import Embedding
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At
from costcalc.inventory import Extent, Logits, Matmul, Record, Sequences, Weight


class VocabularyHead(Component):
    """D -> V, with the embedding's table when tied, or its own.

    transform: a dense matrix, an activation and a norm come first (the masked-LM head of BERT, arXiv 1810.04805).
    transform_bias: whether that matrix has one. activation: the one after it. norm: the one after that; by default the
    model's, None for none. bias: one number per vocabulary entry; "buffer" where it is held, but no parameter (BART);
    "spare" where a second one that nothing reads is held beside it (untied masked-LM heads of `transformers` 5).
    inner: another matrix, of so many numbers, and the same activation stand before the transform (UltraBERT).
    beside: the transform keeps the model's width, and a table of the head's own stands beside the embedding's, for the
    numbers that have no room in it (MobileBERT).
    width: numbers that the transform makes, where a table of the head's own is not as wide as the embedding's (RemBERT,
    arXiv 2010.12821).
    scale: hidden states are multiplied by it first (T5 with a tied head); it changes no count. softcap: logits become
    softcap * tanh(logits / softcap) (Gemma-2, arXiv 2408.00118); it changes no count. rows: logits for so many entries,
    the first ones, where the table is its own (Apertus 1.5); a class may hold more than the vocabulary has (Inkling-2).
    scales: each logit is multiplied by a number of its own (nGPT, arXiv 2410.01131).

    When the embedding is factorised (width W) and tied, a projection D -> W comes first (OPT-350m's `project_out`); a
    transform is that projection itself (ALBERT, ELECTRA), and then its own table has the width W as well.
    """

    kind: Literal["vocabulary"] = "vocabulary"
    transform: Flag = False
    transform_bias: Flag = True
    activation: Activation = "gelu"
    norm: Norm | None = None
    bias: Annotated[Literal[False, True, "buffer", "spare"], BeforeValidator(no_number)] = False
    scale: PositiveFloat = 1.0
    softcap: PositiveFloat | None = None
    rows: Size | None = None
    scales: Flag = False
    inner: Size | None = None
    beside: Flag = False
    width: Size | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """A transform says its norm, or that it has none; nothing else has one."""
        says = "norm" in self.model_fields_set
        yield says or not self.transform, "`transform` ends in a norm: write `norm:`, or `norm: null` for none"
        yield self.transform or self.norm is None, "`norm` belongs to a `transform`"
        yield self.transform or self.transform_bias, "`transform_bias` belongs to a `transform`"
        yield self.transform or self.activation == "gelu", "`activation` belongs to a `transform`"
        yield self.transform or self.inner is None, "`inner` belongs to a `transform`"
        yield self.transform or self.width is None, "`width` belongs to a `transform`"
        yield self.transform or not self.beside, "`beside` belongs to a `transform`"
        yield self.width is None or not self.beside, "`width` and `beside` exclude each other"

    def records(
        self, d_model: int, *, vocab_size: int, embedding: Embedding, tied: bool, table_path: str
    ) -> Iterator[Record]:
        """The transform or the projection if there is one, the table if it is not tied, and the matmul with it."""
        rows, at = Logits(), At("head")
        narrow = tied or self.transform
        width = embedding.width_axes(d_model) if narrow else {"D": d_model}
        width = width if self.width is None else {"W_head": self.width}
        if self.transform:
            yield from self._transform(at, d_model, embedding)
            if self.norm is not None:
                yield from self.norm.records(at, "norm", {"D": d_model} if self.beside else width)
        elif tied and embedding.width is not None:
            yield from at.linear("projection", rows, {"D": d_model}, {"W": embedding.width}, bias=False)
        of_rows = {"V": vocab_size if self.rows is None else self.rows}
        axes = {**of_rows, **width}
        if not tied:
            yield Weight("head", axes, table=True)
        yield Matmul("head", {rows.letters: rows, **axes}, of=table_path if tied else "head")
        if self.scales:
            yield Weight("head_scales", of_rows)
        if self.beside and embedding.width is not None:
            rest = {**of_rows, "W_rest": d_model - embedding.width}
            yield Weight("head_beside", rest, table=True)
            yield Matmul("head_beside", {rows.letters: rows, **rest}, of="head_beside")
        if self.bias:
            yield Weight("head_bias", of_rows, role="buffer" if self.bias == "buffer" else "trainable")
        if self.bias == "spare":
            yield Weight("head_spare_bias", of_rows)

    def _transform(self, at: At, d_model: int, embedding: Embedding) -> Iterator[Record]:
        """D -> D, D -> W of a factorised embedding, or D -> a width of the head's own; or there in two steps."""
        rows, read = Logits(), {"D": d_model}
        made = {"D_out": d_model} if embedding.width is None else {"W": embedding.width}
        made = made if self.width is None else {"W_head": self.width}
        made = {"D_out": d_model} if self.beside else made
        if self.inner is not None:
            yield from at.linear("inner", rows, read, {"inner": self.inner}, bias=self.transform_bias)
            read = {"inner": self.inner}
        yield from at.linear("transform", rows, read, made, bias=self.transform_bias)


class ClassifierHead(Component):
    """D -> labels, for each token or once for each text; beside it the vocabulary has no head.

    labels: how many numbers come out (2 for the begin and end of an answer). of: "token" (every logit that is asked
    for: named entities, and decoders, whose classes score each token and read the last), or "text" (one row of each
    text: its first token, or what a pooler made of it; of a pair the decoder's last). bias: of the labels. transform: a
    dense matrix and an activation come first (RoBERTa, arXiv 1907.11692, in its code), to `transform_width` numbers
    where it is not D; transform_bias: whether it has one. norm: behind those (ModernBERT), None for none.
    """

    kind: Literal["classifier"] = "classifier"
    labels: Size
    of: Literal["token", "text"] = "token"
    bias: Flag = True
    transform: Flag = False
    transform_width: Size | None = None
    transform_bias: Flag = True
    activation: Activation = "tanh"
    norm: Norm | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """What belongs to a transform needs one."""
        yield self.transform or self.norm is None, "`norm` belongs to a `transform`"
        yield self.transform or self.transform_width is None, "`transform_width` belongs to a `transform`"
        yield self.transform or self.transform_bias, "`transform_bias` belongs to a `transform`"
        yield self.transform or self.activation == "tanh", "`activation` belongs to a `transform`"

    def records(
        self, d_model: int, *, vocab_size: int, embedding: Embedding, tied: bool, table_path: str
    ) -> Iterator[Record]:
        """The transform if there is one, then the matrix of the labels."""
        del vocab_size, embedding, tied, table_path
        rows, at, width = Sequences() if self.of == "text" else Logits(), At("head"), {"D": d_model}
        if self.transform:
            made = {"D_out": d_model} if self.transform_width is None else {"W_label": self.transform_width}
            yield from at.linear("transform", rows, width, made, bias=self.transform_bias)
            width = width if self.transform_width is None else made
            if self.norm is not None:
                yield from self.norm.records(at, "norm", width)
        yield from at.linear("classifier", rows, width, {"labels": self.labels}, bias=self.bias)


class NoHead(Component):
    """The hidden states themselves are the result (an embedding model: BertModel, T5EncoderModel)."""

    kind: Literal["none"] = "none"

    def records(
        self, d_model: int, *, vocab_size: int, embedding: Embedding, tied: bool, table_path: str
    ) -> Iterator[Record]:
        """Nothing is held, nothing is multiplied."""
        del d_model, vocab_size, embedding, tied, table_path
        yield from ()


Head = Annotated[VocabularyHead | ClassifierHead | NoHead, Field(discriminator="kind")]


def pooler_records(d_model: int, rows: Extent) -> Iterator[Record]:
    """tanh(x W + b) of each sequence's first token (BERT, arXiv 1810.04805, section 3.1): D -> D for these rows."""
    yield from At("pooler").linear("dense", rows, {"D": d_model}, {"D_out": d_model}, bias=True)
