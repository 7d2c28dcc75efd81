"""Mixtures of experts: how many a model has, what one holds, and how many a batch reads.

Which experts tokens choose is no property of an architecture. The expectation is that of tokens which choose each
expert alike and independently of one another: E·(1 - (1 - X/E)^B). Trained routers are less even, and neighbours in a
text alike, so that fewer are read.
"""

from __future__ import annotations

from dataclasses import dataclass

from costcalc.calculators.figure import ESTIMATE, EXACT, Figure
from costcalc.calculators.terms import weight_term
from costcalc.calculators.workings import Figures, parameter_figures
from costcalc.errors import CostcalcError
from costcalc.expression import symbol
from costcalc.inventory import Inventory, Weight, check_stated
from costcalc.inventory.workload import checked_length

EVEN = "each token chooses each expert alike, independently of the others: a mean"
MOST_TOKENS = 100_000
"""Of one step; with more, every expert is read for all that matters."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """The routed experts of some equal layers.

    path: where they are. experts, chosen: of one layer, and how many of them a token uses. layers: how many such
    layers. expert_parameters: of one expert.
    """

    path: str
    experts: int
    chosen: int
    layers: int
    expert_parameters: int


@dataclass(frozen=True, slots=True)
class Experts:
    """What one step of `tokens` tokens reads of a model's weights.

    distinct: by path of a mixture, the experts that at least one token is expected to choose, in each of its layers.
    read_parameters: what the step is expected to read, to the nearest whole number: every weight that a token uses but
    the tables that are only looked up, and the experts that are chosen. Exact for one token, or without experts.
    """

    mixtures: tuple[Mixture, ...]
    distinct: dict[str, float]
    read_parameters: int


def experts(inventory: Inventory, tokens: int = 1) -> Experts:
    """The mixtures of a model, and what a step of so many tokens is expected to read."""
    figures = expert_figures(inventory, tokens)
    found = mixtures(inventory)
    return Experts(
        mixtures=tuple(found),
        distinct={each.path: float(figures[f"distinct_experts.{each.path}"].exact_value) for each in found},
        read_parameters=figures["read_parameters"].value,
    )


def mixtures(inventory: Inventory) -> list[Mixture]:
    """The routed experts of each group of equal layers."""
    return [
        Mixture(
            path=path,
            experts=weights[0].axes["E"],
            chosen=_chosen(weights[0]),
            layers=weights[0].times,
            expert_parameters=sum(_of_one(weight).parameters for weight in weights),
        )
        for path, weights in _routed(inventory).items()
    ]


def _routed(inventory: Inventory) -> dict[str, list[Weight]]:
    """The weights of which a token uses some, by the path of their experts."""
    held: dict[str, list[Weight]] = {}
    for weight in inventory.weights:
        if weight.used is not None and "E" in weight.used:
            held.setdefault(weight.path.rpartition(".")[0], []).append(weight)
    return held


def _chosen(weight: Weight) -> int:
    return (weight.used or {})["E"]


def _of_one(weight: Weight) -> Weight:
    """One expert of one layer."""
    return weight._replace(axes={**weight.axes, "E": 1}, times=1, used=None)


def expert_figures(inventory: Inventory, tokens: int) -> Figures:
    """`distinct_experts.` and `expert_parameters.` of each mixture by its path, and `read_parameters`."""
    tokens = checked_length(tokens, name="tokens", least=1)
    check_stated(inventory, of="flops")
    if tokens > MOST_TOKENS:
        raise CostcalcError(
            f"{tokens:,} tokens of one step are more than {MOST_TOKENS:,}: all experts are read",
            hint=f"at most {MOST_TOKENS}",
        )
    figures: Figures = {}
    active = parameter_figures(inventory)["active_parameters_without_input_table"]
    read, below = symbol(active.name), {active.name: active}
    for each in mixtures(inventory):
        distinct, one = _distinct(each, tokens), _expert(inventory, each)
        figures |= {distinct.name: distinct, one.name: one}
        more = _more(each, distinct, one)
        read, below = read + symbol(more.name), {**below, more.name: more}
    figures["read_parameters"] = Figure("read_parameters", "parameters", read, below, source=EVEN)
    return figures


def _distinct(each: Mixture, tokens: int) -> Figure:
    e, x, b = symbol("E"), symbol("X"), symbol("B")
    status = EXACT if tokens == 1 or each.chosen == each.experts else ESTIMATE
    values = {"E": each.experts, "X": each.chosen, "B": tokens}
    name = f"distinct_experts.{each.path}"
    return Figure(name, "", e * (1 - (1 - x / e) ** b), values, source=EVEN, status=status)


def _expert(inventory: Inventory, each: Mixture) -> Figure:
    terms = tuple(weight_term(_of_one(weight)).of("one expert") for weight in _routed(inventory)[each.path])
    return Figure(f"expert_parameters.{each.path}", "parameters", terms=terms, source="one of the experts of one layer")


def _more(each: Mixture, distinct: Figure, one: Figure) -> Figure:
    """What a step reads beyond the experts of one token, in all layers."""
    formula = symbol("L") * (symbol(distinct.name) - symbol("X")) * symbol(one.name)
    values: dict[str, Figure | int] = {"L": each.layers, distinct.name: distinct, "X": each.chosen, one.name: one}
    return Figure(f"more_experts.{each.path}", "parameters", formula, values, source=EVEN)
