"""The lineage modules: what each class builds from its config, and what is refused instead of guessed."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources import huggingface
from costcalc.sources.huggingface import LINEAGES, read_config
from costcalc.sources.origin import Origin

Config = dict[str, Any]

ROWS = json.loads((Path(__file__).resolve().parents[2] / "oracle" / "decoders.json").read_text(encoding="utf-8"))
CLASSES = {
    "gpt2": "GPT2LMHeadModel",
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
}
# V=19, D=42, N=6, K=2, H=10 (even, for RoPE), F=37, L=3: D is a multiple of N where the class insists, N·H = 60.
SIZES = {
    "vocab_size": 19,
    "hidden_size": 42,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "intermediate_size": 37,
    "num_hidden_layers": 3,
    "tie_word_embeddings": False,
}
GPT2 = {
    "model_type": "gpt2",
    "vocab_size": 19,
    "n_positions": 11,
    "n_embd": 42,
    "n_head": 6,
    "n_layer": 3,
    "n_inner": 37,
}
SMALL = {"gpt2": GPT2, **{name: {"model_type": name, **SIZES} for name in CLASSES if name != "gpt2"}}

# One layer without biases: q and output 2·D·N·H, k and v 2·D·K·H, gate, up and down 3·D·F.
LAYER = 2 * 42 * 60 + 2 * 42 * 20 + 3 * 42 * 37
TABLES = 2 * 19 * 42


def _total(config: Config) -> int:
    return parameters(load(config)).total


def _windows(config: Config) -> list[int | None]:
    """The window of each layer, in order."""
    arch = load(config)
    window_of = {group.path: group.block.attention.window for group in arch.groups}
    return [window_of[path] for path in arch.inventory.layout["decoder"]]


# ----------------------------------------------------------------------------------------------------------- registry


PARTS = {"t5_gemma_module", "t5gemma2_decoder", "t5gemma2_encoder", "t5gemma2_text"}
"""Types that stand inside of others alone: their defaults are read, and no file is of them."""


def test_the_registry_is_whole():
    assert set(LINEAGES) >= set(CLASSES)
    assert list(LINEAGES) == sorted(LINEAGES)
    folder = Path(huggingface.__file__).parent
    defaults = {path.stem for path in (folder / "defaults").glob("*.json")}
    assert defaults - set(LINEAGES) == PARTS
    assert defaults >= set(LINEAGES)
    for model_type, module in LINEAGES.items():
        lineage = import_module(f"costcalc.sources.huggingface.{module}")
        assert callable(lineage.READERS[model_type])
        assert lineage.CLASSES[model_type][0] == CLASSES.get(model_type, lineage.CLASSES[model_type][0])
        assert set(lineage.READERS) == set(lineage.CLASSES) == {name for name in LINEAGES if LINEAGES[name] == module}


@pytest.mark.parametrize("model_type", CLASSES)
def test_importers_write_the_full_form(model_type):
    """They promise that nothing is left to spell out, so spelling it out must change nothing."""
    read = 0
    for row in ROWS:
        if row["config"]["model_type"] == model_type:
            try:
                written = read_config(row["config"], Origin("x"))
            except CostcalcError:
                continue
            assert type(written) is FullForm
            assert full_form(dict(written)) == written, row["id"]
            read += 1
    assert read >= 29


# ---------------------------------------------------------------------------------------------------- worked-out sums


@pytest.mark.parametrize(
    ("config", "total"),
    [
        # Two RMSNorms a layer and a final one.
        (SMALL["llama"], TABLES + 3 * (LAYER + 2 * 42) + 42),
        # attention_bias: q N·H, k and v K·H each, output D. mlp_bias: gate and up F each, down D.
        ({**SMALL["llama"], "attention_bias": True}, TABLES + 3 * (LAYER + 2 * 42 + 60 + 2 * 20 + 42) + 42),
        ({**SMALL["llama"], "mlp_bias": True}, TABLES + 3 * (LAYER + 2 * 42 + 2 * 37 + 42) + 42),
        ({**SMALL["llama"], "tie_word_embeddings": True}, 19 * 42 + 3 * (LAYER + 2 * 42) + 42),
        # Null or absent key/value heads are as many as heads: k and v grow from 20 to 60.
        ({**SMALL["llama"], "num_key_value_heads": None}, TABLES + 3 * (LAYER + 2 * 42 * 40 + 2 * 42) + 42),
        (SMALL["mistral"], TABLES + 3 * (LAYER + 2 * 42) + 42),
        # Qwen2: always biases on q, k and v, never on the output.
        (SMALL["qwen2"], TABLES + 3 * (LAYER + 2 * 42 + 60 + 2 * 20) + 42),
        # Qwen3: a norm of H on queries and one on keys; attention_bias as in Llama.
        (SMALL["qwen3"], TABLES + 3 * (LAYER + 2 * 42 + 2 * 10) + 42),
        ({**SMALL["qwen3"], "attention_bias": True}, TABLES + 3 * (LAYER + 2 * 42 + 2 * 10 + 60 + 2 * 20 + 42) + 42),
        # Gemma-2: four norms a layer.
        (SMALL["gemma2"], TABLES + 3 * (LAYER + 4 * 42) + 42),
        ({**SMALL["gemma2"], "attention_bias": True}, TABLES + 3 * (LAYER + 4 * 42 + 60 + 2 * 20 + 42) + 42),
        # GPT-2, tied: tables of V and 11 positions; 4·D^2 + 2·D·F matrices, 4·D + F + D biases, two LayerNorms of 2·D.
        (GPT2, 19 * 42 + 11 * 42 + 3 * (4 * 42**2 + 2 * 42 * 37 + 5 * 42 + 37 + 4 * 42) + 2 * 42),
        ({**GPT2, "n_inner": None}, 19 * 42 + 11 * 42 + 3 * (12 * 42**2 + 9 * 42 + 4 * 42) + 2 * 42),
        ({**GPT2, "n_inner": None, "tie_word_embeddings": False}, TABLES + 11 * 42 + 3 * (12 * 42**2 + 13 * 42) + 84),
    ],
)  # fmt: skip
def test_parameters_worked_out(config, total):
    assert _total(config) == total


@pytest.mark.parametrize("model_type", ["llama", "mistral", "qwen2", "qwen3"])
def test_flops_and_cache_worked_out(model_type):
    arch = load(SMALL[model_type])
    # T = 11 after 13: 2·T·(layers' matrices + head), and 2·2·N·H for each pair; query i of 11 sees 13 + i keys.
    pairs = sum(13 + i for i in range(1, 12))
    counted = flops(arch, Workload(new_tokens=11, past_tokens=13))
    assert counted.weights == 2 * 11 * (3 * LAYER + 19 * 42)
    assert counted.attention == 3 * 4 * 60 * pairs
    # 2·L·K·H numbers a token.
    assert kv_cache(arch, 24).elements == 2 * 3 * 20 * 24


def test_what_does_not_show_in_a_total():
    arch = load({**SMALL["llama"], "max_position_embeddings": 23})
    block = arch.decoder.layers[0]
    assert (arch.context_length, block.norms, block.parallel) == (23, "pre", False)
    assert (block.feed_forward.kind, block.feed_forward.activation) == ("gated", "silu")
    assert arch.decoder.has_final_norm
    gemma = load(SMALL["gemma2"]).groups[0].block
    assert (gemma.norms, gemma.feed_forward.activation) == ("sandwich", "gelu_tanh")
    gpt2 = load(GPT2)
    assert (gpt2.longest(), gpt2.context_length, gpt2.decoder.layers[0].feed_forward.activation) == (11, 11, "gelu_new")
    assert load({"model_type": "qwen3"}).context_length == 32_768


# ------------------------------------------------------------------------------------------------------ class defaults


@pytest.mark.parametrize(
    ("model_type", "total"),
    [
        ("gpt2", 124_439_808),
        ("llama", 6_738_415_616),
        ("mistral", 7_241_732_096),
        ("qwen2", 12_049_846_272),
        ("qwen3", 12_049_461_248),
        ("gemma2", 2_614_341_888),
    ],
)
def test_a_class_by_its_defaults_alone(model_type, total):
    """The recorded totals of the six classes as they are; the line that names the assumed keys still fits."""
    assert _total({"model_type": model_type}) == total


@pytest.mark.parametrize(
    ("model_type", "kv_heads"), [("llama", 64), ("mistral", 8), ("qwen2", 32), ("qwen3", 32), ("gemma2", 4)]
)
def test_key_value_heads_that_are_left_out(model_type, kv_heads):
    """Absent is the class default, which only for Llama is as many as heads; null is as many as heads where allowed."""
    config = {**SMALL[model_type], "num_attention_heads": 64, "hidden_size": 128}
    del config["num_key_value_heads"]
    assert load(config).groups[0].block.attention.sizes(128)[0] == kv_heads
    if model_type in ("llama", "qwen2", "qwen3"):
        config["num_key_value_heads"] = None
        assert load(config).groups[0].block.attention.sizes(128)[0] == 64


@pytest.mark.parametrize(
    ("model_type", "head_dim"), [("llama", 14), ("mistral", 14), ("qwen2", 14), ("qwen3", 128), ("gemma2", 256)]
)
def test_a_head_dim_that_is_left_out(model_type, head_dim):
    """hidden_size / heads = 84 / 6 for three classes; a fixed default for two."""
    config = {**SMALL[model_type], "hidden_size": 84}
    del config["head_dim"]
    assert load(config).groups[0].block.attention.head_dim == head_dim


@pytest.mark.parametrize(
    ("model_type", "width", "head_dim"), [("mistral", 89, 14), ("qwen2", 89, 14), ("mistral", 86, 14)]
)
def test_a_head_dim_that_is_rounded_down(model_type, width, head_dim):
    config = {**SMALL[model_type], "hidden_size": width}
    del config["head_dim"]
    assert load(config).groups[0].block.attention.head_dim == head_dim


@pytest.mark.parametrize("model_type", ["mistral", "qwen2"])
def test_more_heads_than_width(refusal, model_type):
    """Rounded down, a head would have no number at all."""
    refusal({key: value for key, value in {**SMALL[model_type], "hidden_size": 5}.items() if key != "head_dim"})


@pytest.mark.parametrize("model_type", ["llama", "gemma2"])
def test_a_width_that_is_no_multiple_of_the_heads(refusal, model_type):
    error = refusal({**SMALL[model_type], "hidden_size": 43})
    assert error.what == "`hidden_size` 43 is not a multiple of `num_attention_heads` 6"


@pytest.mark.parametrize("model_type", ["llama", "mistral", "qwen2", "qwen3", "gemma2"])
def test_rope_needs_an_even_head(refusal, model_type):
    error = refusal({**SMALL[model_type], "head_dim": 7})
    assert error.what == "RoPE rotates pairs, and a head of 7 is odd"


@pytest.mark.parametrize("model_type", list(CLASSES))
def test_ties_that_are_left_out(model_type):
    config = {key: value for key, value in SMALL[model_type].items() if key != "tie_word_embeddings"}
    assert load(config).tie_embeddings is (model_type in ("gpt2", "gemma2"))


@pytest.mark.parametrize(
    ("model_type", "key"),
    [
        ("mistral", "num_key_value_heads"),
        ("gemma2", "num_key_value_heads"),
        ("qwen2", "head_dim"),
        ("qwen3", "head_dim"),
        ("gemma2", "head_dim"),
    ],
)
def test_a_null_that_the_class_refuses(refusal, model_type, key):
    assert refusal({**SMALL[model_type], key: None}).what.startswith(f"`{key}` must be a whole number")


# -------------------------------------------------------------------------------------------------------------- windows

QWEN = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
TYPES = ["full_attention", "sliding_attention", "sliding_attention"]


@pytest.mark.parametrize(
    ("model_type", "changes", "windows"),
    [
        ("llama", {}, [None] * 3),
        ("llama", {"layer_types": ["full_attention"] * 3}, [None] * 3),
        ("llama", {"sliding_window": None}, [None] * 3),
        ("mistral", {}, [4096] * 3),  # the class default
        ("mistral", {"sliding_window": 5}, [5] * 3),
        ("mistral", {"sliding_window": None}, [None] * 3),
        ("mistral", {"sliding_window": 5, "layer_types": ["sliding_attention"] * 3}, [5] * 3),
        ("mistral", {"sliding_window": None, "layer_types": ["full_attention"] * 3}, [None] * 3),
        ("gemma2", {}, [4096, None, 4096]),
        ("gemma2", {"sliding_window": 5, "num_hidden_layers": 4}, [5, None, 5, None]),
        ("gemma2", {"sliding_window": 5, "layer_types": TYPES}, [None, 5, 5]),
        ("gemma2", {"layer_types": ["full_attention"] * 3}, [None] * 3),
        ("qwen2", {}, [None] * 3),
        ("qwen2", {"sliding_window": 5, "max_window_layers": 0}, [None] * 3),  # off by default
        ("qwen2", {**QWEN, "use_sliding_window": False}, [None] * 3),
        ("qwen2", QWEN, [None, 5, 5]),
        ("qwen3", QWEN, [None, 5, 5]),
        ("qwen3", {**QWEN, "max_window_layers": 0}, [5] * 3),
        ("qwen3", {**QWEN, "max_window_layers": 3}, [None] * 3),
        ("qwen3", {**QWEN, "max_window_layers": 70}, [None] * 3),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 5}, [None] * 3),  # max_window_layers 28 by default
        ("qwen2", {**QWEN, "sliding_window": None}, [None] * 3),
        ("qwen2", {**QWEN, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}, [5, None, 5]),
        ("qwen3", {"use_sliding_window": False, "layer_types": ["full_attention"] * 3}, [None] * 3),
    ],
)
def test_the_window_of_each_layer(model_type, changes, windows):
    assert _windows({**SMALL[model_type], **changes}) == windows


@pytest.mark.parametrize(
    ("model_type", "changes", "what"),
    [
        (
            "llama",
            {"layer_types": ["sliding_attention"] * 3},
            "`layer_types` has 'sliding_attention', which llama does not build",
        ),
        ("llama", {"sliding_window": 5}, "`sliding_window`: 5 is not read for llama and might change a cost"),
        ("mistral", {"layer_types": TYPES}, "`layer_types` has 'full_attention', which mistral does not build"),
        (
            "mistral",
            {"sliding_window": None, "layer_types": ["sliding_attention"] * 3},
            "`layer_types` has 'sliding_attention', which mistral does not build",
        ),
        (
            "mistral",
            {"sliding_window": 0},
            "`sliding_window` must be a whole number from 1 to 1,000,000,000,000, got 0",
        ),
        ("qwen2", {"layer_types": TYPES}, "`layer_types` has sliding_attention, but `use_sliding_window` is false"),
        (
            "qwen3",
            {**QWEN, "sliding_window": None, "layer_types": TYPES},
            "`layer_types` has sliding_attention, but `sliding_window` is null",
        ),
        ("qwen3", {**QWEN, "max_window_layers": None}, "`max_window_layers` must be a whole number, got nothing"),
        ("qwen3", {**QWEN, "use_sliding_window": None}, "`use_sliding_window` must be true or false, got nothing"),
        ("gemma2", {"sliding_window": None}, "`layer_types` has sliding_attention, but `sliding_window` is null"),
        ("gemma2", {"layer_types": TYPES[:2]}, "`layer_types` must be a list of 3 words, got 2 entries"),
        ("gemma2", {"layer_types": "full_attention"}, "`layer_types` must be a list of 3 words, got 'full_attention'"),
        (
            "gemma2",
            {"layer_types": ["chunked_attention"] * 3},
            "`layer_types` has 'chunked_attention', which gemma2 does not build",
        ),
        ("gemma2", {"layer_types": [["full_attention"]] * 3}, "`layer_types` has a list, which gemma2 does not build"),
        (
            "gemma2",
            {"sliding_window_pattern": 6},
            "`sliding_window_pattern`: 6 is not read for gemma2 and might change a cost",
        ),
    ],
)
def test_windows_that_contradict_themselves(refusal, model_type, changes, what):
    error = refusal({**SMALL[model_type], **changes})
    assert error.what.partition(" (did you mean")[0] == what


def test_a_hundred_thousand_layers_and_one_more(refusal):
    assert load({**SMALL["gemma2"], "num_hidden_layers": 100_000}).decoder.depth == 100_000
    error = refusal({**SMALL["gemma2"], "num_hidden_layers": 100_001})
    assert error.what == "`num_hidden_layers` must be a whole number from 1 to 100,000, got 100001"
    assert refusal({**GPT2, "n_layer": 10**21}).what.startswith("`n_layer` must be a whole number from 1 to 100,000")


# ------------------------------------------------------------------------------------------- real models and oddities

QWEN_7B = {
    "architectures": ["Qwen2ForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "eos_token_id": 151643,
    "hidden_act": "silu",
    "hidden_size": 3584,
    "initializer_range": 0.02,
    "intermediate_size": 18944,
    "max_position_embeddings": 131072,
    "max_window_layers": 28,
    "model_type": "qwen2",
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "sliding_window": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.40.1",
    "use_cache": True,
    "use_mrope": False,
    "use_sliding_window": False,
    "vocab_size": 152064,
}
LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 8192,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "pretraining_tp": 1,
    "rope_scaling": None,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}
GEMMA_9B = {
    "architectures": ["Gemma2ForCausalLM"],
    "attention_bias": False,
    "attn_logit_softcapping": 50.0,
    "cache_implementation": "hybrid",
    "final_logit_softcapping": 30.0,
    "head_dim": 256,
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 3584,
    "intermediate_size": 14336,
    "max_position_embeddings": 8192,
    "model_type": "gemma2",
    "num_attention_heads": 16,
    "num_hidden_layers": 42,
    "num_key_value_heads": 8,
    "query_pre_attn_scalar": 256,
    "rope_theta": 10000.0,
    "sliding_window": 4096,
    "torch_dtype": "float32",
    "vocab_size": 256000,
}
PRESETS = {
    "gpt2": {"model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024},
    "gpt2-xl": {"model_type": "gpt2", "n_ctx": 1024, "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024},
    "llama-2-7b": {"model_type": "llama", "max_position_embeddings": 4096, "rope_scaling": None},
    "llama-2-13b": {"model_type": "llama", "hidden_size": 5120, "intermediate_size": 13824, "num_attention_heads": 40,
                    "num_hidden_layers": 40, "num_key_value_heads": 40, "max_position_embeddings": 4096},
    "llama-3-8b": LLAMA_8B,
    "llama-3.2-1b": {**LLAMA_8B, "head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192,
                     "num_hidden_layers": 16, "tie_word_embeddings": True, "mlp_bias": False, "attention_bias": False,
                     "max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 32.0}},
    "mistral-7b-v0.1": {"model_type": "mistral", "max_position_embeddings": 32768, "rope_theta": 10000.0},
    "qwen2.5-7b": QWEN_7B,
    "qwen3-8b": {"model_type": "qwen3", "head_dim": 128, "intermediate_size": 12288, "max_position_embeddings": 40960,
                 "max_window_layers": 36, "num_hidden_layers": 36, "num_key_value_heads": 8, "rope_theta": 1000000},
    "gemma-2-9b": GEMMA_9B,
}  # fmt: skip


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_and_its_model_s_config_agree(name):
    """Two descriptions of one model, written by different people, cost the same."""
    preset, imported = load(name), load(PRESETS[name])
    assert parameters(imported).total == parameters(preset).total
    assert (imported.context_length, imported.tie_embeddings) == (preset.context_length, preset.tie_embeddings)
    for workload in (Workload(batch=3, new_tokens=11), Workload(new_tokens=5, past_tokens=6007)):
        assert flops(imported, workload) == flops(preset, workload)
    for context in (11, 6007):
        assert kv_cache(imported, context) == kv_cache(preset, context)
    assert [w.parameters for w in imported.inventory.weights] == [w.parameters for w in preset.inventory.weights]
    assert getattr(imported.decoder.positions, "theta", None) == getattr(preset.decoder.positions, "theta", None)


def test_a_switch_beats_a_size():
    """`use_sliding_window: false` voids the window of 131,072: 57,344 bytes a token, 14 GiB at 262,144 tokens."""
    arch = load(QWEN_7B)
    # 2·L·K·H·2 = 2·28·4·128·2.
    assert kv_cache(arch, 1).bytes == 57_344
    assert kv_cache(arch, 262_144).bytes == 14 * 2**30 == 262_144 * 57_344
    assert kv_cache(arch, 262_144).bytes_per_token == 57_344


OLD_BASE_CLASS = {
    "return_dict": True, "output_hidden_states": False, "output_attentions": False, "torchscript": False,
    "torch_dtype": "float16", "use_bfloat16": False, "tf_legacy_loss": False, "pruned_heads": {},
    "chunk_size_feed_forward": 0, "is_encoder_decoder": False, "is_decoder": False, "cross_attention_hidden_size": None,
    "add_cross_attention": False, "tie_encoder_decoder": False, "max_length": 20, "min_length": 0, "do_sample": False,
    "early_stopping": False, "num_beams": 1, "num_beam_groups": 1, "diversity_penalty": 0.0, "temperature": 1.0,
    "top_k": 50, "top_p": 1.0, "typical_p": 1.0, "repetition_penalty": 1.0, "length_penalty": 1.0,
    "no_repeat_ngram_size": 0, "encoder_no_repeat_ngram_size": 0, "bad_words_ids": None, "num_return_sequences": 1,
    "output_scores": False, "return_dict_in_generate": False, "forced_bos_token_id": None, "forced_eos_token_id": None,
    "remove_invalid_values": False, "exponential_decay_length_penalty": None, "suppress_tokens": None,
    "begin_suppress_tokens": None, "finetuning_task": None, "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
    "label2id": {"LABEL_0": 0, "LABEL_1": 1}, "tokenizer_class": None, "prefix": None, "bos_token_id": 1,
    "pad_token_id": None, "eos_token_id": 2, "sep_token_id": None, "decoder_start_token_id": None,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "problem_type": None,
    "_name_or_path": "", "transformers_version": "4.28.1",
}  # fmt: skip


@pytest.mark.parametrize("model_type", CLASSES)
def test_a_dump_of_the_old_base_class_changes_nothing(model_type):
    config = {**OLD_BASE_CLASS, **SMALL[model_type], "architectures": [CLASSES[model_type]]}
    assert load(config).inventory == load(SMALL[model_type]).inventory


@pytest.mark.parametrize(
    "extra",
    [
        {"torch_dtype": "bfloat16"},
        {"dtype": "float32"},
        {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}},
        {
            "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
            "torch_dtype": "float8_e4m3fn",
        },
        {"_attn_implementation": "flash_attention_2", "use_cache": False, "gradient_checkpointing": True},
        {"auto_map": None},
        {"auto_map": {}},
        {"architectures": None},
        {"architectures": []},
        {"num_experts": None, "vision_config": None, "moe_intermediate_size": None},
        {"_name_or_path": "someone/something", "unsloth_fixed": True, "license": "mit"},
        {"is_encoder_decoder": False, "add_cross_attention": False, "use_bidirectional_attention": False},
        {"pruned_heads": {}, "n_ctx": 7, "max_sequence_length": 7},
    ],
    ids="+".join,
)
def test_keys_that_change_nothing(extra):
    for config in SMALL.values():
        assert load({**config, **extra}).inventory == load(config).inventory


@pytest.mark.parametrize("model_type", CLASSES)
def test_whole_numbers_written_as_floats(model_type):
    config = {key: float(value) if type(value) is int else value for key, value in SMALL[model_type].items()}
    assert load(config).inventory == load(SMALL[model_type]).inventory


def test_a_float_where_only_whole_numbers_select_layers():
    """Qwen's `max_window_layers` takes 1.0 as every other whole number does."""
    assert _windows({**SMALL["qwen2"], **QWEN, "max_window_layers": 1.0}) == [None, 5, 5]


