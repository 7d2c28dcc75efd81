"""What is left on both sides, told as one: a stated weight and the tensor that is called as it is, of another shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from costcalc.verification.headers.leaves import Leaf
from costcalc.verification.headers.match import CALLED, Match, fused_as, likeness, may_be_part
from costcalc.verification.headers.names import Place, Tensor


@dataclass(frozen=True, slots=True)
class Differing:
    """Stated weights, and the tensor that is called as they are, of another shape."""

    leaves: tuple[Leaf, ...]
    tensor: Tensor


def pairs_that_differ(missing: list[Leaf], left: list[Tensor], matches: Iterable[Match]) -> list[Differing]:
    """Pairs of one place: by what the same name is in other layers, then by name, then by what is stored together."""
    missing_in: dict[Place, list[Leaf]] = {}
    for leaf in missing:
        missing_in.setdefault(leaf.place, []).append(leaf)
    known = {tensor.inside: match.leaves for match in matches if len(match.tensors) == 1 for tensor in match.tensors}
    found: list[Differing] = []
    taken: set[int] = set()
    for pairs in (_as_elsewhere(missing_in, left, known), _by_name(missing_in, left), _fused(missing_in, left)):
        for leaves, tensor in pairs:
            ids = {id(each) for each in (tensor, *leaves)}
            if not ids & taken:
                taken |= ids
                found.append(Differing(leaves, tensor))
    return found


Known = dict[str, tuple[Leaf, ...]]
Pair = tuple[tuple[Leaf, ...], Tensor]


def _as_elsewhere(missing_in: dict[Place, list[Leaf]], left: list[Tensor], known: Known) -> Iterator[Pair]:
    for tensor in left:
        wanted = [leaf.inside for leaf in known.get(tensor.inside, ())]
        here = {leaf.inside: leaf for leaf in missing_in.get(tensor.place, [])}
        if wanted and all(inside in here for inside in wanted):
            yield tuple(here[inside] for inside in wanted), tensor


def _by_name(missing_in: dict[Place, list[Leaf]], left: list[Tensor]) -> Iterator[Pair]:
    rated: list[tuple[int, int, Leaf, Tensor]] = []
    for tensor in left:
        here = missing_in.get(tensor.place, [])
        components = {leaf.component for leaf in here}
        for leaf in here:
            score = likeness(leaf, tensor, components)
            if score is not None and score >= CALLED:
                rated.append((-score, len(rated), leaf, tensor))
    for *_, leaf, tensor in sorted(rated, key=lambda each: each[:2]):
        yield (leaf,), tensor


def _fused(missing_in: dict[Place, list[Leaf]], left: list[Tensor]) -> Iterator[Pair]:
    for tensor in left:
        here = missing_in.get(tensor.place, [])
        components = {leaf.component for leaf in here}
        choices = [leaf for leaf in here if may_be_part(leaf, tensor, components)]
        for leaves in fused_as(choices, tensor):
            yield leaves, tensor
