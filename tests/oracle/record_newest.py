"""Record ground truth for the newest sparse decoders, in the manner of `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_newest.py               # rewrites newest.json
    throwaway/bin/python tests/oracle/record_newest.py --only deepseek_v4    # its rows alone, the others stay
    throwaway/bin/python tests/oracle/record_newest.py --defaults    # rewrites the importers' class defaults
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
from newest_cases import CASES, CLASSES, OTHER_TYPES, REFUSED, WRAPPERS, cases, raw
from record import DEFAULTS
from record_mixtures import build
from torch.utils.flop_counter import FlopCounterMode

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent
SCANS = ("convolution", "sconv")
"""How the modules of convolutions of single channels end, which are counted apart."""
PASSES = {"flops16": (16, 0, 1), "flops48": (48, 0, 1), "decode48": (1, 47, 1)}
MORE = {"flops11_batch3": (11, 0, 3), "flops5_past13": (5, 13, 1)}
"""Name -> new tokens, cached ones, sequences."""


def forward(model: Any, new: int, past: int, batch: int) -> tuple[int, int, Any]:
    """FLOPs of one pass over `new` tokens, those of convolutions, and the cache after it."""
    cache = forward(model, past, 0, batch)[2] if past else None
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False, depth=None) as counter:
        tokens = torch.zeros((batch, new), dtype=torch.long)
        output = model(input_ids=tokens, cache=cache, use_cache=True)
    parts = {name: spent for name, spent in counter.get_flop_counts().items() if name.endswith(SCANS)}
    scans = sum(flops for spent in parts.values() for kind, flops in spent.items() if "conv" in str(kind))
    return counter.get_total_flops(), scans, output.cache


def held(cache: Any, seen: set[int]) -> int:
    """Elements of all numbers that a cache holds, each array once."""
    if isinstance(cache, torch.Tensor):
        is_new = id(cache) not in seen and cache.is_floating_point()
        seen.add(id(cache))
        return cache.numel() * is_new
    inner = cache.values() if isinstance(cache, dict) else cache if isinstance(cache, list | tuple) else ()
    inner = vars(cache).values() if hasattr(cache, "__dict__") else inner
    return sum(held(part, seen) for part in inner)


def measure(config: Config, more: bool) -> dict[str, int]:
    """All the numbers of one row; `more` adds a batch of three, and five tokens after thirteen."""
    model = build(config)
    others = ("vision", "visual", "audio", "projector", "patch_merge")  # of a wrapper
    parameters = {name: p for name, p in model.named_parameters() if not any(word in name for word in others)}
    row = {"params": sum(p.numel() for p in parameters.values())}
    row["buffers"] = sum(b.numel() for name, b in model.named_buffers() if name in model.state_dict())
    caches = {}
    for name, lengths in {**PASSES, **(MORE if more else {})}.items():
        row[name], row[f"scan_{name}"], caches[name] = forward(model, *lengths)
    return row | {f"cache{tokens}": held(caches[f"flops{tokens}"], set()) for tokens in (16, 48)}


def record(model_type: str) -> Iterator[dict[str, Any]]:
    """Every row of a type, in a fixed order."""
    small = raw(model_type, "")
    whole = {**json.loads(json.dumps(build(small).config.to_dict())), "architectures": small["architectures"]}
    yield {"id": f"{model_type}/small", "config": whole, **measure(small, True)}
    for name, config in cases(model_type, CASES):
        yield {"id": f"{model_type}/{name}", "config": config, **measure(config, name.startswith("more"))}
    for name, config in cases(model_type, REFUSED):
        try:
            measure(config, False)
        except Exception as error:  # whatever the library raises is the record
            reason = str(error).splitlines()[-1].strip()[:160]
            yield {"id": f"{model_type}/refused/{name}", "config": config, "error": reason}
        else:
            raise SystemExit(f"{model_type}/{name}: expected the library to refuse this")


def write_defaults() -> None:
    """The raw field defaults of each config class, under the names of its fields, and the other names of those."""
    for model_type, like in {**{name: name for name in (*CLASSES, *WRAPPERS)}, **OTHER_TYPES}.items():
        cls = transformers.CONFIG_MAPPING[like]
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
    parser.add_argument("--only", nargs="*", default=list(CLASSES), help="record these types alone")
    options = parser.parse_args()
    if options.defaults:
        write_defaults()
        return
    path = HERE / "newest.json"
    known = json.loads(path.read_text("utf-8")) if path.exists() else []
    rows = {name: [row for row in known if row["id"].startswith(f"{name}/")] for name in CLASSES}
    rows |= {name: list(record(name)) for name in options.only}
    lines = [json.dumps(row, separators=(",", ":")) for name in CLASSES for row in rows[name]]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
