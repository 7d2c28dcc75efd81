"""config.json files of `transformers` models: which reader reads which `model_type`.

A lineage is one module here with a `READERS` table, from model type to a function Config -> the full form of an
architecture, and a `CLASSES` table of the classes that are read, the usual one first: `architectures` picks one, which
the reader finds in `config.model_class`. To add a lineage: its class defaults under `defaults/`, its module, a line in
LINEAGES, its recorded cases.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from costcalc.architecture.written import FullForm
from costcalc.errors import CostcalcError, nearest, shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.origin import Origin

LINEAGES = {
    "albert": "albert",
    "arcee": "like_llama",
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
    "ctrl": "gpt",
    "cwm": "like_llama",
    "data2vec-text": "bert",
    "distilbert": "distilbert",
    "electra": "electra",
    "ernie": "bert",
    "ernie4_5": "like_llama",
    "eurobert": "rotary_encoders",
    "exaone": "exaone",
    "exaone4": "exaone",
    "falcon": "falcon",
    "gemma": "gemma",
    "gemma2": "gemma",
    "gemma3_text": "gemma",
    "glm": "glm",
    "glm4": "glm",
    "gpt-sw3": "gpt",
    "gpt2": "gpt2",
    "gpt_bigcode": "gpt_bigcode",
    "gpt_neo": "gpt_neo",
    "gpt_neox": "gpt_neox",
    "gpt_neox_japanese": "gpt_neox",
    "gptj": "gptj",
    "granite": "granite",
    "granite_swa": "granite",
    "helium": "like_llama",
    "hunyuan_v1_dense": "like_llama",
    "hyperclovax": "granite",
    "internlm3": "like_llama",
    "iquestcoder": "like_llama",
    "jais2": "rotary_decoders",
    "jina_embeddings_v3": "rotary_encoders",
    "llama": "llama",
    "m2m_100": "marian",
    "marian": "marian",
    "mbart": "bart",
    "megatron-bert": "bert",
    "ministral": "mistral",
    "ministral3": "mistral",
    "mistral": "mistral",
    "modernbert": "modernbert",
    "modernbert-decoder": "modernbert",
    "mpt": "mpt",
    "mt5": "t5",
    "mvp": "bart",
    "nanochat": "like_llama",
    "nemotron": "rotary_decoders",
    "nomic_bert": "rotary_encoders",
    "olmo": "olmo",
    "olmo2": "olmo",
    "olmo3": "olmo",
    "openai-gpt": "gpt",
    "opt": "opt",
    "pegasus": "marian",
    "persimmon": "rotary_decoders",
    "phi": "phi",
    "phi3": "phi",
    "plbart": "bart",
    "qwen2": "qwen",
    "qwen3": "qwen",
    "roberta": "bert",
    "roberta-prelayernorm": "bert",
    "seed_oss": "like_llama",
    "smollm3": "smollm3",
    "stablelm": "rotary_decoders",
    "starcoder2": "rotary_decoders",
    "t5": "t5",
    "umt5": "t5",
    "vaultgemma": "gemma",
    "xglm": "opt",
    "xlm-roberta": "bert",
    "xlm-roberta-xl": "bert",
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
    config.model_class = _class_of(config, lineage.CLASSES[model_type])
    written: dict[str, Any] = lineage.READERS[model_type](config)
    config.refuse_unread()
    return FullForm(source=f"config.json of model type {model_type}{_defaults_said(config.assumed())}", **written)


def _defaults_said(keys: list[str]) -> str:
    """What the file left to its class, for the line that says where a model came from."""
    if not keys:
        return ""
    more = f" and {len(keys) - MOST_SAID} more" if len(keys) > MOST_SAID else ""
    return f"; class defaults for {', '.join(keys[:MOST_SAID])}{more}"


def _class_of(config: Config, classes: tuple[str, ...]) -> str:
    """`architectures` picks the head among the classes that are read; where it says nothing, the usual one."""
    named = config.data.get("architectures")
    word = named[0] if isinstance(named, list) and len(named) == 1 else named
    if config["auto_map"] and not (word in classes and _is_the_librarys(config)):
        raise config.refusal(
            "`auto_map` names code of its own, which is not read", "describe the model in YAML instead", "auto_map"
        )
    if named in (None, []):
        return classes[0]
    if isinstance(named, list) and word in classes:
        return str(word)
    raise config.refusal(
        f"`architectures` {shown(word)} is not read for {config.model_type}: its head may differ",
        f'write "architectures": ["{classes[0]}"] to count the language model',
        "architectures",
    )


def _is_the_librarys(config: Config) -> bool:
    """Whether `auto_map` names the code that the library took over: a module called after the type, in the same place.

    `modeling_falcon.FalconForCausalLM` is; `bert_layers.BertForMaskedLM` and `other/repository--...` may be anything.
    """
    named = config["auto_map"]
    stem = config.model_type.replace("-", "_").lower()
    models = [value for key, value in named.items() if "Model" in key] if isinstance(named, dict) else [None]
    modules = [value.partition(".")[0].lower() if isinstance(value, str) else "" for value in models]
    return all(module.startswith("model") and "--" not in module and stem in module for module in modules)


def _unknown_type(model_type: object, origin: Origin) -> CostcalcError:
    if model_type is None:
        return origin.refusal("no `model_type`", f'add "model_type", such as {USUAL}', [()])
    close = nearest(str(model_type), LINEAGES, count=2)
    hint = f"nearest: {', '.join(close)}" if close else f"{len(LINEAGES)} are known, such as {USUAL}"
    what = f"the model_type {shown(model_type)} is not read"
    return origin.refusal(what, f"{hint}; or describe the model in YAML", [("model_type",)])
