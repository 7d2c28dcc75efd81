"""Which family a model is of, what flows through its stacks, and what only some families have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from costcalc.architecture.attention import Disentangled, GroupedQuery, MixedConvolution, OfText, TransformerXL
from costcalc.architecture.block import Block, is_recurrent
from costcalc.architecture.component import RuleError, Where
from costcalc.architecture.head import ClassifierHead, VocabularyHead
from costcalc.architecture.mixer import Fourier
from costcalc.architecture.places import DECODER, ENCODER, SOURCE, Stream

if TYPE_CHECKING:
    from costcalc.architecture.architecture import Architecture

DECODER_ONLY, ENCODER_ONLY, ENCODER_DECODER = "decoder-only", "encoder-only", "encoder-decoder"
ALONE = (Disentangled, TransformerXL)
"""Of these an encoder alone is described, and no pair's."""
BOTH_WAYS = (Fourier, OfText, Disentangled, MixedConvolution, TransformerXL)
"""Kinds of attention and mixer that need the whole text at once."""
STREAMS: dict[str, dict[str, Stream]] = {
    DECODER_ONLY: {"decoder": DECODER},
    ENCODER_ONLY: {"encoder": ENCODER},
    ENCODER_DECODER: {"encoder": SOURCE, "decoder": DECODER},
}


def family_of(arch: Architecture) -> str:
    """By the stacks that are there."""
    if arch.encoder is None:
        return DECODER_ONLY
    return ENCODER_ONLY if arch.decoder is None else ENCODER_DECODER


def streams_of(arch: Architecture) -> dict[str, Stream]:
    """What flows through each stack, in the order in which a pass runs them."""
    return STREAMS[family_of(arch)]


def check_family(arch: Architecture) -> None:
    """Raise `RuleError` for what a model of this family cannot have, or cannot be without."""
    for holds, message, where, hint in (*_of_stacks(arch), *_of_tables(arch)):
        if not holds:
            raise RuleError(message, where, hint)


FamilyRule = tuple[bool, str, Where, str]
"""Whether it holds, what to say if not, where, and what to write."""


def _of_stacks(arch: Architecture) -> Iterator[FamilyRule]:
    """Who looks at whom, and what stands on an encoder."""
    asks = {group.path.partition(".")[0] for group in arch.groups if _looks_at_memory(group.block)}
    yield "encoder" not in asks, "`cross_attention` is for a decoder", ("encoder", "layers"), "take it out"
    yield (
        family_of(arch) != ENCODER_DECODER or "decoder" in asks,
        "no layer of the decoder looks at the encoder",
        ("decoder", "layers"),
        "add `cross_attention: {heads: ...}` to its layers",
    )
    yield (
        not _looks_back(arch),
        "`chunk`, `cache_of`, `block_choice`, `top_k` and `keys` are for a decoder",
        ("encoder", "layers"),
        "take them out",
    )
    yield (
        arch.encoder is None or not arch.encoder.streams_ahead,
        "streams that look ahead are for a decoder",
        ("encoder", "layers"),
        "take them out",
    )
    yield (
        not any(is_recurrent(group.block) for group in arch.groups if group.path.partition(".")[0] == "encoder"),
        "a recurrence looks back only: it is for a decoder",
        ("encoder", "layers"),
        "leave mixers, channel mixing, convolved and compressed attention out of it",
    )
    yield (
        not any(_looks_both_ways(group.block) for group in arch.groups if group.path.partition(".")[0] == "decoder"),
        "a layer of this kind reads all of the text at once: it is for an encoder",
        ("decoder", "layers"),
        "write them in `encoder:`",
    )
    yield from _of_sides(arch)
    yield from _of_what_stands_on(arch)
    yield from _of_own_widths(arch)


def _of_sides(arch: Architecture) -> Iterator[FamilyRule]:
    """What only a decoder or only an encoder has."""
    of_decoders = ("altup", "hyper_connections", "per_layer_input", "hierarchy", "loop")
    for key in of_decoders if arch.encoder is not None else ():
        yield getattr(arch.encoder, key) is None, f"`{key}` is for a decoder", ("encoder", key), "take it out"
    for key in ("padding", "global_tokens") if arch.decoder is not None else ():
        yield getattr(arch.decoder, key) is None, f"`{key}` is for an encoder", ("decoder", key), "take it out"
    is_encoder = family_of(arch) == ENCODER_ONLY
    yield (
        is_encoder or not any(_looks_both_ways(group.block, ALONE) for group in arch.groups),
        "attention with rows for distances is for an encoder alone",
        ("encoder", "layers"),
        "write `kind: grouped_query`",
    )


def _of_what_stands_on(arch: Architecture) -> Iterator[FamilyRule]:
    """Modules beside a model, and labels."""
    is_encoder = family_of(arch) == ENCODER_ONLY
    yield (
        arch.multi_token is None or isinstance(arch.head, VocabularyHead),
        "a module of `multi_token` ends before a vocabulary's head, and there is none",
        ("multi_token",),
        "take it out",
    )
    yield (
        not is_encoder or arch.multi_token is None,
        "an encoder predicts no next tokens",
        ("multi_token",),
        "take it out",
    )
    has_both = arch.multi_token is not None and arch.embedding.width is not None
    yield not has_both, "modules of `multi_token` need rows as wide as the model", ("embedding", "width"), "take it out"
    is_of_text = isinstance(arch.head, ClassifierHead) and arch.head.of == "text"
    yield (
        arch.decoder is None or arch.encoder is not None or not is_of_text,
        "a decoder alone scores each of its tokens, and the last is read",
        ("head", "of"),
        "write `of: token`; `--logits last` counts one",
    )


