"""Wrappers: which model is read, whose word counts, and where an error says that it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from costcalc import load, parameters
from costcalc.sources.huggingface import LINEAGES
from costcalc.sources.huggingface.nested import WRAPPERS

Config = dict[str, Any]

TEXT: Config = {
    "model_type": "llama4_text",
    "vocab_size": 19,
    "hidden_size": 42,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "intermediate_size": 37,
    "intermediate_size_mlp": 17,
    "num_hidden_layers": 3,
    "num_local_experts": 5,
    "attention_chunk_size": 7,
}
LLAMA: Config = {
    "model_type": "llama",
    "vocab_size": 19,
    "hidden_size": 42,
    "num_attention_heads": 6,
    "intermediate_size": 37,
    "num_hidden_layers": 3,
    "head_dim": 10,
}
VISION: Config = {"hidden_size": 13, "model_type": "llama4_vision_model", "num_hidden_layers": 2}


def _wrapped(text: Config | None = None, **more: Any) -> Config:
    return {"model_type": "llama4", "text_config": {**TEXT, **(text or {})}, "vision_config": VISION, **more}


def test_the_table_is_whole():
    assert set(WRAPPERS) == {name for name, module in LINEAGES.items() if module == "nested"}
    for name, wrapper in WRAPPERS.items():
        assert LINEAGES[wrapper.text] != "nested" or LINEAGES[WRAPPERS[wrapper.text].text] != "nested", name
        assert wrapper.classes


def test_the_text_model_is_what_counts():
    whole, text = load(_wrapped()), load(TEXT)
    assert whole.inventory.records == text.inventory.records
    assert (whole.not_counted, text.not_counted) == (("vision tower",), ())
    assert whole.decoder == text.decoder
    # No vision tower in the file is one of the class's own all the same.
    assert load({"model_type": "llama4", "text_config": TEXT}).not_counted == ("vision tower",)


def test_a_text_part_that_names_no_type_is_the_usual_one():
    text = {key: value for key, value in TEXT.items() if key != "model_type"}
    assert load({**_wrapped(), "text_config": text}).inventory == load(_wrapped()).inventory


def test_a_text_part_of_another_type_that_is_read():
    text = {"model_type": "llama", "hidden_size": 42, "num_attention_heads": 6, "head_dim": 10, "vocab_size": 19}
    wrapped = load({"model_type": "mistral3", "text_config": text})
    assert wrapped.inventory.records == load(text).inventory.records


def test_a_text_part_that_is_not_written_is_what_the_wrappers_class_builds():
    """Aria's is the class's own; Voxtral's says what differs from Llama's, and holds beside a written part as well."""
    whole = {"model_type": "aria"}
    assert load(whole).inventory == load({**whole, "text_config": {}}).inventory
    assert load({**whole, "text_config": None}).inventory.records == load({"model_type": "aria_text"}).inventory.records
    assert load({"model_type": "voxtral"}).d_model == 3072
    assert load({"model_type": "voxtral", "text_config": {"num_hidden_layers": 3}}).d_model == 3072


def test_a_wrapper_in_a_wrapper():
    """Qwen2.5-Omni: its thinker is a wrapper, beside a talker and a vocoder."""
    text = {**{key: value for key, value in LLAMA.items() if key not in ("model_type", "head_dim")}, "hidden_size": 60}
    text["num_key_value_heads"] = 2
    thinker = {"model_type": "qwen2_5_omni_thinker", "text_config": text}
    whole = load({"model_type": "qwen2_5_omni", "thinker_config": thinker, "talker_config": {"x": 1}})
    assert whole.inventory.records == load(thinker).inventory.records
    assert whole.not_counted == ("talker", "vocoder", "vision tower", "audio tower")
    assert load({"model_type": "qwen2_5_omni"}).d_model == 3584
    assert load({"model_type": "qwen3_omni_moe", "thinker_config": {"text_config": {"head_dim": 128}}}).d_model == 2048


def test_an_error_in_a_wrapper_in_a_wrapper_shows_its_line(refusal, write):
    config = {"model_type": "qwen2_5_omni", "thinker_config": {"text_config": {"hidden_size": -1}}}
    error = refusal(write(json.dumps(config, indent=2), "config.json"))
    assert error.where.rpartition("config.json")[2].startswith(":5:")


QWEN = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "vocab_size": 151674,
}
QWEN |= {"num_attention_heads": 14, "num_key_value_heads": 2}
JANUS = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632, "num_attention_heads": 16}
JANUS |= {"num_hidden_layers": 24, "num_key_value_heads": 16, "vocab_size": 102400}
PHI = {"hidden_size": 3072, "num_attention_heads": 32, "intermediate_size": 8192, "vocab_size": 32064}


@pytest.mark.parametrize(
    ("config", "total", "not_counted"),
    [
        # InternVL2-1B: 938M by its model card, of which InternViT-300M is 304M, and a projector the rest.
        (
            {"model_type": "internvl_chat", "llm_config": QWEN, "force_image_size": 448, "use_llm_lora": 0},
            629_697_920,
            ("vision tower",),
        ),
        (
            {"model_type": "multi_modality", "language_config": JANUS, "aligner_config": {}, "gen_head_config": {}},
            1_652_656_128,
            ("vision tower",),
        ),
        # LLaVA-1.5-7B is Vicuna-7B, which is Llama-2-7B; Phi-3-vision's decoder is Phi-3-mini: 3.8B.
        (
            {"model_type": "llava_llama", "hidden_size": 4096, "mm_vision_tower": "clip", "mm_hidden_size": 1024},
            6_738_415_616,
            ("vision tower",),
        ),
        ({"model_type": "phi3_v", **PHI, "embd_layer": {}, "img_processor": {}}, 3_821_079_552, ("vision tower",)),
        # Phi-4-mini's 3.84B.
        (
            {"model_type": "phi4mm", "num_attention_heads": 24, "tie_word_embeddings": True, "speech_lora": {"r": 320}},
            3_836_021_760,
            ("vision tower", "audio tower", "LoRA weights of the vision tower", "LoRA weights of the audio tower"),
        ),
    ],
)
def test_files_of_the_code_that_came_before_the_librarys(config, total, not_counted):
    arch = load(config)
    assert (parameters(arch).total, arch.not_counted) == (total, not_counted)


def test_adapters_of_that_code_are_refused(refusal):
    error = refusal({"model_type": "internvl_chat", "llm_config": QWEN, "use_llm_lora": 16})
    assert error.what == "`use_llm_lora`: 16 of a internvl_chat config is not read"


def test_what_repeats_the_text_part_is_nothing_new():
    """Newer files of Qwen2.5-VL hold the keys of the text part twice."""
    assert load(_wrapped(hidden_size=42, vocab_size=19)).inventory == load(_wrapped()).inventory


def test_what_was_assumed_is_told_of_the_text_part():
    source = load(_wrapped()).source
    assert source.startswith("config.json of model type llama4; class defaults for ")
    assert "hidden_act" in source
    assert "image_token_index" not in source


def test_keys_of_the_other_parts_are_not_read():
    more = {"image_token_index": 7, "boi_token_index": 8, "torch_dtype": "bfloat16", "quantization_config": {"x": 1}}
    assert load(_wrapped(**more)).inventory == load(_wrapped()).inventory


@pytest.mark.parametrize(
    ("outer", "inner", "tied"),
    [
        ({}, {}, False),  # the wrapper's class
        ({"tie_word_embeddings": True}, {}, True),
        ({}, {"tie_word_embeddings": True}, True),  # as old files say it
        # The wrapper holds the head; the library writes the class default of the text part beside it.
        ({"tie_word_embeddings": False}, {"tie_word_embeddings": True}, False),
        ({"tie_word_embeddings": True}, {"tie_word_embeddings": False}, True),
    ],
)
def test_who_says_whether_the_head_is_tied(outer, inner, tied):
    arch = load({"model_type": "idefics3", "text_config": {**LLAMA, **inner}, **outer})
    assert arch.tie_embeddings is tied
    assert parameters(arch).embedding == (1 if tied else 2) * 19 * 42


@pytest.mark.parametrize(
    ("model_type", "outer", "inner", "tied"),
    [
        # The wrapper's class ties and the text class does not: version 4 asked the text part alone.
        ("internvl", {}, {}, True),
        ("internvl", {"transformers_version": "5.1.0"}, {}, True),
        ("internvl", {"transformers_version": "4.57.1"}, {}, False),
        ("internvl", {"transformers_version": "4.57.1", "tie_word_embeddings": True}, {}, True),
        # A yes of either is a yes.
        ("llava", {}, {}, False),
        ("llava", {"tie_word_embeddings": True}, {"tie_word_embeddings": False}, True),
        ("llava", {"tie_word_embeddings": False}, {"tie_word_embeddings": True}, True),
        # The text part is a whole model with its head.
        ("llama4", {"tie_word_embeddings": True}, {}, False),
        ("llama4", {"tie_word_embeddings": False}, {"tie_word_embeddings": True}, True),
        # The class of the wrapper says no more than that the text part decides.
        ("perception_lm", {}, {"tie_word_embeddings": True}, True),
        ("perception_lm", {}, {}, False),
        ("perception_lm", {"tie_word_embeddings": False}, {"tie_word_embeddings": True}, False),
        # The class never ties.
        ("qwen2_audio", {"tie_word_embeddings": True}, {}, False),
    ],
)
def test_wrappers_differ_in_whose_word_counts(model_type, outer, inner, tied):
    text = TEXT if model_type == "llama4" else LLAMA
    assert load({"model_type": model_type, "text_config": {**text, **inner}, **outer}).tie_embeddings is tied


def test_a_tie_that_the_class_does_not_follow_is_refused(refusal):
    error = refusal({"model_type": "qwen2_audio", "text_config": {**LLAMA, "tie_word_embeddings": True}})
    assert "its class never ties the head" in error.what


def test_the_text_class_says_it_where_the_wrappers_class_decides_otherwise():
    """Qwen3-VL-MoE: the text class ties, the wrapper's does not, and it holds the head."""
    sizes = {key: TEXT[key] for key in ("vocab_size", "hidden_size", "num_attention_heads", "head_dim")}
    text = {**sizes, "num_hidden_layers": 2, "num_experts": 5, "num_experts_per_tok": 2, "num_key_value_heads": 2}
    assert load({"model_type": "qwen3_vl_moe", "text_config": text}).tie_embeddings is False
    assert load({"model_type": "qwen3_vl_moe_text", **text}).tie_embeddings is True


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"model_type": "llama4", "text_config": [1]}, "`text_config` must hold the text model of a llama4 config"),
        (_wrapped({"model_type": "llama5"}), "`text_config` has the model_type 'llama5', which is not read"),
        (_wrapped({"model_type": "llama4"}), "`text_config` has the model_type 'llama4', which is not read"),
        (_wrapped({"model_type": "llama"}), "`text_config` has the model_type 'llama', which is not read"),
        (_wrapped({"model_type": 7}), "`text_config` has the model_type 7, which is not read"),
        (_wrapped({"hidden_size": 0}), "`hidden_size` must be a whole number"),
        (_wrapped({"a_key_of_tomorrow": 1}), "`a_key_of_tomorrow`: 1 is not read for llama4_text"),
        (_wrapped(a_key_of_tomorrow=1), "`a_key_of_tomorrow`: 1 is not read for llama4"),
        (_wrapped(hidden_size=43), "`hidden_size`: 43 is not read for llama4"),
        (_wrapped(architectures=["Llama4Model"]), "`architectures` 'Llama4Model' is not read"),
        (_wrapped({"auto_map": {"AutoModel": "mine.Model"}}), "`auto_map` names code of its own, which is not read"),
    ],
)
def test_what_is_refused(refusal, config, what):
    assert what in refusal(config).what


