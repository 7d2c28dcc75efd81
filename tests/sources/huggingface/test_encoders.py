"""Encoder classes: every recorded row to the last unit, and what their readers refuse instead of guessing.

tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters, verify
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources.huggingface import LINEAGES, read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.huggingface.harmless import HARMLESS
from costcalc.sources.origin import Origin

Config = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED = json.loads((ORACLE / "encoders.json").read_text(encoding="utf-8"))
WHOLE = json.loads((ORACLE / "encoder_defaults.json").read_text(encoding="utf-8"))
MEASURED = {row["id"]: row for row in (*RECORDED, *WHOLE) if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
TYPES = {row["config"]["model_type"] for row in WHOLE}

# What the library builds and we refuse on purpose: the row, and a word of the refusal.
REFUSED_ON_PURPOSE = {
    # A third table under the embeddings, for which there is no field.
    # A key that this class ignores, but that would add a table to any of its kin.
    "bert-generation/type_vocab_size=7": "`type_vocab_size`: 7 is not read",
    "bert-generation/hidden_act=relu,type_vocab_size=1": "`type_vocab_size`: 1 is not read",
}
AGREED = {name: row for name, row in MEASURED.items() if name not in REFUSED_ON_PURPOSE}


def _merged(config: Config) -> Config:
    """The whole config with the class defaults merged in."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text(encoding="utf-8"))
    aliases = defaults.pop("_aliases", {})
    del defaults["_provenance"]
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


FORMS = {"as recorded": dict, "defaults merged in": _merged}


def _measured(config: Config, asked: set[str]) -> dict[str, int]:
    """The numbers of a row, ours."""
    arch = load(config)

    def rectangle(**workload: int) -> int:
        counted = flops(arch, Workload(counting="rectangle", **workload))
        assert counted.forward == counted.weights + counted.attention
        return counted.forward

    numbers = {
        "params": lambda: parameters(arch).total,
        "flops16": lambda: rectangle(new_tokens=16),
        "flops48": lambda: rectangle(new_tokens=48),
        "flops11_batch3": lambda: rectangle(batch=3, new_tokens=11),
        "decode48": lambda: rectangle(new_tokens=1, past_tokens=47),
        "crossing16": lambda: rectangle(new_tokens=16, memory_tokens=13),
        "crossing_decode17": lambda: rectangle(new_tokens=1, past_tokens=16, memory_tokens=13),
        "cross_cache": lambda: kv_cache(arch, 16, memory_tokens=13).cross_elements,
    }
    return {key: ask() for key, ask in numbers.items() if key in asked}


def _held(arch: Any, context: int, *, spare: int) -> int:
    """Elements that a cache holds, min(S, window - spare) keys and values a layer."""
    held = 0
    for group in arch.groups:
        attention = group.block.attention
        kv_heads, head_dim = attention.sizes(arch.d_model)
        tokens = context if attention.window is None else min(context, attention.window - spare)
        held += group.times * 2 * kv_heads * head_dim * tokens
    return held


def test_the_recording_is_whole():
    assert {row["config"]["model_type"] for row in RECORDED} == TYPES
    assert len(TYPES) == 18
    for model_type in TYPES:
        mine = [name for name in MEASURED if name.startswith(f"{model_type}/")]
        assert len(mine) >= 18, model_type
        assert sum("random" in name for name in mine) == 8
        assert any(name.startswith(f"{model_type}/refused/") for name in BROKEN)
    assert sum("crossing16" in row for row in RECORDED) >= 15
    assert set(MEASURED) >= set(REFUSED_ON_PURPOSE)


@pytest.mark.parametrize("name", AGREED)
def test_a_row(name):
    row = AGREED[name]
    wanted = {key: value for key, value in row.items() if key not in ("id", "config", "cache16", "cache48")}
    wanted["params"] = row["params"]
    for form, made in FORMS.items():
        config = made(row["config"])
        assert _measured(config, set(wanted)) == wanted, form
        arch = load(config)
        assert arch.inventory.has_cache == ("cache16" in row)
        for context in (16, 48):
            if "cache16" in row:
                # The library's sliding caches keep one token less: its number confirms the count, which holds for ours.
                assert _held(arch, context, spare=1) == row[f"cache{context}"]
                assert kv_cache(arch, context).elements == _held(arch, context, spare=0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name, form):
    assert refusal(FORMS[form](BROKEN[name]["config"])).where == "the mapping"


