"""Stated against recorded, path by path and layer by layer, and the differences told in as few lines as possible."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from costcalc.inventory import Cached, Inventory, Matmul, Unstated, Weight, Workload, group_of
from costcalc.reference.tape import Tape

KINDS = ("parameters", "FLOPs", "cached elements")
BESIDE = {"buffer": "buffers", "extra": "extra parameters"}
"""Roles of parameters that stand beside the model's own."""
PARTS = (*((kind, kind, None) for kind in KINDS), *((name, "parameters", role) for role, name in BESIDE.items()))
"""What is added up: its name, the kind that it is of, and the role of those that stand beside the others."""
CORES = ("scores", "values")
"""Roles of an attention's products of two activations, and what those are called."""
Stated = Weight | Matmul | Cached
Amount = tuple[int, str]
"""How many, and what else must agree: a parameter's role, the weight that a matmul multiplies by."""
Amounts = dict[str, dict[str, Amount]]
"""kind -> path, with the real index of its layer -> amount."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that the architecture states differently from what the pass did; None where one of them has nothing.

    phases: the passes in which they differ so. kind: one of KINDS, or what else differs: "role", "weight", "kind of
    cache", "layers". path: as stated, without the layer's index. layers: the indices of the layers that differ in this
    way, empty outside the layers.
    """

    phases: tuple[str, ...]
    kind: str
    path: str
    layers: tuple[int, ...]
    stated: int | str | None
    recorded: int | str | None


@dataclass(frozen=True, slots=True)
class Compared:
    """Totals of one kind in one phase, those of a role in BESIDE apart: how many paths, what both sides add up to."""

    kind: str
    paths: int
    stated: int
    recorded: int


def compare(inventory: Inventory, workload: Workload, tape: Tape, *, phase: str) -> tuple[list[Compared], list[Fault]]:
    """Every parameter, matmul and cached array of one pass; the workload is what the pass was given."""
    told, done = stated(inventory, workload), recorded(tape)
    totals = [_compared(name, *(_part(amounts, kind, held) for amounts in (told, done))) for name, kind, held in PARTS]
    differing = [fault for kind in KINDS for fault in _differences(kind, told[kind], done[kind], phase)]
    return totals, _wrong_depths(inventory, phase) + merged(differing, inventory.layout)


def stated(inventory: Inventory, workload: Workload) -> Amounts:
    """What the inventory says of each single layer."""
    amounts: Amounts = {kind: {} for kind in KINDS}
    layers, shared = _layers(inventory), _shared(inventory)
    for record in inventory.records:
        if isinstance(record, Unstated) or not _happens(record, workload):
            continue
        group = group_of(record.path, layers)
        places = layers.get(group or "", [""])
        for place in places[:1] if record.path in shared and isinstance(record, Weight) else places:
            path = _placed(record.path, group, place)
            if isinstance(record, Matmul):
                holder = places[0] if record.of in shared else place
                tag = record.role if record.of is None else _placed(record.of, group, holder)
            else:
                tag = record.role if isinstance(record, Weight) else record.kind
            kind, amount = _of_one_layer(record, workload)
            before = amounts[kind].get(path, (0, tag))[0]
            amounts[kind][path] = (before + amount, tag)
    return {kind: _without_nothing(amounts[kind]) for kind in KINDS}


def _happens(record: Stated, workload: Workload) -> bool:
    """Of the two forms of a latent attention, and of what it may hold, one does."""
    if isinstance(record, Matmul):
        return record.runs(workload)
    return not (isinstance(record, Cached) and record.form == "decompressed")


def recorded(tape: Tape) -> Amounts:
    """What the pass did."""
    flops = {path: (flops, tape.of.get(path, _role(path))) for path, flops in tape.flops().items()}
    cached = {path: (elements, tape.cached_kinds.get(path, "kv")) for path, elements in tape.cached.items()}
    amounts = (dict(tape.parameters), flops, cached)
    return {kind: _without_nothing(found) for kind, found in zip(KINDS, amounts, strict=True)}


def _role(path: str) -> str:
    """Of a product of two activations: those of an attention are called by their roles, others count with weights."""
    name = path.rpartition(".")[2]
    if name.startswith("scan_"):
        return "scan"
    return name if name in CORES else "weight"


def _without_nothing(amounts: dict[str, Amount]) -> dict[str, Amount]:
    """What a pass does not do at all, such as an encoder's products in a decode step, has no path on a tape."""
    return {path: amount for path, amount in amounts.items() if amount[0]}


