"""One layer's tensors against its stated weights: by what they are called, then by their shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from costcalc.verification.headers.leaves import Leaf
from costcalc.verification.headers.names import Tensor
from costcalc.verification.headers.shapes import fits, together
from costcalc.verification.headers.vocabulary import FUSED, NESTED, NORMS, PARTS, ROLES

KNOWN = {word: frozenset(said.split()) for word, said in ROLES.items()}
KNOWN_NORMS = {word: frozenset(said.split()) for word, said in NORMS.items()}
KNOWN_FUSED = {frozenset(words.split()): frozenset(said.split()) for words, said in FUSED.items()}
POINTERS = {word: frozenset(said.split()) for word, said in PARTS.items()}
CALLED, THERE, ELSEWHERE = 10, 3, -20
"""How much a known name counts for, a word that points at the component, and one that points at another."""
OWN_BIASES = ("dt", "router_correction", "places")
"""Weights that are called a bias, and stated by a word of their own."""
STACKS = {"encoder", "decoder"}
MOST_TOGETHER = 6
MOST_CHOICES = 16


@dataclass(frozen=True, slots=True)
class Match:
    """Stated weights that are one tensor, or tensors that are one weight; how: "name", "fused", "split" or "shape"."""

    leaves: tuple[Leaf, ...]
    tensors: tuple[Tensor, ...]
    how: str


@dataclass(slots=True)
class Solution:
    """What was found in one place, and what is left on either side."""

    matches: list[Match]
    leaves: list[Leaf]
    tensors: list[Tensor]

    def take(self, leaves: Iterable[Leaf], tensors: Iterable[Tensor], how: str) -> None:
        """Note a match; what it holds is left no more."""
        match = Match(tuple(leaves), tuple(tensors), how)
        self.matches.append(match)
        self.leaves = [leaf for leaf in self.leaves if leaf not in match.leaves]
        self.tensors = [tensor for tensor in self.tensors if tensor not in match.tensors]


def solve(leaves: list[Leaf], tensors: list[Tensor]) -> Solution:
    """Match one place: what is known by name, then what is stored together, then what fits by its shape alone."""
    solution = Solution([], leaves, tensors)
    here = {leaf.component for leaf in leaves}
    singles(solution, here, least=CALLED, how="name")
    _fused(solution, here, by_name=True)
    _fused(solution, here, by_name=False)
    singles(solution, here, least=1, how="shape")
    _split(solution, here)
    return solution


def singles(solution: Solution, here: set[str], *, least: int, how: str) -> None:
    """Tensors that are one stated weight each, those that are surest first."""
    rated = [
        (score, -at, leaf, tensor)
        for at, leaf in enumerate(solution.leaves)
        for tensor in solution.tensors
        if fits(leaf.axes, tensor.shape)
        and (score := likeness(leaf, tensor, here)) is not None
        and score >= least
    ]  # fmt: skip
    taken: set[int] = set()
    for _, _, leaf, tensor in sorted(rated, key=lambda each: (-each[0], -each[1])):
        if id(leaf) not in taken and id(tensor) not in taken:
            taken |= {id(leaf), id(tensor)}
            solution.take([leaf], [tensor], how)


def likeness(leaf: Leaf, tensor: Tensor, here: set[str]) -> int | None:
    """How much a tensor's name says that it is this weight; None where it says that it cannot be."""
    is_own_bias = leaf.word in OWN_BIASES or leaf.word.endswith("_shift") or tensor.is_bias is leaf.is_bias
    if not is_own_bias or leaf.is_norm is not tensor.is_norm or _is_of_other_stack(leaf, tensor):
        return None
    known = (KNOWN_NORMS if leaf.is_norm else KNOWN).get(leaf.word, frozenset())
    own = set(leaf.word.split("_"))
    surely = max((parts for word, parts in tensor.called.items() if word in known), default=0)
    is_called = surely or (len(leaf.word) > 1 and own <= tensor.tokens)
    score = CALLED + surely if is_called else len(own & tensor.tokens) + leaf.is_norm
    return score + _whereabouts(leaf, tensor, here)


def _is_of_other_stack(leaf: Leaf, tensor: Tensor) -> bool:
    """Whether one is of an encoder and the other of a decoder, by what both say outside of the layers."""
    if leaf.parts[0] not in STACKS:
        return False
    said = {tensor.place[0]} & STACKS or STACKS & tensor.tokens
    return bool(said) and leaf.parts[0] not in said


