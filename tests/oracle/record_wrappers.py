"""Record ground truth for wrappers: their text models and heads alone, in the manner of `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_wrappers.py               # rewrites wrappers.json
    throwaway/bin/python tests/oracle/record_wrappers.py --defaults    # rewrites the importers' class defaults
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import importlib.util
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from record import DEFAULTS
from torch.utils.flop_counter import FlopCounterMode
from wrapper_cases import (
    APART,
    BASES,
    CHANGES,
    CLASSES,
    COMMON,
    ELSEWHERE,
    LEFT_OUT,
    MORE,
    NOT_BUILT,
    NOT_RUN,
    ON_NUMBERS,
    OTHER_TEXTS,
    OWN,
    SMALL,
    TEXTS,
    TIES,
)

Config = dict[str, Any]

LAYERS = ("num_hidden_layers", "depth", "encoder_layers", "num_layers", "num_blocks")
TEXT, TIE = "text_config", "tie_word_embeddings"
BIASES = ("attention_bias", "mlp_bias")
"""Fields that some classes have without declaring them."""
USUAL_THETA = 10_000.0
HERE = Path(__file__).resolve().parent


def wrappers() -> dict[str, Any]:
    """The importers' own table, from its file: it imports nothing of the project."""
    path = DEFAULTS.parent / "wrappers.py"
    spec = importlib.util.spec_from_file_location("wrappers", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: wrapper for name, wrapper in module.WRAPPERS.items() if name in transformers.CONFIG_MAPPING}


def build(config: Config, named: str, device: str = "meta") -> Any:
    """The class `named` of a raw `config.json` dict, without numbers where it can run so."""
    raw = copy.deepcopy(config)
    settings = transformers.CONFIG_MAPPING[raw.pop("model_type")](**raw)
    for part in (settings, settings.get_text_config()):
        part._attn_implementation, part._experts_implementation = "eager", "batched_mm"
    with torch.device(device):
        model = getattr(transformers, named)(settings)
    model.eval()
    model.tie_weights()
    return model


def of_the_text(model: Any) -> int:
    """Parameters of every module that is built from the text part, and of the head; shared ones once."""
    text = model.config.get_text_config()
    parts = [m for m in model.modules() if isinstance(m, transformers.PreTrainedModel) and m.config is text]
    assert parts, "no module is built from the text part"
    heads = (model.get_output_embeddings(), *(getattr(model, name, None) for name in ("lm_head", "projection_head")))
    parts += [head for head in heads if head is not None]
    named = [(name, p) for part in parts for name, p in part.named_parameters()]
    return sum({id(p): p.numel() for name, p in named if not any(word in name for word in APART)}.values())


def held(cache: Any) -> int:
    """Elements that a cache holds; a layer that looked at nothing has none."""
    return sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers if layer.keys is not None)


def forward(model: Any, new: int, cache: Any = None, **memory: Any) -> tuple[int, Any]:
    """FLOPs of one pass over `new` tokens of text alone, or beside an image, and the cache after it."""
    device = model.device
    tokens = torch.zeros((1, new), dtype=torch.long, device=device)
    with torch.device(device), torch.no_grad(), FlopCounterMode(display=False) as counter:
        output = model(input_ids=tokens, cache=cache, use_cache=True, **memory)
    return counter.get_total_flops(), output.cache


def measure(config: Config, named: str) -> dict[str, int]:
    """All the numbers of one row; of defaults, of a pair, and of what does not run here, parameters alone."""
    on_numbers = config["model_type"] in ON_NUMBERS and len(config) > 1
    model = build(config, named, "cpu" if on_numbers else "meta")
    row, is_pair = {"params": of_the_text(model)}, model.config.get_text_config().is_encoder_decoder
    if is_pair or config["model_type"] in NOT_RUN or len(config) == 1:
        return row
    row["flops16"], after16 = forward(model, 16)
    row["flops48"], after48 = forward(model, 48)
    row |= {"cache16": held(after16), "cache48": held(after48)}
    row["decode48"] = forward(model, 1, forward(model, 47)[1])[0]
    if config["model_type"] == "mllama_text_model":
        row |= beside_an_image(model)
    return row


def beside_an_image(model: Any) -> dict[str, int]:
    """Sixteen new tokens and thirteen of an image; one token after those."""
    image = torch.zeros((1, 13, model.config.hidden_size), device="meta")
    crossing, cache = forward(model, 16, cross_attention_states=image)
    cross = held(cache) - held(forward(model, 16)[1])
    return {"crossing16": crossing, "cross_cache": cross, "crossing_decode17": forward(model, 1, cache)[0]}


