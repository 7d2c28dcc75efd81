"""The conventions of training FLOPs, each as its paper states it.

P is parameters (a tied table once), t the tokens trained on, S the tokens of a sequence; L, D, N, H, V are the model's
letters, where it has one value of each.
"""

from __future__ import annotations

from dataclasses import dataclass

from costcalc.calculators.rule_of_thumb import THUMB
from costcalc.expression import Expression, symbols


@dataclass(frozen=True, slots=True)
class Rule:
    """A convention as its paper states it: training FLOPs over t tokens in sequences of S."""

    name: str
    formula: Expression
    source: str
    why: str


P, t, S, L, D, N, H, V = symbols("P t S L D N H V")
P_NON_EMBEDDING, P_LAYERS, P_MATRICES, P_ACTIVE = symbols("P_non_embedding P_layers P_matrices P_active")
KAPLAN = "Kaplan et al., arXiv 2001.08361"
MEGATRON = "Narayanan et al., arXiv 2104.04473, section 5"
RULES = (
    Rule(
        "6nd_total",
        6 * P * t,
        f"{KAPLAN}, in the form most papers quote",
        "charges what multiplies nothing: tables that are only looked up, norms, biases; leaves out the attention core",
    ),
    Rule(
        "6nd_active",
        6 * P_ACTIVE * t,
        f"{KAPLAN}, of the parameters that a token uses: Fedus et al., arXiv 2101.03961, section 1",
        "6nd_total of a mixture's active parameters; charges tables that are only looked up; leaves out the core",
    ),
    Rule(
        "6nd_non_embedding",
        6 * P_NON_EMBEDDING * t,
        f"{KAPLAN}, section 2.1",
        "leaves out the head, which multiplies every token, and the attention core",
    ),
    Rule(
        "kaplan",
        3 * (2 * P_NON_EMBEDDING + 2 * L * S * N * H) * t,
        f"{KAPLAN}, section 2.1 and table 1",
        "leaves out the head; half of the rectangle as core, close to a causal mask's; knows no windows",
    ),
    Rule(
        "palm",
        (6 * P + 12 * L * N * H * S) * t,
        "Chowdhery et al., arXiv 2204.02311, appendix B",
        "charges tables that are only looked up; the rectangle as core, twice a causal mask's: published MFUs use it",
    ),
    Rule(
        "megatron",
        72 * t * L * D**2 * (1 + S / (6 * D) + V / (12 * L * D)),
        f"{MEGATRON}, without recomputation",
        "takes 12·D^2 weights a layer and N·H = D for granted, whatever the model has; rectangle core",
    ),
    Rule(
        "megatron_full_recompute",
        96 * t * L * D**2 * (1 + S / (6 * D) + V / (16 * L * D)),
        f"{MEGATRON}, equation 3",
        "megatron with one more forward pass of the layers: hardware FLOPs, not model FLOPs",
    ),
    Rule(
        "chinchilla",
        3 * (2 * V * D + 2 * P_MATRICES + L * (4 * S * N * H + 3 * N * S)) * t,
        "Hoffmann et al., arXiv 2203.15556, appendix F",
        "charges input table and head, rectangle core and softmax; its own table A4 comes out with neither table",
    ),
    Rule(
        "rule_of_thumb",
        6 * P_LAYERS * t,
        THUMB,
        "matrices of the layers alone: leaves out the head and the attention core",
    ),
)
