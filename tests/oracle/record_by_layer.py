"""Record ground truth for dense decoders whose attention differs by layer or whose blocks are parallel, as `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_by_layer.py               # rewrites by_layer.json
    throwaway/bin/python tests/oracle/record_by_layer.py --defaults    # rewrites the importers' class defaults
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import warnings
from pathlib import Path
from typing import Any

import transformers
from record import DEFAULTS

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent
CLASSES = {
    "arcee": "ArceeForCausalLM",
    "biogpt": "BioGptForCausalLM",
    "codegen": "CodeGenForCausalLM",
    "cohere": "CohereForCausalLM",
    "cohere2": "Cohere2ForCausalLM",
    "ctrl": "CTRLLMHeadModel",
    "cwm": "CwmForCausalLM",
    "ernie4_5": "Ernie4_5ForCausalLM",
    "exaone": "LlamaForCausalLM",
    "exaone4": "Exaone4ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "glm": "GlmForCausalLM",
    "glm4": "Glm4ForCausalLM",
    "gpt-sw3": "GPT2LMHeadModel",
    "gpt_bigcode": "GPTBigCodeForCausalLM",
    "gpt_neo": "GPTNeoForCausalLM",
    "gpt_neox": "GPTNeoXForCausalLM",
    "gpt_neox_japanese": "GPTNeoXJapaneseForCausalLM",
    "gptj": "GPTJForCausalLM",
    "granite": "GraniteForCausalLM",
    "granite_swa": "GraniteSWAForCausalLM",
    "helium": "HeliumForCausalLM",
    "hunyuan_v1_dense": "HunYuanDenseV1ForCausalLM",
    "hyperclovax": "HyperCLOVAXForCausalLM",
    "internlm3": "LlamaForCausalLM",
    "iquestcoder": "LlamaForCausalLM",
    "jais2": "Jais2ForCausalLM",
    "ministral": "MinistralForCausalLM",
    "ministral3": "Ministral3ForCausalLM",
    "nanochat": "NanoChatForCausalLM",
    "nemotron": "NemotronForCausalLM",
    "olmo": "OlmoForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
    "olmo3": "Olmo3ForCausalLM",
    "openai-gpt": "OpenAIGPTLMHeadModel",
    "opt": "OPTForCausalLM",
    "persimmon": "PersimmonForCausalLM",
    "phi": "PhiForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "seed_oss": "SeedOssForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
    "stablelm": "StableLmForCausalLM",
    "starcoder2": "Starcoder2ForCausalLM",
    "vaultgemma": "VaultGemmaForCausalLM",
    "xglm": "XGLMForCausalLM",
}
# What a config class renames itself, beside its attribute_map.
ROTARY_NAMES = {"rotary_pct": "partial_rotary_factor", "rotary_emb_base": "rope_theta"}
MORE_ALIASES = {"gpt_neox": ROTARY_NAMES, "gpt_neox_japanese": ROTARY_NAMES}
USUAL_ROTARY = {"rope_theta": 10_000.0, "partial_rotary_factor": 1.0}


def write_defaults() -> None:
    """The raw field defaults of each config class, as `record.py` writes them, and of RoPE what a class has its own."""
    for model_type in CLASSES:
        cls = transformers.CONFIG_MAPPING[model_type]
        data = {field.name: field.default for field in dataclasses.fields(cls) if field.name in cls.__annotations__}
        rotary = getattr(cls(), "rope_parameters", None) or {}
        data |= {key: rotary[key] for key, usual in USUAL_ROTARY.items() if rotary.get(key, usual) != usual}
        if aliases := {**cls.attribute_map, **MORE_ALIASES.get(model_type, {})}:
            data["_aliases"] = aliases
        data["_provenance"] = f"transformers {transformers.__version__} {cls.__name__} field defaults"
        (DEFAULTS / f"{model_type}.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Parse the command line and write."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defaults", action="store_true", help="write the class defaults instead")
    parser.add_argument("--randoms", type=int, default=6, help="random configs a model type")
    options = parser.parse_args()
    if options.defaults:
        write_defaults()
        return


if __name__ == "__main__":
    main()
