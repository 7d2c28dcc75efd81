"""FSMT, the WMT19 models of arXiv 1907.06616: BART's kin with two vocabularies and sinusoids that are held.

As `transformers` 5 builds them: encoder, decoder and head have a table each unless `tie_word_embeddings`, when all
three look up the decoder's. Older versions always tied the head to the decoder.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.pair import WHOLE, Classes, Kin, bart_like

PARTS: Classes = {"FSMTForConditionalGeneration": WHOLE, "FSMTModel": WHOLE}  # the bare model has the head already


def read_fsmt(config: Config) -> Written:
    """Positions begin behind `pad_token_id`, as in RoBERTa."""
    config.note("langs", "decoder", "max_length")
    source, target = config.size("src_vocab_size"), config.size("tgt_vocab_size")
    tied, padding = config.flag("tie_word_embeddings"), config.whole("pad_token_id")
    if padding < 0:
        raise config.refusal(f"`pad_token_id` {padding} gives no first position", "write one from 0", "pad_token_id")
    kin = Kin(
        norms="post",
        embedding_norm=False,
        positions="sinusoidal",
        stored="frozen",
        offset=padding + 1,
        head_bias=False,
    )
    tables: Written = {
        "vocab_size": target,
        "encoder_vocab_size": None if tied or source == target else source,
        "tie_embeddings": tied,
        "share_embeddings": tied,
    }
    return bart_like(config, kin, PARTS[config.model_class], tables)


READERS = {"fsmt": read_fsmt}
CLASSES = {"fsmt": tuple(PARTS)}
