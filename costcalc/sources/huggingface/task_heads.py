"""What stands on an encoder in the classes that tell labels: of texts, of tokens, of the ends of an answer."""

from __future__ import annotations

from typing import Any

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.labels import label_count

Written = dict[str, Any]
TEXTS, TOKENS, ANSWERS, REPLACED = "texts", "tokens", "answers", "replaced"
"""Uses of such classes; the last tells of each token whether it was replaced (ELECTRA)."""
TASKS = {TEXTS: "ForSequenceClassification", TOKENS: "ForTokenClassification", ANSWERS: "ForQuestionAnswering"}
"""How their names end."""
POOLED: Written = {}
"""A head of texts that stands on a pooler, or on the row of a first token as it is."""
ENDS = 2
"""Of an answer: its begin and its end."""


def dense_first(activation: str = "tanh", **more: Any) -> Written:
    """A head of texts behind a dense layer on the row of a first token (RoBERTa, arXiv 1907.11692, in its code)."""
    return {"transform": True, "activation": activation, **more}


def task_head(config: Config, use: str, texts: Written, tokens: Written) -> Written:
    """The classifier of a class. texts, tokens: what a head of these uses has before its last matrix."""
    if use == TEXTS:
        return {"kind": "classifier", "labels": label_count(config), "of": "text", **texts}
    if use == REPLACED:
        return {"kind": "classifier", "labels": 1, **tokens}
    labels = label_count(config)
    if use == ANSWERS and labels != ENDS:
        what = f"{config.model_class} tells the {ENDS} ends of an answer, and the config has {labels} labels"
        raise config.refusal(what, "leave `id2label` and `num_labels` out", "id2label")
    return {"kind": "classifier", "labels": labels, **tokens}
