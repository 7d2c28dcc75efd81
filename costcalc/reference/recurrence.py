"""Token after token: what a recurrent mixer keeps of all earlier tokens has one size, however many there were."""

from __future__ import annotations

from collections.abc import Callable

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
    tokens, states = out.shape[1], held_states(start, at, sight)
    kept = tokens if sight.request is None or sight.request.kept is None else sight.request.kept
    if kept == 0:
        hold_states(states, at, sight)
    for token in range(tokens):
        out[:, token], states = step(token, states)
        if token + 1 == kept:
            hold_states(states, at, sight)
    return out


def held_states(start: States, at: Scope, sight: Sight) -> States:
    """The states that earlier tokens left, or `start`."""
    request = sight.request
    return start if request is None else {name: request.state(at.named(name), some) for name, some in start.items()}


def hold_states(states: States, at: Scope, sight: Sight) -> None:
    """What later passes start from."""
    if sight.request is not None:
        for name, state in states.items():
            sight.request.hold(at.named(name), state)


def is_chunked(sight: Sight, tokens: int) -> bool:
    """Whether T new tokens go through a chunked form: where it is asked for, all but the one token of a decode step."""
    return sight.chunked and not (tokens == 1 and sight.start > 0)
