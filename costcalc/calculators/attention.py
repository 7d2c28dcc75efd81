"""The quadratic part: what scores and weighted values cost at a context, and where they overtake the weights."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from costcalc.calculators.figure import Figure
from costcalc.calculators.flops import Flops, flops, runs
from costcalc.calculators.search import first_true
from costcalc.calculators.terms import cached_term
from costcalc.calculators.workings import CORE, Figures, flop_figures, stored
from costcalc.expression import symbol
from costcalc.inventory import Cached, Inventory, Workload

SHARES = {"half_of_weights": (1, 2), "equal_to_weights": (1, 1)}
"""Core over weights: at a half the core is a third of the forward pass, at one a half of it."""
PASSES = ("next_token", "sequence")
STORED = "the N·S·S scores of a layer that an unfused softmax writes: Dao et al., arXiv 2205.14135, section 2"


@dataclass(frozen=True, slots=True)
class AttentionCost:
    """At one context: the next token's pass, the whole sequence's, and the score matrices that are never stored.

    The score matrices are those of one sequence, masked scores included: what an unfused kernel writes, layer by layer.
    FlashAttention (Dao et al., arXiv 2205.14135) holds none of them.
    """

    context: int
    next_token: Flops
    sequence: Flops
    score_bytes: int
    score_bytes_per_layer: int


def attention_cost(
    inventory: Inventory, context: int, *, counting: str = "attended", dtype: str = "bf16"
) -> AttentionCost:
    """The attention core of the token at the end of `context` tokens, and of the sequence as a whole."""
    last, whole = passes(context, counting)
    figures = score_figures(inventory, context, dtype)
    return AttentionCost(
        context=context,
        next_token=flops(inventory, last),
        sequence=flops(inventory, whole),
        score_bytes=figures["score_matrix_bytes"].value,
        score_bytes_per_layer=figures["score_matrix_bytes_per_layer"].value,
    )


def passes(context: int, counting: str) -> tuple[Workload, Workload]:
    """The pass of the last token of a context, after all others; and that of the whole sequence at once."""
    return (
        Workload(new_tokens=1, past_tokens=context - 1, counting=counting),
        Workload(new_tokens=context, counting=counting),
    )


def attention_figures(
    inventory: Inventory, context: int, *, counting: str = "attended", dtype: str = "bf16"
) -> Figures:
    """The keys of `costcalc attention` at one context, the shares there, and where the core overtakes the weights."""
    last, whole = passes(context, counting)
    crossings = [_crossing_figure(inventory, share, of, counting) for share in SHARES for of in PASSES]
    counted = {
        **flop_figures(inventory, last, prefix="next_token_"),
        **flop_figures(inventory, whole, prefix="sequence_"),
    }
    shares = [_share_figure(counted, of) for of in PASSES]
    return {
        **counted,
        **{figure.name: figure for figure in shares},
        **score_figures(inventory, context, dtype),
        **{figure.name: figure for figure in crossings if figure is not None},
    }


def _share_figure(counted: Figures, of: str) -> Figure:
    core, forward = counted[f"{of}_attention_flops"], counted[f"{of}_forward_flops"]
    both = {figure.name: figure for figure in (core, forward)}
    return Figure(f"{of}_attention_share", "", symbol(core.name) / symbol(forward.name), both, source=CORE)


def _crossing_figure(inventory: Inventory, share: str, of: str, counting: str) -> Figure | None:
    found = crossing(inventory, share, of=of, counting=counting)
    if found is None:
        return None
    prefix, workload = f"{share}_{of}_", passes(found, counting)[PASSES.index(of)]
    sides = flop_figures(inventory, workload, prefix=prefix)
    core, weights = sides[f"{prefix}attention_flops"], sides[f"{prefix}weight_flops"]
    words = f"the first S with {core.name} >= {Fraction(*SHARES[share])} x {weights.name}"
    name = f"crossings.{share}_context.{of}"
    return Figure(name, "tokens", words=words, found=found, terms=(core, weights), source=CORE)


def score_figures(inventory: Inventory, context: int, dtype: str) -> Figures:
    """The bytes of the score matrices of one sequence: of all layers, and of the layer with the largest."""
    rectangle = Workload(new_tokens=context, counting="rectangle")
    # The scores of a layer are what its matmul makes: all its axes but H, which is summed over. Kernels without a
    # window of their own write masked scores too.
    matrices = [
        Cached(m.path, {letter: size for letter, size in m.axes.items() if letter != "H"}, m.times)
        for m in inventory.matmuls
        if m.role == "scores" and runs(m, rectangle)
    ]
    terms = [cached_term(matrix, rectangle) for matrix in matrices]
    single = [cached_term(matrix._replace(times=1), rectangle) for matrix in matrices]
    largest = max(single, key=lambda term: term.value, default=None)
    total = Figure("score_matrix_elements", "elements", terms=tuple(terms), source=STORED)
    one = Figure(
        "score_matrix_elements_per_layer",
        "elements",
        terms=() if largest is None else (largest.named(f"{largest.name} of one layer"),),
        source=STORED,
    )
    return {
        "score_matrix_bytes": stored("score_matrix_bytes", total, dtype),
        "score_matrix_bytes_per_layer": stored("score_matrix_bytes_per_layer", one, dtype),
    }


def crossing(inventory: Inventory, share: str, *, of: str, counting: str = "attended") -> int | None:
    """The shortest context at which the core is as large as SHARES[share] of the weights; None if it never is.

    of: "next_token" (the pass of the last token) or "sequence" (all of it at once, so half the pairs a token).
    """
    part, whole = SHARES[share]
    index = PASSES.index(of)

    def is_reached(context: int) -> bool:
        counted = flops(inventory, passes(context, counting)[index])
        return counted.attention * whole >= counted.weights * part

    return first_true(is_reached)
