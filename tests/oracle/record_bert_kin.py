"""Record ground truth for encoder classes that are BERT with differences, in the environment of `record.py`.

    throwaway/bin/python tests/oracle/record_bert_kin.py               # rewrites bert_kin.json beside this file
    throwaway/bin/python tests/oracle/record_bert_kin.py --defaults    # rewrites the class defaults the importers read
    throwaway/bin/python tests/oracle/record_bert_kin.py luke xlm      # the rows of these types alone
    throwaway/bin/python tests/oracle/record_bert_kin.py --heads    # encoder_heads.json, of classes with labels

Many of these classes look at their tokens, so that they cannot run on the meta device: the small models here are built
with real (random) weights on the CPU. A row is of the class that its config names in `architectures`.
"""

from __future__ import annotations

import copy
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import record
import torch
import transformers
from bert_kin_cases import CASES, HEADS, OTHER_STEMS, REFUSED, STEMS, Config, cases, raw
from record import held
from torch.utils.flop_counter import FlopCounterMode
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

HERE = Path(__file__).resolve().parent
MEMORY, TOKEN = 13, 5


def build(config: Config) -> Any:
    """The class that a raw `config.json` dict names, with random weights."""
    raw_config = copy.deepcopy(config)
    settings = transformers.CONFIG_MAPPING[raw_config.pop("model_type")](**raw_config)
    settings._attn_implementation = "eager"
    model = getattr(transformers, config["architectures"][0])(settings)
    model.eval()
    model.tie_weights()
    return model


def forward(model: Any, new: int, batch: int = 1, **given: Any) -> tuple[int, Any]:
    """FLOPs of one pass over `new` tokens for each of `batch` sequences, and what it gives."""
    types = getattr(model.config, "type_vocab_sizes", None)
    if types is not None:  # TAPAS reads its cells from them
        given["token_type_ids"] = torch.zeros((batch, new, len(types)), dtype=torch.long)
    model.requires_grad_(False)  # the counter stops at views of what has a gradient, which DeBERTa takes
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        output = model(input_ids=torch.full((batch, new), TOKEN), **given)
    return int(counter.get_total_flops()), output


def crossing(model: Any, new: int, cache: Any = None) -> tuple[int, Any]:
    """FLOPs of one pass of a decoder over `new` tokens that look at a memory, and the cache after it."""
    cache = cache or EncoderDecoderCache(DynamicCache(config=model.config), DynamicCache(config=model.config))
    memory = torch.zeros((1, MEMORY, model.config.hidden_size))
    spent, output = forward(model, new, encoder_hidden_states=memory, cache=cache, use_cache=True)
    return spent, output.cache


def measure(config: Config) -> dict[str, int]:
    """All the numbers of one row."""
    model = build(config)
    row = {"params": sum(p.numel() for p in model.parameters())}
    row["trainable"] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    if config["model_type"] == "flaubert" and model.config.pre_norm:
        return row  # the library's layers then take a part of a cache for the whole, and stop
    if not getattr(model.config, "is_decoder", False):
        for name, new, batch in (("flops16", 16, 1), ("flops48", 48, 1), ("flops11_batch3", 11, 3)):
            row[name] = forward(model, new, batch)[0]
        return row
    row["flops16"], after16 = forward(model, 16, use_cache=True)
    row["flops48"], after48 = forward(model, 48, use_cache=True)
    row["flops11_batch3"] = forward(model, 11, batch=3, use_cache=True)[0]
    row["decode48"] = forward(model, 1, cache=forward(model, 47, use_cache=True)[1].cache, use_cache=True)[0]
    row |= {"cache16": held(after16.cache), "cache48": held(after48.cache)}
    if getattr(model.config, "add_cross_attention", False):
        row["crossing16"], after16 = crossing(model, 16)
        row["crossing_decode17"] = crossing(model, 1, cache=after16)[0]
        row["cross_cache"] = held(crossing(model, 16)[1].cross_attention_cache)
    return row


def record_type(model_type: str) -> Iterator[dict[str, Any]]:
    """Every row of a type, in a fixed order."""
    small = raw(model_type, "")
    for name, config in (("small", small), *cases(model_type, CASES[model_type])):
        numbers = measure(config)
        full = json.loads(json.dumps(build(config).config.to_dict()))
        if measure({**full, "architectures": config["architectures"]}) != numbers:
            raise SystemExit(f"{model_type}/{name}: the full to_dict() gives other numbers")
        yield {"id": f"{model_type}/{name}", "config": config, **numbers}
    for name, config in cases(model_type, REFUSED[model_type]):
        yield {"id": f"{model_type}/refused/{name}", "config": config, "error": refusal_of(config)}


def record_heads(model_type: str) -> Iterator[dict[str, Any]]:
    """The rows of the classes of a type that tell labels."""
    for name, config in cases(model_type, HEADS[model_type]):
        model = build(config)
        row = {"params": sum(p.numel() for p in model.parameters())}
        for key, new, batch in (("flops16", 16, 1), ("flops11_batch3", 11, 3)):
            row[key] = forward(model, new, batch)[0]
        yield {"id": f"{model_type}/{name}", "config": config, **row}


def refusal_of(config: Config) -> str:
    """The last line of what the library says where it stops."""
    try:
        measure(config)
    except Exception as error:  # whatever the library raises is the record
        return (str(error).splitlines() or [type(error).__name__])[-1].strip()[:120]
    raise SystemExit(f"{config}: expected the library to refuse this")


def main() -> None:
    """Write the rows, or the class defaults."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    stems = {**STEMS, **OTHER_STEMS} if "--heads" in sys.argv else STEMS
    asked = [word for word in sys.argv[1:] if word in stems] or list(stems)
    if "--defaults" in sys.argv:
        with mock.patch.dict(record.CLASSES, {word: STEMS[word] for word in asked}, clear=True):
            record.write_defaults()
        return
    heads = "--heads" in sys.argv
    path = HERE / ("encoder_heads.json" if heads else "bert_kin.json")
    kept = json.loads(path.read_text("utf-8")) if path.exists() else []
    rows = {word: [row for row in kept if row["config"]["model_type"] == word] for word in stems}
    for word in asked:
        rows[word] = list(record_heads(word) if heads else record_type(word))
        print(word, len(rows[word]), flush=True)
    lines = [json.dumps(row, separators=(",", ":")) for word in stems for row in rows[word]]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
