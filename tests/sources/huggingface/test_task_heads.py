"""Classes of encoders that tell labels: every recorded row to the last unit, and how many labels a config has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from costcalc import Workload, flops, load, parameters, verify

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED = {row["id"]: row for row in json.loads((ORACLE / "encoder_heads.json").read_text(encoding="utf-8"))}
PASSES = {"flops16": {"new_tokens": 16}, "flops11_batch3": {"batch": 3, "new_tokens": 11}}
SIZES = {"vocab_size": 19, "hidden_size": 42, "num_hidden_layers": 1, "num_attention_heads": 6, "intermediate_size": 37}
XLMR = {"model_type": "xlm-roberta", **SIZES, "max_position_embeddings": 23}


@pytest.mark.parametrize("name", RECORDED)
def test_a_row(name):
    row = RECORDED[name]
    arch = load(row["config"])
    assert parameters(arch).total == row["params"]
    for key, workload in PASSES.items():
        assert flops(arch, Workload(counting="rectangle", **workload)).forward == row[key], key


def test_the_recording_is_whole():
    assert len({row["config"]["model_type"] for row in RECORDED.values()}) >= 30


@pytest.mark.parametrize(
    "name",
    [
        "bert/class=ForSequenceClassification",
        "xlm-roberta/class=ForSequenceClassification",
        "electra/class=ForPreTraining",
        "modernbert/class=ForTokenClassification",
        "eurobert/class=ForSequenceClassification",
    ],
)
def test_it_verifies(name):
    result = verify(load(RECORDED[name]["config"]))
    assert result.faults == ()
    assert result.agrees


def test_a_reranker_by_hand():
    """Behind the layers 42·42 + 42 of a dense layer and 42 + 1 of one label, once for each of 3 texts."""
    one = {**XLMR, "architectures": ["XLMRobertaForSequenceClassification"], "id2label": {"0": "LABEL_0"}}
    bare = {**XLMR, "architectures": ["XLMRobertaModel"]}
    reranker, plain = load(one), load(bare)
    dense = 42 * 42 + 42  # the bare class has it in its pooler
    assert parameters(reranker).total == parameters(plain).total - dense + dense + 42 + 1
    asked = Workload(batch=3, new_tokens=11)
    assert flops(reranker, asked).forward == flops(plain, asked).forward + 2 * 3 * 42


@pytest.mark.parametrize(
    ("labels", "count"),
    [
        ({}, 2),
        ({"num_labels": 7}, 7),
        ({"id2label": {"0": "a"}}, 1),
        ({"id2label": {"0": "a", "1": "b", "2": "c"}, "num_labels": 3}, 3),
    ],
)
def test_labels_are_counted(labels, count):
    arch = load({**XLMR, "architectures": ["XLMRobertaForTokenClassification"], **labels})
    assert arch.head.labels == count


@pytest.mark.parametrize(
    ("word", "labels", "message"),
    [
        ("TokenClassification", {"id2label": []}, "`id2label` must name labels, got a list"),
        ("TokenClassification", {"id2label": {"0": "a"}, "num_labels": 3}, "`id2label` names 1 labels"),
        ("QuestionAnswering", {"num_labels": 3}, "tells the 2 ends of an answer, and the config has 3 labels"),
        ("SequenceClassification", {"num_labels": 0}, "`num_labels` must be a whole number"),
    ],
)
def test_labels_that_cannot_be(refusal, word, labels, message):
    config = {**XLMR, "architectures": [f"XLMRobertaFor{word}"], **labels}
    assert message in refusal(config).what


def test_a_classifier_keeps_no_cache(refusal):
    config = {**XLMR, "architectures": ["XLMRobertaForSequenceClassification"], "is_decoder": True}
    assert "a classifier keeps no cache" in refusal(config).what


@pytest.mark.parametrize("key", ["summary_use_proj", "summary_proj_to_labels"])
def test_a_summary_that_makes_no_labels_is_refused(refusal, key):
    small = {"model_type": "xlm", "emb_dim": 42, "n_heads": 6, "n_layers": 1, key: False}
    assert f"`{key}`" in refusal({**small, "architectures": ["XLMForSequenceClassification"]}).what
    assert load(small).family == "encoder-only"
