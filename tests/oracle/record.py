"""Record ground truth for six decoder classes from the real `transformers` classes, on torch's meta device.

Nothing is downloaded and no weight is allocated: a config is built from what a raw `config.json` would hold, the class
is built on the meta device, its parameters are counted and `FlopCounterMode` watches the forward passes.

Run it in a throwaway environment, never in the project's own (README.md beside this file says what each field means):

    python -m venv throwaway && throwaway/bin/pip install torch==2.13.0 'transformers==5.24.*'
    throwaway/bin/python tests/oracle/record.py               # rewrites decoders.json beside this file
    throwaway/bin/python tests/oracle/record.py --defaults    # rewrites the class defaults the importers read
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
from torch.utils.flop_counter import FlopCounterMode

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent
DEFAULTS = HERE.parents[1] / "costcalc" / "sources" / "huggingface" / "defaults"
CLASSES = {
    "gpt2": "GPT2LMHeadModel",
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
}
KV_MAY_BE_NULL = {"llama", "qwen2", "qwen3"}
HEADS_MUST_DIVIDE = {"llama", "gemma2"}
QWEN = {"qwen2", "qwen3"}

# Changes to the class defaults, `;` between cases; two layers where a case does not say, since full-size ones are slow.
COMMON = """
    num_hidden_layers=1; num_hidden_layers=3; num_hidden_layers=7; tie_word_embeddings=true; tie_word_embeddings=false;
    num_hidden_layers=1 vocab_size=1; vocab_size=5027 intermediate_size=8191; num_key_value_heads=1 intermediate_size=1;
    rope_theta=1e6 rope_scaling=null torch_dtype="bfloat16"; rope_scaling={"type":"linear","factor":2.0} use_cache=false
"""
QWEN_WINDOWS = """;
    num_hidden_layers=3 use_sliding_window=true sliding_window=5 max_window_layers=0;
    num_hidden_layers=3 use_sliding_window=true sliding_window=8 max_window_layers=1;
    num_hidden_layers=3 use_sliding_window=true sliding_window=3 max_window_layers=9;
    use_sliding_window=true sliding_window=17; use_sliding_window=true sliding_window=null max_window_layers=0;
    use_sliding_window=false sliding_window=5 max_window_layers=0; sliding_window=5 max_window_layers=0;
    use_sliding_window=true sliding_window=5 layer_types=FSSF; use_sliding_window=true sliding_window=8 layer_types=FF;
