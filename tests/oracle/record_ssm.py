"""Record ground truth for state-space models and their hybrids with attention, in the manner of `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_ssm.py               # rewrites ssm.json
    throwaway/bin/python tests/oracle/record_ssm.py --defaults    # rewrites the importers' class defaults
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import inspect
import json
import logging
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from record import DEFAULTS
from record_mixtures import build
from ssm_cases import CASES, CLASSES, REFUSED, cases, changed, drawn, raw
from torch.utils.flop_counter import FlopCounterMode

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent
RECURRENT = ("conv1d", "scan", "state_update")
"""In the names of the functions that a mixer leaves its convolution and its recurrence to."""

NEEDS = ("full_attention", "hybrid")
"""Layers whose cache knows how many tokens it holds."""


class Spent:
    """FLOPs inside of such functions, which are counted apart since they depend on the kernel."""

    def __init__(self) -> None:
        self.flops = 0

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with what it spends noted."""

        def called(*args: Any, **kwargs: Any) -> Any:
            with FlopCounterMode(display=False) as counter:
                result = function(*args, **kwargs)
            self.flops += counter.get_total_flops()
            return result

        return called


def watch(model_type: str) -> Spent:
    """Notes what the functions of a class's module spend."""
    module, spent = importlib.import_module(f"transformers.models.{model_type}.modeling_{model_type}"), Spent()
    for name, function in vars(module).copy().items():
        own = getattr(function, "__module__", None) == module.__name__
        if own and callable(function) and any(word in name for word in RECURRENT):
            setattr(module, name, spent.watched(function))
    return spent


def forward(model: Any, spent: Spent, new: int, *, batch: int = 1, past: int = 0) -> tuple[int, int, Any]:
    """FLOPs of one pass over `new` tokens, those of convolutions and recurrences, and the cache after it."""
    cache = forward(model, spent, past, batch=batch)[2] if past else None
    spent.flops = 0
    given: dict[str, Any] = {}
    if not any(word in NEEDS for word in getattr(model.config, "layer_types", None) or NEEDS):
        # Some classes ask a cache without attention for its length, unless positions and masks are there.
        positions = torch.arange(past, past + new, device="meta")[None]
        given = {"position_ids": positions, "attention_mask": {"full_attention": None, "linear_attention": None}}
        given = given if "position_ids" in inspect.signature(model.forward).parameters else {}
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        tokens = torch.zeros((batch, new), dtype=torch.long)
        output = model(input_ids=tokens, cache=cache, use_cache=True, **given)
    return counter.get_total_flops(), spent.flops, output.cache


def held(cache: Any) -> tuple[int, int]:
    """Elements of keys and values, and of states."""
    keys_and_values = states = 0
    for layer in cache.layers:
        for name in ("keys", "values"):
            kept = getattr(layer, name, None)
            keys_and_values += 0 if kept is None else kept.numel()
        for name in ("conv_states", "recurrent_states"):
            kept = getattr(layer, name, None) or {}
            kept = kept.values() if isinstance(kept, dict) else kept
            states += sum(state.numel() for state in kept if state is not None)
    return keys_and_values, states


def measure(config: Config, spent: Spent, more: bool) -> dict[str, int]:
    """All the numbers of one row; `more` adds a batch of three, and five tokens after thirteen."""
    model = build(config)
    row = {"params": sum(p.numel() for p in model.parameters())}
    row["trainable"] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    row["buffers"] = sum(b.numel() for name, b in model.named_buffers() if name in model.state_dict())
    row["flops16"], row["scan16"], after16 = forward(model, spent, 16)
    row["flops48"], row["scan48"], after48 = forward(model, spent, 48)
    row["decode48"], row["scan_decode48"], _ = forward(model, spent, 1, past=47)
    (row["cache16"], row["state16"]), (row["cache48"], row["state48"]) = held(after16), held(after48)
    if more:
        row["flops11_batch3"], row["scan11_batch3"], _ = forward(model, spent, 11, batch=3)
        row["flops5_past13"], row["scan5_past13"], _ = forward(model, spent, 5, past=13)
    return row


def record(randoms: int, only: list[str]) -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order."""
    for model_type, text in CASES.items():
        if only and model_type not in only:
            continue
        rng, spent = random.Random(f"costcalc {model_type}"), watch(model_type)
        rows = [("default", {"model_type": model_type, "architectures": [CLASSES[model_type]]})]
        rows += [("small", raw(model_type, changed(model_type, ""))), *cases(model_type, text)]
        rows += [(f"random-{n:02d}", drawn(model_type, rng)) for n in range(randoms)]
        for name, config in rows:
            numbers = measure(config, spent, more=name.startswith(("small", "random")))
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
                measure(config, spent, more=True)
            except Exception as error:  # whatever the library raises is the record
                reason = f"{doing}: {(str(error) or repr(error)).splitlines()[-1].strip()}"
                yield {"id": f"{model_type}/refused/{name}", "config": config, "error": reason[:160]}
            else:
                raise SystemExit(f"{model_type}/{name}: expected the library to refuse this")


def write_defaults() -> None:
    """The raw field defaults of each config class, under the names of its fields, and the other names of those."""
    for model_type in CLASSES:
        cls = transformers.CONFIG_MAPPING[model_type]
        data = {field.name: field.default for field in dataclasses.fields(cls) if field.name in cls.__annotations__}
        pairs = [(new, old) if old in data else (old, new) for old, new in (cls.attribute_map or {}).items()]
        if pairs:
            data["_aliases"] = dict(pairs)
        data["_provenance"] = f"transformers {transformers.__version__} {cls.__name__} field defaults"
        data.pop("time_step_limit", None)  # it may be infinite, and changes no count
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
    (HERE / "ssm.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