@pytest.mark.parametrize("name", REFUSED_ON_PURPOSE)
def test_what_is_refused_on_purpose(refusal, name):
    assert REFUSED_ON_PURPOSE[name] in refusal(MEASURED[name]["config"]).what


@pytest.mark.parametrize("model_type", sorted(TYPES))
def test_importers_write_the_full_form(model_type):
    for name, row in AGREED.items():
        if row["config"]["model_type"] == model_type:
            written = read_config(row["config"], Origin("x"))
            assert type(written) is FullForm
            assert full_form(dict(written)) == written, name


def test_an_encoder_attends_to_all_and_a_decoder_to_half():
    for name, row in AGREED.items():
        arch = load(row["config"])
        pairs = {way: flops(arch, Workload(new_tokens=16, counting=way)) for way in ("attended", "rectangle")}
        assert pairs["attended"].weights == pairs["rectangle"].weights, name
        if all(group.block.attention.window is None for group in arch.groups):
            share = 17 * 16 // 2 if arch.family == "decoder-only" else 16 * 16
            assert pairs["attended"].attention * 16 * 16 == pairs["rectangle"].attention * share, name


# ------------------------------------------------------------------------------------------------ one small model each

# V=19, D=42, N=6, H=7, F=37, L=3, 23 positions.
SIZES = {
    "vocab_size": 19,
    "hidden_size": 42,
    "num_attention_heads": 6,
    "intermediate_size": 37,
    "num_hidden_layers": 3,
    "max_position_embeddings": 23,
}
EVEN = {**SIZES, "hidden_size": 48}
SMALL: dict[str, Config] = {
    name: {
        "model_type": name,
        **(EVEN if LINEAGES[name] in ("modernbert", "rotary_encoders") else SIZES),
        **({"embedding_size": 11} if name in ("albert", "electra") else {}),
    }
    for name in sorted(TYPES)
}
SMALL["distilbert"]["hidden_dim"] = SMALL["distilbert"].pop("intermediate_size")
READS_IS_DECODER = sorted(name for name in TYPES if LINEAGES[name] in ("bert", "electra"))

# One layer: 4·D² + 2·D·F of matrices, 4·D + F + D biases, two norms of 2·D. The head: D² + D, its norm, V biases.
LAYER = 4 * 42**2 + 2 * 42 * 37 + 5 * 42 + 37 + 4 * 42
HEAD = 42**2 + 42 + 2 * 42 + 19


