"""Classes that have no vocabulary's head: the bare model, and those that tell labels.

Of a decoder they are alike in all lineages, and stand here; of an encoder or a pair each lineage has its own. Which
classes there are is data, `classes.json`: nobody guesses from a name.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from costcalc.errors import shown
from costcalc.inventory import FURTHER_TOKENS
from costcalc.sources.huggingface.config import Config

Written = dict[str, Any]
BARE, TEXTS, TOKENS, ANSWERS = "Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"
"""How their names end, but that a class may be called otherwise."""
USUAL_LABELS = 2


def label_count(config: Config) -> int:
    """The number of labels: of those that `id2label` names, or else `num_labels`, or 2."""
    count, named = config["num_labels"], config["id2label"]
    if named is None:
        return USUAL_LABELS if count is None else config.size("num_labels")
    if not isinstance(named, dict) or not named:
        raise config.refusal(
            f"`id2label` must name labels, got {shown(named)}", 'write "id2label": {"0": "no", "1": "yes"}', "id2label"
        )
    if count not in (None, len(named)):
        what = f"`id2label` names {len(named)} labels, and `num_labels` is {shown(count)}"
        raise config.refusal(what, "make the two agree", "num_labels")
    return len(named)


def other_class(model_type: str, word: object) -> str | None:
    """What a decoder's class is for that is not its language model: one of the four; None if there is no such class."""
    return _classes().get(model_type, {}).get(word) if isinstance(word, str) else None


def with_head_of(use: str, written: Written, config: Config) -> Written:
    """The same decoder with what stands on it in a class for `use`.

    The labels of each text are the last token's, of a matrix without bias that the classes multiply all tokens by;
    those of tokens, and the two ends of an answer, have a bias.
    """
    if written.get("embedding", {}).get("width") is not None:
        what = f"`architectures` {shown(config.data['architectures'])} of embeddings of another width is not read"
        raise config.refusal(what, "leave it out to count the language model", "architectures")
    beside = written.get("multi_token") is not None
    left_out = [*written.get("not_counted", []), *[FURTHER_TOKENS] * beside]
    return {
        **written,
        "head": _head(use, config),
        "tie_embeddings": False,
        "multi_token": None,
        "not_counted": left_out,
    }


def _head(use: str, config: Config) -> Written:
    if use == BARE:
        return {"kind": "none"}
    labels = USUAL_LABELS if use == ANSWERS else label_count(config)
    return {"kind": "classifier", "labels": labels, "bias": use != TEXTS}


@cache
def _classes() -> dict[str, dict[str, str]]:
    """Model type -> class -> what it is for."""
    named: dict[str, Any] = json.loads((Path(__file__).resolve().parent / "classes.json").read_text(encoding="utf-8"))
    named.pop("_provenance")
    return named
