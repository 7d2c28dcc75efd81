"""All of a checkpoint against all of an architecture: every tensor explained, or listed as what it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from costcalc.inventory import FURTHER_TOKENS, Inventory
from costcalc.inventory.packing import SCALE, Meaning, meanings
from costcalc.inventory.stored import Checkpoint
from costcalc.verification.headers.differing import Differing, pairs_that_differ
from costcalc.verification.headers.leaves import FURTHER, Leaf, layers_with_weights, leaves
from costcalc.verification.headers.match import CALLED, KNOWN, Match, Solution, singles, solve
from costcalc.verification.headers.names import OUTSIDE, Place, Tensor, placed
from costcalc.verification.headers.vocabulary import FURTHER as FURTHER_WORDS

SHARED, LENT = "shared_block", ("positions", "embedding_norm")
"""What stands in no layer or in several, and which checkpoints put into the first of them."""
TABLES = ("embedding", "head")
MOST_LAYERS = 100_000


@dataclass(frozen=True, slots=True)
class HeaderCheck:
    """The result. matches: what agrees, and how it was told. unexplained, missing, differing: what does not.

    untold: packed weights whose shape nothing says. buffers and scales: tensors that are no weights. copies: tables
    that are tied in the model and stored again. towers: tensors of parts that the architecture does not count. further:
    tensors of modules that predict further tokens, where none are stated. lacking: stated weights that a checkpoint may
    leave out, and this one does.
    """

    matches: tuple[Match, ...]
    missing: tuple[Leaf, ...]
    unexplained: tuple[Tensor, ...]
    differing: tuple[Differing, ...]
    untold: tuple[Meaning, ...]
    buffers: tuple[str, ...]
    scales: tuple[str, ...]
    copies: tuple[Tensor, ...]
    towers: tuple[str, ...]
    further: tuple[Tensor, ...]
    lacking: tuple[Leaf, ...]

    @property
    def agrees(self) -> bool:
        """Whether every tensor is explained and every stated weight is there, in its shape."""
        return not (self.missing or self.unexplained or self.differing or self.untold)


def compare_headers(inventory: Inventory, checkpoint: Checkpoint) -> HeaderCheck:
    """Match every tensor of a checkpoint with what the architecture states."""
    found = meanings(checkpoint)
    weights = [each for each in found if not each.is_buffer and each.shape is not None]
    stated = leaves(inventory)
    layers = layers_with_weights(stated, inventory.layout)
    tensors, towers = placed(weights, layers, bool(set(inventory.not_counted) - {FURTHER_TOKENS}))
    tensors = [_moved(tensor, inventory) for tensor in tensors]
    solution = _solved(stated, tensors)
    further = [tensor for tensor in solution.tensors if tensor.place[0] == FURTHER]
    copies = _copies(solution)
    told = {id(tensor) for tensor in (*copies, *further)}
    left = [tensor for tensor in solution.tensors if id(tensor) not in told]
    lacking = _may_be_lacking(solution)
    let = {id(leaf) for leaf in lacking}
    missing = [leaf for leaf in solution.leaves if id(leaf) not in let]
    differing = pairs_that_differ(missing, left, solution.matches)
    paired = {id(each) for pair in differing for each in (pair.tensor, *pair.leaves)}
    return HeaderCheck(
        matches=tuple(solution.matches),
        missing=tuple(leaf for leaf in missing if id(leaf) not in paired),
        unexplained=tuple(tensor for tensor in left if id(tensor) not in paired),
        differing=tuple(differing),
        untold=tuple(each for each in found if not each.is_buffer and each.shape is None),
        buffers=tuple(each.name for each in found if each.is_buffer and each.packing != SCALE),
        scales=tuple(each.name for each in found if each.packing == SCALE),
        copies=tuple(copies),
        towers=tuple(towers),
        further=tuple(further),
        lacking=tuple(lacking),
    )


def _may_be_lacking(solution: Solution) -> list[Leaf]:
    """Stated weights that are not there and need not be: buffers that no layer holds, modules that are not begun.

    A buffer that another layer of its stack has belongs into each; so does every weight of a module but its tables,
    which a checkpoint may leave to the model's own.
    """
    held = {(leaf.place[0], leaf.inside) for match in solution.matches for leaf in match.leaves}
    begun = {leaf.place for match in solution.matches for leaf in match.leaves if leaf.place[0] == FURTHER}
    return [
        leaf
        for leaf in solution.leaves
        if leaf.may_lack
        and (
            leaf.place not in begun or leaf.word in TABLES
            if leaf.place[0] == FURTHER
            else (leaf.place[0], leaf.inside) not in held
        )
    ]


def _moved(tensor: Tensor, inventory: Inventory) -> Tensor:
    """Layers behind the last stated one are further modules, as many as there are, and so is what says so."""
    stack, index = tensor.place
    depth, modules = len(inventory.layout.get(stack, ())), _modules(inventory)
    says_so = set(FURTHER_WORDS.split()) & set(tensor.names[0].lower().split("."))
    if tensor.place == OUTSIDE:
        return Tensor(tensor.names, tensor.inside, tensor.shape, (FURTHER, 0)) if says_so else tensor
    if index < depth:
        return tensor
    if index - depth < modules:
        return Tensor(tensor.names, tensor.inside, tensor.shape, (FURTHER, index - depth))
    return Tensor(tensor.names, tensor.names[0].lower(), tensor.shape, OUTSIDE)


def _modules(inventory: Inventory) -> int:
    """How many further modules a checkpoint may hold: those that are stated; any number where they are only named."""
    if FURTHER_TOKENS in inventory.not_counted:
        return MOST_LAYERS
    return max((weight.times for weight in inventory.weights if weight.role == "extra"), default=0)


def _solved(stated: list[Leaf], tensors: list[Tensor]) -> Solution:
    """Place by place; then what is left of all of them, by name alone."""
    leaves_of: dict[Place, list[Leaf]] = {}
    tensors_of: dict[Place, list[Tensor]] = {}
    for leaf in stated:
        leaves_of.setdefault(leaf.place, []).append(leaf)
    for tensor in tensors:
        tensors_of.setdefault(tensor.place, []).append(tensor)
    usual = _usual(leaves_of, tensors_of)
    whole = Solution([], [], [])
    for place in dict.fromkeys([*leaves_of, *tensors_of]):
        here, there = leaves_of.get(place, []), tensors_of.get(place, [])
        part = solve(here, [tensor for tensor in there if usual(here, tensor)])
        whole.matches += part.matches
        whole.leaves += part.leaves
        whole.tensors += [*part.tensors, *(tensor for tensor in there if not usual(here, tensor))]
    _lent(whole)
    _undo_odd(whole)
    return whole


def _undo_odd(whole: Solution) -> None:
    """Take back what is called otherwise than the same weight of most layers of its stack, of norms apart."""
    names: dict[tuple[str, str], dict[str, int]] = {}
    single = [each for each in whole.matches if each.how in ("name", "shape") and not each.leaves[0].is_norm]
    for match in single:
        leaf, tensor = match.leaves[0], match.tensors[0]
        said = names.setdefault((leaf.place[0], leaf.inside), {})
        is_known = bool(tensor.called.keys() & KNOWN.get(leaf.word, frozenset()))
        said[tensor.parts[-1]] = said.get(tensor.parts[-1], is_known) + 2  # of as many, the known one is right
    for match in single:
        said = names[match.leaves[0].place[0], match.leaves[0].inside]
        if said[match.tensors[0].parts[-1]] < max(said.values()):
            whole.matches.remove(match)
            whole.leaves += match.leaves
            whole.tensors += match.tensors


def _lent(whole: Solution) -> None:
    """What the first layer holds for all: a table of relative positions, a norm before it, a block that is shared."""
    may_be = [leaf for leaf in whole.leaves if leaf.word in LENT or SHARED in leaf.parts]
    part = Solution([], may_be, [tensor for tensor in whole.tensors if tensor.place != OUTSIDE])
    singles(part, set(), least=CALLED, how="name")
    for match in part.matches:
        whole.take(match.leaves, match.tensors, match.how)


def _usual(leaves_of: dict[Place, list[Leaf]], tensors_of: dict[Place, list[Tensor]]) -> Callable[..., bool]:
    """Whether a tensor is called as in most layers with the same statement; a name of one layer alone is a fault."""
    counts: dict[tuple[str, ...], Counter[str]] = {}
    depths: Counter[tuple[str, ...]] = Counter()
    for place, held in leaves_of.items():
        kind = tuple(leaf.inside for leaf in held)
        depths[kind] += 1
        counts.setdefault(kind, Counter()).update(tensor.inside for tensor in tensors_of.get(place, []))

    def is_usual(here: list[Leaf], tensor: Tensor) -> bool:
        kind = tuple(leaf.inside for leaf in here)
        return 2 * counts.get(kind, Counter())[tensor.inside] >= depths[kind]

    return is_usual


def _copies(solution: Solution) -> list[Tensor]:
    """What is stored again: tables and head biases, called as such, and the layers' copies of a shared block."""
    lent = {
        (tensor.inside, tensor.shape)
        for match in solution.matches
        if any(SHARED in leaf.parts for leaf in match.leaves)
        for tensor in match.tensors
    }
    again = [each for each in solution.tensors if each.place != OUTSIDE and (each.inside, each.shape) in lent]
    words = KNOWN["embedding"] | KNOWN["head"]
    tables = [each for each in solution.matches if each.leaves[0].word in TABLES and len(each.tensors) == 1]
    shapes = {match.tensors[0].shape for match in tables}
    own = {match.tensors[0].shape for match in tables if match.leaves[0].inside == "head"}
    outside = [tensor for tensor in solution.tensors if tensor.place == OUTSIDE and tensor.called.keys() & words]
    return [*again, *(each for each in outside if each.shape in shapes and (each.shape not in own or each.is_bias))]
