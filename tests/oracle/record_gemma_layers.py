"""Record ground truth for Gemma-3n and Gemma-4, in the manner of `record.py`, but on real tensors.

On the meta device a network with sparse activations does not run (5.24.0): its bound is asked for a number. So models
are small, but for the published shapes, of which parameters alone are counted.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_gemma_layers.py               # rewrites gemma_layers.json
    throwaway/bin/python tests/oracle/record_gemma_layers.py --defaults    # rewrites the importers' class defaults
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
from gemma_layers_cases import CASES, LETTERS, REFUSED, SHAPES, SMALL, drawn
from record import DEFAULTS
from torch.utils.flop_counter import FlopCounterMode

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent
CLASSES = {
    "gemma3n_text": "Gemma3nForCausalLM",
    "gemma4": "Gemma4ForConditionalGeneration",
    "gemma4_text": "Gemma4ForCausalLM",
    "gemma4_unified_text": "Gemma4UnifiedForCausalLM",
}
TYPES = (*CLASSES, "gemma3n", "gemma4_unified")
"""Those whose class defaults are written."""


def build(config: Config, device: str = "cpu") -> Any:
    """The real class of a raw `config.json` dict, with the library's own random numbers."""
    raw = copy.deepcopy(config)
    model_type = raw.pop("model_type")
    settings = transformers.CONFIG_MAPPING[model_type](**raw)
    for part in (settings, settings.get_text_config()):
        part._attn_implementation = part._experts_implementation = "eager"
    torch.manual_seed(0)
    with torch.device(device):
        model = getattr(transformers, CLASSES[model_type])(settings)
    model.eval()
    model.tie_weights()
    return model


def forward(model: Any, new: int, cache: Any = None, batch: int = 1) -> tuple[int, Any]:
    """FLOPs of one pass over `new` tokens of each sequence, and the cache after it."""
    tokens = torch.randint(0, 50, (batch, new))
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        output = model(input_ids=tokens, cache=cache, use_cache=True)
    return counter.get_total_flops(), output.cache


def held(cache: Any) -> int:
    """Elements that a cache holds; layers that share another's have none."""
    return sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers if layer.keys is not None)


def counted(model: Any) -> dict[str, int]:
    """Parameters, and the buffers that a checkpoint holds."""
    kept = model.state_dict()
    buffers = [buffer for name, buffer in model.named_buffers() if name in kept]
    return {"params": sum(p.numel() for p in model.parameters()), "buffers": sum(b.numel() for b in buffers)}


def measure(config: Config) -> dict[str, int]:
    """All the numbers of one row."""
    model = build(config)
    row = counted(model)
    row["flops16"], after16 = forward(model, 16)
    row["flops48"], after48 = forward(model, 48)
    row["decode48"] = forward(model, 1, forward(model, 47)[1])[0]
    row |= {"cache16": held(after16), "cache48": held(after48)}
    row["flops11_batch3"] = forward(model, 11, batch=3)[0]
    row["flops5_past13"] = forward(model, 5, forward(model, 13)[1])[0]
    return row


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the whole config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        diff = {key: json.loads(value) for key, value in (word.split("=", 1) for word in case.split())}
        if isinstance(diff.get("layer_types"), str):
            diff["layer_types"] = [LETTERS[letter] for letter in diff["layer_types"]]
        yield case.replace(" ", ",").replace('"', ""), {"model_type": model_type, **SMALL[model_type], **diff}


def record(randoms: int) -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order; `small` holds the whole `to_dict()`."""
    for model_type in SMALL:
        rng = random.Random(f"costcalc {model_type}")
        config = {"model_type": model_type, **SMALL[model_type]}
        whole = {**json.loads(json.dumps(build(config).config.to_dict())), "model_type": model_type}
        yield {"id": f"{model_type}/small", "config": whole, **measure(whole)}
        rows = [*cases(model_type, CASES[model_type])]
        rows += [(f"random-{n:02d}", {"model_type": model_type, **drawn(model_type, rng)}) for n in range(randoms)]
        for name, config in rows:
            try:
                numbers = measure(config)
            except Exception as error:
                raise SystemExit(f"{model_type}/{name}: {error}") from error
            yield {"id": f"{model_type}/{name}", "config": config, **numbers}
        for name, config in cases(model_type, REFUSED.get(model_type, "")):
            yield {"id": f"{model_type}/refused/{name}", "config": config, "error": refusal(config)}
    nested = {"model_type": "gemma4", "text_config": {"model_type": "gemma4_text", **SMALL["gemma4_text"]}}
    yield {"id": "gemma4/small", "config": nested, **measure(nested)}
    for name, config in SHAPES.items():
        yield {"id": f"shape/{name}", "config": config, **counted(build(config, "meta"))}


def refusal(config: Config) -> str:
    """Where the library stops, and the last line of what it says."""
    doing = "build"
    try:
        build(config)
        doing = "run"
        measure(config)
    except Exception as error:  # whatever the library raises is the record
        return f"{doing}: {str(error).splitlines()[-1].strip()}"[:160]
    raise SystemExit(f"{config}: expected the library to refuse this")


def write_defaults() -> None:
    """The raw field defaults of each config class, and of Gemma-4's text models one that is no field of theirs."""
    for model_type in TYPES:
        cls = transformers.CONFIG_MAPPING[model_type]
        data = {field.name: field.default for field in dataclasses.fields(cls) if field.name in cls.__annotations__}
        more = ""
        if model_type in ("gemma4_text", "gemma4_unified_text"):
            data["global_head_dim"] = cls().per_layer_config["full_attention"].head_dim
            more = ", and of what `per_layer_config` is made from"
        data["_provenance"] = f"transformers {transformers.__version__} {cls.__name__} field defaults{more}"
        (DEFAULTS / f"{model_type}.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Parse the command line and write."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defaults", action="store_true", help="write the class defaults instead")
    parser.add_argument("--randoms", type=int, default=12, help="random configs a model type")
    options = parser.parse_args()
    if options.defaults:
        write_defaults()
        return
    rows = [json.dumps(row, separators=(",", ":")) for row in record(options.randoms)]
    (HERE / "gemma_layers.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
