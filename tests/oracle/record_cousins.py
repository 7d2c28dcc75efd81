"""Record ground truth for decoders near Llama, each with something of its own, in the manner of `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_cousins.py                   # rewrites cousins.json
    throwaway/bin/python tests/oracle/record_cousins.py --only apertus    # prints the rows of these types
    throwaway/bin/python tests/oracle/record_cousins.py --defaults        # rewrites the importers' class defaults
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from cousins_cases import CASES, CLASSES, DATA_DEPENDENT, REFUSED, cases, changed
from record import DEFAULTS
from torch.utils.flop_counter import FlopCounterMode

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent


def build(config: Config) -> Any:
    """The class that a raw `config.json` dict names, on the meta device where it runs there."""
    data = copy.deepcopy(config)
    model_type, (named,) = data.pop("model_type"), data.pop("architectures")
    settings = transformers.CONFIG_MAPPING[model_type](**data)
    settings._attn_implementation, settings._experts_implementation = "eager", "batched_mm"
    with torch.device("cpu" if model_type in DATA_DEPENDENT else "meta"):
        model = getattr(transformers, named)(settings)
    model.eval()
    model.tie_weights()
    return model


def forward(model: Any, new: int, batch: int = 1, cache: Any = None) -> tuple[int, Any]:
    """FLOPs of one pass over `new` tokens for each of `batch` sequences, and the cache after it."""
    with torch.device(model.device), torch.no_grad(), FlopCounterMode(display=False) as counter:
        output = model(input_ids=torch.zeros((batch, new), dtype=torch.long), cache=cache, use_cache=True)
    return counter.get_total_flops(), output.cache


def held(cache: Any) -> int:
    """Elements of keys and values."""
    return sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers)


def measure(config: Config, more: bool) -> dict[str, int]:
    """All the numbers of one row; `more` adds a batch of three, and five tokens after thirteen."""
    model = build(config)
    row = {"params": sum(p.numel() for p in model.parameters())}
    row["trainable"] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    row["buffers"] = sum(b.numel() for name, b in model.named_buffers() if name in model.state_dict())
    model.requires_grad_(False)  # experts' views of one array have no gradients that the counter could follow
    row["flops16"], after16 = forward(model, 16)
    row["flops48"], after48 = forward(model, 48)
    row["decode48"] = forward(model, 1, cache=forward(model, 47)[1])[0]
    row |= {"cache16": held(after16), "cache48": held(after48)}
    if more:
        row["flops11_batch3"] = forward(model, 11, batch=3)[0]
        row["flops5_past13"] = forward(model, 5, cache=forward(model, 13)[1])[0]
    return row


def record(only: list[str]) -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order."""
    for model_type in only or CLASSES:
        plain = {"model_type": model_type, "architectures": [CLASSES[model_type]]}
        if model_type not in DATA_DEPENDENT:
            yield {"id": f"{model_type}/default", "config": plain, **measure(plain, False)}
        small = changed(model_type, "")
        whole = {**json.loads(json.dumps(build(small).config.to_dict())), "architectures": small["architectures"]}
        yield {"id": f"{model_type}/small", "config": whole, **measure(small, True)}
        for name, config in cases(model_type, CASES[model_type]):
            yield {"id": f"{model_type}/{name}", "config": config, **measure(config, False)}
        for name, config in cases(model_type, REFUSED[model_type]):
            doing = "build"
            try:
                build(config)
                doing = "run"
                measure(config, False)
            except Exception as error:  # whatever the library raises is the record
                reason = f"{doing}: {str(error).splitlines()[-1].strip()}"
                yield {"id": f"{model_type}/refused/{name}", "config": config, "error": reason[:160]}
            else:
                raise SystemExit(f"{model_type}/{name}: expected the library to refuse this")


def write_defaults() -> None:
    """The raw field defaults of each config class, under the names of its fields, and the other names of those."""
    for model_type in CLASSES:
        cls = transformers.CONFIG_MAPPING[model_type]
        data = {field.name: field.default for field in dataclasses.fields(cls) if field.name in cls.__annotations__}
        pairs = [(new, old) if old in data else (old, new) for old, new in (cls.attribute_map or {}).items()]
        if model_type == "dbrx":  # its importer calls sizes as all others do
            pairs = [(old, new) for new, old in cls.attribute_map.items()]
            data = {dict(pairs).get(key, key): value for key, value in data.items()}
        if pairs:
            data["_aliases"] = dict(pairs)
        data["_provenance"] = f"transformers {transformers.__version__} {cls.__name__} field defaults"
        (DEFAULTS / f"{model_type}.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Parse the command line and write."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defaults", action="store_true", help="write the class defaults instead")
    parser.add_argument("--only", nargs="*", default=[], help="print the rows of these model types, and write nothing")
    options = parser.parse_args()
    if options.defaults:
        write_defaults()
        return
    rows = [json.dumps(row, separators=(",", ":")) for row in record(options.only)]
    if options.only:
        print("\n".join(rows))
        return
    (HERE / "cousins.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
