"""The one type that every function here takes and gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""An array of numbers; functions say its shape, with the letters B batch, T new tokens, S all tokens that are seen,
M an encoder's tokens, D model width, N query heads, K key/value heads, G = N / K query heads a key head, H head size,
F feed-forward width, V vocabulary, W embedding width, E experts, X experts of a token, R the width of a latent.
"""

Fields = dict[str, Any]
"""One component of an architecture as a plain mapping: its `kind` and its fields, as they were written."""

FLOAT = np.float32
"""The dtype of a pass. One float64 scalar would turn everything that follows into float64, 7 to 14 times slower."""


def floats(x: Array) -> Array:
    """The array itself if it holds floats; lists and whole numbers become float64, so that nothing is cut to them."""
    x = np.asarray(x)
    return x if x.dtype.kind == "f" else x.astype(np.float64)
