"""Record ground truth for ZAYA1, in the manner of `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_zaya.py               # rewrites zaya.json
    throwaway/bin/python tests/oracle/record_zaya.py --defaults    # rewrites the importer's class defaults
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
from record import DEFAULTS
from record_mixtures import build
from torch.utils.flop_counter import FlopCounterMode
from zaya_cases import CASES, CLASS, REFUSED, cases, raw

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent
SCAN = "conv_qk_depthwise"
"""The convolution of each channel by itself, which is counted apart; that of each head is a matrix product."""
PASSES = {"flops16": (16, 0, 1), "flops48": (48, 0, 1), "decode48": (1, 47, 1)}
MORE = {"flops11_batch3": (11, 0, 3), "flops5_past13": (5, 13, 1)}
"""Name -> new tokens, cached ones, sequences."""


def forward(model: Any, new: int, past: int, batch: int) -> tuple[int, int, Any]:
    """FLOPs of one pass over `new` tokens, those of the convolution, and the cache after it."""
    cache = forward(model, past, 0, batch)[2] if past else None
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False, depth=None) as counter:
        tokens = torch.zeros((batch, new), dtype=torch.long)
        output = model(input_ids=tokens, cache=cache, use_cache=True)
    parts = {name: sum(spent.values()) for name, spent in counter.get_flop_counts().items()}
    return counter.get_total_flops(), sum(flops for name, flops in parts.items() if name.endswith(SCAN)), output.cache


def held(cache: Any) -> tuple[int, int]:
    """Elements of keys and values, and of states."""
    keys_and_values = sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers)
    states = [state for layer in cache.layers for state in _states(layer)]
    return keys_and_values, sum(state.numel() for state in states)


def _states(layer: Any) -> Iterator[torch.Tensor]:
    for name in ("conv_states", "recurrent_states"):
        kept = getattr(layer, name)
        yield from (state for state in (kept.values() if isinstance(kept, dict) else kept) if state is not None)


def measure(config: Config, more: bool) -> dict[str, int]:
    """All the numbers of one row; `more` adds a batch of three, and five tokens after thirteen."""
    model = build(config)
    row = {"params": sum(p.numel() for p in model.parameters())}
    row["trainable"] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    row["buffers"] = sum(b.numel() for name, b in model.named_buffers() if name in model.state_dict())
    caches = {}
    for name, lengths in {**PASSES, **(MORE if more else {})}.items():
        row[name], row[f"scan_{name}"], caches[name] = forward(model, *lengths)
    for tokens in ("16", "48"):
        row[f"cache{tokens}"], row[f"state{tokens}"] = held(caches[f"flops{tokens}"])
    return row


def record() -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order."""
    yield {
        "id": "zaya/default",
        "config": (full := {"model_type": "zaya", "architectures": [CLASS]}),
        **measure(full, False),
    }
    small = raw("")
    whole = {**json.loads(json.dumps(build(small).config.to_dict())), "architectures": [CLASS]}
    yield {"id": "zaya/small", "config": whole, **measure(small, True)}
    for name, config in cases(CASES):
        yield {"id": f"zaya/{name}", "config": config, **measure(config, True)}
    for name, config in cases(REFUSED):
        try:
            measure(config, True)
        except Exception as error:  # whatever the library raises is the record
            yield {"id": f"zaya/refused/{name}", "config": config, "error": str(error).splitlines()[-1].strip()[:160]}
        else:
            raise SystemExit(f"zaya/{name}: expected the library to refuse this")


def write_defaults() -> None:
    """The raw field defaults of the config class."""
    cls = transformers.CONFIG_MAPPING["zaya"]
    data = {field.name: field.default for field in dataclasses.fields(cls) if field.name in cls.__annotations__}
    assert not cls.attribute_map
    data["_provenance"] = f"transformers {transformers.__version__} {cls.__name__} field defaults"
    (DEFAULTS / "zaya.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Parse the command line and write."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defaults", action="store_true", help="write the class defaults instead")
    if parser.parse_args().defaults:
        write_defaults()
        return
    rows = []
    for row in record():
        print(row["id"], flush=True)
        rows.append(json.dumps(row, separators=(",", ":")))
    (HERE / "zaya.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
