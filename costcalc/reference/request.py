"""What a request holds between two passes: the latest keys and values of every layer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from costcalc.reference.arrays import Array


@dataclass(slots=True)
class Request:
    """past: how many tokens went through before; with nothing held for them, the new ones only stand further on.
    kept: how many of the next pass's new tokens stay, None for all of them; fewer when the last ones are only tried, as
    in speculative decoding. arrays: what is held, by path.
    """

    past: int = 0
    kept: int | None = None
    arrays: dict[str, Array] = field(default_factory=dict)

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
        if held is not None and (*held.shape[:-2], held.shape[-1]) != (*new.shape[:-2], new.shape[-1]):
            raise ValueError(f"{path} holds {held.shape}, and {new.shape} is of another batch or model")
        seen = new if held is None else np.concatenate([held, new], axis=-2)  # (..., held + T, H)
        dropped = 0 if self.kept is None else new.shape[-2] - self.kept
        stays = seen[..., : seen.shape[-2] - dropped, :]
        if window is not None:
            stays = stays[..., max(stays.shape[-2] - window, 0) :, :]
        self.arrays[path] = stays
        return seen