def _whereabouts(leaf: Leaf, tensor: Tensor, here: set[str]) -> int:
    """Whether the words of a name point at the leaf's component, at another one of this place, or at none."""
    is_expert, is_shared = "experts" in leaf.parts, "shared" in leaf.parts
    says_shared = any(token.startswith("shared") or token.endswith("shexp") for token in tensor.tokens)
    says_expert = any(token.startswith("expert") or token.endswith("exps") for token in tensor.tokens)
    if is_shared != (says_shared and not leaf.word.startswith("shared")) and (is_shared or is_expert):
        return ELSEWHERE
    if is_expert and not says_expert and tensor.shape[:1] != leaf.axes[:1]:
        return ELSEWHERE
    pointed = _pointed(tensor, here)
    component = leaf.component
    if not pointed or not component:
        return 0 if component or not pointed else (1 if leaf.is_norm else 0)
    return THERE if component in pointed else ELSEWHERE


def _pointed(tensor: Tensor, here: set[str]) -> set[str]:
    """The components of this place that a name's words point at."""
    found = {component for component, words in POINTERS.items() if words & tensor.tokens}
    if {"encoder", "attn"} <= tensor.tokens or "enc" in tensor.tokens:
        found.add("cross_attention")
    if "cross_attention" in found:
        found.discard("attention")
    inside = found & here
    nested = [component for component in NESTED if component in inside]
    if inside or not found:
        return {nested[-1]} if nested else inside
    if found & {"mixer", "attention"}:  # "attention" of a recurrent layer, "mixer" of whatever a layer mixes with
        return here & ({"mixer"} if "attention" in found else {"attention", "feed_forward"})
    return set()


def may_be_part(leaf: Leaf, tensor: Tensor, here: set[str]) -> bool:
    """Whether a stated weight may be stored inside of a tensor, by what the names say."""
    is_alike = leaf.is_bias is tensor.is_bias and not leaf.is_norm and not tensor.is_norm
    return is_alike and bool(leaf.component) and _whereabouts(leaf, tensor, here) >= 0


def _fused(solution: Solution, here: set[str], *, by_name: bool) -> None:
    """Tensors that hold several stated weights side by side."""
    for tensor in list(solution.tensors):
        choices = [leaf for leaf in solution.leaves if may_be_part(leaf, tensor, here)]
        if not by_name and any((likeness(leaf, tensor, here) or 0) > CALLED + THERE for leaf in choices):
            continue  # it is called as one of them alone
        found = _best(choices, tensor, by_name=by_name)
        if found is not None:
            solution.take(found, [tensor], "fused")


def _best(choices: list[Leaf], tensor: Tensor, *, by_name: bool) -> tuple[Leaf, ...] | None:
    """The leaves of one component that fit together; by name only where the name is known to mean just these."""
    sets = fused_as(choices, tensor) if by_name else _sets(choices)
    return next((chosen for chosen in sets if together([leaf.axes for leaf in chosen], tensor.shape)), None)


def fused_as(choices: list[Leaf], tensor: Tensor) -> Iterable[tuple[Leaf, ...]]:
    """The sets of leaves that a tensor is known to be called for."""
    return (
        chosen
        for chosen in _sets(choices)
        if tensor.called.keys() & KNOWN_FUSED.get(frozenset(leaf.word for leaf in chosen), frozenset())
    )


def _sets(choices: list[Leaf]) -> Iterable[tuple[Leaf, ...]]:
    """Leaves that stand side by side, two or more of them."""
    homes: dict[tuple[str, ...], list[Leaf]] = {}
    for leaf in choices[:MOST_CHOICES]:
        homes.setdefault(leaf.parts[:-1], []).append(leaf)
    for home in homes.values():
        for count in range(2, min(len(home), MOST_TOGETHER) + 1):
            yield from combinations(home, count)


def _split(solution: Solution, here: set[str]) -> None:
    """Stated weights that are stored as several tensors: side by side, such as a convolution of queries, keys and
    values, or one for each number of the first axis.
    """
    for leaf in [each for each in solution.leaves if "experts" not in each.parts]:
        choices = [
            tensor
            for tensor in solution.tensors
            if (score := likeness(leaf, tensor, here)) is not None and score >= CALLED
        ]
        counts = [*range(2, min(len(choices), MOST_TOGETHER) + 1), *leaf.axes[:1]]
        tried = (chosen for count in counts if count <= len(choices) for chosen in _some(choices, count))
        chosen = next((each for each in tried if _holds(leaf, each)), None)
        if chosen is not None:
            solution.take([leaf], chosen, "split")


def _some(choices: list[Tensor], count: int) -> Iterable[tuple[Tensor, ...]]:
    """So many of few, or all of many."""
    if len(choices) <= MOST_CHOICES:
        return combinations(choices, count)
    return [tuple(choices)] if len(choices) == count else []


def _holds(leaf: Leaf, tensors: tuple[Tensor, ...]) -> bool:
    first, *rest = leaf.axes
    if len(tensors) == first and all(fits(tuple(rest), tensor.shape) for tensor in tensors):
        return True
    return together([tuple(size for size in tensor.shape if size != 1) for tensor in tensors], leaf.axes)
