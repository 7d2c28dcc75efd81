"""What every part of an architecture has in common: frozen fields, strict sizes, and rules between fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from costcalc.errors import shown

LARGEST_SIZE = 10**12
Rule = tuple[Any, str] | tuple[Any, str, str]
"""Whether it holds, what to say if not, and if that alone does not tell, what to write instead."""
Where = tuple[str | int, ...]


def _integral(value: object) -> object:
    """1e6 and 5e5 are whole numbers, however YAML or JSON reads them; 0.5 stays a float and is refused."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def no_number(value: Any) -> Any:
    """0 equals False in Python, but nobody means it."""
    return value if isinstance(value, (bool, str)) else shown(value)


# The bounds come first: after a BeforeValidator pydantic would check them in Python, not in its core.
Size = Annotated[int, Field(strict=True, ge=1, le=LARGEST_SIZE), BeforeValidator(_integral)]
Whole = Annotated[int, Field(strict=True, ge=0, le=LARGEST_SIZE), BeforeValidator(_integral)]
Flag = Annotated[bool, Field(strict=True)]
PositiveFloat = Annotated[
    float,
    Field(strict=True, gt=0, lt=1e30, allow_inf_nan=False),
    # 5e5 is text to a YAML 1.1 editor, and a number to us.
    WithJsonSchema(
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": "^[0-9.]+[eE]"}]}
    ),
]
Share = Annotated[float, Field(strict=True, ge=0, lt=1)]
Number = Annotated[float, Field(strict=True, gt=-1e30, lt=1e30, allow_inf_nan=False)]
Name = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=60)]


class RuleError(ValueError):
    """A rule between fields does not hold; `where` is the key path of the component, `hint` what to write instead."""

    def __init__(self, message: str, where: Where, hint: str = "") -> None:
        super().__init__(message)
        self.where = where
        self.hint = hint


class Component(BaseModel):
    """A part of an architecture: frozen, and a typo in a field is an error.

    Subclasses are final: a variant is a field value or a new kind, never a subclass of a kind.
    """

    # Deferred: a part's own validator is built when it is first asked for, which at start-up only the whole's is.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def rules(self, d_model: int) -> Iterator[Rule]:
        """What must hold between the fields, as (condition, message); the message may name fields in braces.

        A condition may be an array when a sweep asks, so it uses no `if`, `or` or `min` on a size.
        """
        del d_model
        yield from ()

    def check(self, where: Where, d_model: int) -> None:
        """Raise `RuleError` on the first rule that does not hold."""
        if type(self).rules is Component.rules:
            return  # most parts have none
        for rule in self.rules(d_model):
            if not rule[0]:
                raise RuleError(rule[1].format(**{**self.__dict__, "d_model": d_model}), where, *rule[2:])

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """What optional fields stand for where they are None, and from what that follows: `{"kv_heads": (8, "heads")}`.

        The value is None where no written one would mean the same.
        """
        del d_model
        return {}

    def derived(self, d_model: int) -> Iterator[str]:
        """What was not written but follows from what was, one short sentence each."""
        del d_model
        yield from ()
