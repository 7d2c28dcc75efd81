"""The working of every number that `parameters`, `flops` and `kv_cache` give, by the key that it has in the JSON.

Each adds up the same records as its calculator does, and `tests/calculators/test_workings.py` holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from costcalc.calculators.components import component_of
from costcalc.calculators.figure import Figure
from costcalc.calculators.flops import flops_by_matmul, is_training
from costcalc.calculators.parameters import HELD, in_one_layer, trained_weights
from costcalc.calculators.terms import cached_term, matmul_term, weight_term
from costcalc.dtypes import DTYPES, bits_said, canonical_dtype
from costcalc.expression import Number, ceil_quotient, symbol, symbols
from costcalc.inventory import Cached, Inventory, Weight, Workload, check_asked, group_of

Figures = dict[str, Figure]
COUNTED_ONCE = "every weight once, tied tables too: Kaplan et al., arXiv 2001.08361, section 2.1"
MULTIPLY_ADD = "2 FLOPs a multiply-add, matrix products only: Kaplan et al., arXiv 2001.08361, section 2.1"
CORE = "scores and weighted values of every query head: Vaswani et al., arXiv 1706.03762, equation 1"
BACKWARD = "backward takes twice the forward: Kaplan et al., arXiv 2001.08361, section 2.1"
CURVE = "the curve one token further on: layers with a window stop growing"
KINDS = {"kv": "kv_cache_elements", "cross": "cross_cache_elements", "state": "state_elements"}
LATER = "_next"
LATENTS = "one latent of all heads a token: DeepSeek-V2, arXiv 2405.04434, section 2.1"
STATES = "what a recurrence carries on, of constant size: Gu and Dao, arXiv 2312.00752, section 3.1"
SCANS = (
    "an estimate: a multiply-add for each number of a state, or tap of a convolution, that a product touches: "
    "Gu and Dao, arXiv 2312.00752; in chunks Dao and Gu, arXiv 2405.21060, section 6"
)
SHARED_HEADS = "keys and values of each kv head: Ainslie et al., arXiv 2305.13245; Shazeer, arXiv 1911.02150"


def parameter_figures(inventory: Inventory, *, trained_layers: Iterable[int] | None = None) -> Figures:
    """The keys of `costcalc params`; `trained_layers` are the only ones that are trained, where they are given."""
    held = [weight for weight in inventory.weights if weight.role in HELD]
    multiplied = {matmul.of for matmul in inventory.matmuls}
    trainable = _added("trainable_parameters", [w for w in held if w.role == "trainable"], weight_term)
    if trained_layers is not None:
        chosen = trained_weights(inventory, trained_layers)
        trainable = _added("trainable_parameters", chosen, lambda weight: weight_term(weight).of("trained"))
    total, embedding, active = symbols("total_parameters embedding_parameters active_parameters")
    figures = _by_name(
        _added("total_parameters", held, weight_term),
        _added("embedding_parameters", [w for w in held if w.table], weight_term),
        _added("active_parameters", held, lambda weight: weight_term(weight, used=True)),
        _added("looked_up_parameters", [w for w in held if w.table and w.path not in multiplied], weight_term),
        trainable,
        _added("buffers", [w for w in inventory.weights if w.role == "buffer"], weight_term),
        _added("extra_parameters", [w for w in inventory.weights if w.role == "extra"], weight_term),
    )
    for name, formula in (
        ("non_embedding_parameters", total - embedding),
        ("active_parameters_without_input_table", active - symbol("looked_up_parameters")),
        ("active_parameters_without_tables", active - embedding),
    ):
        below = {part: figures[part] for part in formula.symbols()}
        figures[name] = Figure(name, "parameters", formula, below, source=COUNTED_ONCE)
    return figures


def layer_figures(inventory: Inventory) -> Figures:
    """What one layer of each group holds, by the group's path: the layers of `costcalc params --by layer`."""
    layers_of = inventory.layers_of
    held: dict[str, list[Figure]] = {group: [] for group in layers_of}
    for weight in inventory.weights:
        group = group_of(weight.path, layers_of)
        if group is not None and weight.role in HELD:
            held[group].append(weight_term(in_one_layer(weight, layers_of[group])).of("one layer"))
    return _by_name(
        *(Figure(group, "parameters", terms=tuple(terms), source=COUNTED_ONCE) for group, terms in held.items())
    )


def component_figures(inventory: Inventory) -> Figures:
    """Parameters by component, each as `component_parameters.` and its name."""
    groups = inventory.layers_of
    parts: dict[str, list[Weight]] = {}
    for weight in inventory.weights:
        if weight.role in HELD:
            parts.setdefault(component_of(weight.path, inventory, groups), []).append(weight)
    return {
        f"component_parameters.{name}": _added(f"component_parameters.{name}", weights, weight_term)
        for name, weights in parts.items()
    }