@pytest.mark.parametrize(
    ("changes", "theta"),
    [
        ({}, 10_000.0),
        ({"rope_theta": 5e5}, 5e5),
        ({"rope_theta": 500_000}, 5e5),
        ({"rope_theta": None}, 10_000.0),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, 1e6),
        ({"rope_parameters": {"rope_theta": 1e6}, "rope_theta": 5e5}, 1e6),
        ({"rope_parameters": {"rope_type": "default"}, "rope_theta": 5e5}, 5e5),
        ({"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 5e5}, 5e5),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e6}}}, 10_000.0),
    ],
)
def test_the_rotary_base_in_both_dialects(changes, theta):
    for model_type in ("llama", "mistral", "qwen2", "qwen3", "gemma2"):
        arch = load({**SMALL[model_type], **changes})
        assert arch.decoder.positions.theta == theta
        assert {group.block.positions.theta for group in arch.groups} == {theta}


@pytest.mark.parametrize(
    ("written", "scale"), [({}, None), ({"scale_attn_weights": True}, None), ({"scale_attn_weights": False}, 1.0)]
)
def test_gpt2_scores_without_a_scale(written, scale):
    attention = load({**GPT2, **written}).groups[0].block.attention
    assert attention is not None
    assert attention.scale == scale


@pytest.mark.parametrize(
    "both",
    [
        {"n_embd": 42, "hidden_size": 42},
        {"hidden_size": 42, "num_hidden_layers": 3, "num_attention_heads": 6, "max_position_embeddings": 11},
        {"n_layer": 3.0, "num_hidden_layers": 3},
        {"n_ctx": 7},  # a mask's length once; the table has n_positions rows
    ],
)
def test_two_names_of_one_gpt2_field_that_agree(both):
    assert load({**GPT2, **both}).inventory == load(GPT2).inventory


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ("hidden_size", "n_embd", 48),
        ("num_hidden_layers", "n_layer", 5),
        ("num_attention_heads", "n_head", 7),
        ("max_position_embeddings", "n_positions", None),
    ],
)
def test_two_names_of_one_gpt2_field_that_disagree(refusal, key, name, value):
    error = refusal({**GPT2, key: value})
    assert error.what == f"`{key}` and another name of `{name}` disagree"
    assert error.hint == "keep one of the two"


