"""Norms of queries and keys, before positions turn them (arXiv 2302.05442)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from costcalc.architecture.component import Component
from costcalc.architecture.norm import LayerNorm, Norm, RMSNorm
from costcalc.architecture.places import At
from costcalc.inventory import Record


class PerHeadNorm(Component):
    """QK-norm over each head's H numbers, one gain for all heads (Qwen3, Gemma-3)."""

    kind: Literal["per_head"] = "per_head"
    norm: Norm = RMSNorm()

    def records(self, at: At, *, heads: dict[str, int], head_dim: int) -> Iterator[Record]:
        """A norm of H for the queries and one for the keys."""
        for name in heads:
            yield from self.norm.records(at, f"{name}_norm", {"H": head_dim})


class ProjectionNorm(Component):
    """QK-norm over the whole projection, N x H numbers for queries and K x H for keys (OLMo-2)."""

    kind: Literal["projection"] = "projection"
    norm: Norm = RMSNorm()

    def records(self, at: At, *, heads: dict[str, int], head_dim: int) -> Iterator[Record]:
        """A norm of N x H for the queries and one of K x H for the keys."""
        for (name, count), letter in zip(heads.items(), "NK", strict=False):
            yield from self.norm.records(at, f"{name}_norm", {letter: count, "H": head_dim})


class EachHeadNorm(Component):
    """QK-norm over each head's H numbers, where each head has gains of its own (Command-R+, `use_qk_norm`)."""

    kind: Literal["each_head"] = "each_head"
    norm: Norm = LayerNorm(bias=False)

    def records(self, at: At, *, heads: dict[str, int], head_dim: int) -> Iterator[Record]:
        """N x H gains for the queries and K x H for the keys."""
        for (name, count), letter in zip(heads.items(), "NK", strict=False):
            yield from self.norm.records(at, f"{name}_norm", {letter: count, "H": head_dim})


QKNorm = Annotated[PerHeadNorm | ProjectionNorm | EachHeadNorm, Field(discriminator="kind")]