@pytest.mark.parametrize(
    ("model_type", "changes", "total"),
    [
        # Tables of V, 23 positions and 2 token types, and their norm.
        ("bert", {}, (19 + 23 + 2) * 42 + 2 * 42 + 3 * LAYER + HEAD),
        # A table of its own for the head, and a second bias.
        ("bert", {"tie_word_embeddings": False}, (19 + 23 + 2 + 19) * 42 + 2 * 42 + 3 * LAYER + HEAD + 19),
        # The bare class: no head, a pooler of D² + D.
        ("bert", {"architectures": ["BertModel"]}, (19 + 23 + 2) * 42 + 2 * 42 + 3 * LAYER + 42**2 + 42),
        ("bert-generation", {}, (19 + 23) * 42 + 2 * 42 + 3 * LAYER + 19),
        # No norm over the embeddings, but one on top.
        ("megatron-bert", {}, (19 + 23 + 2) * 42 + 2 * 42 + 3 * LAYER + HEAD),
        # Both.
        ("roberta-prelayernorm", {}, (19 + 23 + 2) * 42 + 4 * 42 + 3 * LAYER + HEAD),
        # No token types.
        ("distilbert", {}, (19 + 23) * 42 + 2 * 42 + 3 * LAYER + HEAD),
        # Tables of 11 wide, their norm, 11·D + D; one layer's weights; D·11 + 11, a norm of 11 and V biases.
        ("albert", {}, (19 + 23 + 2 + 2) * 11 + 12 * 42 + LAYER + 43 * 11 + 2 * 11 + 19),
        ("electra", {}, (19 + 23 + 2 + 2) * 11 + 12 * 42 + 3 * LAYER + 43 * 11 + 2 * 11 + 19),
        # Without a projection where both widths are equal; ALBERT has it all the same.
        ("electra", {"embedding_size": 42}, (19 + 23 + 2 + 2) * 42 + 3 * LAYER + HEAD),
        ("albert", {"embedding_size": 42}, (19 + 23 + 2 + 2) * 42 + 43 * 42 + LAYER + HEAD),
        # The same with two groups of two layers each.
        ("albert", {"num_hidden_groups": 2, "inner_group_num": 2, "embedding_size": 42}, 89 * 42 + 4 * LAYER + HEAD),
        # Norms of D without biases; 4·D² + 3·D·F; 2 a layer, but 1 in the first; below and above; the head's D² and V.
        ("modernbert", {}, 19 * 48 + 3 * (4 * 48**2 + 3 * 48 * 37) + 5 * 48 + 2 * 48 + 48**2 + 48 + 19),
    ],
)  # fmt: skip
def test_parameters_worked_out(model_type, changes, total):
    assert parameters(load({**SMALL[model_type], **changes})).total == total


def test_a_pooler_reads_one_token_of_each_text():
    bare, head = (load({**SMALL["bert"], "architectures": [name]}) for name in ("BertModel", "BertForMaskedLM"))
    asked = Workload(batch=5, new_tokens=11)
    # The pooler's D² for 5 texts; the head's D² and V·D for 5·11 tokens.
    assert flops(head, asked).weights - flops(bare, asked).weights == 2 * 55 * (42**2 + 19 * 42) - 2 * 5 * 42**2


def test_groups_of_albert_run_in_order():
    config = {**SMALL["albert"], "num_hidden_layers": 5, "num_hidden_groups": 2, "inner_group_num": 2}
    layout = load(config).inventory.layout["encoder"]
    names = [path.rpartition(".")[2] for path in layout]
    assert names == ["group_0_0", "group_0_1"] * 3 + ["group_1_0", "group_1_1"] * 2
    assert load({**config, "inner_group_num": 1}).inventory.layout["encoder"][3] == "encoder.layers.group_1"


@pytest.mark.parametrize("groups", [6, 100_000])
def test_groups_that_no_layer_uses_are_refused(refusal, groups):
    error = refusal({**SMALL["albert"], "num_hidden_layers": 5, "num_hidden_groups": groups})
    assert "leaves groups that no layer uses" in error.what


def test_a_position_table_begins_after_the_padding():
    for padding, rows in ((0, 22), (1, 21), (7, 15)):
        arch = load({**SMALL["roberta"], "pad_token_id": padding})
        assert arch.longest() == arch.context_length == rows
    assert load({**SMALL["bert"], "pad_token_id": 7}).longest() == 23


@pytest.mark.parametrize("padding", [-1, 22, 23, None, "x", 1.5, True])
def test_a_padding_that_leaves_no_position_is_refused(refusal, padding):
    refusal({**SMALL["roberta"], "pad_token_id": padding})


def test_sinusoids_are_where_a_position_table_begins():
    """Trained from there on, as version 5 does it: the same model."""
    learned, filled = (load({**SMALL["distilbert"], "sinusoidal_pos_embds": flag}) for flag in (False, True))
    assert parameters(filled) == parameters(learned)


# ------------------------------------------------------------------------------------------------- is_decoder, classes


