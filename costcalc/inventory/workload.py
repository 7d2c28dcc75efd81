"""One forward pass: how many sequences, how many new tokens, how many are cached already."""

from __future__ import annotations

from dataclasses import dataclass

from costcalc.errors import CostcalcError, nearest, shown

COUNTINGS = ("attended", "rectangle")
LOGITS = ("all", "last")
LATENT_FORMS = (None, "expanded", "absorbed")
LARGEST = 10**12


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
        for name, least in (("batch", 1), ("new_tokens", 1), ("past_tokens", 0), ("memory_tokens", 0)):
            check_length(getattr(self, name), name=name, least=least)
        for name, allowed in (("counting", COUNTINGS), ("logits", LOGITS), ("latent", LATENT_FORMS)):
            if getattr(self, name) not in allowed:
                _refuse_word(name, getattr(self, name), [word for word in allowed if word])

    @property
    def tokens(self) -> int:
        """New tokens of the whole batch."""
        return self.batch * self.new_tokens


def check_length(value: int, *, name: str, least: int) -> None:
    """Refuse a length that is no whole number between `least` and 10^12 (an array of a sweep passes)."""
    if isinstance(value, bool) or (isinstance(value, (int, float, str)) and not isinstance(value, int)) or value is None:
        raise CostcalcError(f"{name} must be a whole number, got {shown(value)}", hint=f"{name}={max(least, 1)}")
    if isinstance(value, int) and not least <= value <= LARGEST:
        raise CostcalcError(
            f"{name} must be between {least} and {LARGEST:,}, got {shown(value)}", hint=f"{name}={max(least, 1)}"
        )


def _refuse_word(name: str, value: object, allowed: list[str]) -> None:
    close = nearest(str(value), allowed)
    hint = f"did you mean {close[0]}?" if close else f"one of: {', '.join(allowed)}"
    raise CostcalcError(f"unknown {name} {shown(value)}", hint=hint)
