"""Named rules that people use instead of an exact count; each is printed by its name, beside the exact one.

P is parameters (a tied table once), t the tokens trained on, S the tokens of a sequence; L, D, N, H, V are the model's
letters, where it has one value of each. A convention is an estimate, whatever it is called in its paper.
"""

from __future__ import annotations

from dataclasses import dataclass

from costcalc.calculators.figure import ESTIMATE, Figure
from costcalc.calculators.flops import flops
from costcalc.calculators.parameters import HELD, Parameters
from costcalc.calculators.terms import cached_term, weight_term
from costcalc.calculators.workings import Figures, flop_figures, parameter_figures
from costcalc.expression import Expression, Number, symbol, symbols
from costcalc.inventory import Cached, Inventory, Weight, Workload, group_of


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
    matrices = sum(weight.used_parameters for weight in _matrices(inventory))
    vocabulary = sum(weight.parameters for weight in _vocabulary(inventory))
    cached = sum(record.elements(ONE_TOKEN) for record in _growing(inventory))
    return RuleOfThumb(matrices, vocabulary, 2 * matrices, 2 * cached)


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
    return {each.name: each for each in figures}


def six_nd_total(counted: Parameters, tokens: int) -> int:
    """6·N·D with N all parameters and D tokens (Kaplan et al., arXiv 2001.08361, in the form most papers quote)."""
    return 6 * counted.total * tokens


def six_nd_figure(inventory: Inventory, tokens: int) -> Figure:
    """The same, as a figure."""
    total = _ruled(RULES[0], _given(inventory, tokens, 1)).total
    assert total is not None  # every model has parameters
    return total


@dataclass(frozen=True, slots=True)
class Rule:
    """A convention as its paper states it: training FLOPs over t tokens in sequences of S."""

    name: str
    formula: Expression
    source: str
    why: str


P, t, S, L, D, N, H, V = symbols("P t S L D N H V")
P_NON_EMBEDDING, P_LAYERS, P_MATRICES = symbols("P_non_embedding P_layers P_matrices")
THUMB = "the textbook rule: 2 FLOPs a weight and token forward, 3 times that for training, 16-bit caches"
PARTS = "the weights' part is what is left of the rule where a sequence has no length, the core's is the rest"
KAPLAN = "Kaplan et al., arXiv 2001.08361"
MEGATRON = "Narayanan et al., arXiv 2104.04473, section 5"
RULES = (
    Rule(
        "6nd_total",
        6 * P * t,
        f"{KAPLAN}, in the form most papers quote",
        "charges the input table, which is only looked up; leaves out the attention core",
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
        "charges the input table; the whole rectangle as core, twice a causal mask's: published MFUs use it",
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


def conventions(inventory: Inventory, tokens: int, seq_len: int) -> list[Convention]:
    """Every convention for training on `tokens` tokens in sequences of `seq_len`, the exact counts first."""
    attended = _exact(inventory, tokens, seq_len, "attended")
    rectangle = _exact(inventory, tokens, seq_len, "rectangle")
    half = (
        attended["weights"],
        Figure(
            "core_half", "FLOPs", symbol("core_rectangle") / 2, {"core_rectangle": rectangle["core"]}, status=ESTIMATE
        ),
    )
    exact = [
        _of("exact_attended", attended["weights"], attended["core"], "what the mask and the windows let through"),
        _of("exact_rectangle", rectangle["weights"], rectangle["core"], "every query with every key it is handed"),
        _of("half_rectangle", *half, "half of the rectangle, T^2 / 2 pairs where a causal mask has T·(T + 1) / 2"),
    ]
    given = _given(inventory, tokens, seq_len)
    return [*exact, *(_ruled(rule, given) for rule in RULES)]


def _of(name: str, weights: Figure, core: Figure, why: str) -> Convention:
    total = Figure(name, "FLOPs", terms=(weights, core), source="3 times the forward pass: weights and attention core")
    return Convention(name, total, weights.value, core.value, why)


def split(tokens: int, seq_len: int) -> tuple[int, int]:
    """(whole sequences, tokens of one shorter sequence that is left over)."""
    return divmod(tokens, seq_len)


def _exact(inventory: Inventory, tokens: int, seq_len: int, counting: str) -> Figures:
    """3 x weights and 3 x core of all whole sequences and of what is left over."""
    sequences, rest = split(tokens, seq_len)
    passes = [("", sequences, seq_len), ("rest_", 1, rest)]
    found = [
        flop_figures(
            inventory, Workload(batch=batch, new_tokens=length, counting=counting), prefix=f"{counting}_{name}"
        )
        for name, batch, length in passes
        if batch and length
    ]
    return {
        "weights": _tripled(f"weights_{counting}", [_ending(part, "weight_flops") for part in found]),
        "core": _tripled(f"core_{counting}", [_ending(part, "attention_flops") for part in found]),
    }


def _ending(figures: Figures, name: str) -> Figure:
    return next(figure for key, figure in figures.items() if key.endswith(name))


def _tripled(name: str, parts: list[Figure]) -> Figure:
    total: Expression = symbol(parts[0].name)
    for part in parts[1:]:
        total = total + symbol(part.name)
    return Figure(name, "FLOPs", 3 * total, {part.name: part for part in parts})


def _given(inventory: Inventory, tokens: int, seq_len: int) -> dict[str, Figure | Number]:
    """What each symbol of the rules stands for in this model; a letter of several values is left out."""
    counted = parameter_figures(inventory)
    return {
        **inventory.letters,
        "P": counted["total_parameters"],
        "P_non_embedding": counted["non_embedding_parameters"],
        "P_layers": rule_of_thumb_figures(inventory)["rule_of_thumb.layer_parameters"],
        "P_matrices": flops(inventory, Workload()).weights // 2,
        "t": tokens,
        "S": seq_len,
    }


def _ruled(rule: Rule, given: dict[str, Figure | Number]) -> Convention:
    missing = [name for name in rule.formula.symbols() if name not in given]
    if missing:
        said = f"the model has no single {' and no single '.join(missing)}"
        return Convention(rule.name, None, None, None, rule.why, said)
    used = {name: given[name] for name in rule.formula.symbols()}
    total = Figure(rule.name, "FLOPs", rule.formula, used, source=rule.source, status=ESTIMATE)
    weights, core = _parts(total)
    return Convention(rule.name, total, weights.value, core.value, rule.why)


def _parts(total: Figure) -> tuple[Figure, Figure]:
    """The weights' part, of a rule what is left where a sequence has no length, and the attention core's, the rest."""
    if total.expression is None:
        weights, core = total.terms
        return weights, core
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
