"""Finding the function of a kind; a kind without one is an error, never a pass that does nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Function = TypeVar("Function")


class NoReferenceError(LookupError):
    """There is no forward pass for a kind of component."""


def of_kind(table: Mapping[str, Function], kind: str, what: str) -> Function:
    """The function in `table` for this kind of, say, attention."""
    if kind not in table:
        raise NoReferenceError(f"{what} of kind {kind} has no forward pass")
    return table[kind]