def test_gpt2_by_the_new_names_alone():
    new = {"model_type": "gpt2", "vocab_size": 19, "hidden_size": 42, "num_hidden_layers": 3, "n_inner": 37}
    new |= {"num_attention_heads": 6, "max_position_embeddings": 11}
    assert load(new).inventory == load(GPT2).inventory


def test_gemma2_with_both_spellings_of_its_window(refusal):
    """google/gemma-2-9b's own config.json has `sliding_window` and `sliding_window_size` side by side."""
    assert load({**GEMMA_9B, "sliding_window_size": 4096}).inventory == load(GEMMA_9B).inventory
    refusal({**GEMMA_9B, "sliding_window_size": 1024})


def test_custom_code_that_loads_the_stock_class():
    config = {
        **SMALL["llama"],
        "architectures": ["LlamaForCausalLM"],
        "auto_map": {"AutoModelForCausalLM": "modeling_flash_llama.LlamaForCausalLM"},
    }
    assert load(config).inventory == load(SMALL["llama"]).inventory


# ------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    "named",
    [
        ["{}Models"],
        ["{}ForSequenceClassifications"],
        ["{}ForTokenClassifications"],
        ["{}", "Other"],
        "{}",
        [None],
        [["x"]],
        7,
    ],
    ids=str,
)
def test_another_class_of_the_same_type(refusal, named):
    for model_type, causal in CLASSES.items():
        stem = (
            causal
            if named in ("{}", ["{}", "Other"])
            else causal.removesuffix("ForCausalLM").removesuffix("LMHeadModel")
        )
        words = (
            [word.format(stem) if isinstance(word, str) else word for word in named]
            if isinstance(named, list)
            else named
        )
        error = refusal({**SMALL[model_type], "architectures": words.format(stem) if isinstance(words, str) else words})
        assert error.what.startswith("`architectures` ")
        assert error.what.endswith(f" is not read for {model_type}: its head may differ")
        assert f'["{causal}"]' in error.hint


