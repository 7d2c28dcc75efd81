"""How many bytes the weights take, by dtype and quantisation format: parameters x true bits, scales included."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from costcalc.calculators.figure import EXACT, MODELLED, Figure
from costcalc.calculators.parameters import HELD
from costcalc.calculators.workings import parameter_figures
from costcalc.dtypes import ALIASES, DTYPES, FILE_MIXES, WEIGHT_BLOCKS, digits
from costcalc.errors import CostcalcError, nearest, shown
from costcalc.expression import Expression, symbol
from costcalc.inventory import Inventory

MOST_BITS = 128
BITS = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*(?:bits?|bpw)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """`bits` a weight on average, scales included; "modelled" where a file mixes formats tensor by tensor."""

    name: str
    bits: Fraction
    status: str = EXACT


def weight_formats() -> list[WeightFormat]:
    """Every format that is known by name, the widest first."""
    blocks = {**DTYPES, **WEIGHT_BLOCKS}
    known = [WeightFormat(name, Fraction(8 * size, values)) for name, (size, values) in blocks.items()]
    known += [WeightFormat(name, Fraction(bits), MODELLED) for name, bits in FILE_MIXES.items()]
    return sorted(known, key=lambda each: -each.bits)


def weight_format(word: str) -> WeightFormat:
    """The format that a word names, or a number of bits ("4.82bits"); else refused with the nearest name."""
    folded = ALIASES.get(word.strip().lower(), word.strip().lower())
    for known in weight_formats():
        if known.name == folded:
            return known
    match = BITS.fullmatch(folded)
    if match and 0 < Fraction(match[1]) <= MOST_BITS:
        return WeightFormat(f"{match[1]} bits", Fraction(match[1]))
    names = [known.name for known in weight_formats()]
    if match:
        raise CostcalcError(f"{shown(word)} is not between 0 and {MOST_BITS} bits", hint="such as 4.82bits")
    said = digits(folded)
    close = [name for name in nearest(folded, [*names, *ALIASES], count=5) if not said or digits(name) == said]
    hint = f"did you mean {close[0]}?" if close else f"a number of bits such as 4.82bits, or one of: {', '.join(names)}"
    raise CostcalcError(f"unknown weight format {shown(word)}", hint=hint)


def vector_parameters(inventory: Inventory) -> int:
    """Parameters that no matmul multiplies by and that are no table: gains and biases."""
    multiplied = {matmul.of for matmul in inventory.matmuls}
    return sum(w.parameters for w in inventory.weights if w.role in HELD and w.path not in multiplied and not w.table)


def bits_format(word: str, *, name: str) -> WeightFormat:
    """A number of bits, for the option `name`: "4.82"."""
    if BITS.fullmatch(word.strip().lower()) is None:
        raise CostcalcError(f"{shown(word)} is not a number of bits", hint=f"{name} 4.82")
    return weight_format(word)


def weight_bytes(inventory: Inventory, form: WeightFormat) -> Figure:
    """The bytes of all parameters when each takes the format's bits, rounded up to a whole byte.

    A file differs by what it keeps wider (norms and biases, often), by buffers and by its header.
    """
    return weight_sizes(inventory, [form])[form.name]


def weight_sizes(inventory: Inventory, forms: list[WeightFormat]) -> dict[str, Figure]:
    """The same for several formats, by their names."""
    total = parameter_figures(inventory)["total_parameters"]
    return {form.name: _size(total, form) for form in forms}


def _size(total: Figure, form: WeightFormat) -> Figure:
    formula = Expression("ceil", symbol(total.name) * symbol("bits") / 8)
    return Figure(
        f"weight_bytes_{form.name.replace(' ', '_')}",
        "bytes",
        formula,
        {total.name: total, "bits": form.bits},
        source=f"{form.name}: {float(form.bits):g} bits a weight, scales included",
        status=form.status,
    )
