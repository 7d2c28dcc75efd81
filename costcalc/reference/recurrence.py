"""Token after token: what a recurrent mixer keeps of all earlier tokens has one size, however many there were."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from costcalc.reference.arrays import Array
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

States = dict[str, Array]
"""By name, arrays (B, ...) that a mixer keeps from one token to the next."""
Step = Callable[[int, States], tuple[Array, States]]
"""Given the number of a token and the states before it, its output (B, ...) and the states behind it, in new arrays."""


def recurrence(step: Step, out: Array, start: States, at: Scope, *, sight: Sight) -> Array:
    """The outputs of T new tokens, one after the other; the states behind the last one that is kept are held.

    out: (B, T, ...), which is filled. start: the states of a request in which nothing is held.
    """
    states, kept = held_states(start, at, sight), kept_of(sight, out.shape[1])
    if kept == 0:
        hold_states(states, at, sight)
    for token in range(out.shape[1]):
        out[:, token], states = step(token, states)
        if token + 1 == kept:
            hold_states(states, at, sight)
    return out


def kept_of(sight: Sight, tokens: int) -> int:
    """How many of T new tokens stay for later passes."""
    return tokens if sight.request is None or sight.request.kept is None else sight.request.kept


def held_states(start: States, at: Scope, sight: Sight) -> States:
    """The states that earlier tokens left, or `start`."""
    request = sight.request
    return start if request is None else {name: request.state(at.named(name), some) for name, some in start.items()}


def hold_states(states: States, at: Scope, sight: Sight) -> None:
    """What later passes start from."""
    if sight.request is not None:
        for name, state in states.items():
            sight.request.hold(at.named(name), state)


def padded(x: Array, chunk: int) -> Array:
    """T tokens and as many of zeros as fill the last chunk. (B, T, ...) -> (B, whole chunks, ...)."""
    missing = -x.shape[1] % chunk
    return np.concatenate([x, np.zeros_like(x, shape=(x.shape[0], missing, *x.shape[2:]))], axis=1)


def is_chunked(sight: Sight, tokens: int) -> bool:
    """Whether T new tokens go through a chunked form: where it is asked for, all but the one token of a decode step."""
    return sight.chunked and not (tokens == 1 and sight.start > 0)
