"""Names of stored tensors taken apart: in which layer each stands, what it is called there, and which are one stack."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from costcalc.inventory.packing import Meaning
from costcalc.verification.headers.shapes import Shape
from costcalc.verification.headers.vocabulary import LAYERS, ROLES, TEXT, TOWERS

Place = tuple[str, int]
"""A stack and the index of a layer in it; OUTSIDE stands for all that is in no layer."""
OUTSIDE: Place = ("", 0)
EXPERT = re.compile(r"(\w*expert\w*)\.(\d+)\.")
NORM = re.compile(r"(?:\w*norm|ln|rms)\d*")
OWN_SUFFIX = re.compile(r"(?<=.)_(weight|bias)$")


@dataclass(frozen=True)
class Tensor:
    """A stored weight, or the equal weights of all experts as one: `inside` is its name in its place, in lower case.

    names: as stored, one for each expert. shape: with the experts first, where they are stored one by one.
    """

    names: tuple[str, ...]
    inside: str
    shape: Shape
    place: Place = field(default=OUTSIDE, compare=False)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts of the name, but for the word `weight` or `bias` at its end."""
        found = [part for part in self.inside.split(".") if part != "*"]
        if len(found) > 1 and found[-1] in ("weight", "bias"):
            return tuple(found[:-1])
        return (*found[:-1], OWN_SUFFIX.sub("", found[-1]))

    @cached_property
    def called(self) -> dict[str, int]:
        """What the vocabulary may know it by, and how many parts of the name that is: more of them are surer."""
        words = [part for part in self.parts if not part.isdigit()] or list(self.parts)
        whole = self.inside.split(".")
        found = {words[-1]: 1, whole[-1]: 1, ".".join(whole[-2:]): 2}
        return found | {".".join(self.parts[-count:]): count for count in (1, 2, 3)}

    @cached_property
    def tokens(self) -> frozenset[str]:
        """All words of the name."""
        return frozenset(token for part in self.parts for token in (part, *part.split("_")))

    @property
    def is_bias(self) -> bool:
        """Whether it is added, by its name."""
        return self.inside.endswith("bias")

    @cached_property
    def is_norm(self) -> bool:
        """Whether it belongs to a normalisation, by its last part."""
        return any(NORM.fullmatch(token) for token in self.parts[-1].split("_"))


def placed(
    weights: Iterable[Meaning], layout: Mapping[str, list[int]], not_counted: bool
) -> tuple[list[Tensor], list[str]]:
    """Every stored weight in its place, and the names of those that belong to a tower beside the text model.

    layout: per stack the layers that hold weights.
    """
    kept: list[Meaning] = []
    towers: list[Meaning] = []
    for weight in weights:
        (towers if not_counted and is_of_tower(weight.name) else kept).append(weight)
    containers = _containers([weight.name for weight in kept], layout)
    begins = _text_model(containers) if not_counted else ""
    towers += [weight for weight in kept if not _is_of_text(weight.name, begins)]
    kept = [weight for weight in kept if _is_of_text(weight.name, begins)]
    return _experts_joined([_placed(weight, containers) for weight in kept]), [weight.name for weight in towers]


def _text_model(containers: list[Container]) -> str:
    """How names of the text model begin, where its layers' own name says so."""
    for container in containers:
        parts = container.name.split(".")
        ends = [at for at, part in enumerate(parts) if any(word in part for word in TEXT.split())]
        if ends:
            return ".".join(parts[: ends[0] + 1]) + "."
    return ""


def _is_of_text(name: str, begins: str) -> bool:
    """Whether a name begins so; a head stands outside."""
    first = name.partition(".")[0]
    return name.startswith(begins) or "head" in first or first in ROLES["head"].split()


def is_of_tower(name: str) -> bool:
    """Whether the beginning of a name is that of a tower for images or sound."""
    words = TOWERS.split()
    return any(word in part for part in name.lower().split(".")[:3] for word in words)


@dataclass(frozen=True)
class Container:
    """A list of numbered modules, and the layer of each number; before: its own name, where it is one of several.

    of_each: how many layers one module is, whose parts it then numbers: self_attn.0, self_attn.1.
    """

    name: str
    stack: str
    layers: Mapping[str, int]
    before: str = ""
    of_each: int = 1

    def place(self, number: str, inside: str) -> tuple[Place, str]:
        """The layer of what stands in a module, and its name in that layer."""
        first = self.layers[number] * self.of_each
        found = re.search(r"(?<!experts)\.(\d)(?=\.)", inside) if self.of_each > 1 else None
        if found is None:
            return (self.stack, first), inside
        return (self.stack, first + int(found[1])), inside[: found.start()] + inside[found.end() :]


def _placed(weight: Meaning, containers: list[Container]) -> Tensor:
    for container in containers:
        if weight.name.startswith(f"{container.name}."):
            rest = weight.name[len(container.name) + 1 :]
            number = next((each for each in _numbers(rest) if each in container.layers), None)
            if number is not None and len(rest) > len(number):
                place, inside = container.place(number, container.before + rest[len(number) + 1 :])
                return Tensor((weight.name,), inside.lower(), weight.shape or (), place)
    return Tensor((weight.name,), weight.name.lower(), weight.shape or ())


