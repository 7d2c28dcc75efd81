"""The records that an architecture states once, and that every calculator folds over.

Axes are named with the field's letters (`letters.py` says what each means): a matmul's axes print its formula,
`2·B·T·D·N·H`.

The records are named tuples: as frozen as a frozen dataclass, and three times as quick to make.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

from costcalc.inventory.extents import Extent
from costcalc.inventory.workload import Workload

Axes = Mapping[str, "int | Extent"]
FURTHER_TOKENS = "multi-token-prediction layers"
"""What `not_counted` calls modules that predict further tokens."""
SCANS = ("recurrent", "chunked")
"""Forms of a scan: token by token, or chunk by chunk."""


class Weight(NamedTuple):
    """product(axes) parameters, held once for each of `times` equal layers.

    role: "trainable" | "frozen" (a parameter that is not trained) | "buffer" | "extra" (beside the model, such as a
        multi-token-prediction layer). The total is trainable + frozen.
    table: a vocabulary, position or token-type table: the `embedding` part of the total.
    used: axes replaced when counting what one token uses, {"E": 8} for 8 of the experts.
    """

    path: str
    axes: Mapping[str, int]
    times: int = 1
    role: str = "trainable"
    table: bool = False
    used: Mapping[str, int] | None = None

    @property
    def parameters(self) -> int:
        """How many numbers all layers hold."""
        return self.times * prod(self.axes.values())

    @property
    def used_parameters(self) -> int:
        """How many of them one token uses."""
        return self.parameters if self.used is None else self.times * prod({**self.axes, **self.used}.values())


class Matmul(NamedTuple):
    """2 x product(axes) FLOPs for each of `times` equal layers (a multiply-add is two).

    of: path of the weight it multiplies by; a tied head is `of` the embedding table. None for two activations.
    role: "weight" (and two activations that are no attention core: AltUp) | "scores" | "values" | "scan" (recurrent
        work: modelled, never exact).
    form: "expanded" | "absorbed" where a latent attention has both, "recurrent" | "chunked" where a scan has; None
        always counts.
    """

    path: str
    axes: Axes
    times: int = 1
    of: str | None = None
    role: str = "weight"
    form: str | None = None

    @property
    def is_of_latent(self) -> bool:
        """Whether it belongs to one of the two forms of a latent attention."""
        return self.form is not None and self.form not in SCANS

    def runs(self, workload: Workload) -> bool:
        """Of the two forms of a latent attention one runs: absorbed once there is a past, unless told.

        Of those of a scan the recurrent one is what the mathematics needs; kernels are handed whole chunks of a text,
        but for the single token of a decode step.
        """
        if self.form is None:
            return True
        if self.form in SCANS:
            is_step = workload.past_tokens != 0 and workload.new_tokens == 1
            return self.form == SCANS[workload.counting == "rectangle" and not is_step]
        return self.form == (workload.latent or ("expanded" if workload.past_tokens == 0 else "absorbed"))

    def flops(self, workload: Workload) -> int:
        """Floating-point operations of all layers, for one forward pass that runs it."""
        return 2 * self.times * _product(self.axes, workload)


class Cached(NamedTuple):
    """product(axes) elements that a request holds, for each of `times` equal layers.

    kind: "kv" grows with the context | "cross" (of encoder tokens) | "state" (constant). dtype None follows --dtype.
    form: "latent" | "decompressed" where a latent attention may hold either; the latent is held unless
    `Inventory.decompressed` is asked for. None is always held.
    """

    path: str
    axes: Axes
    times: int = 1
    kind: str = "kv"
    dtype: str | None = None
    form: str | None = None

    def elements(self, workload: Workload) -> int:
        """Numbers that all layers hold after the pass."""
        return self.times * _product(self.axes, workload)


class Unstated(NamedTuple):
    """What a part is known to do and nobody has stated: a question about it is refused, with the reason.

    of: "flops" | "cache". why: the end of a sentence, "the keys that a query meets are drawn by a hash of both".
    """

    path: str
    of: str
    why: str


Record = Weight | Matmul | Cached | Unstated


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything an architecture is made of.

    layout: per stack, the group (path prefix of its records) of each layer in order. not_counted: names of parts that
    the source describes and no record states, such as a vision tower.
    """

    records: tuple[Record, ...]
    layout: Mapping[str, tuple[str, ...]]
    not_counted: tuple[str, ...] = ()

    @property
    def weights(self) -> tuple[Weight, ...]:
        """The parameters."""
        return tuple([record for record in self.records if type(record) is Weight])

    @property
    def matmuls(self) -> tuple[Matmul, ...]:
        """The matrix multiplications."""
        return tuple([record for record in self.records if type(record) is Matmul])

    @property
    def unstated(self) -> tuple[Unstated, ...]:
        """What cannot be asked."""
        return tuple([record for record in self.records if type(record) is Unstated])

    @property
    def cached(self) -> tuple[Cached, ...]:
        """What a request holds."""
        return tuple([r for r in self.records if type(r) is Cached and r.form != "decompressed"])

    @property
    def decompressed(self) -> Inventory:
        """The same, holding keys and values of every head where a latent attention would hold its latents."""
        held = [r._replace(form=None) if type(r) is Cached and r.form == "decompressed" else r for r in self.records]
        kept = [r for r in held if not (type(r) is Cached and r.form == "latent")]
        return replace(self, records=tuple(kept))

    @property
    def chunked(self) -> Inventory:
        """The same, where every scan that has two forms runs chunk by chunk, whatever is counted."""
        scans = [r._replace(form=None) if type(r) is Matmul and r.form == "chunked" else r for r in self.records]
        kept = [r for r in scans if not (type(r) is Matmul and r.form == "recurrent")]
        return replace(self, records=tuple(kept))

    @property
    def has_cache(self) -> bool:
        """Whether tokens follow one another, so that something is kept of them: not in an encoder alone."""
        return tuple(self.layout) != ("encoder",)

    @property
    def needs_memory(self) -> bool:
        """Whether no pass is complete without encoder tokens."""
        return len(self.layout) > 1

    @property
    def takes_memory(self) -> bool:
        """Whether some layer looks at encoder tokens, its own encoder's or another's."""
        return any(record.kind == "cross" for record in self.cached)

    @property
    def layers_of(self) -> dict[str, int]:
        """How many layers each group stands for, by the group's path."""
        counts: dict[str, int] = {}
        for groups in self.layout.values():
            for group in groups:
                counts[group] = counts.get(group, 0) + 1
        return counts

    @property
    def letters(self) -> dict[str, int]:
        """L, D, N, K, H, F, V, ... where the whole model has one value of it; closed-form conventions read these."""
        seen: dict[str, set[int]] = {}
        for weight in self.weights:
            for letter, size in weight.axes.items():
                seen.setdefault(letter, set()).add(size)
        single = {letter: sizes.pop() for letter, sizes in seen.items() if len(sizes) == 1}
        return {"L": sum(len(groups) for groups in self.layout.values()), **single}


def group_of(path: str, groups: Container[str]) -> str | None:
    """The group, of `groups`, that a record's path lies in; None for what stands outside the layers."""
    end = path.rfind(".")
    while end > 0:
        if path[:end] in groups:
            return path[:end]
        end = path.rfind(".", 0, end)
    return None


def _product(axes: Axes, workload: Workload) -> int:
    total = 1
    for size in axes.values():
        total = total * (size.of(workload) if isinstance(size, Extent) else size)
    return total
