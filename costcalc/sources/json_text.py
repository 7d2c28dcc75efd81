"""JSON text to plain data: duplicate keys, NaN and hostile nesting are refused, not resolved in silence."""

from __future__ import annotations

import json
from typing import Any

from costcalc.errors import CostcalcError, shown


def read_json(text: str, label: str) -> Any:
    """The data of one JSON document; what is not plain JSON is refused with `label:line:column` where it is known."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise CostcalcError(f"the key {shown(twice)} is written twice", where=label, hint="keep one of the two")
        return data

    def no_constant(name: str) -> Any:
        raise CostcalcError(f"{name} is not a number", where=label, hint="write a number, or null")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        where = f"{label}:{error.lineno}:{error.colno}"
        raise CostcalcError(
            f"not JSON: {error.msg}", where=where, hint="check the brackets, commas and quotes"
        ) from None
    except RecursionError:
        raise CostcalcError("nested too deeply", where=label, hint="write it flatter") from None
    except ValueError:
        raise CostcalcError("a number of thousands of digits", where=label, hint="write a number below 10^12") from None
