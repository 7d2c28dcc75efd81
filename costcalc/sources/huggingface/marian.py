"""BART's kin with the sinusoids of arXiv 1706.03762: Marian, Pegasus (arXiv 1912.08777) and M2M-100, NLLB (2010.11125).

Marian and Pegasus hold each stack's sinusoids as a parameter that is not trained; M2M-100 computes them, without end.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.pair import CAUSAL, Classes, Kin, Parts, bart_classes, bart_like

PARTS: dict[str, Classes] = {
    "marian": bart_classes("Marian", usual="MarianMTModel"),
    "pegasus": bart_classes("Pegasus"),
    "m2m_100": {name: parts for name, parts in bart_classes("M2M100").items() if parts != CAUSAL},
}
MARIAN = Kin(norms="post", embedding_norm=False, positions="sinusoidal", stored="frozen")
PEGASUS = Kin(norms="pre", embedding_norm=False, positions="sinusoidal", stored="frozen")
M2M_100 = Kin(norms="pre", embedding_norm=False, positions="sinusoidal", head_bias=False)


def _parts(config: Config) -> Parts:
    return PARTS[config.model_type][config.model_class]


def read_marian(config: Config) -> Written:
    """`share_encoder_decoder_embeddings` false: encoder and decoder have a table each, of `decoder_vocab_size` rows."""
    parts = _parts(config)
    shared, source = config.flag("share_encoder_decoder_embeddings"), config.size("vocab_size")
    target = config.size_or_none("decoder_vocab_size") or source
    if shared or parts == CAUSAL:
        if target != source:
            raise config.refusal(
                f"`decoder_vocab_size` {target} is not `vocab_size` {source}, and there is one table for both",
                "change one of the two, or write `share_encoder_decoder_embeddings: false`",
                "decoder_vocab_size",
            )
        return bart_like(config, MARIAN, parts)
    tied = config.flag("tie_word_embeddings")
    tables: Written = {
        "vocab_size": target,
        "encoder_vocab_size": None if target == source else source,
        "tie_embeddings": tied and parts.head,
    }
    return bart_like(config, MARIAN, parts, tables)


def read_pegasus(config: Config) -> Written:
    """Norms before each sublayer."""
    return bart_like(config, PEGASUS, _parts(config))


def read_m2m_100(config: Config) -> Written:
    """As Pegasus, with nothing of the sinusoids held and no bias on the logits."""
    return bart_like(config, M2M_100, _parts(config))


READERS = {"marian": read_marian, "pegasus": read_pegasus, "m2m_100": read_m2m_100}
CLASSES = {model_type: tuple(parts) for model_type, parts in PARTS.items()}