def _looks_at_memory(block: Block) -> bool:
    """In an attention of its own, or in that over earlier tokens."""
    merged = isinstance(block.attention, GroupedQuery) and block.attention.with_memory
    return block.cross_attention is not None or merged


def _of_own_widths(arch: Architecture) -> Iterator[FamilyRule]:
    """Only the encoder of a pair differs from the model; what it gives is as wide as those who look at it expect."""
    for name, stack in arch.stacks.items():
        may = name == "encoder" and arch.decoder is not None and not arch.share_embeddings
        for key, own in (("d_model", stack.d_model), ("embedding", stack.embedding)):
            yield (
                may or own is None,
                f"`{key}` of its own is for an encoder beside a decoder that does not share its table",
                (name, key),
                "write it at the top",
            )
        is_source = name == "encoder" and arch.decoder is not None
        hint = "take it out"
        yield is_source or not stack.output_projection, "it leads to a decoder", (name, "output_projection"), hint
    if arch.encoder is None or arch.decoder is None:
        return
    given = arch.d_model if arch.encoder.output_projection else arch.width_of("encoder")
    for group in arch.groups:
        asks = group.block.cross_attention
        read = arch.d_model if asks is None or asks.memory_width is None else asks.memory_width
        yield (
            not _looks_at_memory(group.block) or read == given,
            f"`cross_attention` reads {read:,} numbers of a token, and the encoder gives {given:,}",
            ("decoder", "layers"),
            f"write `memory_width: {given}` in it, or `output_projection: true` in the encoder",
        )


def _looks_both_ways(block: Block, kinds: Any = BOTH_WAYS) -> bool:
    """Whether some part of a layer needs later tokens: whether it is of one of these kinds."""
    return any(isinstance(part, kinds) for part in (block.attention, block.mixer, block.mixer_beside))


def _looks_back(arch: Architecture) -> bool:
    """Whether a layer of an encoder has what only those who look back can have."""
    if arch.encoder is None:
        return False
    of_encoder = [group.block.attention for group in arch.groups if group.path.partition(".")[0] == "encoder"]
    back = ("chunk", "cache_of", "block_choice", "top_k", "keys")
    return any(some is not None and any(getattr(some, key, None) for key in back) for some in of_encoder)


def _of_tables(arch: Architecture) -> Iterator[FamilyRule]:
    """Which tables can be one, and which head can be tied."""
    is_pair = family_of(arch) == ENCODER_DECODER
    yield (
        is_pair or not arch.share_embeddings,
        "only an encoder and a decoder share a table",
        ("share_embeddings",),
        "take it out; `tie_embeddings` is for the head's table",
    )
    yield (
        (is_pair and not arch.share_embeddings) or arch.encoder_vocab_size is None,
        "only an encoder beside a decoder has a table of its own, unless `share_embeddings`",
        ("encoder_vocab_size",),
        "take it out, or write `vocab_size`",
    )
    yield (
        isinstance(arch.head, VocabularyHead) or not arch.tie_embeddings,
        "a head that is not there, or tells labels, has no table to tie",
        ("tie_embeddings",),
        "write `tie_embeddings: false`",
    )
    made, ahead = arch.embedding, any(stack.streams_ahead for stack in arch.stacks.values())
    is_plain = made.width is None and made.token_types is None and not (made.tables or made.affine)
    yield (
        not ahead or is_plain,
        "streams that look ahead go with a plain table of embeddings",
        ("embedding",),
        "write `scale` and `norm` alone",
    )
    rows = arch.head.rows if isinstance(arch.head, VocabularyHead) else None
    yield (
        rows is None or not arch.tie_embeddings,
        "a head of some rows has a table of its own",
        ("head", "rows"),
        "write `tie_embeddings: false`, and at most the vocabulary's size",
    )
    has_width = isinstance(arch.head, VocabularyHead) and arch.head.width is not None
    yield (
        not (has_width and arch.tie_embeddings),
        "a head with a `width` of its own has a table of its own",
        ("tie_embeddings",),
        "write `tie_embeddings: false`, or take `width` out of the head",
    )
    has_beside = isinstance(arch.head, VocabularyHead) and arch.head.beside
    yield (
        not has_beside or (arch.embedding.width is not None and arch.embedding.width < arch.d_model),
        "a table `beside` the embedding's needs one that is narrower than the model",
        ("head", "beside"),
        "write a `width` in `embedding`, or take it out",
    )
    is_spare = isinstance(arch.head, VocabularyHead) and arch.head.bias == "spare"
    yield (
        not (is_spare and arch.tie_embeddings),
        "a tied head has one bias, and no spare one",
        ("head", "bias"),
        "write `bias: true`",
    )
