"""Mixing by a Fourier transform, without parameters (FNet, arXiv 2105.03824, section 3; `FNetFourierTransform`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record, Stages


class Fourier(Component):
    """The real part of a discrete Fourier transform over a token's numbers, and over all tokens of the text.

    Nothing is held, and a token is mixed with all others: it is for an encoder. Its work is a model of a fast transform
    (Cooley and Tukey 1965) of real numbers: a multiply-add for each number and each of ceil(log2(n)) stages.
    """

    kind: Literal["fourier"] = "fourier"

    def summary(self) -> str:
        """One line for a reader."""
        return "Fourier transform over tokens and channels"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """The stages of both transforms."""
        rows, width = {stream.rows.letters: stream.rows}, {"D": d_model}
        yield at.scan("scan_channels", {**rows, **width, "stages": (d_model - 1).bit_length()})
        yield at.scan("scan_tokens", {**rows, **width, "stages": Stages(stream.text.of_source)})
