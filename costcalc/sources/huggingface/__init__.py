"""config.json files of `transformers` models: which reader reads which `model_type`.

A lineage is one module here with a `READERS` table, from model type to a function Config -> the full form of an
architecture, and a `CLASSES` table of the classes that are read, the usual one first: `architectures` picks one, which
the reader finds in `config.model_class`. Where published files name code of their own under another word than their
type, a `CODE` table holds those modules' names. To add a lineage: its class defaults under `defaults/`, its module, a
line in LINEAGES, its recorded cases.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from costcalc.architecture.written import FullForm
from costcalc.errors import CostcalcError, nearest, shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.labels import other_class, with_head_of
from costcalc.sources.huggingface.lineages import LINEAGES
from costcalc.sources.huggingface.not_read import NOT_READ
from costcalc.sources.origin import Origin

USUAL = "bert, bart, gpt2, llama, mistral, qwen3 or t5"
MOST_SAID = 8


def read_config(data: dict[str, Any], origin: Origin, *, read_as: str | None = None) -> FullForm:
    """The full form of the architecture that a config.json describes, or a refusal that names the key.

    read_as: a model type to take it for, whatever it says.
    """
    model_type = data.get("model_type")
    if read_as is not None and read_as != model_type:
        return _read_as(read_as, data, origin)
    if not isinstance(model_type, str) or model_type not in LINEAGES:
        raise _unknown_type(model_type, origin)
    return _read(data, model_type, origin)


def _read_as(model_type: str, data: dict[str, Any], origin: Origin) -> FullForm:
    """The same keys as another type reads them, by its usual class."""
    if model_type not in LINEAGES:
        close = nearest(model_type, LINEAGES, count=2)
        hint = f"did you mean {' or '.join(close)}?" if close else "costcalc models lists those that are"
        raise CostcalcError(f"--as {shown(model_type)}: no such model type is read", hint=hint)
    own, kept = data.get("model_type"), {key: data[key] for key in data if key not in ("architectures", "auto_map")}
    found = _read(kept, model_type, origin)
    what = "without a model_type" if own is None else f"of model type {shown(own)}"
    return FullForm({**found, "source": f"{found['source']}, which a config.json {what} was read as"})


def _read(data: dict[str, Any], model_type: str, origin: Origin) -> FullForm:
    lineage = import_module(f"costcalc.sources.huggingface.{LINEAGES[model_type]}")
    config = Config(data, model_type=model_type, origin=origin)
    own_code = getattr(lineage, "CODE", {}).get(model_type, ())
    config.model_class, use = _class_of(config, lineage.CLASSES[model_type], own_code)
    written: dict[str, Any] = lineage.READERS[model_type](config)
    if use is not None:
        written = with_head_of(use, written, config)
    config.refuse_unread()
    return FullForm(source=f"config.json of model type {model_type}{_defaults_said(config.assumed())}", **written)


def _defaults_said(keys: list[str]) -> str:
    """What the file left to its class, for the line that says where a model came from."""
    if not keys:
        return ""
    more = f" and {len(keys) - MOST_SAID} more" if len(keys) > MOST_SAID else ""
    return f"; class defaults for {', '.join(keys[:MOST_SAID])}{more}"


def _class_of(config: Config, classes: tuple[str, ...], own_code: tuple[str, ...]) -> tuple[str, str | None]:
    """`architectures` picks the head among the classes that are read; where it says nothing, the usual one.

    With it what another head is for, which stands on the usual class's layers.
    """
    named = config.data.get("architectures")
    word = named[0] if isinstance(named, list) and len(named) == 1 else named
    other = other_class(config.model_type, word) if isinstance(named, list) and word not in classes else None
    check_code(config, own_code if other is not None or word in classes else None)
    if named in (None, []) or other is not None:
        return classes[0], other
    if isinstance(named, list) and word in classes:
        return str(word), None
    raise config.refusal(
        f"`architectures` {shown(word)} is not read for {config.model_type}: its head may differ",
        f'write "architectures": ["{classes[0]}"] to count the language model',
        "architectures",
    )


def check_code(config: Config, own_code: tuple[str, ...] | None) -> None:
    """Refuse an `auto_map` unless it names what the library took over: modules called after the type, or `own_code` of
    a lineage, in the same place; None where no code is known to be read.

    `modeling_falcon.FalconForCausalLM` is; `bert_layers.BertForMaskedLM` and `other/repository--...` may be anything.
    """
    named = config["auto_map"]
    if not named:
        return
    stem = config.model_type.replace("-", "_").lower()
    models = [value for key, value in named.items() if "Model" in key] if isinstance(named, dict) else [None]
    modules = [value.partition(".")[0].lower() if isinstance(value, str) else "" for value in models]
    is_known = all(
        module in (own_code or ()) or (module.startswith("model") and "--" not in module and stem in module)
        for module in modules
    )
    if own_code is None or not is_known:
        what = "`auto_map` names code of its own, which is not read"
        raise config.refusal(what, "describe the model in YAML instead", "auto_map")


def _unknown_type(model_type: object, origin: Origin) -> CostcalcError:
    if model_type is None:
        return origin.refusal("no `model_type`", f'add "model_type", such as {USUAL}', [()])
    close = nearest(str(model_type), LINEAGES, count=2)
    hint = f"nearest: {', '.join(close)}" if close else f"{len(LINEAGES)} are known, such as {USUAL}"
    why = f": {NOT_READ[model_type]}" if isinstance(model_type, str) and model_type in NOT_READ else ""
    what = f"the model_type {shown(model_type)} is not read{why}"
    as_other = f"--as {close[0] if close else 'llama'} reads it as another family, if it is one"
    return origin.refusal(what, f"{hint}; {as_other}; or describe the model in YAML", [("model_type",)])
