"""What a request holds between two passes: keys and values of every layer, of another stack, and states."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from costcalc.reference.arrays import Array


@dataclass(slots=True)
class Request:
    """past: how many tokens went through before; with nothing held for them, the new ones only stand further on.
    kept: how many of the next pass's new tokens stay, None for all of them; fewer when the last ones are only tried, as
    in speculative decoding. arrays: what is held, by path. cross: the paths, among them, of keys and values that were
    made of an encoder's tokens, once. states: the paths of what stays as large as it is, whatever went through.
    """

    past: int = 0
    kept: int | None = None
    arrays: dict[str, Array] = field(default_factory=dict)
    cross: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()

    def check(self, tokens: int) -> None:
        """ValueError where the counts cannot be meant for a pass of so many new tokens."""
        whole = all(isinstance(count, int | np.integer) for count in (self.past, self.kept or 0))
        if not whole or self.past < 0 or not 0 <= (self.kept or 0) <= tokens:
            raise ValueError(f"{self.kept} of {tokens} tokens cannot be kept, {self.past} before them")

    def extended(self, path: str, new: Array, *, window: int | None) -> Array:
        """What was held, with the new tokens behind it; of that the latest `window` stay held for the next pass.

        new: (..., T, H). Result: (..., held + T, H).
        """
        held = self.arrays.get(path)
        if held is not None:
            _check_same(path, held, new)
        seen = new if held is None else np.concatenate([held, new], axis=-2)  # (..., held + T, H)
        dropped = 0 if self.kept is None else new.shape[-2] - self.kept
        stays = seen[..., : seen.shape[-2] - dropped, :]
        if window is not None:
            stays = stays[..., max(stays.shape[-2] - window, 0) :, :]
        self.arrays[path] = stays
        return seen

    def once(self, path: str, new: Array) -> Array:
        """What the pass that starts the request makes of an encoder's tokens, and later ones find: (..., M, H).

        new: (..., M, H), or (..., 0, H) in later passes.
        """
        if self.past == 0 or path not in self.arrays:
            self.arrays[path] = new
            self.cross |= {path}
        _check_same(path, self.arrays[path], new)
        return self.arrays[path]

    def state(self, path: str, start: Array) -> Array:
        """The state that earlier tokens left, or `start` where nothing is held; of the same shape."""
        held = self.arrays.get(path, start)
        if held.shape != start.shape:
            raise ValueError(f"{path} holds {held.shape}, and {start.shape} is of another batch or model")
        return held

    def hold(self, path: str, state: Array) -> None:
        """Hold a state in place of the one before it."""
        self.arrays[path] = state
        self.states |= {path}

    def kind(self, path: str) -> str:
        """Of an array that is held: "cross" where it was made of an encoder's tokens, "state", otherwise "kv"."""
        if path in self.states:
            return "state"
        return "cross" if path in self.cross else "kv"


def _check_same(path: str, held: Array, new: Array) -> None:
    if (*held.shape[:-2], held.shape[-1]) != (*new.shape[:-2], new.shape[-1]):
        raise ValueError(f"{path} holds {held.shape}, and {new.shape} is of another batch or model")
