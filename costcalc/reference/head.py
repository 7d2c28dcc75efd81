"""What stands on the last hidden states: logits over a vocabulary or labels, or nothing; and a pooler beside it."""

from __future__ import annotations

from collections.abc import Callable

from costcalc.reference.activations import ACTIVATIONS, tanh
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.scaled_dot_product import soft_cap
from costcalc.reference.tape import Scope, Table


def vocabulary_head(fields: Fields, x: Array, embedding: Table, root: Scope) -> Array:
    """One logit for each row of the vocabulary, from the embedding's table when tied (arXiv 1608.05859).

    x: (B, T, D) -> (B, T, V). Before the table may stand a dense layer, an activation and a norm (the masked-LM head of
    BERT, arXiv 1810.04805); it makes W numbers where the table has so many (ALBERT, arXiv 1909.11942).
    """
    how, width = fields["head"], fields["embedding"]["width"]
    entries = how["rows"] or fields["vocab_size"]
    x = x * FLOAT(how["scale"])  # (B, T, D)
    if how["transform"]:
        made = fields["d_model"] if how["beside"] else how["width"] or width or fields["d_model"]
        x = _transformed(how, x, made, root.under("head"))  # (B, T, D), or (B, T, W)
    elif fields["tie_embeddings"] and width:
        x = root.under("head").linear("projection", x, width, bias=False)  # (B, T, D) x (D, W)
    x, rest = (x[..., :width], x[..., width:]) if how["beside"] else (x, None)  # (B, T, W), (B, T, D - W)
    table = embedding
    if not fields["tie_embeddings"]:
        table = root.table("head", entries, x.shape[-1])
    logits = table.product("head", x)  # (B, T, D) x (D, V)
    if rest is not None:
        beside = root.table("head_beside", entries, rest.shape[-1])
        logits = logits + beside.product("head_beside", rest)  # (B, T, D - W) x (D - W, V)
    if how["scales"]:
        logits = logits * root.gain("head_scales", entries)  # (B, T, V) * (V)
    if how["bias"]:
        role = "buffer" if how["bias"] == "buffer" else "trainable"
        logits = logits + root.parameter("head_bias", entries, role=role)  # (B, T, V) + (V)
    if how["bias"] == "spare":
        root.parameter("head_spare_bias", entries)  # held, and added to nothing
    return soft_cap(logits, how["softcap"])


def _transformed(how: Fields, x: Array, width: int, at: Scope) -> Array:
    activation = of_kind(ACTIVATIONS, how["activation"], "activation")
    if how.get("inner"):  # a classifier has none
        x = activation(at.linear("inner", x, how["inner"], bias=how["transform_bias"]))  # (B, T, D) x (D, inner)
    x = activation(at.linear("transform", x, width, bias=how["transform_bias"]))  # (B, T, D) x (D, W)
    return norm(how["norm"], x, at, "norm") if how["norm"] else x


def no_head(fields: Fields, x: Array, embedding: Table, root: Scope) -> Array:
    """The hidden states themselves, (B, T, D)."""
    del fields, embedding, root
    return x


def classifier_head(fields: Fields, x: Array, embedding: Table, root: Scope) -> Array:
    """A number for each label. x: (B, T, D) of all tokens, or (B, 1, D) of one of each text -> (B, T or 1, labels).

    Before the labels may stand a dense layer, an activation and a norm (RoBERTa's, ModernBERT's).
    """
    del embedding
    how, at = fields["head"], root.under("head")
    if how["transform"]:
        x = _transformed(how, x, how["transform_width"] or fields["d_model"], at)  # (B, T, D) x (D, W)
    return at.linear("classifier", x, how["labels"], bias=how["bias"])  # (B, T, W) x (W, labels)


def read_by_head(fields: Fields, x: Array, pooled: Array | None, *, logits: str) -> Array:
    """The rows that a head reads: (B, T, D), or one of each text. x: (B, T, D).

    Labels of a text are told by what a pooler made of it, by its first token, or by a decoder's last.
    """
    if fields["head"].get("of") == "text":
        if pooled is not None:
            return pooled[:, None]  # (B, 1, D)
        return x[:, :1] if fields["decoder"] is None else x[:, -1:]
    return x[:, -1:] if logits == "last" else x


HEADS: dict[str, Callable[[Fields, Array, Table, Scope], Array]] = {
    "vocabulary": vocabulary_head,
    "classifier": classifier_head,
    "none": no_head,
}


def pooled(x: Array, root: Scope) -> Array:
    """tanh(x W + b) of each text's first token (BERT, arXiv 1810.04805, section 3.1). x: (B, T, D) -> (B, D).

    Of texts without tokens, (0, D): the weights are held, and no rows meet them.
    """
    first = x[:, :1].reshape(-1, x.shape[-1])  # (B, D)
    return tanh(root.under("pooler").linear("dense", first, x.shape[-1], bias=True))  # (B, D) x (D, D)
