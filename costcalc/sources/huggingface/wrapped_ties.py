"""Whether the head of a wrapper's text model is tied to the table: the wrapper's word, the text part's, or nobody's."""

from __future__ import annotations

from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.wrappers import EITHER, NEVER, TEXT

TIE = "tie_word_embeddings"


def tie_of(config: Config, text: Config, ties: str) -> Any:
    """The value of `tie_word_embeddings` that holds for a wrapper and its text part."""
    outer, inner = config[TIE], text[TIE]
    if ties == TEXT:
        return inner
    if ties == EITHER:
        return inner if outer is None or (outer is False and inner is True) else outer
    if ties == NEVER:
        return _untied(config, text)
    return _of_the_wrapper(config, text)


def _of_the_wrapper(config: Config, text: Config) -> Any:
    """The wrapper holds the head, so its word is taken where both say something.

    Old files say it in the text part alone; in those of version 5 nobody asks that part. Where neither says it, the
    wrapper's class decides, and the text class where the wrapper's has no such field, or where version 4 wrote the
    file: there the text part alone had the word.
    """
    is_old = _is_of_version(config, "4.") or (TIE in text.data and not _is_of_version(config, "5."))
    leaves_it_open = TIE not in config.data and is_old
    inner = text.values.get(TIE)
    is_open = leaves_it_open or (config.values.get(TIE) is None and config.defaults.get(TIE) is None)
    return inner if is_open and inner is not None else config.values.get(TIE)


def _is_of_version(config: Config, begin: str) -> bool:
    return str(config.data.get("transformers_version", "")).startswith(begin)


def _untied(config: Config, text: Config) -> bool:
    """A head that the class never ties; older versions of it followed the text part, whose yes is refused."""
    if text.values.get(TIE) not in (False, None):
        said = shown(text.values[TIE])
        what = f"`{TIE}`: {said} is not read for a text part of {config.model_type}: its class never ties the head"
        raise text.refusal(what, f'write "{TIE}": false', TIE)
    return False
