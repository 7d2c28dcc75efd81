"""Normalisation: LayerNorm (arXiv 1607.06450) and RMSNorm (arXiv 1910.07467)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from costcalc.architecture.component import Component, Flag, PositiveFloat
from costcalc.architecture.places import At
from costcalc.inventory import Record


class LayerNorm(Component):
    """Centred and scaled; a gain and a bias per channel, either of which a model may leave out.

    normalized: false where only the gain and the bias are left of it (MobileBERT's `no_norm`, arXiv 2004.02984).
    eps: added to the variance. It changes no count; the forward pass needs it.
    """

    kind: Literal["layernorm"] = "layernorm"
    eps: PositiveFloat = 1e-5
    weight: Flag = True
    bias: Flag = True
    normalized: Flag = True

    def records(self, at: At, name: str, axes: Mapping[str, int]) -> Iterator[Record]:
        """A gain and a bias of `axes` (usually {"D": d_model}), no matmul."""
        if self.weight:
            yield at.weight(name, axes)
        if self.bias:
            yield at.weight(f"{name}_bias", axes)


class RMSNorm(Component):
    """Scaled by the root mean square; a gain per channel, which a model may leave out.

    eps: added to the mean square. unit: lengths become 1, not the root of the width, and eps is added to the sum of
    squares (nGPT, arXiv 2410.01131). Neither changes a count; the forward pass needs them.
    """

    kind: Literal["rmsnorm"] = "rmsnorm"
    eps: PositiveFloat = 1e-6
    weight: Flag = True
    unit: Flag = False

    def records(self, at: At, name: str, axes: Mapping[str, int]) -> Iterator[Record]:
        """A gain of `axes` (usually {"D": d_model}), no matmul."""
        if self.weight:
            yield at.weight(name, axes)


Norm = Annotated[LayerNorm | RMSNorm, Field(discriminator="kind")]