def _shared(inventory: Inventory) -> set[str]:
    """Paths of the weights that all layers of a group have in common (ALBERT): the first of them holds them."""
    depths = inventory.layers_of
    return {
        weight.path
        for weight in inventory.weights
        if weight.times == 1 and depths.get(group_of(weight.path, depths) or "", 1) > 1
    }


def merged(faults: list[Fault], layout: Mapping[str, tuple[str, ...]]) -> list[Fault]:
    """Equal differences of several layers in one line, under the path of their group."""
    lines: dict[tuple[tuple[str, ...], str, str, int | str | None, int | str | None], list[int]] = {}
    for fault in faults:
        path, layer = _grouped(fault.path, layout)
        key = (fault.phases, fault.kind, path, fault.stated, fault.recorded)
        lines.setdefault(key, []).extend([] if layer is None else [layer])
    return [
        Fault(phases, kind, path, tuple(layers), told, done)
        for (phases, kind, path, told, done), layers in lines.items()
    ]


def told_once(faults: list[Fault]) -> list[Fault]:
    """The same difference in several passes, such as that of a parameter, as one."""
    phases: dict[Fault, tuple[str, ...]] = {}
    for fault in faults:
        anywhere = replace(fault, phases=())
        phases[anywhere] = phases.get(anywhere, ()) + fault.phases
    return [replace(anywhere, phases=found) for anywhere, found in phases.items()]


def _layers(inventory: Inventory) -> dict[str, list[str]]:
    """Per group, the places of its layers: 'decoder.layers.7'."""
    places: dict[str, list[str]] = {}
    for stack, groups in inventory.layout.items():
        for index, group in enumerate(groups):
            places.setdefault(group, []).append(f"{stack}.layers.{index}")
    return places


def _placed(path: str, group: str | None, place: str) -> str:
    inside = group is not None and path.startswith(f"{group}.")
    return place + path[len(group or "") :] if inside else path


def _of_one_layer(record: Stated, workload: Workload) -> tuple[str, int]:
    """What one of its equal layers has of it; of extra modules, which are in no stack, all."""
    if isinstance(record, Weight):
        return KINDS[0], (record if record.role == "extra" else record._replace(times=1)).parameters
    if isinstance(record, Matmul):
        return KINDS[1], record._replace(times=1).flops(workload)
    return KINDS[2], record._replace(times=1).elements(workload)


def _part(amounts: Amounts, kind: str, beside: str | None) -> dict[str, int]:
    """The amount at each path, of one role beside the model, or of all other."""
    of_kind = amounts[kind].items()
    return {path: amount for path, (amount, tag) in of_kind if (tag if tag in BESIDE else None) == beside}


def _compared(name: str, told: dict[str, int], done: dict[str, int]) -> Compared:
    return Compared(name, len(told.keys() | done.keys()), sum(told.values()), sum(done.values()))


def _differences(kind: str, told: dict[str, Amount], done: dict[str, Amount], phase: str) -> Iterator[Fault]:
    for path in dict.fromkeys([*told, *done]):
        said, did = told.get(path), done.get(path)
        if said is None or did is None or said[0] != did[0]:
            yield Fault((phase,), kind, path, (), said and said[0], did and did[0])
        elif said[1] != did[1]:
            beside = {"parameters": "role", "FLOPs": "weight"}.get(kind, "kind of cache")
            yield Fault((phase,), beside, path, (), said[1], did[1])


def _wrong_depths(inventory: Inventory, phase: str) -> list[Fault]:
    """Records that count for another number of layers than their group has; but weights may be shared, and count once.

    Weights that are stated as shared and are not differ in the layers that hold their own. Extra ones are of no stack.
    """
    layers, shared = _layers(inventory), _shared(inventory)
    told = [record for record in inventory.records if not isinstance(record, Unstated)]
    own = [record for record in told if not (isinstance(record, Weight) and record.role == "extra")]
    depths = [(record, len(layers.get(group_of(record.path, layers) or "", [""]))) for record in own]
    return [
        Fault((phase,), "layers", record.path, (), record.times, depth)
        for record, depth in depths
        if record.times != depth and not (isinstance(record, Weight) and record.path in shared)
    ]


def _grouped(path: str, layout: Mapping[str, tuple[str, ...]]) -> tuple[str, int | None]:
    found = re.match(r"(\w+)\.layers\.(\d+)(?=\.)", path)
    if not found:
        return path, None
    groups, layer = layout.get(found[1], ()), int(found[2])
    return (groups[layer] + path[found.end() :] if layer < len(groups) else path), layer
