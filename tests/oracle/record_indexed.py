"""Record ground truth for classes whose attention meets the keys that an indexer chooses, in the manner of `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_indexed.py               # rewrites indexed.json
    throwaway/bin/python tests/oracle/record_indexed.py --only TYPE   # rewrites the rows of one type
    throwaway/bin/python tests/oracle/record_indexed.py --defaults    # rewrites the importers' class defaults
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from indexed_cases import CASES, CLASSES, REFUSED, cases, raw
from record import DEFAULTS, forward
from record_mixtures import build

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent
UNRUN = frozenset({"longcat_flash"})
"""Types whose classes do not run on the meta device: only parameters and buffers are recorded."""


def held(cache: Any) -> int:
    """Numbers that a cache holds, keys of indexers too."""
    arrays = [getattr(layer, name, None) for layer in cache.layers for name in ("keys", "values", "indexer_keys")]
    return sum(array.numel() for array in arrays if isinstance(array, torch.Tensor))


def measure(config: Config, more: bool) -> dict[str, int]:
    """All the numbers of one row; without `more`, of a class as deep as it is, those of 16 tokens alone."""
    model = build(config)
    row = {"params": sum(p.numel() for p in model.parameters())}
    row["buffers"] = sum(b.numel() for name, b in model.named_buffers() if name in model.state_dict())
    if config["model_type"] in UNRUN:
        return row
    row["flops16"], after16 = forward(model, 16)
    row["cache16"] = held(after16)
    if more:
        row["flops48"], after48 = forward(model, 48)
        row["cache48"] = held(after48)
        row["decode48"] = forward(model, 1, cache=forward(model, 47)[1])[0]
        row["flops11_batch3"] = forward(model, 11, batch=3)[0]
        row["flops5_past13"] = forward(model, 5, cache=forward(model, 13)[1])[0]
    return row


def record(model_type: str) -> Iterator[dict[str, Any]]:
    """Every row of a type, in a fixed order."""
    named, aliases = CLASSES[model_type], transformers.CONFIG_MAPPING[model_type].attribute_map
    default = {"model_type": model_type, "architectures": [named]}
    yield {"id": f"{model_type}/default", "config": default, **measure(default, False)}
    small = raw(model_type, {}, aliases)
    whole = {**json.loads(json.dumps(build(small).config.to_dict())), "architectures": [named]}
    yield {"id": f"{model_type}/small", "config": whole, **measure(small, True)}
    for name, config in cases(model_type, CASES[model_type], aliases):
        try:
            yield {"id": f"{model_type}/{name}", "config": config, **measure(config, True)}
        except Exception as error:
            raise SystemExit(f"{model_type}/{name}: {error}") from error
    for name, config in cases(model_type, REFUSED.get(model_type, ""), aliases):
        try:
            measure(config, True)
        except Exception as error:  # whatever the library raises is the record
            said = str(error).splitlines()[-1].strip()[:160]
            yield {"id": f"{model_type}/refused/{name}", "config": config, "error": said}
        else:
            raise SystemExit(f"{model_type}/{name}: expected the library to refuse this")


def write_defaults(types: list[str]) -> None:
    """The raw field defaults of each config class and of those that it is made of, as `record.py` writes them."""
    for model_type in types:
        cls = transformers.CONFIG_MAPPING[model_type]
        own = {name for base in cls.__mro__ if issubclass(base, transformers.PreTrainedConfig)
               and base is not transformers.PreTrainedConfig for name in base.__annotations__}  # fmt: skip
        data = {field.name: field.default for field in dataclasses.fields(cls) if field.name in own}
        data = {key: value for key, value in data.items() if not isinstance(value, AttributeError)}
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
    parser.add_argument("--only", nargs="*", default=list(CLASSES), help="model types")
    options = parser.parse_args()
    if options.defaults:
        write_defaults(options.only)
        return
    path = HERE / "indexed.json"
    made = {model_type: list(record(model_type)) for model_type in options.only}
    before = json.loads(path.read_text("utf-8")) if path.exists() else []
    rows = {model_type: [row for row in before if row["id"].startswith(f"{model_type}/")] for model_type in CLASSES}
    rows |= made
    lines = [json.dumps(row, separators=(",", ":")) for some in rows.values() for row in some]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
