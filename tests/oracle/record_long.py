"""Record ground truth for the classes of efficient attention over long texts, in the manner of `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_long.py               # rewrites long.json
    throwaway/bin/python tests/oracle/record_long.py --defaults    # rewrites the importers' class defaults

Most of these classes look at their tokens and masks, which are not there on the meta device: small models run on the
processor, with random weights. The whole classes are counted on the meta device, and not run.
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
from long_cases import CASES, REFUSED, TYPES, cases, raw
from record import DEFAULTS, held
from torch.utils.flop_counter import FlopCounterMode
from transformers.cache_utils import DynamicCache

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent


def build(config: Config, device: str = "cpu") -> Any:
    """The class that a raw `config.json` dict names."""
    given = json.loads(json.dumps(config))
    model_type, (name, *_) = given.pop("model_type"), given.pop("architectures")
    settings = transformers.CONFIG_MAPPING[model_type](**given)
    settings._attn_implementation = "eager"
    with torch.device(device):
        model = getattr(transformers, name)(settings)
    model.eval()
    model.tie_weights()
    return model


def forward(config: Config, new: int, *, batch: int = 1, memory: int = 0, cache: Any = None) -> tuple[int, Any]:
    """FLOPs of one pass over `new` tokens for each of `batch` sequences, and what it gives.

    By a model of its own: after a short text BigBird's go on attending in full.
    """
    torch.manual_seed(0)
    model = build(config)
    ids = torch.randint(4, model.config.vocab_size, (batch, new))
    given: dict[str, Any] = {"input_ids": ids}
    if memory:
        source = torch.randint(4, model.config.vocab_size, (batch, memory))
        given = {"input_ids": source, "decoder_input_ids": ids, "use_cache": True, "cache": cache}
        if cache is not None:
            del given["input_ids"]
            hidden = torch.zeros((batch, memory, model.config.hidden_size))
            given["encoder_outputs"] = transformers.modeling_outputs.BaseModelOutput(last_hidden_state=hidden)
    elif cache is not None or is_causal(model):
        given |= {"use_cache": True, "cache": DynamicCache(config=model.config) if cache is None else cache}
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        output = model(**given)
    return int(counter.get_total_flops()), output


def is_causal(model: Any) -> bool:
    """Whether its layers keep a cache."""
    return bool(getattr(model.config, "is_decoder", False)) and not model.config.is_encoder_decoder


def measure(config: Config, lengths: tuple[int, ...]) -> dict[str, int]:
    """All the numbers of one row; a length that the class cannot run is left out."""
    model = build(config)
    row = {"params": sum(p.numel() for p in model.parameters())}
    row["trainable"] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    is_pair = bool(model.config.is_encoder_decoder) and not type(model).__name__.endswith("EncoderModel")
    for new in lengths:
        row[f"flops{new}"], output = forward(config, new, memory=new if is_pair else 0)
        if is_pair or is_causal(model):
            row[f"cache{new}"] = held(output.cache)
        if is_pair:
            row[f"cross_cache{new}"] = held(output.cache.cross_attention_cache)
    if not lengths:
        return row  # its kernels run on other devices
    row[f"flops{lengths[0]}_batch3"], _ = forward(config, lengths[0], batch=3, memory=lengths[0] if is_pair else 0)
    if is_pair or is_causal(model):
        _, output = forward(config, 47, memory=47 if is_pair else 0)
        row["decode48"], _ = forward(config, 1, cache=output.cache, memory=47 if is_pair else 0)
    return row


def record(only: str) -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order."""
    for model_type, (classes, lengths) in TYPES.items():
        if only and model_type != only:
            continue
        for name in classes:
            whole: Config = {"model_type": model_type, "architectures": [name]}
            count = sum(p.numel() for p in build(whole, "meta").parameters())
            yield {"id": f"{model_type}/{name}", "config": whole, "params": count}
        for case, config in cases(model_type, CASES[model_type]):
            numbers = measure(config, lengths)
            full = json.loads(json.dumps(build(config).config.to_dict()))
            if measure({**full, "architectures": config["architectures"]}, lengths) != numbers:
                raise SystemExit(f"{model_type}/{case}: the full to_dict() gives other numbers")
            yield {"id": f"{model_type}/{case}", "config": config, **numbers}
        small = raw(model_type, "")
        full = {**json.loads(json.dumps(build(small).config.to_dict())), "architectures": small["architectures"]}
        yield {"id": f"{model_type}/written out", "config": full, **measure(full, lengths)}
        for case, config in cases(model_type, REFUSED.get(model_type, "")):
            try:
                measure(config, lengths)
            except Exception as error:  # whatever the library raises is the record
                reason = str(error).splitlines()[-1].strip()[:160] if str(error) else type(error).__name__
                yield {"id": f"{model_type}/refused/{case}", "config": config, "error": reason}
            else:
                raise SystemExit(f"{model_type}/{case}: expected the library to refuse this")


def write_defaults() -> None:
    """The raw field defaults of each config class."""
    for model_type in TYPES:
        cls = transformers.CONFIG_MAPPING[model_type]
        data = {field.name: _default(field) for field in dataclasses.fields(cls) if field.name in cls.__annotations__}
        if cls.attribute_map:
            data["_aliases"] = dict(cls.attribute_map)
        data["_provenance"] = f"transformers {transformers.__version__} {cls.__name__} field defaults"
        (DEFAULTS / f"{model_type}.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _default(field: Any) -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


def main() -> None:
    """Parse the command line and write."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defaults", action="store_true", help="write the class defaults instead")
    parser.add_argument("--only", default="", help="record one model type anew, and keep the rows of the others")
    given = parser.parse_args()
    if given.defaults:
        write_defaults()
        return
    path = HERE / "long.json"
    before = json.loads(path.read_text("utf-8")) if path.exists() and given.only else []
    rows = [row for row in before if not row["id"].startswith(f"{given.only}/")]
    for row in record(given.only):
        print(row["id"], flush=True)
        rows.append(row)
    order = list(TYPES)
    rows.sort(key=lambda row: order.index(row["id"].partition("/")[0]))
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    path.write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
