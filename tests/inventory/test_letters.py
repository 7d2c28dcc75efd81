"""What the letters of axes and formulas mean."""

import pytest

from costcalc import load
from costcalc.calculators.rules import RULES
from costcalc.inventory import extents
from costcalc.inventory.extents import Extent, Routed, Tokens
from costcalc.inventory.letters import LETTERS
from costcalc.sources.presets import preset_names

# Every kind of component with axes of its own.
MADE_UP = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": "layernorm",
    "positions": {"kind": "sinusoidal", "stored": "frozen", "length": 11},
    "layers": [
        {
            "attention": {"heads": 6, "kv_heads": 2, "head_dim": 5, "bias": True, "qk_norm": "per_head"},
            "feed_forward": {"d_ff": 37, "bias": True},
        },
        {"attention": {"heads": 3, "window": 5, "head_dim": 7}, "feed_forward": {"kind": "gated", "d_ff": 23}},
    ],
}


def test_each_letter_means_something_of_its_own():
    assert all(letter and meaning for letter, meaning in LETTERS.items())
    assert len(set(LETTERS.values())) == len(LETTERS)


def test_the_letters_of_the_field():
    """Those of docs/formulas.md and of papers: L layers of width D, N query heads of size H, K that are kept."""
    assert [LETTERS[letter] for letter in "BTSLDNKHFV"] == [
        "sequences of a batch",
        "new tokens of a sequence",
        "tokens of a sequence (its context)",
        "layers that the line stands for",
        "model width",
        "query heads",
        "key/value heads",
        "head size",
        "feed-forward width",
        "vocabulary",
    ]


def letters_of(inventory):
    """The axes of all records, those that an extent stands for apart."""
    for record in inventory.records:
        for letter, size in record.axes.items():
            yield from letter.split("·") if isinstance(size, Extent) else [letter]


@pytest.mark.parametrize(
    "model", [*preset_names(), MADE_UP], ids=lambda model: model if isinstance(model, str) else "all"
)
def test_every_axis_of_a_model_has_a_meaning(model):
    assert set(letters_of(load(model).inventory)) <= {*LETTERS}


def test_every_letter_of_an_extent_has_a_meaning():
    kinds = [kind for kind in vars(extents).values() if isinstance(kind, type) and issubclass(kind, Extent)]
    fixed = [kind.letters for kind in kinds if isinstance(vars(kind).get("letters"), str)]
    letters = {letter for said in [*fixed, Routed(Tokens(), 2).letters] for letter in said.split("·")}
    assert "P" in letters
    assert letters <= {*LETTERS}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_symbol_of_a_convention_has_a_meaning(rule):
    assert set(rule.formula.symbols()) <= {*LETTERS}