@pytest.mark.parametrize(
    ("text", "more", "word"),
    [
        ({"hidden_size": -1}, {}, '"hidden_size": -1'),
        ({"layer_types": ["full_attention", "x", "full_attention"]}, {}, '"x"'),
        ({"a_key_of_tomorrow": 1}, {}, '"a_key_of_tomorrow": 1'),
        ({"model_type": "llama5"}, {}, '"llama5"'),
        ({}, {"a_key_of_tomorrow": 1}, '"a_key_of_tomorrow": 1'),
    ],
)
def test_an_error_shows_its_line(refusal, write, text, more, word):
    written = json.dumps(_wrapped(text, **more), indent=2)
    error = refusal(write(written, "config.json"))
    line = written.splitlines().index(next(line for line in written.splitlines() if word in line)) + 1
    assert error.where.rpartition("config.json")[2].startswith(f":{line}:")


@pytest.mark.parametrize(("version", "tied"), [("5.24.0", False), ("4.57.1", True), (None, True)])
def test_of_a_file_of_version_5_nobody_asks_the_text_part_for_the_tie(version, tied):
    """`SmolVLMForConditionalGeneration` of 5.24.0 then ties as its own class does, which is not at all."""
    text = {"model_type": "llama", "vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "head_dim": 8}
    text |= {"num_attention_heads": 4, "intermediate_size": 48, "tie_word_embeddings": True}
    config = {"model_type": "smolvlm", "text_config": text, "transformers_version": version}
    assert load({key: value for key, value in config.items() if value is not None}).tie_embeddings is tied
