"""Record ground truth for dense decoders whose attention differs by layer or whose blocks are parallel, as `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_by_layer.py               # rewrites by_layer.json
    throwaway/bin/python tests/oracle/record_by_layer.py --defaults    # rewrites the importers' class defaults
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import logging
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from by_layer_cases import CASES, DEFAULT, FLOORS, HEAD_IS_FREE, LETTERS, OWN, REFUSED, REFUSED_LENGTHS, SMALL, SWITCHES
from record import DEFAULTS, held
from torch.utils.flop_counter import FlopCounterMode

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
TEXTS = ("qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text")
"""Types whose class defaults are written as well: text models that stand in wrappers alone."""
# What a config class renames itself, beside its attribute_map.
ROTARY_NAMES = {"rotary_pct": "partial_rotary_factor", "rotary_emb_base": "rope_theta"}
MORE_ALIASES = {"gpt_neox": ROTARY_NAMES, "gpt_neox_japanese": ROTARY_NAMES}
USUAL_ROTARY = {"rope_theta": 10_000.0, "partial_rotary_factor": 1.0}


def own_name(model_type: str, key: str) -> str:
    """A key as the class calls it."""
    cls = transformers.CONFIG_MAPPING[model_type]
    return key if key in fields(model_type) else cls.attribute_map.get(key, key)


def fields(model_type: str) -> set[str]:
    """The fields that a config class declares."""
    cls = transformers.CONFIG_MAPPING[model_type]
    return {field.name for field in dataclasses.fields(cls) if field.name in cls.__annotations__}


def small(model_type: str, changes: Config) -> Config:
    """A whole small config with some changes, under the names that the class declares."""
    given = {own_name(model_type, key): value for key, value in {**SMALL, **OWN.get(model_type, {})}.items()}
    given = {key: value for key, value in given.items() if key in fields(model_type) or key == "head_dim"}
    if "layer_types" in changes:
        given["num_hidden_layers"] = len(changes["layer_types"])
    for key in transformers.CONFIG_MAPPING[model_type].attribute_map.keys() & changes.keys():
        given.pop(own_name(model_type, key), None)  # one of two names of a field
    return given | changes


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        changes = dict(word.split("=", 1) for word in case.split())
        types = changes.pop("layer_types", None)
        diff = {key: json.loads(value) for key, value in changes.items()}
        if types is not None:
            diff["layer_types"] = [LETTERS[letter] for letter in types]
        whole = small(model_type, diff)
        if types is not None and case in REFUSED_LENGTHS:
            whole["num_hidden_layers"] = 3
        yield case.replace(" ", ",").replace('"', ""), whole


def random_config(model_type: str, rng: random.Random) -> Config:
    """A small whole config of odd sizes, with every switch that the class knows drawn at random."""
    known, layers, heads = fields(model_type), rng.choice((1, 2, 3, 5, 7)), rng.choice((1, 2, 3, 4, 5, 6, 8))
    head_dim = rng.choice((8, 16, 24))
    drawn: Config = {
        "vocab_size": rng.choice((13, 97, 1009, 2003)),
        "hidden_size": heads * head_dim,
        "intermediate_size": rng.choice((1, 29, 37, 211)),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": rng.choice([k for k in range(1, heads + 1) if heads % k == 0]),
        "sliding_window": rng.choice((2, 3, 5, 8, 11, 16, 17, 47, 48, 49)),
        **{key: rng.random() < 0.5 for key in SWITCHES.split()},
        **{key: rng.randint(1, 300) for key in ("ffn_dim", "dff", "n_inner")},
        "pad_token_id": SMALL["pad_token_id"] if model_type not in OWN else OWN[model_type].get("pad_token_id", 0),
        "window_size": rng.choice((2, 3, 5, 8, 11, 17, 47, 48, 49)),
        "intermediate_multiple_size": rng.choice((1, 3, 5)),
        "rotary_dim": rng.choice((2, 4, 8)),
    }
    config = {own_name(model_type, key): value for key, value in drawn.items() if own_name(model_type, key) in known}
    if model_type in HEAD_IS_FREE.split():
        config["head_dim"] = rng.choice((8, 16))
    if model_type in FLOORS.split():
        config["hidden_size"] += rng.randrange(heads)
    if "layer_types" in known and "max_window_layers" not in known and rng.random() < 0.5:
        slides = config.get("use_sliding_window", True)
        config["layer_types"] = rng.choices([*LETTERS.values()][: 2 if slides else 1][::-1], k=layers)
        if not slides:
            config["layer_types"] = ["full_attention"] * layers
    return config | _special(model_type, config, layers, rng)


def _special(model_type: str, config: Config, layers: int, rng: random.Random) -> Config:
    """What one class has alone, or cannot take."""
    if model_type == "gpt_neo":
        return {"attention_types": [[[rng.choice(("global", "local"))], 1] for _ in range(layers)]}
    if model_type == "smollm3":
        return {"no_rope_layers": rng.choice((None, rng.choices((0, 1), k=layers)))}
    if model_type == "granite_swa":
        return {"layer_rope_theta": rng.choice((None, rng.choices((0, 1e4, 5e5), k=layers)))}
    if model_type == "opt":
        narrow = config["tie_word_embeddings"] and rng.random() < 0.5
        return {"word_embed_proj_dim": 20 if narrow else None}
    if model_type == "internlm3":
        return {"mlp_bias": config["attention_bias"]}
    if model_type == "helium":
        return {"head_dim": config["hidden_size"] // config["num_attention_heads"]}
    return {}


def build(config: Config) -> Any:
    """The real class of a raw `config.json` dict, on the meta device."""
    raw = copy.deepcopy(config)
    model_type = raw.pop("model_type")
    settings = transformers.CONFIG_MAPPING[model_type](**raw)
    settings._attn_implementation = "eager"
    with torch.device("meta"):
        model = getattr(transformers, CLASSES[model_type])(settings)
    model.eval()
    model.tie_weights()
    return model


def forward(model: Any, new: int, cache: Any = None) -> tuple[int, Any]:
    """FLOPs of one pass over `new` tokens, and the cache after it; the first GPT has none."""
    given = {} if isinstance(model, transformers.OpenAIGPTLMHeadModel) else {"cache": cache, "use_cache": True}
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        output = model(input_ids=torch.zeros((1, new), dtype=torch.long), **given)
    return counter.get_total_flops(), getattr(output, "cache", None)


def measure(config: Config) -> dict[str, int]:
    """All the numbers of one row."""
    model = build(config)
    row = {"params": sum(p.numel() for p in model.parameters())}
    row["flops16"], after16 = forward(model, 16)
    row["flops48"], after48 = forward(model, 48)
    if after16 is None:
        return row
    row["decode48"] = forward(model, 1, forward(model, 47)[1])[0]
    row |= {"cache16": held(after16), "cache48": held(after48)}
    row["flops5_past13"] = forward(model, 5, forward(model, 13)[1])[0]
    return row


def record(model_types: list[str], randoms: int) -> Iterator[dict[str, Any]]:
    """Every row of these types, in a fixed order; `default` and `random-00` hold the whole `to_dict()`."""
    for model_type in model_types:
        rng = random.Random(f"costcalc {model_type}")
        drawn = [(f"random-{n:02d}", random_config(model_type, rng)) for n in range(randoms)]
        for name, diff in (("default", DEFAULT.get(model_type, {})), *cases(model_type, CASES[model_type]), *drawn):
            config = {"model_type": model_type, **diff}
            try:
                numbers = measure(config)
            except Exception as error:
                raise SystemExit(f"{model_type}/{name}: {error}") from error
            if name in ("default", "random-00"):
                config = {**json.loads(json.dumps(build(config).config.to_dict())), "model_type": model_type}
            yield {"id": f"{model_type}/{name}", "config": config, **numbers}
        for name, diff in cases(model_type, REFUSED.get(model_type, "")):
            config = {"model_type": model_type, **diff}
            doing = "build"
            try:
                build(config)
                doing = "run"
                measure(config)
            except Exception as error:  # whatever the library raises is the record
                reason = f"{doing}: {str(error).splitlines()[-1].strip()}"
                yield {"id": f"{model_type}/refused/{name}", "config": config, "error": reason[:160]}
            else:
                raise SystemExit(f"{model_type}/{name}: expected the library to refuse this")


def write_defaults() -> None:
    """The raw field defaults of each config class, as `record.py` writes them, and of RoPE what a class has its own."""
    for model_type in (*CLASSES, *TEXTS):
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
    parser.add_argument("--only", nargs="*", default=[*CLASSES], help="of these types alone, keeping the other rows")
    options = parser.parse_args()
    if options.defaults:
        write_defaults()
        return
    kept = json.loads((HERE / "by_layer.json").read_text("utf-8")) if set(options.only) != set(CLASSES) else []
    kept = [row for row in kept if row["id"].partition("/")[0] not in options.only]
    order = [*CLASSES]
    made = sorted([*kept, *record(options.only, options.randoms)], key=lambda row: order.index(row["id"].split("/")[0]))
    rows = [json.dumps(row, separators=(",", ":")) for row in made]
    (HERE / "by_layer.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
