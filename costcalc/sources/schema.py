"""JSON Schema of what people write, made from the components, for editors and for checks before a run.

It describes the written form, not the full one: bare words for kinds, `layers:` at the top, defaults in `block:`. A key
that may come from a default elsewhere is not required here; `costcalc` itself checks the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from costcalc.architecture import Architecture
from costcalc.architecture.written import KINDS, STACK_KEYS, STACKS

Schema = dict[str, Any]


def written_schema() -> Schema:
    """The JSON Schema (draft 2020-12) of a YAML file."""
    made = Architecture.model_json_schema()
    defs: dict[str, Schema] = made["$defs"]
    required = {name: definition.get("required", []) for name, definition in defs.items()}
    for definition in defs.values():
        _loosen(definition, defs)
    for name in ("Block", "Stack"):
        properties = defs[name]["properties"]
        defs[name]["properties"] = {k: v if k in required[name] else _or_null(v) for k, v in properties.items()}
    defs["Stack"]["properties"]["block"] = _or_null({"$ref": "#/$defs/Block"})
    top = {key: value for key, value in made.items() if key != "$defs"}
    top["properties"] = {key: _with_words(key, value, defs) for key, value in top["properties"].items()}
    stack = defs["Stack"]["properties"]
    top["properties"].update({key: stack[key] for key in ("layers", *STACK_KEYS)})
    top["anyOf"] = [{"required": [key]} for key in ("layers", *STACKS)]
    schema: Schema = _any_of({"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "$defs": defs})
    return schema


def _loosen(definition: Schema, defs: dict[str, Schema]) -> None:
    definition.pop("required", None)
    if "properties" in definition:
        definition["properties"] = {
            key: _with_words(key, value, defs) for key, value in definition["properties"].items()
        }


def _with_words(key: str, value: Schema, defs: dict[str, Schema]) -> Schema:
    """A key of several kinds also takes a bare word."""
    if key not in KINDS:
        return value
    words = {"enum": list(_kinds(value, defs))}
    described: Schema = {name: value[name] for name in ("title", "description", "default") if name in value}
    return {"anyOf": [words, {k: v for k, v in value.items() if k not in described}], **described}


def _kinds(value: Schema, defs: dict[str, Schema]) -> Iterator[str]:
    yield from value.get("discriminator", {}).get("mapping", {})
    for option in value.get("anyOf", []):
        yield from _kinds(option, defs)
    if "$ref" in value:  # a key of one kind so far has no discriminator
        yield defs[value["$ref"].rpartition("/")[2]]["properties"]["kind"]["const"]


def _or_null(value: Schema) -> Schema:
    """In a layer a null takes a default away."""
    return {"anyOf": [value, {"type": "null"}]}


def _any_of(node: Any) -> Any:
    """`oneOf` by discriminator needs `kind` to be written; `anyOf` lets it be left out."""
    if isinstance(node, list):
        return [_any_of(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _any_of(value) for key, value in node.items() if key != "discriminator"}
    if "oneOf" in kept:
        kept["anyOf"] = kept.pop("oneOf")
    return kept


def schema_rows(schema: Schema) -> list[tuple[str, str, str]]:
    """(key, what it takes, default) of every component, for people."""
    rows = list(schema["properties"].items())
    for name, definition in schema["$defs"].items():
        rows += [(f"{name}.{key}", value) for key, value in definition.get("properties", {}).items()]
    return [(key, takes_of(value), value_of(value)) for key, value in rows]


def takes_of(value: Schema) -> str:
    """What a key takes: words, types and components, with ` | ` between them."""
    if "anyOf" in value:
        takes = " | ".join(takes_of(option) for option in value["anyOf"])
        return " | ".join(dict.fromkeys(takes.split(" | ")))
    if "enum" in value:
        return " | ".join(str(word).lower() if isinstance(word, bool) else str(word) for word in value["enum"])
    if "$ref" in value:
        return str(value["$ref"].rpartition("/")[2])
    if "const" in value:
        return str(value["const"])
    if value.get("type") == "array":
        return f"list of {takes_of(value.get('items', {}))}"
    return str(value.get("type", "any"))


def value_of(value: Schema) -> str:
    """A key's default as people write it; empty for none and for null."""
    if "default" not in value:
        return next((value_of(option) for option in value.get("anyOf", []) if "default" in option), "")
    default = value["default"]
    if isinstance(default, dict):
        return str(default.get("kind", ""))
    return "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
