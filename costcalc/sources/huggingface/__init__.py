"""config.json files of `transformers` models: which reader reads which `model_type`.

A lineage is one module here with a `READERS` table, from model type to a function Config -> the full form of an
architecture, and a `CLASSES` table of the classes that are read, the usual one first: `architectures` picks one, which
the reader finds in `config.model_class`. Where published files name code of their own under another word than their
type, a `CODE` table holds those modules' names. To add a lineage: its class defaults under `defaults/`, its module, a
line in LINEAGES, its recorded cases.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from costcalc.architecture.written import FullForm
from costcalc.errors import CostcalcError, nearest, shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.origin import Origin

LINEAGES = {
    "afmoe": "afmoe",
    "albert": "albert",
    "arcee": "like_llama",
    "aria_text": "aria",
    "axk1": "axk",
    "aya_vision": "nested",
    "bailing_hybrid": "bailing_hybrid",
    "bamba": "bamba",
    "bart": "bart",
    "bert": "bert",
    "bert-generation": "bert",
    "biogpt": "opt",
    "blenderbot": "bart",
    "blenderbot-small": "bart",
    "bloom": "bloom",
    "camembert": "bert",
    "codegen": "gptj",
    "cohere": "cohere",
    "cohere2": "cohere",
    "cohere2_moe": "cohere_moe",
    "cohere2_vision": "nested",
    "ctrl": "gpt",
    "cwm": "like_llama",
    "data2vec-text": "bert",
    "deepseek_v2": "deepseek",
    "deepseek_v3": "deepseek",
    "distilbert": "distilbert",
    "dots1": "glm_moe",
    "electra": "electra",
    "ernie": "bert",
    "ernie4_5": "like_llama",
    "ernie4_5_moe": "ernie_moe",
    "eurobert": "rotary_encoders",
    "exaone": "exaone",
    "exaone4": "exaone",
    "exaone_moe": "exaone_moe",
    "falcon": "falcon",
    "falcon_h1": "falcon_h1",
    "falcon_mamba": "mamba",
    "flex_olmo": "olmoe",
    "flint": "flint",
    "gemma": "gemma",
    "gemma2": "gemma",
    "gemma3": "nested",
    "gemma3_text": "gemma",
    "gemma3n": "nested",
    "gemma3n_text": "gemma3n",
    "gemma4": "nested",
    "gemma4_text": "gemma4",
    "gemma4_unified": "nested",
    "gemma4_unified_text": "gemma4",
    "glm": "glm",
    "glm4": "glm",
    "glm4_moe": "glm_moe",
    "glm4_moe_lite": "glm_moe_lite",
    "gpt-sw3": "gpt",
    "gpt2": "gpt2",
    "gpt_bigcode": "gpt_bigcode",
    "gpt_neo": "gpt_neo",
    "gpt_neox": "gpt_neox",
    "gpt_neox_japanese": "gpt_neox",
    "gpt_oss": "gpt_oss",
    "gptj": "gptj",
    "granite": "granite",
    "granite_swa": "granite",
    "granitemoe": "granite_moe",
    "granitemoe_swa": "granite_moe",
    "granitemoehybrid": "granite_hybrid",
    "granitemoeshared": "granite_moe",
    "helium": "like_llama",
    "hunyuan_v1_dense": "like_llama",
    "hunyuan_v1_moe": "hunyuan_moe",
    "hy_v3": "hunyuan_moe",
    "hyperclovax": "granite",
    "internlm3": "like_llama",
    "iquestcoder": "like_llama",
    "jais2": "rotary_decoders",
    "jamba": "jamba",
    "jina_embeddings_v3": "rotary_encoders",
    "kimi_k2": "deepseek",
    "kimi_k25": "nested",
    "kimi_linear": "kimi_linear",
    "kolibri1": "flint",
    "laguna": "laguna",
    "lara_mini": "lara",
    "lfm2": "lfm",
    "lfm2_moe": "lfm",
    "lfm3": "lfm",
    "llama": "llama",
    "llama4": "nested",
    "llama4_text": "llama4",
    "m2m_100": "marian",
    "mamba": "mamba",
    "mamba2": "mamba",
    "marian": "marian",
    "mbart": "bart",
    "megatron-bert": "bert",
    "mellum": "mellum",
    "mimo_v2_flash": "mimo",
    "minicpm3": "minicpm",
    "minimax": "minimax_01",
    "minimax_m1": "minimax_01",
    "minimax_m2": "minimax",
    "minimax_text_01": "minimax_01",
    "ministral": "mistral",
    "ministral3": "mistral",
    "mistral": "mistral",
    "mistral3": "nested",
    "mixtral": "mixtral",
    "modernbert": "modernbert",
    "modernbert-decoder": "modernbert",
    "mpt": "mpt",
    "mt5": "t5",
    "mvp": "bart",
    "nanochat": "like_llama",
    "nemotron": "rotary_decoders",
    "nemotron_h": "nemotron_h",
    "nomic_bert": "rotary_encoders",
    "olmo": "olmo",
    "olmo2": "olmo",
    "olmo3": "olmo",
    "olmo_hybrid": "olmo_hybrid",
    "olmoe": "olmoe",
    "openai-gpt": "gpt",
    "opt": "opt",
    "pegasus": "marian",
    "persimmon": "rotary_decoders",
    "phi": "phi",
    "phi3": "phi",
    "phimoe": "mixtral",
    "plbart": "bart",
    "qwen2": "qwen",
    "qwen2_5_vl": "nested",
    "qwen2_5_vl_text": "qwen",
    "qwen2_moe": "qwen_moe",
    "qwen2_vl": "nested",
    "qwen2_vl_text": "qwen",
    "qwen3": "qwen",
    "qwen3_5": "nested",
    "qwen3_5_moe": "nested",
    "qwen3_5_moe_text": "qwen_next",
    "qwen3_5_text": "qwen_next",
    "qwen3_moe": "qwen_moe",
    "qwen3_next": "qwen_next",
    "qwen3_vl": "nested",
    "qwen3_vl_moe": "nested",
    "qwen3_vl_moe_text": "qwen_moe",
    "qwen3_vl_text": "qwen",
    "recurrent_gemma": "recurrent_gemma",
    "roberta": "bert",
    "roberta-prelayernorm": "bert",
    "rwkv": "rwkv",
    "sarvam_mla": "sarvam",
    "sarvam_moe": "glm_moe",
    "seed_oss": "like_llama",
    "smollm3": "smollm3",
    "solar_open": "glm_moe",
    "stablelm": "rotary_decoders",
    "starcoder2": "rotary_decoders",
    "t5": "t5",
    "umt5": "t5",
    "vaultgemma": "gemma",
    "xglm": "opt",
    "xlm-roberta": "bert",
    "xlm-roberta-xl": "bert",
    "xlstm": "xlstm",
    "youtu": "youtu",
    "zamba": "zamba",
    "zamba2": "zamba",
    "zaya": "zaya",
}
"""model_type -> the module that reads it."""

USUAL = "bert, bart, gpt2, llama, mistral, qwen3 or t5"
MOST_SAID = 8


def read_config(data: dict[str, Any], origin: Origin) -> FullForm:
    """The full form of the architecture that a config.json describes, or a refusal that names the key."""
    model_type = data.get("model_type")
    if not isinstance(model_type, str) or model_type not in LINEAGES:
        raise _unknown_type(model_type, origin)
    lineage = import_module(f"costcalc.sources.huggingface.{LINEAGES[model_type]}")
    config = Config(data, model_type=model_type, origin=origin)
    own_code = getattr(lineage, "CODE", {}).get(model_type, ())
    config.model_class = _class_of(config, lineage.CLASSES[model_type], own_code)
    written: dict[str, Any] = lineage.READERS[model_type](config)
    config.refuse_unread()
    return FullForm(source=f"config.json of model type {model_type}{_defaults_said(config.assumed())}", **written)


def _defaults_said(keys: list[str]) -> str:
    """What the file left to its class, for the line that says where a model came from."""
    if not keys:
        return ""
    more = f" and {len(keys) - MOST_SAID} more" if len(keys) > MOST_SAID else ""
    return f"; class defaults for {', '.join(keys[:MOST_SAID])}{more}"


def _class_of(config: Config, classes: tuple[str, ...], own_code: tuple[str, ...]) -> str:
    """`architectures` picks the head among the classes that are read; where it says nothing, the usual one."""
    named = config.data.get("architectures")
    word = named[0] if isinstance(named, list) and len(named) == 1 else named
    check_code(config, own_code if word in classes else None)
    if named in (None, []):
        return classes[0]
    if isinstance(named, list) and word in classes:
        return str(word)
    raise config.refusal(
        f"`architectures` {shown(word)} is not read for {config.model_type}: its head may differ",
        f'write "architectures": ["{classes[0]}"] to count the language model',
        "architectures",
    )


def check_code(config: Config, own_code: tuple[str, ...] | None) -> None:
    """Refuse an `auto_map` unless it names what the library took over: modules called after the type, or `own_code` of
    a lineage, in the same place; None where no code is known to be read.

    `modeling_falcon.FalconForCausalLM` is; `bert_layers.BertForMaskedLM` and `other/repository--...` may be anything.
    """
    named = config["auto_map"]
    if not named:
        return
    stem = config.model_type.replace("-", "_").lower()
    models = [value for key, value in named.items() if "Model" in key] if isinstance(named, dict) else [None]
    modules = [value.partition(".")[0].lower() if isinstance(value, str) else "" for value in models]
    is_known = all(
        module in (own_code or ()) or (module.startswith("model") and "--" not in module and stem in module)
        for module in modules
    )
    if own_code is None or not is_known:
        what = "`auto_map` names code of its own, which is not read"
        raise config.refusal(what, "describe the model in YAML instead", "auto_map")


def _unknown_type(model_type: object, origin: Origin) -> CostcalcError:
    if model_type is None:
        return origin.refusal("no `model_type`", f'add "model_type", such as {USUAL}', [()])
    close = nearest(str(model_type), LINEAGES, count=2)
    hint = f"nearest: {', '.join(close)}" if close else f"{len(LINEAGES)} are known, such as {USUAL}"
    what = f"the model_type {shown(model_type)} is not read"
    return origin.refusal(what, f"{hint}; or describe the model in YAML", [("model_type",)])