def test_the_causal_class_of_another_type(refusal):
    assert "MistralForCausalLM" in refusal({**SMALL["llama"], "architectures": ["MistralForCausalLM"]}).what


def test_custom_code_that_does_not_say_which_class(refusal):
    for model_type, config in SMALL.items():
        error = refusal({**config, "auto_map": {"AutoModelForCausalLM": "modeling.Mine"}})
        assert error.what == "`auto_map` names code of its own, which is not read", model_type


SANTACODER = {
    "activation_function": "gelu_fast",
    "architectures": ["GPT2LMHeadCustomModel"],
    "attention_head_type": "multiquery",
    "auto_map": {"AutoModelForCausalLM": "modeling_gpt2_mq.GPT2LMHeadCustomModel"},
    "model_type": "gpt2",
    "n_embd": 2048,
    "n_head": 16,
    "n_inner": 8192,
    "n_layer": 24,
    "n_positions": 2048,
    "vocab_size": 49280,
}


@pytest.mark.parametrize(
    "dropped", [(), ("auto_map",), ("auto_map", "architectures"), ("architectures",), ("attention_head_type",)]
)
def test_santacoder_is_not_counted_as_gpt2(refusal, dropped):
    """One key/value head; any one of its marks is enough."""
    refusal({key: value for key, value in SANTACODER.items() if key not in dropped})