@pytest.mark.parametrize("model_type", READS_IS_DECODER)
def test_is_decoder_makes_a_causal_class_a_decoder(model_type):
    config = {**SMALL[model_type], "architectures": [_causal(model_type)]}
    assert load(config).family == "encoder-only"
    decoder = load({**config, "is_decoder": True})
    assert (decoder.family, decoder.head.kind) == ("decoder-only", "vocabulary")
    assert parameters(decoder).total == parameters(load(config)).total
    # 2·L·D numbers a token.
    assert kv_cache(decoder, 11).elements == 2 * 3 * 42 * 11
    crossed = load({**config, "is_decoder": True, "add_cross_attention": True})
    # 4·D² + 4·D and a norm in each layer.
    assert parameters(crossed).total - parameters(decoder).total == 3 * (4 * 42**2 + 6 * 42)
    assert kv_cache(crossed, 11, memory_tokens=13).cross_elements == 2 * 3 * 42 * 13


def _causal(model_type: str) -> str:
    classes = import_module(f"costcalc.sources.huggingface.{LINEAGES[model_type]}").CLASSES[model_type]
    return next(name for name in classes if name.endswith(("ForCausalLM", "LMHeadModel", "GenerationDecoder")))


@pytest.mark.parametrize("model_type", sorted(set(READS_IS_DECODER) - {"bert-generation"}))
def test_a_masked_class_is_no_decoder(refusal, model_type):
    error = refusal({**SMALL[model_type], "is_decoder": True})
    assert "keeps no cache" in error.what
    assert _causal(model_type) in error.hint


def test_a_bare_class_is_a_decoder_unless_it_has_a_pooler(refusal):
    bare = {"architectures": ["ElectraModel"], "is_decoder": True}
    assert load({**SMALL["electra"], **bare}).family == "decoder-only"
    error = refusal({**SMALL["bert"], "architectures": ["BertModel"], "is_decoder": True})
    assert "a pooler is for an encoder" in error.what


@pytest.mark.parametrize("model_type", sorted(TYPES - set(READS_IS_DECODER) - {"modernbert-decoder"}))
def test_a_class_that_is_an_encoder_only(refusal, model_type):
    assert load({**SMALL[model_type], "is_decoder": False}).family == "encoder-only"
    assert "`is_decoder`" in refusal({**SMALL[model_type], "is_decoder": True}).what


@pytest.mark.parametrize(
    ("model_type", "name"),
    [
        ("bert", "BertForPreTraining"), ("bert", "BertForNextSentencePrediction"), ("bert", "RobertaModel"),
        ("electra", "ElectraForMultipleChoice"), ("roberta", "RobertaForMultipleChoice"),
        ("albert", "AlbertForPreTraining"), ("modernbert", "ModernBertForMultipleChoice"),
        ("eurobert", "EuroBertForQuestionAnswering"), ("bert-generation", "BertGenerationModel"),
    ],
)  # fmt: skip
def test_a_class_with_another_head_is_refused(refusal, model_type, name):
    assert name in refusal({**SMALL[model_type], "architectures": [name]}).what


