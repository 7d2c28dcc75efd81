"""Named rules that people use instead of an exact count; each is printed by its name, beside the exact one.

A convention is an estimate, whatever it is called in its paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from costcalc.calculators.figure import ESTIMATE, Figure
from costcalc.calculators.flops import flops
from costcalc.calculators.parameters import Parameters
from costcalc.calculators.rule_of_thumb import rule_of_thumb_figures
from costcalc.calculators.rules import RULES, Rule
from costcalc.calculators.workings import Figures, flop_figures, parameter_figures
from costcalc.expression import Expression, Number, symbol
from costcalc.inventory import Inventory, Workload

ONE_TEXT = Workload(new_tokens=1)
TWO_TEXTS = "encoder and decoder see texts of different lengths, and the rule knows one S and one L"
PARTS = "the weights' part is what is left of the rule where a sequence has no length, the core's is the rest"


def six_nd(counted: Parameters, tokens: int) -> int:
    """6·N·D with N all parameters that a token uses and D tokens.

    Kaplan et al., arXiv 2001.08361, in the form most papers quote; of a mixture of experts those that are active, as
    its papers do (DeepSeek-V3, arXiv 2412.19437, quotes 37 B of 671 B).
    """
    return 6 * counted.active * tokens


def six_nd_figure(inventory: Inventory, tokens: int) -> Figure:
    """The same, as a figure."""
    given = _given(inventory, tokens, 1)
    total = _ruled(RULES[1 if "P_active" in given else 0], given).total
    assert total is not None  # every model has parameters
    return total


@dataclass(frozen=True, slots=True)
class Convention:
    """One way to count a training run. `total` is None where the model lacks a letter: `missing` says which.

    weight_flops and core_flops split the total: what is left when a sequence has no length, and the rest.
    """

    name: str
    total: Figure | None
    weight_flops: int | None
    core_flops: int | None
    why: str
    missing: str = ""


def conventions(inventory: Inventory, tokens: int, seq_len: int, *, memory_tokens: int = 0) -> list[Convention]:
    """Every convention for training on `tokens` tokens in sequences of `seq_len`, the exact counts first.

    Of an encoder-decoder the tokens are the decoder's, and each sequence has `memory_tokens` encoder tokens beside it.
    """
    attended = _exact(inventory, tokens, seq_len, memory_tokens, "attended")
    rectangle = _exact(inventory, tokens, seq_len, memory_tokens, "rectangle")
    both = {"core_rectangle": rectangle["core"]}
    half = Figure("core_half", "FLOPs", symbol("core_rectangle") / 2, both, status=ESTIMATE)
    exact = [
        _of("exact_attended", attended, "what the mask and the windows let through"),
        _of("exact_rectangle", rectangle, "every query with every key it is handed"),
        _of(
            "half_rectangle",
            {**attended, "core": half},
            "half of the rectangle, T^2 / 2 pairs where a causal mask has T·(T + 1) / 2",
        ),
    ]
    given = _given(inventory, tokens, seq_len)
    ruled = [_ruled(rule, given) for rule in RULES if "P_active" in given or "P_active" not in rule.formula.symbols()]
    if inventory.needs_memory:
        ruled = [replace(way, missing=TWO_TEXTS) if way.missing else way for way in ruled]
    return [*exact, *ruled]


def _of(name: str, parts: Figures, why: str) -> Convention:
    total = Figure(name, "FLOPs", terms=tuple(parts.values()), source="3 times the forward pass, part by part")
    return Convention(name, total, parts["weights"].value, parts["core"].value, why)


def split(tokens: int, seq_len: int) -> tuple[int, int]:
    """(whole sequences, tokens of one shorter sequence that is left over)."""
    return divmod(tokens, seq_len)


def _exact(inventory: Inventory, tokens: int, seq_len: int, memory_tokens: int, counting: str) -> Figures:
    """3 x weights and 3 x core of all whole sequences and of what is left over; scans too, where a model has any."""
    sequences, rest = split(tokens, seq_len)
    passes = [("", sequences, seq_len), ("rest_", 1, rest)]
    workloads = [
        (f"{counting}_{name}", Workload(batch, length, memory_tokens=memory_tokens, counting=counting))
        for name, batch, length in passes
        if batch and length
    ]
    found = [flop_figures(inventory, workload, prefix=prefix) for prefix, workload in workloads]
    parts = {"weights": "weight_flops", "core": "attention_flops", "scans": "modelled_flops"}
    figures = {
        name: _tripled(f"{name}_{counting}", [_ending(each, key) for each in found]) for name, key in parts.items()
    }
    return {name: figure for name, figure in figures.items() if figure.value or name != "scans"}


def _ending(figures: Figures, name: str) -> Figure:
    return next(figure for key, figure in figures.items() if key.endswith(name))


def _tripled(name: str, parts: list[Figure]) -> Figure:
    total: Expression = symbol(parts[0].name)
    for part in parts[1:]:
        total = total + symbol(part.name)
    return Figure(name, "FLOPs", 3 * total, {part.name: part for part in parts})


def _given(inventory: Inventory, tokens: int, seq_len: int) -> dict[str, Figure | Number]:
    """What each symbol of the rules stands for in this model; a letter of several values is left out."""
    counted, letters = parameter_figures(inventory), inventory.letters
    scores = [matmul for matmul in inventory.matmuls if matmul.role == "scores" and matmul.runs(ONE_TEXT)]
    attending = sum(matmul.times for matmul in scores)
    active = counted["active_parameters"]
    if attending != letters["L"] or inventory.needs_memory:  # a rule's L is of layers that all attend to one text
        del letters["L"]
    return {
        **letters,
        "P": counted["total_parameters"],
        "P_non_embedding": counted["non_embedding_parameters"],
        **({} if active.value == counted["total_parameters"].value else {"P_active": active}),
        "P_layers": rule_of_thumb_figures(inventory)["rule_of_thumb.layer_parameters"],
        "P_matrices": _matrices(inventory),
        "t": tokens,
        "S": min(seq_len, tokens),  # a run of fewer tokens is one shorter sequence
    }


def _matrices(inventory: Inventory) -> int:
    """Weights that multiply every token: what one token more costs, which leaves out a pooler."""
    one, two = (
        flops(inventory, Workload(new_tokens=tokens, memory_tokens=int(inventory.needs_memory))).weights
        for tokens in (1, 2)
    )
    return (two - one) // 2


def _ruled(rule: Rule, given: dict[str, Figure | Number]) -> Convention:
    missing = [name for name in rule.formula.symbols() if name not in given]
    if missing:
        said = " and ".join(
            "has layers that do not attend to one text" if name == "L" else f"has no single {name}" for name in missing
        )
        said = f"the model {said}"
        return Convention(rule.name, None, None, None, rule.why, said)
    used = {name: given[name] for name in rule.formula.symbols()}
    total = Figure(rule.name, "FLOPs", rule.formula, used, source=rule.source, status=ESTIMATE)
    weights, core = _parts(total)
    return Convention(rule.name, total, weights.value, core.value, rule.why)


def _parts(total: Figure) -> tuple[Figure, Figure]:
    """The weights' part, of a rule what is left where a sequence has no length, and the attention core's, the rest."""
    if total.expression is None:
        return total.terms[0], total.terms[1]
    shortest = {name: 0 if name == "S" else value for name, value in total.values.items()}
    weights = Figure(f"{total.name}.weight_flops", "FLOPs", total.expression, shortest, source=PARTS, status=ESTIMATE)
    rest = symbol(total.name) - symbol(weights.name)
    both = {total.name: total, weights.name: weights}
    return weights, Figure(f"{total.name}.attention_flops", "FLOPs", rest, both, source=PARTS, status=ESTIMATE)


def convention_figures(ways: list[Convention]) -> Figures:
    """Each total by its convention's name, and below that name its parts and its ratio to the first, exact, one."""
    figures: Figures = {}
    totals = [way.total for way in ways if way.total is not None]
    for total in totals:
        weights, core = _parts(total)
        quotient, both = symbol(total.name) / symbol(totals[0].name), {each.name: each for each in (total, totals[0])}
        figures[total.name] = total
        figures[f"{total.name}.weight_flops"] = weights.named(f"{total.name}.weight_flops")
        figures[f"{total.name}.attention_flops"] = core.named(f"{total.name}.attention_flops")
        figures[f"{total.name}.ratio_to_exact"] = Figure(f"{total.name}.ratio_to_exact", "", quotient, both)
    return figures