EAGLE3 = {**SMALL["llama"], "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 17}
DFLASH = {
    **SMALL["qwen3"],
    "architectures": ["DFlashDraftModel"],
    "auto_map": {"AutoModel": "dflash.DFlashDraftModel"},
    "block_size": 16,
    "dflash_config": {"mask_token_id": 5, "target_layer_ids": [1, 3]},
    "num_target_layers": 7,
}


@pytest.mark.parametrize("draft", [EAGLE3, DFLASH], ids=["Eagle-3", "DFlash"])
@pytest.mark.parametrize("dropped", [(), ("architectures",), ("architectures", "auto_map")])
def test_drafts_are_not_counted_as_their_base(refusal, draft, dropped):
    refusal({key: value for key, value in draft.items() if key not in dropped})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_local_experts", 8), ("num_experts_per_tok", 2), ("num_experts", 7), ("moe_intermediate_size", 5),
        ("n_routed_experts", 7), ("n_shared_experts", 1), ("decoder_sparse_step", 1), ("mlp_only_layers", [0]),
        ("draft_vocab_size", 17), ("vision_config", {}), ("text_config", {}), ("mm_vision_tower", "clip"),
        ("kv_channels", 5), ("multi_query", True), ("num_nextn_predict_layers", 1), ("medusa_num_heads", 3),
        ("pruned_heads", {"0": [1]}), ("is_encoder_decoder", True),
        ("is_causal", False), ("use_bidirectional_attention", True), ("per_layer_config", {"0": {}}),
        ("qk_norm", True), ("use_qk_norm", True), ("lm_head_bias", True), ("attention_chunk_size", 5),
        ("cache_implementation", "static"), ("cache_config", {"x": 1}), ("partial_rotary_factor", 0.5),
        ("no_bias", False),
        ("num_kv_shared_layers", 1), ("lora_rank", 7), ("block_configs", []), ("padded_vocab_size", 23),
        ("n_layers", 3), ("dim", 42), ("a_key_of_tomorrow", 1), ("num_hidden_layer", 3), ("", 1),
    ],
)  # fmt: skip
def test_a_key_that_might_change_a_cost_is_refused(refusal, key, value):
    for config in SMALL.values():
        assert f"`{key}`" in refusal({**config, key: value}).what


