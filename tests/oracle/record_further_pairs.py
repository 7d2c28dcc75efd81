"""Record ground truth for further encoder-decoder classes and their causal halves, in the manner of `record_pairs.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_further_pairs.py               # rewrites further_pairs.json
    throwaway/bin/python tests/oracle/record_further_pairs.py --tasks       # rewrites pair_tasks.json
    throwaway/bin/python tests/oracle/record_further_pairs.py --defaults    # rewrites the importers' class defaults
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
from further_pairs_cases import CASES, REFUSED, SMALL, Config, cases, raw, telling
from record import DEFAULTS
from record_pairs import STEMS, held
from torch.utils.flop_counter import FlopCounterMode
from transformers.modeling_outputs import BaseModelOutput, MoEModelOutput
from transformers.models.t5gemma.configuration_t5gemma import T5GemmaModuleConfig
from transformers.models.t5gemma2.configuration_t5gemma2 import (
    T5Gemma2DecoderConfig,
    T5Gemma2EncoderConfig,
    T5Gemma2TextConfig,
)

HERE = Path(__file__).resolve().parent
UNMASKED = {"full_attention": None, "sliding_attention": None}
"""For classes that make masks of numbers, which the meta device does not have: they take ready ones."""
OF_IMAGES = ("vision_tower", "multi_modal_projector")
"""Parameters that are not counted."""
LOOK_AT_NUMBERS = ("switch_transformers", "nllb-moe")
"""Types whose experts are chosen by numbers, which the meta device does not have: they are built, and small."""


def device_of(config: Config) -> str:
    """Where a class of this type is built and run."""
    return "cpu" if config["model_type"] in LOOK_AT_NUMBERS else "meta"


def build(config: Config) -> Any:
    """The class that a raw `config.json` dict names."""
    given = copy.deepcopy(config)
    model_type, (named,) = given.pop("model_type"), given.pop("architectures")
    settings = transformers.CONFIG_MAPPING[model_type](**given)
    settings._attn_implementation = "eager"
    with torch.device(device_of(config)):
        model = getattr(transformers, named)(settings)
    model.eval()
    model.tie_weights()
    return model


class Passes:
    """Passes of one class, counted."""

    def __init__(self, config: Config) -> None:
        self.model, self.device = build(config), device_of(config)
        self.named = config["architectures"][0]

    def ones(self, *shape: int) -> torch.Tensor:
        """Row numbers, or a mask that hides nothing."""
        return torch.ones(shape, dtype=torch.long, device=self.device)

    def counted(self, **given: Any) -> tuple[int, Any]:
        """FLOPs of one pass, and what it gives."""
        with torch.device(self.device), torch.no_grad(), FlopCounterMode(display=False) as counter:
            output = self.model(**given)
        return counter.get_total_flops(), output

    def pair(self, new: int, memory: int, batch: int = 1, **given: Any) -> tuple[int, Any]:
        """A pass of an encoder-decoder over `memory` source and `new` target tokens."""
        if "encoder_outputs" not in given or self.named == "FSMTModel":  # which asks for a source that it has read
            given["input_ids"] = self.ones(batch, memory)
        masks = self.masks(new, memory, given.get("cache")) if "T5Gemma" in self.named else {}
        if "ProphetNet" in self.named:  # its own would be laid out for as many layers as the encoder has
            empty = (transformers.DynamicCache(), transformers.DynamicCache())
            given = {"cache": transformers.EncoderDecoderCache(*empty), **given}
        kept = {} if "Switch" in self.named else {"use_cache": True}  # which hands that to its encoder too, and stops
        return self.counted(decoder_input_ids=self.ones(batch, new), **kept, **masks, **given)

    def masks(self, new: int, memory: int, cache: Any) -> dict[str, Any]:
        """Masks that hide nothing; T5Gemma-2 joins those of both sides, which have to be there."""
        if "T5Gemma2" not in self.named:
            return dict.fromkeys(("attention_mask", "decoder_attention_mask"), UNMASKED)
        past = 0 if cache is None else cache.get_seq_length()
        handed = {"attention_mask": memory, "decoder_attention_mask": past + new}
        made = {name: torch.zeros((1, 1, 1, keys), device=self.device) for name, keys in handed.items()}
        return {name: dict.fromkeys(UNMASKED, mask) for name, mask in made.items()}

    def alone(self, new: int, cache: Any = None) -> tuple[int, Any]:
        """A pass of a single stack; an encoder takes no cache."""
        cached = {} if cache is None else {"cache": cache, "use_cache": True}
        masks = {"attention_mask": UNMASKED} if "T5Gemma" in self.named else {}
        return self.counted(input_ids=self.ones(1, new), **masks, **cached)


def measure(config: Config) -> dict[str, int]:
    """All the numbers of one row."""
    passes = Passes(config)
    parameters, state = dict(passes.model.named_parameters()), passes.model.state_dict()
    counted = [p for name, p in parameters.items() if not any(part in name for part in OF_IMAGES)]
    row = {"params": sum(p.numel() for p in counted)}
    row["buffers"] = sum(b.numel() for name, b in passes.model.named_buffers() if name in state)
    if passes.named.endswith("EncoderModel"):
        return row | {f"flops{tokens}": passes.alone(tokens)[0] for tokens in (16, 48)}
    return row | (_causal(passes) if passes.named.endswith("ForCausalLM") else _pair(passes))


def _pair(passes: Passes) -> dict[str, int]:
    row = {}
    for tokens in (16, 48):
        row[f"flops{tokens}"], output = passes.pair(tokens, tokens)
        row[f"cache{tokens}"] = held(output.cache.self_attention_cache)
        row[f"cross{tokens}"] = held(output.cache.cross_attention_cache)
    row["flops5_memory11_batch3"] = passes.pair(5, 11, batch=3)[0]
    if "ProphetNet" in passes.named:
        return row
    _, output = passes.pair(13, 7)
    kind = MoEModelOutput if passes.device == "cpu" else BaseModelOutput
    memory = kind(last_hidden_state=output.encoder_last_hidden_state)
    read = {"encoder_outputs": memory, "cache": output.cache}
    row["decode_past13_memory7"], output = passes.pair(1, 7, **read)
    row["cache14"] = held(output.cache.self_attention_cache)
    return row | {"cross7": held(output.cache.cross_attention_cache)}


def _causal(passes: Passes) -> dict[str, int]:
    row = {}
    for tokens in (16, 48):
        cache = transformers.DynamicCache()  # its own may be laid out for as many layers as an encoder has
        row[f"flops{tokens}"] = passes.alone(tokens, cache)[0]
        row[f"cache{tokens}"] = held(cache)
    if "ProphetNet" in passes.named:  # looks at the number of a position, which the meta device does not have
        return row
    passes.alone(47, cache := transformers.DynamicCache())
    return row | {"decode48": passes.alone(1, cache)[0]}


def record(model_types: list[str]) -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order; the first of a type is the whole `to_dict()` of its config."""
    for model_type in model_types:
        small = raw(model_type, "")
        whole = json.loads(json.dumps(build(small).config.to_dict()))
        numbers = measure(small)
        yield {"id": f"{model_type}/small", "config": small, **numbers}
        yield {"id": f"{model_type}/whole", "config": {**whole, "architectures": small["architectures"]}, **numbers}
        for name, config in cases(model_type, CASES[model_type]):
            yield {"id": f"{model_type}/{name}", "config": config, **measure(config)}
        for name, config in cases(model_type, REFUSED.get(model_type, "")):
            yield {"id": f"{model_type}/refused/{name}", "config": config, "error": _error(config)}


