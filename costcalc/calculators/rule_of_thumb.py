"""The textbook estimate of a model's cost, from its matrices alone."""

from __future__ import annotations

from dataclasses import dataclass

from costcalc.calculators.figure import ESTIMATE, Figure
from costcalc.calculators.parameters import HELD
from costcalc.calculators.terms import cached_term, weight_term
from costcalc.calculators.workings import Figures
from costcalc.expression import Expression, symbol
from costcalc.inventory import Cached, Inventory, Weight, Workload, check_stated, group_of

THUMB = "the textbook rule: 2 FLOPs a weight and token forward, 3 times that for training, 16-bit caches"


@dataclass(frozen=True, slots=True)
class RuleOfThumb:
    """The textbook estimate: matrices only (no norm, no bias, no position table), 16-bit keys and values.

    layer_parameters: matrices of the layers, 12·D^2 each in a plain block. embedding_parameters: vocabulary tables.
    forward_flops_per_token: 2 x layer_parameters, which leaves out the head and the attention core.
    kv_bytes_per_token: None for an encoder alone, which keeps nothing.
    """

    layer_parameters: int
    embedding_parameters: int
    forward_flops_per_token: int
    kv_bytes_per_token: int | None

    @property
    def total_parameters(self) -> int:
        """Matrices and vocabulary tables."""
        return self.layer_parameters + self.embedding_parameters


def rule_of_thumb(inventory: Inventory) -> RuleOfThumb:
    """2 FLOPs for each weight that multiplies a token in the layers, and 2 bytes for each cached number."""
    check_stated(inventory, of="flops")
    matrices = sum(weight.used_parameters for weight in _matrices(inventory))
    vocabulary = sum(weight.parameters for weight in _vocabulary(inventory))
    cached = sum(record.elements(ONE_TOKEN) for record in _growing(inventory))
    return RuleOfThumb(matrices, vocabulary, 2 * matrices, 2 * cached if inventory.has_cache else None)


ONE_TOKEN = Workload()


def _matrices(inventory: Inventory) -> list[Weight]:
    multiplied, groups = {matmul.of for matmul in inventory.matmuls}, inventory.layers_of
    return [w for w in inventory.weights if w.role in HELD and w.path in multiplied and group_of(w.path, groups)]


def _vocabulary(inventory: Inventory) -> list[Weight]:
    return [w for w in inventory.weights if w.role in HELD and w.table and "V" in w.axes]


def _growing(inventory: Inventory) -> list[Cached]:
    return [record for record in inventory.cached if record.kind == "kv"]


def rule_of_thumb_figures(inventory: Inventory) -> Figures:
    """The working of `rule_of_thumb`, field by field, each under `rule_of_thumb.` and its name."""

    def figure(name: str, unit: str, expression: Expression | None = None, *below: Figure) -> Figure:
        terms, values = ((), {b.name: b for b in below}) if expression else (below, {})
        return Figure(f"rule_of_thumb.{name}", unit, expression, values, terms, source=THUMB, status=ESTIMATE)

    layers = figure("layer_parameters", "parameters", None, *(weight_term(w, used=True) for w in _matrices(inventory)))
    tables = figure("embedding_parameters", "parameters", None, *(weight_term(w) for w in _vocabulary(inventory)))
    kept = [cached_term(record, ONE_TOKEN).of("one token") for record in _growing(inventory)]
    elements = figure("kv_elements_per_token", "elements", None, *kept)
    figures = (
        layers,
        tables,
        figure("total_parameters", "parameters", symbol(layers.name) + symbol(tables.name), layers, tables),
        figure("forward_flops_per_token", "FLOPs", 2 * symbol(layers.name), layers),
        figure("kv_bytes_per_token", "bytes", 2 * symbol(elements.name), elements),
    )
    return {each.name: each for each in figures if inventory.has_cache or "kv" not in each.name}