def cases(name: str, wrapper: Any) -> Iterator[tuple[str, Config]]:
    """The name and the config of each row of a wrapper; its other parts have one layer, where that is a key."""
    own = {"model_type": wrapper.text, **SMALL.get(wrapper.text, {**COMMON, **OWN.get(wrapper.text, {})})}
    yield "default", {"model_type": name}
    common = {"model_type": name, **shallow(name, wrapper), **MORE.get(name, {})}
    yield "small", {**common, wrapper.key: own}
    for outer, inner in TIES:
        text = {key: own[key] for key in own if key != "model_type"} if inner is None else {**own, TIE: inner}
        yield f"ties={outer},{inner}", {**common, wrapper.key: text, TIE: outer}
    for text in OTHER_TEXTS.get(name, []):
        yield f"text={text['model_type']}", {**common, wrapper.key: text}


def changes(name: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each row of a text model that is no wrapper's part with a type of its own."""
    yield "default", {"model_type": name}
    yield "small", {"model_type": name, **BASES[name]}
    for changed in CHANGES[name]:
        said = ",".join(f"{key}={json.dumps(value, separators=(',', ':'))}" for key, value in changed.items())
        yield said.replace('"', ""), {"model_type": name, **BASES[name], **changed}


def shallow(name: str, wrapper: Any) -> Config:
    """The other parts with one layer each."""
    settings, parts = transformers.CONFIG_MAPPING[name](), {}
    for key in wrapper.parts:
        part = getattr(settings, key, None)
        named = next((layers for layers in LAYERS if type(getattr(part, layers, None)) is int), None)
        if named is not None:
            parts[key] = {"model_type": part.model_type, named: 1} if part.model_type else {named: 1}
    return parts


def whole(config: Config) -> Config:
    """The config as the library writes it out, without what it says of the other parts."""
    raw = copy.deepcopy(config)
    cls = transformers.CONFIG_MAPPING[raw.pop("model_type")]
    written = {**json.loads(json.dumps(cls(**raw).to_dict())), "model_type": config["model_type"]}
    apart = cls.sub_configs.keys() - {TEXT}
    return {key: config.get(key) if key in apart else value for key, value in written.items()}


def record(only: list[str]) -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order; `small` holds the whole `to_dict()`, but for the other parts."""
    known = wrappers()
    for name in (*known, *CLASSES):
        if name in NOT_BUILT | ELSEWHERE or (only and name not in only):
            continue
        named = known[name].classes[-1] if name in known else CLASSES[name]
        for case, config in cases(name, known[name]) if name in known else changes(name):
            if f"{name}/{case}" in LEFT_OUT:
                continue
            try:
                numbers = measure(config, named)
            except Exception as error:
                raise SystemExit(f"{name}/{case}: {error}") from error
            yield {"id": f"{name}/{case}", "config": whole(config) if case == "small" else config, **numbers}


def own_text(cls: Any, key: str) -> Config | None:
    """What the class's own text part says beside its type and the defaults of that."""
    spec = cls.sub_configs_defaults[key]
    names = transformers.CONFIG_MAPPING[spec.model_type].attribute_map
    return {names.get(name, name): value for name, value in spec.init_kwargs.items()} or None


def write_defaults() -> None:
    """The raw field defaults of each config class, the other names of its fields, and its own text part."""
    known = wrappers()
    of_text = {name: wrapper.key for name, wrapper in known.items()}
    for name in (*of_text, *CLASSES, *TEXTS):
        cls = transformers.CONFIG_MAPPING[name]
        data = {field.name: field.default for field in dataclasses.fields(cls) if field.name in cls.__annotations__}
        if name in of_text:
            data[of_text[name]] = own_text(cls, of_text[name])
            if known[name].ties == "wrapper":
                data.setdefault(TIE, False)  # as the library takes a class without this field
        data |= {key: getattr(cls(), key) for key in BIASES if name in (*CLASSES, *TEXTS) and hasattr(cls(), key)}
        rotary = {"rope_theta": cls.default_theta} if cls.default_theta != USUAL_THETA and name not in of_text else {}
        data |= rotary
        if cls.attribute_map:
            data["_aliases"] = cls.attribute_map
        more = ""
        if name == "mistral3":  # its published files say nothing, and Mistral-Small-3.1 has a head of its own
            more = f", without tie_word_embeddings: {data.pop('tie_word_embeddings')}, which no checkpoint follows"
        data["_provenance"] = f"transformers {transformers.__version__} {cls.__name__} field defaults{more}"
        (DEFAULTS / f"{name}.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Parse the command line and write."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defaults", action="store_true", help="write the class defaults instead")
    parser.add_argument("--only", nargs="*", default=[], help="print the rows of these types, and write nothing")
    options = parser.parse_args()
    if options.defaults:
        write_defaults()
        return
    if options.only:
        for row in record(options.only):
            print(json.dumps(row, separators=(",", ":")))
        return
    rows = [json.dumps(row, separators=(",", ":")) for row in record([])]
    (HERE / "wrappers.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
