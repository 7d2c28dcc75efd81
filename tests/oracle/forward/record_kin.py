"""Record the logits of tiny random encoders that are BERT with differences, from the real `transformers` classes.

    throwaway/bin/python tests/oracle/forward/record_kin.py             # rewrites the .npz files of models_kin.py
    throwaway/bin/python tests/oracle/forward/record_kin.py deberta     # these only

Every parameter is drawn from a fixed seed. The file holds the config as a raw `config.json` would have it, the tokens,
the logits in float64, and the parameters under the names that this project's paths have.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from models_kin import MODELS, NAMES, TRANSPOSED, of_one_token

HERE = Path(__file__).resolve().parent
TOKENS = 13


def build(config: dict[str, Any], rng: np.random.Generator) -> Any:
    """The class, with matrices of deviation 1 / sqrt(inputs) and vectors around what is neutral."""
    keys = {key: value for key, value in config.items() if key not in ("model_type", "architectures")}
    settings = transformers.CONFIG_MAPPING[config["model_type"]](**keys)
    settings._attn_implementation = "eager"
    model = getattr(transformers, config["architectures"][0])(settings).eval().double()
    for name, tensor in model.named_parameters():
        if not tensor.requires_grad:
            continue  # a table of sines
        last = name.rpartition(".")[2]
        is_gain = tensor.ndim == 1 and last == "weight"
        deviation = 0.3 if tensor.ndim == 1 else tensor[0].numel() ** -0.5 * 1.5
        values = rng.normal(size=tuple(tensor.shape)) * deviation + is_gain
        tensor.data.copy_(torch.from_numpy(values.astype(np.float32).astype(np.float64)))
    model.tie_weights()
    return model


def halves_of_pairs(config: dict[str, Any], path: str, value: np.ndarray) -> np.ndarray:
    """Neighbours that RoFormer rotates together stand half a head apart here; also in values, so in the output too."""
    heads, width = config["num_attention_heads"], config["hidden_size"]
    order = np.arange(width).reshape(heads, -1, 2).transpose(0, 2, 1).reshape(-1)
    if path.endswith("attention.output.weight"):
        return value[:, order]
    return value if "attention.output" in path else value[order]


def ours(config: dict[str, Any], model: Any) -> dict[str, np.ndarray]:
    """The parameters under our paths, matrices as (inputs, outputs)."""
    found = {}
    for name, tensor in model.named_parameters():
        path = name
        for pattern, becomes in NAMES[config["model_type"]]:
            path = re.sub(pattern, becomes, path)
        value = tensor.detach().numpy()
        if config["model_type"] == "roformer" and ".attention." in path:
            value = halves_of_pairs(config, path, value)
        if path.endswith("attention.in_proj.weight"):  # of each head its queries, keys and values, one after another
            parts = value.reshape(config["num_attention_heads"], 3, -1, value.shape[1])
            for index, letter in enumerate("qkv"):
                matrix = parts[:, index].reshape(-1, value.shape[1]).T
                found[path.replace("in_proj.weight", letter)] = np.ascontiguousarray(matrix.astype(np.float32))
            continue
        if config["model_type"] == "squeezebert" and value.ndim == 3:
            value = of_one_token(value)
        for pattern, turn in TRANSPOSED:
            if re.search(pattern, path):
                value = turn(value)
                break
        else:
            value = value.T if value.ndim == 2 and path.endswith(".weight") else value
        path = re.sub(r"\.weight$", "", re.sub(r"\.bias$", "_bias", path))
        found[path] = np.ascontiguousarray(value.astype(np.float32))
    return of_languages(config, found)


def of_languages(config: dict[str, Any], found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """X-MOD's adapters as one array, one behind the other."""
    joined = {}
    for path, value in found.items():
        stem, _, last = path.rpartition(".")
        code = last.removesuffix("_bias")
        if code not in config.get("languages", ()):
            joined[path] = value
        elif code == config["languages"][0]:
            every = [found[f"{stem}.{word}{last[len(code) :]}"] for word in config["languages"]]
            joined[f"{stem}{last[len(code) :]}"] = np.stack(every)
    return joined


def record(name: str) -> None:
    """Write one model's file."""
    config = MODELS[name]
    rng = np.random.default_rng(list(name.encode()))
    model = build(config, rng)
    tokens = torch.from_numpy(rng.integers(7, config.get("vocab_size", 61), (2, TOKENS)))
    with torch.no_grad():
        logits = model(input_ids=tokens).logits
    arrays = {"tokens": tokens.numpy(), "logits": logits.numpy(), **ours(config, model)}
    np.savez_compressed(HERE / f"{name}.npz", config=np.array(json.dumps(config)), **arrays)
    print(name, tuple(logits.shape), float(logits.abs().max()))


def main() -> None:
    """Those that are asked for, or all."""
    for name in sys.argv[1:] or MODELS:
        record(name)


if __name__ == "__main__":
    main()
