"""One forward pass: how many sequences, how many new tokens, how many are cached already."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import NoReturn

from costcalc.errors import CostcalcError, nearest, shown

COUNTINGS = ("attended", "rectangle")
LOGITS = ("all", "last")
LATENT_FORMS = (None, "expanded", "absorbed")
LARGEST = 10**15
LENGTHS = (("batch", 1), ("new_tokens", 1), ("past_tokens", 0), ("memory_tokens", 0))
"""The lengths of a workload, and the least that each may be."""


@dataclass(frozen=True, slots=True)
class Workload:
    """`batch` sequences, each with `new_tokens` rows after `past_tokens` cached ones.

    Prefill is `past_tokens=0`, decode is `new_tokens=1`, training is `past_tokens=0` with all logits.

    counting: "attended" counts the (query, key) pairs that mask and window allow; "rectangle" every new query against
        every key it is handed, which is what a kernel without a mask multiplies (and `torch.utils.flop_counter` sees).
    logits: "all" computes the head for every new token (training), "last" for the last one (prefill for generation).
    memory_tokens: encoder tokens, for an encoder-decoder. latent: the form of latent attention, None chooses.
    """

    batch: int = 1
    new_tokens: int = 1
    past_tokens: int = 0
    memory_tokens: int = 0
    counting: str = "attended"
    logits: str = "all"
    latent: str | None = None

    def __post_init__(self) -> None:
        for name, least in LENGTHS:
            given = getattr(self, name)
            if type(given) is not int or not least <= given <= LARGEST:
                # A NumPy scalar would wrap around at 64 bits; as an int it stays exact.
                object.__setattr__(self, name, checked_length(given, name=name, least=least))
        if self.counting not in COUNTINGS:
            _refuse_word(self.counting, COUNTINGS, name="counting")
        if self.logits not in LOGITS:
            _refuse_word(self.logits, LOGITS, name="logits")
        if self.latent not in LATENT_FORMS:
            _refuse_word(self.latent, LATENT_FORMS, name="latent")

    @property
    def tokens(self) -> int:
        """New tokens of the whole batch."""
        return self.batch * self.new_tokens


def checked_length(value: int, *, name: str, least: int) -> int:
    """`value` as an int between `least` and 10^15, or refused; an array of a sweep passes as it is."""
    if getattr(value, "shape", ()) != ():
        return value
    try:
        whole = None if isinstance(value, bool) else index(value)
    except TypeError:
        whole = None
    if whole is None:
        raise CostcalcError(f"{name} must be a whole number, got {shown(value)}", hint=f"{name}={max(least, 1)}")
    if not least <= whole <= LARGEST:
        raise CostcalcError(
            f"{name} must be between {least} and {LARGEST:,}, got {shown(whole)}", hint=f"{name}={max(least, 1)}"
        )
    return whole


def _refuse_word(value: object, allowed: tuple[str | None, ...], *, name: str) -> NoReturn:
    words = [word for word in allowed if word]
    close = nearest(str(value), words)
    hint = f"did you mean {close[0]}?" if close else f"one of: {', '.join(words)}"
    raise CostcalcError(f"unknown {name} {shown(value)}", hint=hint)