def _numbers(rest: str) -> tuple[str, ...]:
    """'3.attn.q' -> ('3',); '0.layers.1.q' -> ('0', '0.layers.1'): what may say which layer it is."""
    found = re.match(r"(\d+)(?:\.(?:\w+\.)?\d+)?(?=\.)", rest)
    return () if found is None else (found[1], found[0])


def _containers(names: list[str], layout: Mapping[str, list[int]]) -> list[Container]:
    """The lists of layers of every stack."""
    numbered: dict[str, list[str]] = {}
    for name in names:
        found = re.match(r"(?:(.*?)\.)(?=\d+\.)", name)
        if found:
            numbered.setdefault(found[1], []).append(name[found.end() :])
    containers: list[Container] = []
    for stack, layers in layout.items():
        others = {other for other in layout if other != stack} | {each.name for each in containers}
        rated = [
            (_rating(container, rests, stack, len(layers)), container)
            for container, rests in numbered.items()
            if container not in others and not others & set(re.split(r"[._]", container))
        ]
        if rated:
            containers += _beside(max(rated)[1], numbered, stack, layers)
    return containers


def _beside(name: str, numbered: Mapping[str, list[str]], stack: str, layers: list[int]) -> list[Container]:
    """A list of layers; or several, of parts of layers, that are numbered alike in one place: attentions.0, ffns.0."""
    indices = _indices(numbered[name], layers)
    alike = [
        each for each in numbered if _home(each) == _home(name) and _depth(numbered[each]) == _depth(numbered[name])
    ]
    if len(alike) == 1 or len(indices) == 1:
        is_single = all(number.isdigit() for number in indices)
        return [Container(name, stack, indices, of_each=_of_each(numbered[name], len(layers)) if is_single else 1)]
    is_whole = name.rpartition(".")[2] in LAYERS.split()
    return [
        Container(each, stack, indices, "" if is_whole and each == name else f"{each.rpartition('.')[2]}.")
        for each in alike
    ]


def _of_each(rests: list[str], layers: int) -> int:
    """How many layers each module is: as many as it numbers its parts, if that makes all of the layers."""
    numbers = {
        int(found) for rest in rests for found in re.findall(r"^\d+\.\w+\.(\d)\.", rest) if "experts." not in rest
    }
    count = len(numbers)
    return count if numbers == set(range(count)) and count * len(_depth(rests)) == layers and count > 1 else 1


def _home(container: str) -> str:
    return container.rpartition(".")[0]


def _depth(rests: list[str]) -> set[str]:
    return {rest.partition(".")[0] for rest in rests}


def _rating(container: str, rests: list[str], stack: str, layers: int) -> tuple[bool, bool, bool, int]:
    """How likely a list of numbered modules is a stack: by its name, and by how much is in it."""
    words = set(re.split(r"[._]", container))
    is_named = container.rpartition(".")[2] in LAYERS.split()
    depth = len(_depth(rests))
    return stack in words or stack[:3] in words, is_named, depth == layers, len(rests)


def _indices(rests: list[str], layers: list[int]) -> dict[str, int]:
    """The layer of each number. Where layers share weights, a number counts the sets; where layers are numbered twice
    over, by group and in it, they are counted through.
    """
    singles = sorted(_depth(rests), key=int)
    pairs = {each for rest in rests for each in _numbers(rest)[1:]}
    in_order = sorted(pairs, key=lambda each: [int(number) for number in re.findall(r"\d+", each)])
    if len(singles) < len(layers) == len(in_order) and all(len(set(_numbers(rest))) > 1 for rest in rests):
        return dict(zip(in_order, layers, strict=True))
    if layers != list(range(len(layers))):  # a number beyond the sets means no layer
        return dict(zip(singles, layers, strict=False))
    return {each: int(each) for each in singles}


def _experts_joined(tensors: list[Tensor]) -> list[Tensor]:
    """Experts that are stored one by one as one tensor with an axis of experts; one of another shape stays alone."""
    joined: dict[tuple[Place, str], dict[int, Tensor]] = {}
    kept = []
    for tensor in tensors:
        found = EXPERT.search(tensor.inside)
        if found is None:
            kept.append(tensor)
        else:
            inside = f"{tensor.inside[: found.start()]}{found[1]}.*.{tensor.inside[found.end() :]}"
            joined.setdefault((tensor.place, inside), {})[int(found[2])] = tensor
    for (place, inside), experts in joined.items():
        ((usual, _),) = Counter(tensor.shape for tensor in experts.values()).most_common(1)
        alike = [experts[index] for index in sorted(experts) if experts[index].shape == usual]
        kept += [tensor for tensor in experts.values() if tensor.shape != usual]
        names = tuple(name for tensor in alike for name in tensor.names)
        kept.append(Tensor(names, inside, (len(alike), *usual), place))
    return kept
