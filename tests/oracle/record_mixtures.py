"""Record ground truth for mixtures of experts with grouped-query attention, in the manner of `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_mixtures.py               # rewrites mixtures.json
    throwaway/bin/python tests/oracle/record_mixtures.py --defaults    # rewrites the importers' class defaults
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
from mixture_cases import CASES, CLASSES, NO_DEFAULT, REFUSED, TEXTS, cases, changed, drawn, raw
from record import DEFAULTS, forward, held

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent


def build(config: Config) -> Any:
    """The class that a raw `config.json` dict names, on the meta device, so that only chosen experts are multiplied."""
    data = copy.deepcopy(config)
    model_type, (named,) = data.pop("model_type"), data.pop("architectures")
    settings = transformers.CONFIG_MAPPING[model_type](**data)
    for part in (settings, settings.get_text_config()):
        part._attn_implementation, part._experts_implementation = "eager", "batched_mm"
    with torch.device("meta"):
        model = getattr(transformers, named)(settings)
    model.eval()
    model.tie_weights()
    return model


def measure(config: Config, more: bool) -> dict[str, int]:
    """All the numbers of one row; `more` adds a batch of three, and five tokens after thirteen."""
    model = build(config)
    parameters = {name: p for name, p in model.named_parameters() if ".visual." not in name}
    row = {"params": sum(p.numel() for p in parameters.values())}
    row["trainable"] = sum(p.numel() for p in parameters.values() if p.requires_grad)
    row["buffers"] = sum(b.numel() for name, b in model.named_buffers() if name in model.state_dict())
    row["flops16"], after16 = forward(model, 16)
    row["flops48"], after48 = forward(model, 48)
    row["decode48"] = forward(model, 1, cache=forward(model, 47)[1])[0]
    row |= {"cache16": held(after16), "cache48": held(after48)}
    if more:
        row["flops11_batch3"] = forward(model, 11, batch=3)[0]
        row["flops5_past13"] = forward(model, 5, cache=forward(model, 13)[1])[0]
    return row


def record(randoms: int, only: list[str]) -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order."""
    for model_type, text in CASES.items():
        if only and model_type not in only:
            continue
        rng = random.Random(f"costcalc {model_type}")
        rows = [("small", raw(model_type, changed(model_type, ""))), *cases(model_type, text)]
        rows += [(f"random-{n:02d}", drawn(model_type, rng)) for n in range(randoms)]
        if model_type in CLASSES and model_type not in NO_DEFAULT:
            rows = [("default", {"model_type": model_type, "architectures": [CLASSES[model_type]]}), *rows]
        for name, config in rows:
            numbers = measure(config, more=name.startswith(("small", "random")))
            written = config
            if name == "small":  # whole, as the library writes it
                whole = json.loads(json.dumps(build(config).config.to_dict()))
                written = {**whole, "architectures": config["architectures"]}
            yield {"id": f"{model_type}/{name}", "config": written, **numbers}
        for name, config in cases(model_type, REFUSED.get(model_type, "")):
            doing = "build"
            try:
                build(config)
                doing = "run"
                measure(config, more=False)
            except Exception as error:  # whatever the library raises is the record
                reason = f"{doing}: {str(error).splitlines()[-1].strip()}"
                yield {"id": f"{model_type}/refused/{name}", "config": config, "error": reason[:160]}
            else:
                raise SystemExit(f"{model_type}/{name}: expected the library to refuse this")


def write_defaults() -> None:
    """The raw field defaults of each config class, under the names of its fields, and the other names of those."""
    for model_type in (*CLASSES, *TEXTS.values()):
        cls = transformers.CONFIG_MAPPING[model_type]
        data = {field.name: field.default for field in dataclasses.fields(cls) if field.name in cls.__annotations__}
        pairs = [(new, old) if old in data else (old, new) for old, new in (cls.attribute_map or {}).items()]
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
    parser.add_argument("--randoms", type=int, default=4, help="random configs a model type")
    parser.add_argument("--only", nargs="*", default=[], help="print the rows of these model types, and write nothing")
    options = parser.parse_args()
    if options.defaults:
        write_defaults()
        return
    rows = [json.dumps(row, separators=(",", ":")) for row in record(options.randoms, options.only)]
    if options.only:
        print("\n".join(rows))
        return
    (HERE / "mixtures.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
