"""What the mixers have in common: a short convolution before the recurrence, and the dtype of what stays held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from costcalc.architecture.places import At, Stream
from costcalc.inventory import ChunkPairs, Convolved, Extent, Record, Tokens, WholeChunks

StateDtype = Literal["fp32", "bf16", "fp16"]
"""Of a recurrent state: float32 in most code, whatever the cache of attention is stored in."""

Axes = Mapping[str, "int | Extent"]


def convolution(at: At, channels: int, taps: int, *, bias: bool, kept: int | None = None) -> Iterator[Record]:
    """A causal convolution of each channel by itself: channels x taps, and the inputs that the next token needs.

    kept: inputs held of each channel, as many as taps where nothing else is said: that is what most code keeps, though
    the latest of them is read once more only as part of a shifted row (`causal_conv1d` and the caches of transformers).
    """
    places = Convolved(taps)
    yield at.weight("conv", {"channels": channels, "taps": taps})
    yield at.scan("conv", {places.letters: places, "channels": channels, "taps": taps}, of="conv")
    if bias:
        yield at.weight("conv_bias", {"channels": channels})
    yield at.state("conv_state", {"channels": channels, "taps": taps if kept is None else kept})


def recurrence(
    at: At, stream: Stream, *names: str, axes: Mapping[str, int], form: str | None = None
) -> Iterator[Record]:
    """Products of the recurrence itself, one multiply-add for each number of the state, for every token."""
    rows = stream.rows
    for name in names:
        yield at.scan(name, {rows.letters: rows, **axes}, form=form)


def chunked(at: At, chunk: int, products: Mapping[str, Mapping[str, int]], *, padded: bool = True) -> Iterator[Record]:
    """The same work chunk by chunk: of each name, the axes of what is multiplied for every token of a whole chunk.

    Products among the tokens of a chunk have the axis "chunk"; where nothing is padded, they are its pairs.
    """
    for name, axes in products.items():
        rows: Extent = WholeChunks(chunk) if padded else Tokens()
        of_token = {letter: size for letter, size in axes.items() if padded or letter != "chunk"}
        if len(of_token) < len(axes):
            rows = ChunkPairs(chunk)
        yield at.scan(name, {rows.letters: rows, **of_token}, form="chunked")
