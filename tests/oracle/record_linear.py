"""Record ground truth for linear attention and other recurrent families, in the manner of `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_linear.py               # rewrites linear.json
    throwaway/bin/python tests/oracle/record_linear.py --defaults    # rewrites the importers' class defaults
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
from linear_cases import CASES, CLASSES, NO_DEFAULT, REFUSED, WRAPPERS, cases, changed, drawn, raw
from record import DEFAULTS
from torch.utils.flop_counter import FlopCounterMode

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent
MIXERS = (
    *("GatedDeltaNet", "DeltaAttention", "LightningAttention", "ShortConv", "RecurrentBlock"),
    *("RwkvSelfAttention", "xLSTMLayer"),
)
"""How the classes of mixers end."""


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


def forward(model: Any, new: int, batch: int = 1, cache: Any = None) -> tuple[int, int, Any]:
    """FLOPs of one pass over `new` tokens for each of `batch` sequences, those of them that are no product with a
    weight matrix or between attention's queries and keys, and the cache after it.
    """
    kind = model.config.model_type
    name = "state" if kind == "rwkv" else "cache"
    if kind == "recurrent_gemma" and cache is None:  # it does not hand its cache back
        cache = transformers.DynamicCache(config=model.config)
        model.model._setup_cache(model.config, batch, "meta", torch.float32)
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        ids = torch.zeros((batch, new), dtype=torch.long)
        output = model(input_ids=ids, use_cache=True, **({} if cache is None else {name: cache}))
    after = cache if kind == "recurrent_gemma" else output[name]
    return counter.get_total_flops(), scanned(model, counter), after


def scanned(model: Any, counter: FlopCounterMode) -> int:
    """FLOPs of mixers beside those of their matrices."""
    by_module = {name: sum(ops.values()) for name, ops in counter.get_flop_counts().items()}
    root, total = type(model).__name__, 0
    for name, module in model.named_modules():
        if type(module).__name__.endswith(MIXERS):
            total += by_module.get(f"{root}.{name}", 0)
            total -= sum(
                by_module.get(f"{root}.{name}.{inner}", 0)
                for inner, part in module.named_modules()
                if isinstance(part, torch.nn.Linear) or type(part).__name__.endswith("Rglru")
            )
    return total


def held(model: Any, cache: Any) -> tuple[int, int]:
    """Elements of keys and values, and of states."""
    kind = model.config.model_type
    if kind == "rwkv":
        return 0, sum(part.numel() for part in cache)
    if kind == "xlstm":
        return 0, sum(part.numel() for layer in cache.rnn_state.values() for part in layer)
    pairs = states = 0
    for layer in cache.layers:
        if getattr(layer, "keys", None) is not None:
            pairs += layer.keys.numel() + layer.values.numel()
        for part in ("conv_states", "recurrent_states"):
            states += sum(state.numel() for state in getattr(layer, part, {}).values() if state is not None)
    states += sum(state.numel() for state in getattr(cache, "linear_cache", []) if len(state))
    if kind == "recurrent_gemma":
        blocks = [m for m in model.modules() if type(m).__name__.endswith("RecurrentBlock")]
        states += sum(m.conv1d_state.numel() + m.rg_lru.recurrent_states.numel() for m in blocks)
    return pairs, states


def measure(config: Config, more: bool) -> dict[str, int]:
    """All the numbers of one row; `more` adds a batch of three, and five tokens after thirteen."""
    model = build(config)
    parameters = {name: p for name, p in model.named_parameters() if ".visual." not in name}
    row = {"params": sum(p.numel() for p in parameters.values())}
    row["buffers"] = sum(b.numel() for name, b in model.named_buffers() if name in model.state_dict())
    row["flops16"], row["scan16"], after = forward(model, 16)
    row["cache16"], row["state16"] = held(model, after)
    row["flops48"], row["scan48"], after = forward(model, 48)
    row["cache48"], row["state48"] = held(model, after)
    row["decode48"], row["scan_decode48"], _ = forward(model, 1, cache=forward(model, 47)[2])
    if more:
        row["flops11_batch3"], row["scan11_batch3"], _ = forward(model, 11, batch=3)
        row["flops5_past13"], row["scan5_past13"], _ = forward(model, 5, cache=forward(model, 13)[2])
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
    for model_type in (*CLASSES, *WRAPPERS):
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
    parser.add_argument("--randoms", type=int, default=3, help="random configs a model type")
    parser.add_argument("--only", nargs="*", default=[], help="print the rows of these model types, and write nothing")
    options = parser.parse_args()
    if options.defaults:
        write_defaults()
        return
    rows = [json.dumps(row, separators=(",", ":")) for row in record(options.randoms, options.only)]
    if options.only:
        print("\n".join(rows))
        return
    (HERE / "linear.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