@pytest.mark.parametrize(
    "changes",
    [
        {"position_embedding_type": "relative_key"}, {"position_embedding_type": "rotary"}, {"head_dim": 10},
        {"pruned_heads": {"0": [1]}}, {"cross_attention_hidden_size": 10}, {"adapters": {"a": 1}}, {"lora_rank": 4},
        {"is_encoder_decoder": True}, {"num_key_value_heads": 2}, {"is_decoder": None}, {"is_decoder": 1},
        {"add_cross_attention": True}, {"type_vocab_size": 0}, {"hidden_size": 41}, {"embedding_size": 8},
        {"tie_word_embeddings": None}, {"layer_norm_eps": 0}, {"max_position_embeddings": None},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("model_type", ["bert", "roberta", "xlm-roberta-xl"])
def test_a_key_that_changes_a_cost_is_refused(refusal, model_type, changes):
    refusal({**SMALL[model_type], **changes})


@pytest.mark.parametrize("model_type", sorted(TYPES))
def test_every_encoder_refuses_what_it_does_not_read(refusal, model_type):
    for key in ("layers_per_block", "window_size", "embedding_sise", "moe_every_n_layers"):
        assert f"`{key}`: 3 is not read for {model_type}" in refusal({**SMALL[model_type], key: 3}).what


@pytest.mark.parametrize("model_type", sorted(TYPES))
def test_what_public_files_hold_beside_the_sizes_changes_nothing(model_type):
    config = SMALL[model_type]
    remarks = {
        "attention_probs_dropout_prob": 0.1, "chunk_size_feed_forward": 16, "classifier_dropout": None,
        "directionality": "bidi", "gradient_checkpointing": False, "output_past": True, "pooler_fc_size": 768,
        "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3, "pooler_size_per_head": 128,
        "pooler_type": "first_token_transform", "position_embedding_type": "absolute", "use_cache": True,
        "torch_dtype": "float32", "id2label": {"0": "LABEL_0"}, "summary_type": "first", "is_decoder": False,
    }  # fmt: skip
    assert load({**config, **remarks}).inventory == load(config).inventory


# Keys that are harmless, but that one of these readers still looks at.
LOOKED_AT = {
    "layer_norm_eps",
    "norm_eps",
    "pad_token_id",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
}


@pytest.mark.parametrize("value", ["x", 7, True, None, [7]], ids=str)
@pytest.mark.parametrize("model_type", sorted(TYPES))
def test_harmless_keys_change_nothing_whatever_they_hold(model_type, value):
    config = SMALL[model_type]
    assert load({**config, **dict.fromkeys(HARMLESS - LOOKED_AT, value)}).inventory == load(config).inventory


# ----------------------------------------------------------------------------------------------------------- ModernBERT

F, S = "full_attention", "sliding_attention"


def _modern(**changes: Any) -> Config:
    return {**SMALL["modernbert"], "num_hidden_layers": 7, "local_attention": 5, **changes}


def _windows(config: Config) -> list[int | None]:
    arch = load(config)
    window_of = {group.path: group.block.attention.window for group in arch.groups}
    return [window_of[path] for path in arch.inventory.layout["encoder"]]


def test_windows_of_modernbert():
    assert _windows(_modern()) == [None, 5, 5, None, 5, 5, None]
    assert _windows(_modern(global_attn_every_n_layers=2)) == [None, 5] * 3 + [None]
    assert _windows(_modern(global_attn_every_n_layers=1)) == [None] * 7
    assert _windows(_modern(global_attn_every_n_layers=70)) == [None] + [5] * 6
    assert _windows(_modern(layer_types=[S, F, S, S, F, F, S])) == [5, None, 5, 5, None, None, 5]
    assert _windows(_modern(num_hidden_layers=1)) == [None]


def test_two_patterns_must_agree(refusal):
    assert _windows(_modern(layer_types=[F, S] * 3 + [F], global_attn_every_n_layers=2)) == [None, 5] * 3 + [None]
    error = refusal(_modern(layer_types=[F, S] * 3 + [F], global_attn_every_n_layers=3))
    assert error.what == "`layer_types` and `global_attn_every_n_layers` disagree"


def test_the_first_layer_has_no_norm_before_its_attention():
    arch = load(_modern())
    assert [(group.path, group.times, group.block.attention_norm) for group in arch.groups] == [
        ("encoder.layers.first", 1, False), ("encoder.layers.local", 4, True), ("encoder.layers.global", 2, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "thetas"),
    [
        ({}, (160_000.0, 10_000.0)),
        ({"global_rope_theta": 7.0, "local_rope_theta": 9.0}, (7.0, 9.0)),
        ({"rope_parameters": {F: {"rope_theta": 5.0}, S: {"rope_theta": 3.0}}, "local_rope_theta": 9.0}, (5.0, 3.0)),
        ({"rope_parameters": {F: {"rope_theta": 5.0}}, "local_rope_theta": 9.0}, (5.0, 9.0)),
        ({"rope_parameters": {F: {"rope_theta": 5.0}}, "rope_scaling": {"rope_theta": 2.0}}, (2.0, 2.0)),
        ({"rope_parameters": {F: None, S: {}}}, (160_000.0, 10_000.0)),
    ],
)
def test_bases_of_modernbert(changes, thetas):
    theta_of = {group.path: group.block.positions.theta for group in load(_modern(**changes)).groups}
    assert (theta_of["encoder.layers.global"], theta_of["encoder.layers.local"]) == thetas


@pytest.mark.parametrize(
    "changes",
    [{"sparse_prediction": True}, {"local_attention": None}, {"local_attention": 0}, {"head_dim": 8}],
    ids=str,
)
def test_what_modernbert_refuses(refusal, changes):
    refusal(_modern(**changes))


def test_the_causal_sibling_sees_half_the_window(refusal):
    config = {**_modern(), "model_type": "modernbert-decoder", "local_attention": 8}
    arch = load(config)
    assert arch.family == "decoder-only"
    assert {group.block.attention.window for group in arch.groups} == {None, 4}
    assert load({**config, "sliding_window": 4}).inventory == arch.inventory
    refusal({**config, "sliding_window": 8})
    refusal({**config, "local_attention": 1})


# --------------------------------------------------------------------------------------------------- public dialects

EUROBERT_210M = {
    "architectures": ["EuroBertForMaskedLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "auto_map": {"AutoModelForMaskedLM": "modeling_eurobert.EuroBertForMaskedLM"},
    "bos_token": "<|begin_of_text|>",
    "bos_token_id": 128000,
    "clf_pooling": "late",
    "eos_token": "<|end_of_text|>",
    "eos_token_id": 128001,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_dropout": 0.0,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "mask_token": "<|mask|>",
    "mask_token_id": 128002,
    "max_position_embeddings": 8192,
    "mlp_bias": False,
    "model_type": "eurobert",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "num_key_value_heads": 12,
    "pad_token": "<|end_of_text|>",
    "pad_token_id": 128001,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 250000,
    "tie_word_embeddings": False,
    "use_cache": False,
    "vocab_size": 128256,
}


def test_a_file_with_code_of_its_own_for_a_class_that_is_read():
    arch, d = load(EUROBERT_210M), 768
    # Both tables 2·V·D; a layer of 4·D² + 3·D·F and two gains; a final one. As recorded from the class's defaults.
    assert parameters(arch).total == 2 * 128_256 * d + 12 * (4 * d * d + 3 * d * 3072 + 2 * d) + d == 310_266_624
    assert arch.encoder.positions.theta == 250_000


def test_a_file_of_code_that_is_not_read(refusal):
    """jina-embeddings-v3 as it was published: an XLM-RoBERTa by name, with adapters and rotary positions."""
    config = {
        **SMALL["xlm-roberta"],
        "architectures": ["XLMRobertaModel"],
    }
    assert "auto_map" in refusal({**config, "auto_map": {"AutoModel": "x.XLMRobertaModel"}}).what
    assert "position_embedding_type" in refusal({**config, "position_embedding_type": "rotary"}).what
    assert "lora_adaptations" in refusal({**config, "lora_adaptations": ["retrieval.query"]}).what


@pytest.mark.parametrize(
    "code",
    [
        "bert_layers.BertForMaskedLM",  # MosaicBERT, by the same name
        "other/repository--modeling_bert.BertForMaskedLM",
        "modeling_mine.BertForMaskedLM",
        None,
        ["modeling_bert.BertForMaskedLM"],
    ],
)
def test_code_by_the_name_of_a_class_that_is_read_may_be_another_one(refusal, code):
    config = {**SMALL["bert"], "architectures": ["BertForMaskedLM"]}
    assert "auto_map" in refusal({**config, "auto_map": {"AutoModelForMaskedLM": code}}).what
    same = {"AutoConfig": "x.Config", "AutoModelForMaskedLM": "modeling_bert.BertForMaskedLM"}
    assert load({**config, "auto_map": same}).inventory == load(config).inventory


def test_remarks_of_published_files_change_nothing(refusal):
    plain = load(SMALL["bert"]).inventory
    assert load({**SMALL["bert"], "eos_token_ids": 0, "embedding_size": 42}).inventory == plain
    assert "`embedding_size`: 11 " in refusal({**SMALL["bert"], "embedding_size": 11}).what


@pytest.mark.parametrize(("layers", "groups"), [(18, 14), (27, 21), (36, 28)])
def test_albert_divides_layers_among_groups_in_floating_point(layers, groups):
    """Layer 9 of 18 in 14 groups: 9 / (18 / 14) is 6.9999..., so that it is of group 6; 9·14 // 18 would be 7."""
    arch = load({**SMALL["albert"], "num_hidden_layers": layers, "num_hidden_groups": groups})
    order = [int(path.rpartition("_")[2]) for path in arch.inventory.layout["encoder"]]
    assert order == [int(layer / (layers / groups)) for layer in range(layers)]
    assert order != [layer * groups // layers for layer in range(layers)]


@pytest.mark.parametrize(
    ("model_type", "act", "head"),
    [
        ("bert", "relu", "relu"),
        ("megatron-bert", "relu", "relu"),
        ("roberta", "relu", "gelu"),
        ("xlm-roberta-xl", "relu", "gelu"),
        ("electra", "relu", "gelu"),
        ("albert", "relu", "relu"),
        ("nomic_bert", "relu", "relu"),
        ("jina_embeddings_v3", "relu", "gelu"),
    ],
)
def test_the_activation_of_the_head_is_the_models_or_gelu(model_type, act, head):
    arch = load({**SMALL[model_type], "hidden_act": act})
    assert arch.head.activation == head
    assert arch.groups[0].block.feed_forward.activation == act


def test_bases_of_rotations_that_classes_have_for_themselves():
    """What a file does not say: NomicBert 1,000, jina-embeddings-v3 20,000."""
    found = {name: load(SMALL[name]).encoder.positions.theta for name in ("nomic_bert", "jina_embeddings_v3")}
    assert found == {"nomic_bert": 1_000.0, "jina_embeddings_v3": 20_000.0}


def test_eurobert_has_no_windows(refusal):
    layers = SMALL["eurobert"]["num_hidden_layers"]
    types = ["sliding_attention"] * layers
    assert "sliding_attention" in refusal({**SMALL["eurobert"], "layer_types": types}).what


# ------------------------------------------------------------------------------------------------------ a forward pass


@pytest.mark.parametrize("model_type", sorted(TYPES))
def test_the_reference_pass_agrees(model_type):
    assert verify(load(SMALL[model_type])).agrees


@pytest.mark.parametrize("model_type", READS_IS_DECODER)
def test_the_reference_pass_of_a_decoder_agrees(model_type):
    changes = {"architectures": [_causal(model_type)], "is_decoder": True, "add_cross_attention": True}
    assert verify(load({**SMALL[model_type], **changes})).agrees


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("albert", {"num_hidden_layers": 5, "num_hidden_groups": 2, "inner_group_num": 2}),
        ("bert", {"architectures": ["BertModel"]}),
        ("distilbert", {"sinusoidal_pos_embds": True, "tie_word_embeddings": False}),
        ("electra", {"tie_word_embeddings": False}),
        ("modernbert", {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True}),
    ],
)
def test_the_reference_pass_of_a_variation_agrees(model_type, changes):
    assert verify(load({**SMALL[model_type], **changes})).agrees


# ----------------------------------------------------------------------------------------------------- published totals


@pytest.mark.parametrize(
    ("config", "total"),
    [
        # all-MiniLM-L6-v2, a BertModel with its pooler.
        (
            {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 384, "intermediate_size": 1536,
             "num_hidden_layers": 6},
            22_713_216,
        ),
        # electra-small-generator is what the class has by default.
        ({"model_type": "electra", "architectures": ["ElectraForMaskedLM"]}, 13_546_682),
    ],
)  # fmt: skip
def test_a_published_total(config, total):
    assert parameters(load(config)).total == total


def test_an_unknown_class_of_model_names_the_nearest():
    with pytest.raises(CostcalcError) as caught:
        load({"model_type": "robert"})
    assert "roberta" in str(caught.value.hint)