@pytest.mark.parametrize(
    ("model_type", "keys"),
    [
        ("gpt2", ["head_dim", "intermediate_size", "num_key_value_heads", "sliding_window", "layer_types"]),
        ("llama", ["n_embd", "n_inner", "sliding_window", "max_window_layers", "qkv_bias"]),
        ("mistral", ["max_window_layers", "n_layer", "rotary_dim"]),
        ("qwen2", ["n_positions", "sliding_window_pattern"]),
        ("qwen3", ["n_head", "v_head_dim"]),
        ("gemma2", ["use_sliding_window_attention", "query_head_dim"]),
    ],
)
def test_keys_of_other_classes_are_refused(refusal, model_type, keys):
    for key in keys:
        error = refusal({**SMALL[model_type], key: 2})
        assert error.what.startswith(f"`{key}`: 2 is not read for {model_type} and might change a cost")
        assert error.hint == "remove the key if it changes nothing, or describe the model in YAML"


def test_a_typo_names_the_nearest_key(refusal):
    error = refusal({**SMALL["llama"], "num_key_value_head": 2})
    assert error.what.endswith("(did you mean `num_key_value_heads`?)")


@pytest.mark.parametrize(
    ("model_type", "what", "hint"),
    [
        (
            "lama",
            "the model_type 'lama' is not read",
            "; or describe the model in YAML",
        ),
        ("qwenn", "the model_type 'qwenn' is not read", "nearest: qwen"),
        ("gemma22", "the model_type 'gemma22' is not read", "nearest: gemma2"),
        ("LLAMA", "the model_type 'LLAMA' is not read", "nearest: llama, "),
        ("s4d", "the model_type 's4d' is not read", " are known, such as bert, bart, gpt2, "),
        ("", "the model_type '' is not read", " are known, such as "),
        (None, "no `model_type`", 'add "model_type", such as bert, bart, gpt2, '),
        (7, "the model_type 7 is not read", " are known, such as "),
        ([7], "the model_type a list is not read", " are known, such as "),
        ("x" * 5000, f"the model_type '{'x' * 36}... is not read", " are known, such as "),
    ],
)
def test_an_unknown_model_type_names_the_nearest(refusal, model_type, what, hint):
    error = refusal({**SIZES, "model_type": model_type})
    assert error.what == what
    assert hint in error.hint


