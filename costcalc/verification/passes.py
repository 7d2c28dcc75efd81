"""The three passes that a verification compares: a prefill, the same with another last token, and a decode step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from costcalc.reference import Arena, Request, Tape, forward
from costcalc.reference.arrays import Array, Fields
from costcalc.verification.properties import distance

Progress = Callable[[str, int, int], None]
"""Told what is running, how many of its layers are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Passes:
    """What became of them.

    tapes: of all three, in order. full, other: logits of the two prefills, (B, T, V). step: of the decode step,
    (B, 1, V). errors: how far each layer's output of the decode step, and at last its logits, are from the prefill's.
    overflowed: whether any operation told that its result was too large for float32.
    """

    tapes: list[Tape]
    full: Array
    other: Array
    step: Array
    errors: list[float]
    overflowed: bool

    @property
    def finite(self) -> bool:
        """Whether all logits are numbers."""
        return all(bool(np.isfinite(logits).all()) for logits in (self.full, self.other, self.step))


def run_passes(fields: Fields, arena: Arena, tokens: int, on_progress: Progress | None) -> Passes:
    """Prefill, prefill with another last token, and the real last token decoded after the others.

    The second keeps in its cache what both texts share, so the third decodes from that. There each layer is given what
    the prefill gave it, since a deep model can blow the rounding of its first layers up to any size.
    """
    text, changed = texts(tokens, fields["vocab_size"])
    request = Request(kept=tokens - 1)
    tapes: list[Tape] = []
    rows: list[Array] = []
    errors: list[float] = []
    overflows: list[str] = []

    def keep(_: int, x: Array) -> Array:
        rows.append(x[:, -1:].copy())  # (B, 1, D)
        return x

    def compare(done: int, x: Array) -> Array:
        errors.append(distance(x, rows[done - 1], scale=rows[done - 1]))
        return rows[done - 1]  # every layer starts from the same

    def run(label: str, some: Array, request: Request, then: Callable[[int, Array], Array]) -> Array:
        def on_layer(done: int, layers: int, x: Array) -> Array:
            if on_progress is not None:
                on_progress(label, done, layers)
            return then(done, x)

        tapes.append(Tape(arena))
        return forward(fields, some, tape=tapes[-1], request=request, on_layer=on_layer)

    with np.errstate(all="ignore", over="call", call=lambda *told: overflows.append(told[0])):
        full = run("prefill", text, Request(), keep)
        other = run("prefill, last token changed", changed, request, lambda _, x: x)
        step = run("decode", text[:, -1:], request, compare)
    errors.append(distance(step, full[:, -1:], scale=full))
    return Passes(tapes, full, other, step, errors, overflowed=bool(overflows))


def texts(tokens: int, vocab_size: int) -> tuple[Array, Array]:
    """A random text, (1, T), and the same with a neighbour of its last word: rows beside each other are two rows."""
    text = np.random.default_rng(1).integers(0, vocab_size, (1, tokens))
    changed, last = text.copy(), text[:, -1]
    changed[:, -1] = np.where(last + 1 < vocab_size, last + 1, np.maximum(last - 1, 0))
    return text, changed
