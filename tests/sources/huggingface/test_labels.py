"""The bare decoder, and decoders that tell labels: recorded parameters of each class that the library has, and more."""

import json
from pathlib import Path

import pytest

from costcalc import CostcalcError, Workload, flops, load, parameters, verify

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
ROWS = json.loads((ORACLE / "heads.json").read_text(encoding="utf-8"))
LLAMA = {"model_type": "llama", "vocab_size": 19, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3}
LLAMA |= {"intermediate_size": 17, "head_dim": 4}
# Untied: 2·19·12 of the tables, 2·(4·12·12 + 3·12·17 + 2·12) of the layers, 12 of the last norm.
LAYERS, TABLE = 2 * (576 + 612 + 24) + 12, 19 * 12


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["config"]["architectures"][0])
def test_every_recorded_class(row):
    assert parameters(load(row["config"])).total == row["params"]


def of_class(name, **keys):
    return load({**LLAMA, "architectures": [name], **keys})


@pytest.mark.parametrize(
    ("name", "keys", "own"),
    [
        ("LlamaForCausalLM", {}, TABLE),
        ("LlamaModel", {}, 0),
        ("LlamaForSequenceClassification", {}, 2 * 12),
        ("LlamaForSequenceClassification", {"num_labels": 5}, 5 * 12),
        ("LlamaForSequenceClassification", {"id2label": {"0": "bad", "1": "good", "2": "none"}}, 3 * 12),
        ("LlamaForTokenClassification", {"id2label": {"0": "a", "1": "b", "2": "c"}, "num_labels": 3}, 3 * 12 + 3),
        ("LlamaForQuestionAnswering", {"num_labels": 5}, 2 * 12 + 2),
    ],
)
def test_what_stands_on_the_layers(name, keys, own):
    model = of_class(name, **keys)
    assert parameters(model).total == TABLE + LAYERS + own
    assert verify(model).agrees


def test_every_token_is_scored_and_the_last_one_read():
    model = of_class("LlamaForSequenceClassification", num_labels=5)
    bare = of_class("LlamaModel")
    for logits, rows in (("all", 7), ("last", 1)):
        asked = Workload(new_tokens=7, logits=logits)
        assert flops(model, asked).forward - flops(bare, Workload(new_tokens=7)).forward == 2 * rows * 12 * 5


def test_a_tie_is_of_the_vocabulary_alone():
    tied = of_class("LlamaForSequenceClassification", tie_word_embeddings=True)
    assert not tied.tie_embeddings
    assert parameters(tied).total == parameters(of_class("LlamaForSequenceClassification")).total


@pytest.mark.parametrize(
    ("name", "keys", "said"),
    [
        ("LlamaForMultipleChoice", {}, "is not read for llama"),
        ("MistralModel", {}, "is not read for llama"),
        (
            "LlamaForSequenceClassification",
            {"num_labels": 5, "id2label": {"0": "a"}},
            "names 1 labels, and `num_labels` is 5",
        ),
        ("LlamaForSequenceClassification", {"id2label": ["a"]}, "must name labels"),
        ("LlamaForSequenceClassification", {"id2label": {}}, "must name labels"),
        ("LlamaForSequenceClassification", {"num_labels": 0}, "`num_labels` must be a whole number"),
    ],
)
def test_what_is_refused(name, keys, said):
    with pytest.raises(CostcalcError, match=said):
        of_class(name, **keys)


def test_embeddings_of_another_width_are_not_guessed():
    narrow = {"model_type": "opt", "word_embed_proj_dim": 512, "hidden_size": 1024, "num_attention_heads": 16}
    with pytest.raises(CostcalcError, match="of another width is not read"):
        load({**narrow, "architectures": ["OPTForSequenceClassification"]})


def test_a_module_beside_the_model_is_named_where_there_is_no_head_for_it():
    config = {"model_type": "deepseek_v3", "num_nextn_predict_layers": 1, "architectures": ["DeepseekV3Model"]}
    model = load(config)
    assert model.multi_token is None
    assert parameters(model).not_counted == ("multi-token-prediction layers",)