"""
CASES = {
    "gpt2": """
    n_layer=1; n_layer=3; n_layer=7; tie_word_embeddings=true; tie_word_embeddings=false; n_layer=1 vocab_size=1;
    n_inner=1; n_inner=3071; n_inner=null n_embd=60; n_head=1; n_head=768; n_positions=48; n_positions=2048 n_ctx=48;
    hidden_size=60 num_hidden_layers=3 num_attention_heads=4 max_position_embeddings=77; hidden_size=36 n_inner=50;
    n_embd=48 hidden_size=36; num_key_value_heads=1 head_dim=10 intermediate_size=10; add_cross_attention=true;
    reorder_and_upcast_attn=true scale_attn_by_inverse_layer_idx=true; n_ctx=1024 torch_dtype="float32" use_cache=false
    """,
    "llama": f"""{COMMON};
    attention_bias=true; mlp_bias=true; attention_bias=true mlp_bias=true num_key_value_heads=8; num_key_value_heads=32;
    num_key_value_heads=null head_dim=null; head_dim=192; head_dim=64 num_key_value_heads=4; hidden_size=192;
    layer_types=FF pretraining_tp=2
    """,
    "mistral": f"""{COMMON};
    sliding_window=3; sliding_window=5; sliding_window=8; sliding_window=17; sliding_window=null;
    num_key_value_heads=32 head_dim=null; hidden_size=5121 head_dim=160; hidden_size=4101;
    attention_bias=true mlp_bias=true; sliding_window=5 layer_types=SS; sliding_window=5 layer_types=FF
    """,
    "qwen2": f"""{COMMON}{QWEN_WINDOWS}
    num_key_value_heads=null; head_dim=64; hidden_size=4101; attention_bias=false mlp_bias=true
    """,
    "qwen3": f"""{COMMON}{QWEN_WINDOWS}
    num_key_value_heads=null; attention_bias=true; head_dim=64 hidden_size=1025;
    hidden_size=100 num_attention_heads=5 num_key_value_heads=5
    """,
    "gemma2": f"""{COMMON};
    num_hidden_layers=3 sliding_window=3; sliding_window=5; sliding_window=8; num_hidden_layers=3 sliding_window=17;
    sliding_window=5 layer_types=FSSFS; sliding_window=5 layer_types=FF; attention_bias=true mlp_bias=true;
    num_key_value_heads=8 head_dim=288; head_dim=64; final_logit_softcapping=null attn_logit_softcapping=null;
    query_pre_attn_scalar=100 use_bidirectional_attention=true
    """,
}
# What the library will not build, or will not run.
REFUSED = {
    "gpt2": "n_head=5; n_embd=100 n_head=12",
    "llama": """
    hidden_size=100 num_attention_heads=8; hidden_size=100 num_attention_heads=8 head_dim=16; hidden_size=224;
    head_dim=7; num_key_value_heads=5
    """,
    "mistral": "num_key_value_heads=null; num_attention_heads=4; sliding_window=5 layer_types=SF",
    "qwen2": "head_dim=null; use_sliding_window=false sliding_window=5 layer_types=SF",
    "qwen3": "head_dim=null; num_hidden_layers=3 layer_types=FF",
    "gemma2": "hidden_size=100; sliding_window=null; layer_types=XF",
}


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        changes = dict(word.split("=", 1) for word in case.split())
        diff = {key: json.loads(value) for key, value in changes.items() if key != "layer_types"}
        if "layer_types" in changes:
            names = {"S": "sliding_attention", "F": "full_attention", "X": "local_attention"}
            diff["layer_types"] = [names[letter] for letter in changes["layer_types"]]
        if not {"n_layer", "num_hidden_layers"} & diff.keys():
            layers = len(diff.get("layer_types", (1, 2)))
            diff = {"n_layer" if model_type == "gpt2" else "num_hidden_layers": layers, **diff}
        yield case.replace(" ", ",").replace('"', ""), diff


def random_config(model_type: str, rng: random.Random) -> Config:
    """A small whole config of odd sizes, with every switch that the class knows drawn at random."""
    layers, heads = rng.choice((1, 2, 3, 5, 7)), rng.choice((1, 2, 3, 4, 5, 6, 8))
    config: Config = {"vocab_size": rng.choice((1, 13, 97, 1000, 2003)), "tie_word_embeddings": rng.random() < 0.5}
    if model_type == "gpt2":
        sizes = (layers, heads * rng.choice((1, 3, 8, 17)), heads, rng.choice((48, 64, 99, 512)))
        old = ("n_layer", "n_embd", "n_head", "n_positions")
        new = ("num_hidden_layers", "hidden_size", "num_attention_heads", "max_position_embeddings")
        config |= {rng.choice(names): size for names, size in zip(zip(old, new, strict=True), sizes, strict=True)}
        return config | rng.choice(({}, {"n_inner": None}, {"n_inner": rng.randint(1, 300)}))
    config |= {"num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": rng.randint(1, 400)}
    config["num_key_value_heads"] = rng.choice([k for k in range(1, heads + 1) if heads % k == 0])
    if model_type in KV_MAY_BE_NULL and rng.random() < 0.25:
        config["num_key_value_heads"] = None
    spare = 0 if model_type in HEADS_MUST_DIVIDE else rng.randrange(heads)
    config["hidden_size"] = heads * rng.choice((2, 4, 6, 10, 16)) + spare
    head_dim: list[Config] = [{"head_dim": h} for h in (2, 4, 8, 14, 20, 32)]
    if model_type in ("llama", "mistral", "qwen2"):
        head_dim += [{}] * 6 + ([{"head_dim": None}] * 3 if model_type != "qwen2" else [])
    config |= rng.choice(head_dim)
    if model_type in ("llama", "qwen3", "gemma2"):
        config["attention_bias"] = rng.random() < 0.5
    if model_type == "llama":
        config["mlp_bias"] = rng.random() < 0.5
    if model_type != "llama":
        config["sliding_window"] = rng.choice((2, 3, 5, 8, 11, 16, 17, 47, 48, 49))
    if model_type in QWEN:
        config["use_sliding_window"] = rng.random() < 0.8
        config["max_window_layers"] = rng.choice((0, 1, 2, layers, layers + 2))
    if (model_type == "gemma2" or config.get("use_sliding_window")) and rng.random() < 0.5:
        config["layer_types"] = rng.choices(("sliding_attention", "full_attention"), k=layers)
    return config | rng.choice(({}, {}, {"rope_theta": 5e5, "rope_scaling": None, "torch_dtype": "float16"}))


def build(config: Config) -> Any:
    """The real causal class of a raw `config.json` dict, on the meta device."""
    raw = copy.deepcopy(config)  # the library writes into a rope_scaling dict it is handed
    model_type = raw.pop("model_type")
    settings = transformers.CONFIG_MAPPING[model_type](**raw)
    settings._attn_implementation = "eager"
    with torch.device("meta"):
        model = getattr(transformers, CLASSES[model_type])(settings)
    model.eval()
    model.tie_weights()
    return model


def forward(model: Any, new: int, batch: int = 1, cache: Any = None) -> tuple[int, Any]:
    """FLOPs of one pass over `new` tokens for each of `batch` sequences, and the cache after it."""
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        output = model(input_ids=torch.zeros((batch, new), dtype=torch.long), cache=cache, use_cache=True)
    return counter.get_total_flops(), output.cache


def held(cache: Any) -> int:
    """Elements that the self-attention part of a cache holds."""
    cache = getattr(cache, "self_attention_cache", cache)
    return sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers)


def measure(config: Config, extra: bool) -> dict[str, int]:
    """All the numbers of one row; `extra` adds the batch of three and the decode step of five tokens."""
    model = build(config)
    row = {"params": sum(p.numel() for p in model.parameters())}
    row["flops16"], after16 = forward(model, 16)
    row["flops48"], after48 = forward(model, 48)
    row["decode48"] = forward(model, 1, cache=forward(model, 47)[1])[0]
    row |= {"cache16": held(after16), "cache48": held(after48)}
    if extra:
        row["flops11_batch3"] = forward(model, 11, batch=3)[0]
        row["flops5_past13"] = forward(model, 5, cache=forward(model, 13)[1])[0]
    return row


def record(randoms: int) -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order."""
    for model_type in CLASSES:
        rng = random.Random(f"costcalc {model_type}")
        drawn = ((f"random-{n:02d}", random_config(model_type, rng)) for n in range(randoms))
        for name, diff in (*cases(model_type, CASES[model_type]), *drawn):
            config = {"model_type": model_type, **diff}
            numbers = measure(config, extra := name in ("random-00", "random-01") or "sliding_window=5" in name)
            full = json.loads(json.dumps(build(config).config.to_dict()))
            if measure(full, extra) != numbers:
                raise SystemExit(f"{model_type}/{name}: the full to_dict() gives other numbers")
            yield {"id": f"{model_type}/{name}", "config": config, "full": True, **numbers}
        for name, diff in cases(model_type, REFUSED[model_type]):
            config = {"model_type": model_type, **diff}
            doing = "build"
            try:
                build(config)
                doing = "run"
                measure(config, extra=False)
            except Exception as error:  # whatever the library raises is the record
                reason = f"{doing}: {str(error).splitlines()[-1].strip()}"
                yield {"id": f"{model_type}/refused/{name}", "config": config, "error": reason[:160]}
            else:
                raise SystemExit(f"{model_type}/{name}: expected the library to refuse this")


def write_defaults() -> None:
    """The raw field defaults of each config class, as they are before `__post_init__` resolves any null."""
    DEFAULTS.mkdir(parents=True, exist_ok=True)
    for model_type in CLASSES:
        cls = transformers.CONFIG_MAPPING[model_type]
        data = {field.name: field.default for field in dataclasses.fields(cls) if field.name in cls.__annotations__}
        if cls.attribute_map:
            data["_aliases"] = dict(cls.attribute_map)
        data["_provenance"] = f"transformers {transformers.__version__} {cls.__name__} field defaults"
        (DEFAULTS / f"{model_type}.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Parse the command line and write."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defaults", action="store_true", help="write the class defaults instead")
    parser.add_argument("--randoms", type=int, default=12, help="random configs a class")
    options = parser.parse_args()
    if options.defaults:
        write_defaults()
        return
    rows = [json.dumps(row, separators=(",", ":")) for row in record(options.randoms)]
    (HERE / "decoders.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
