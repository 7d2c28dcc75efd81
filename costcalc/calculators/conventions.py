"""Named rules that people use instead of an exact count; each is printed by its name, beside the exact one."""

from __future__ import annotations

from dataclasses import dataclass

from costcalc.calculators.parameters import HELD, Parameters
from costcalc.inventory import Inventory, Workload, group_of


@dataclass(frozen=True, slots=True)
class RuleOfThumb:
    """The textbook estimate: matrices only (no norm, no bias, no position table), 16-bit keys and values.

    layer_parameters: matrices of the layers, 12·D^2 each in a plain block. embedding_parameters: vocabulary tables.
    forward_flops_per_token: 2 x layer_parameters, which leaves out the head and the attention core.
    """

    layer_parameters: int
    embedding_parameters: int
    forward_flops_per_token: int
    kv_bytes_per_token: int

    @property
    def total_parameters(self) -> int:
        """Matrices and vocabulary tables."""
        return self.layer_parameters + self.embedding_parameters


def rule_of_thumb(inventory: Inventory) -> RuleOfThumb:
    """2 FLOPs for each weight that multiplies a token in the layers, and 2 bytes for each cached number."""
    multiplied, groups = {matmul.of for matmul in inventory.matmuls}, inventory.layers_of
    held = [weight for weight in inventory.weights if weight.role in HELD]
    matrices = sum(w.used_parameters for w in held if w.path in multiplied and group_of(w.path, groups))
    vocabulary = sum(w.parameters for w in held if w.table and "V" in w.axes)
    one_token = Workload()
    cached = sum(record.elements(one_token) for record in inventory.cached if record.kind == "kv")
    return RuleOfThumb(matrices, vocabulary, 2 * matrices, 2 * cached)


def six_nd_total(counted: Parameters, tokens: int) -> int:
    """6·N·D with N all parameters and D tokens (Kaplan et al., arXiv 2001.08361, in the form most papers quote)."""
    return 6 * counted.total * tokens
