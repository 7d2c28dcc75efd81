"""What a checkpoint holds, as its headers say it: one record a tensor. No number of any weight is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

SHARED_KEYS = ("quantization_config", "compression_config", "quantization")
"""Where a config.json says how its checkpoint is packed; the last is MLX's word."""


class Stored(NamedTuple):
    """One tensor: product(shape) elements in `bytes` bytes of `file`.

    dtype: the file's own word, such as BF16, or a GGML block format, such as Q4_K. shape: of a GGUF the widest axis of
        the memory first turned last, as NumPy and PyTorch say it. states: of a tensor that is itself a note about
        another one (bitsandbytes' quant_state, compressed-tensors' weight_shape), the shape that it notes.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    file: str
    states: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        """How many elements are stored; of a packed tensor, each may hold several weights."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The tensors of one model, over all of its files.

    label: what the user called it. format: "safetensors" or "gguf". files: their names, in order. config: the
    config.json beside it, if there is one. notes: what a reader should be told.
    """

    label: str
    format: str
    files: tuple[str, ...]
    tensors: tuple[Stored, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A name for people: the last part of the label."""
        return self.label.rstrip("/").rpartition("/")[2] or self.label

    @property
    def quantization(self) -> Mapping[str, Any]:
        """What the config.json beside it says of packing; empty where there is nothing."""
        for key in SHARED_KEYS:
            said = self.config.get(key)
            if isinstance(said, dict):
                return said
        return {}