def flop_figures(inventory: Inventory, workload: Workload, *, prefix: str = "") -> Figures:
    """The keys of `costcalc flops`, `prefix` before each."""
    counted = flops_by_matmul(inventory, workload)

    def added(name: str, source: str, *roles: str) -> Figure:
        chosen = [m for m, _ in counted if m.role in roles]
        terms = tuple(matmul_term(matmul, workload).of(_words(prefix)) for matmul in chosen)
        return Figure(f"{prefix}{name}", "FLOPs", terms=terms, source=source)

    parts = [
        added("weight_flops", MULTIPLY_ADD, "weight"),
        added("attention_flops", CORE, "scores", "values"),
        added("modelled_flops", SCANS, "scan"),
    ]
    made_of = tuple(part for part in parts if part.terms) or (parts[0],)
    forward = Figure(f"{prefix}forward_flops", "FLOPs", terms=made_of, source=MULTIPLY_ADD)
    figures = _by_name(*parts, forward)
    tokens: dict[str, Figure | Number] = {"B": workload.batch, "T": workload.new_tokens, forward.name: forward}
    per_token = symbol(forward.name) / (symbol("B") * symbol("T"))
    name = f"{prefix}flops_per_token"
    figures[name] = Figure(name, "FLOPs", per_token, tokens, source="a mean, to the nearest whole number")
    if is_training(workload):
        name = f"{prefix}train_flops"
        figures[name] = Figure(name, "FLOPs", 3 * symbol(forward.name), {forward.name: forward}, source=BACKWARD)
    return figures


def cache_figures(
    inventory: Inventory,
    context: int,
    *,
    batch: int = 1,
    memory_tokens: int = 0,
    dtype: str = "bf16",
    prefix: str = "",
) -> Figures:
    """The keys of `costcalc kv`, `prefix` before each; all of them 0 where nothing is kept."""
    dtype = canonical_dtype(dtype)
    now = Workload(batch=batch, new_tokens=context, memory_tokens=memory_tokens)
    check_asked(inventory, now, of="cache")
    after = Workload(batch=batch, new_tokens=context + 1, memory_tokens=memory_tokens)
    kinds = [_elements(f"{prefix}{name}", _of_kind(inventory, kind), now, prefix) for kind, name in KINDS.items()]
    total = _bytes(f"{prefix}kv_cache_bytes", inventory.cached, now, dtype, prefix)
    later = _bytes(f"{prefix}kv_cache_bytes{LATER}", inventory.cached, after, dtype, f"{prefix}next_token_")
    state = _bytes(f"{prefix}state_bytes", _of_kind(inventory, "state"), now, dtype, prefix)
    added = symbol(later.name) - symbol(total.name)
    both = {later.name: later, total.name: total}
    adds = Figure(f"{prefix}kv_bytes_per_token", "bytes", added, both, source=CURVE)
    return _by_name(*kinds, total, adds, state)


def _of_kind(inventory: Inventory, kind: str) -> tuple[Cached, ...]:
    return tuple(cached for cached in inventory.cached if cached.kind == kind)


def _elements(name: str, records: Iterable[Cached], workload: Workload, prefix: str) -> Figure:
    found = tuple(records)
    terms = tuple(cached_term(cached, workload).of(_words(prefix)) for cached in found)
    return Figure(name, "elements", terms=terms, source="; ".join(dict.fromkeys(map(_why, found))) or SHARED_HEADS)


def _why(cached: Cached) -> str:
    if cached.kind == "state":
        return STATES
    return LATENTS if cached.form == "latent" else SHARED_HEADS


def _bytes(name: str, records: tuple[Cached, ...], workload: Workload, dtype: str, prefix: str) -> Figure:
    """Elements of one dtype together, rounded up once, as `kv_cache` does."""
    by_dtype: dict[str, list[Cached]] = {}
    for cached in records:
        by_dtype.setdefault(cached.dtype or dtype, []).append(cached)
    elements = name.replace("bytes", "elements")  # the figure of one kind, if there is no other
    is_of_one_kind = all(KINDS[cached.kind] in elements for cached in records)
    stem = elements if is_of_one_kind else name.replace("kv_cache_bytes", "cached_elements")
    if len(by_dtype) == 1:
        own = next(iter(by_dtype))
        return stored(name, _elements(stem, records, workload, prefix), own)
    parts = [
        stored(f"{name}_{own}", _elements(f"{stem}_{own}", of_dtype, workload, prefix), own)
        for own, of_dtype in by_dtype.items()
    ]
    return Figure(name, "bytes", terms=tuple(parts))


def _words(prefix: str) -> str:
    """'next_token_' -> 'next token', to tell the terms of one working from those of another."""
    return prefix.strip("_").replace("_", " ")


def stored(name: str, elements: Figure, dtype: str) -> Figure:
    """The bytes that elements take in a dtype, rounded up to a whole one."""
    size, values = DTYPES[dtype]
    formula = ceil_quotient(symbol(elements.name) * size, values)
    return Figure(name, "bytes", formula, {elements.name: elements}, source=f"{dtype}: {bits_said(dtype)}")


def _added(
    name: str, weights: Iterable[Weight], term: Callable[[Weight], Figure], *, source: str = COUNTED_ONCE
) -> Figure:
    return Figure(name, "parameters", terms=tuple(term(weight) for weight in weights), source=source)


def _by_name(*figures: Figure) -> Figures:
    return {figure.name: figure for figure in figures}