def test_no_model_type_at_all(refusal):
    assert refusal({**SIZES, "architectures": ["LlamaForCausalLM"]}).what == "no `model_type`"
    assert refusal(SIZES).what == "no `model_type`"  # `hidden_size` is no key of ours


@pytest.mark.parametrize("activation", ["prelu", "xielu", "swiglu", "", None, 7, ["silu"]])
@pytest.mark.parametrize(
    ("model_type", "key"), [("llama", "hidden_act"), ("gpt2", "activation_function"), ("gemma2", "hidden_activation")]
)
def test_an_activation_that_may_hold_parameters(refusal, model_type, key, activation):
    error = refusal({**SMALL[model_type], key: activation})
    assert error.what.startswith(f"`{key}` ")
    assert error.what.endswith(" is not an activation that is read")


@pytest.mark.parametrize(
    "value",
    [0, -1, 2.5, True, "32", [], {}, float("nan"), float("inf"), 10**400, 10**12 + 1],
    ids=lambda value: repr(value)[:20],
)
def test_sizes_that_are_no_sizes(refusal, value):
    for key in SIZES.keys() - {"tie_word_embeddings", "num_hidden_layers"}:
        error = refusal({**SMALL["llama"], key: value})
        assert error.what.startswith(f"`{key}` must be a whole number from 1 to 1,000,000,000,000, got ")


def test_heads_that_do_not_divide(refusal):
    assert "heads 6 is not a multiple of kv_heads 4" in refusal({**SMALL["llama"], "num_key_value_heads": 4}).what
    assert "d_model 43 is not a multiple of heads 6" in refusal({**GPT2, "n_embd": 43}).what


def test_custom_code_without_a_stock_class_is_refused(refusal):
    config = {**SMALL["llama"], "auto_map": {"AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}}
    assert "auto_map" in refusal(config).what


@pytest.mark.parametrize("model_type", ["mistral", "gemma2"])
def test_a_switch_that_contradicts_a_window_is_refused(refusal, model_type):
    """Engines differ on whether it beats the size in these families; where there is no window it says nothing."""
    assert "use_sliding_window" in refusal({**SMALL[model_type], "sliding_window": 7, "use_sliding_window": False}).what
    if model_type == "mistral":
        assert load({**SMALL[model_type], "sliding_window": None, "use_sliding_window": False})


@pytest.mark.parametrize("model_type", SMALL)
def test_a_config_that_leaves_everything_to_its_class_is_read_and_says_so(model_type):
    assert "; class defaults for " in (load({"model_type": model_type}).source or "")