def _error(config: Config) -> str:
    """Where the library stops, and the last line of what it says."""
    doing = "build"
    try:
        build(config)
        doing = "run"
        measure(config)
    except Exception as error:  # whatever the library raises is the record
        return f"{doing}: {str(error).splitlines()[-1].strip()}"[:160]
    raise SystemExit(f"{config}: expected the library to refuse this")


def record_telling() -> None:
    """Parameters of the classes that tell labels; they look at the numbers of tokens, and are not run."""
    rows = []
    for name, config in telling(STEMS):
        held_ones = build(config).parameters()
        row = {"id": name, "config": config, "params": sum(p.numel() for p in held_ones)}
        rows.append(json.dumps(row, separators=(",", ":")))
    (HERE / "pair_tasks.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


def write_defaults() -> None:
    """The raw field defaults of each config class, as `record.py` writes them."""
    for model_type in SMALL:
        _write(transformers.CONFIG_MAPPING[model_type], model_type)
    _write(T5GemmaModuleConfig, "t5_gemma_module")
    for cls in (T5Gemma2TextConfig, T5Gemma2EncoderConfig, T5Gemma2DecoderConfig):
        _write(cls, cls.model_type)


def _write(cls: Any, model_type: str) -> None:
    data = {field.name: field.default for field in dataclasses.fields(cls) if field.name in cls.__annotations__}
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
    parser.add_argument("--tasks", action="store_true", help="write pair_tasks.json: classes that tell labels")
    parser.add_argument("--only", nargs="*", default=list(SMALL), help="model types whose rows are recorded again")
    options = parser.parse_args()
    if options.defaults:
        write_defaults()
        return
    if options.tasks:
        record_telling()
        return
    place = HERE / "further_pairs.json"
    before = json.loads(place.read_text("utf-8")) if place.exists() else []
    made = [row for row in before if row["id"].partition("/")[0] not in options.only]
    for row in record(options.only):
        print(row["id"], row.get("error", ""), flush=True)
        made.append(row)
    made.sort(key=lambda row: list(SMALL).index(row["id"].partition("/")[0]))
    rows = [json.dumps(row, separators=(",", ":")) for row in made]
    place.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
