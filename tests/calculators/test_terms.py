"""Terms are the records' own arithmetic: what they come to is what the record says, in every preset and workload."""

import pytest

from costcalc import load
from costcalc.calculators.terms import cached_term, matmul_term, weight_term
from costcalc.inventory import (
    Cached,
    Context,
    CrossPairs,
    Logits,
    Matmul,
    Memory,
    PagedContext,
    Pairs,
    Routed,
    Tokens,
    Weight,
    Workload,
)
from costcalc.sources.presets import preset_names

WORKLOADS = [
    Workload(new_tokens=11),
    Workload(past_tokens=7),
    Workload(batch=3, new_tokens=8_191, past_tokens=13),
    Workload(batch=3, new_tokens=11, past_tokens=8_191),
    Workload(batch=2, new_tokens=8_191, counting="rectangle"),
    Workload(new_tokens=7, past_tokens=4_999, counting="rectangle"),
    Workload(batch=5, new_tokens=8_191, logits="last"),
    Workload(past_tokens=1, logits="last"),
]
WINDOWED = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": "rmsnorm",
    "layers": [{"repeat": 3, "attention": {"heads": 6, "kv_heads": 2, "head_dim": 5, "window": 7}}],
}
EXPERTS = Weight("experts.up", {"E": 17, "D": 13, "F": 7}, times=3, used={"E": 2})


def checked(term, amount, workload=None):
    """The term comes to `amount`, by its own formula, and every symbol stands for a number."""
    assert term.value == term.exact_value == amount
    assert set(term.expression.symbols()) == set(term.values)
    assert term.expression.value(term.values) == amount
    assert term.numbers.value({}) == amount
    assert (term.inputs, term.terms, term.words) == ([], (), "")
    if workload is not None:
        lengths = {"B": workload.batch, "p": workload.past_tokens, "M": workload.memory_tokens}
        assert all(term.values.get(name, size) == size for name, size in lengths.items())


@pytest.mark.parametrize(
    "model", [*preset_names(), WINDOWED], ids=lambda model: model if isinstance(model, str) else "w"
)
def test_every_term_of_a_model_is_its_record(readable, model):
    inventory = load(model).inventory
    for weight in inventory.weights:
        term = weight_term(weight)
        checked(term, weight.parameters)
        assert (term.name, term.unit, term.status) == (weight.path, "parameters", "exact")
        checked(weight_term(weight, used=True), weight.used_parameters)
    for workload in [readable(inventory, each) for each in WORKLOADS]:
        for matmul in inventory.matmuls:
            term = matmul_term(matmul, workload)
            checked(term, matmul.flops(workload), workload)
            nature = "modelled" if matmul.role == "scan" else "exact"
            assert (term.name, term.unit, term.nature) == (matmul.path, "FLOPs", nature)
        for cached in inventory.cached:
            term = cached_term(cached, workload)
            checked(term, cached.elements(workload), workload)
            assert (term.name, term.unit, term.nature) == (cached.path, "elements", "exact")


@pytest.mark.parametrize(
    "extent",
    [
        *(
            Tokens(),
            Logits(),
            Routed(Tokens(), 3),
            Memory(),
            Memory(once=True),
            CrossPairs(),
            Context(),
            Context(window=7),
            Context(chunk=7),
        ),
        *(
            PagedContext(4),
            PagedContext(4, 7, 2),
            PagedContext(4, chunk=7),
            Pairs(),
            Pairs(window=7),
            Pairs(chunk=7),
            Pairs(causal=False),
        ),
    ],
    ids=repr,
)
def test_every_extent_can_be_in_a_term(extent):
    matmul = Matmul("m", {extent.letters: extent, "D": 13}, times=3)
    cached = Cached("c", {extent.letters: extent, "D": 13}, times=3)
    for memory in (0, 23):
        for form in (*WORKLOADS, Workload(new_tokens=7), Workload(past_tokens=6)):
            changed = Workload(
                form.batch, form.new_tokens, form.past_tokens, memory, counting=form.counting, logits=form.logits
            )
            checked(matmul_term(matmul, changed), matmul.flops(changed), changed)
            checked(cached_term(cached, changed), cached.elements(changed), changed)


@pytest.mark.parametrize(
    ("weight", "used", "text", "values"),
    [
        (Weight("w", {"D": 13, "F": 37}, times=3), False, "L·D·F", {"L": 3, "D": 13, "F": 37}),
        (Weight("w", {"D": 13}), False, "D", {"D": 13}),  # a single layer is not written
        (EXPERTS, False, "L·E·D·F", {"L": 3, "E": 17, "D": 13, "F": 7}),
        (EXPERTS, True, "L·X·D·F", {"L": 3, "X": 2, "D": 13, "F": 7}),
        (EXPERTS._replace(used={"D": 5}, times=1), True, "E·D_used·F", {"E": 17, "D_used": 5, "F": 7}),
        (Weight("w", {"D": 13, "F": 37}), True, "D·F", {"D": 13, "F": 37}),
        (Weight("w", {}), False, "1", {}),
    ],
)
def test_the_formula_of_a_weight(weight, used, text, values):
    term = weight_term(weight, used=used)
    assert (term.expression.text(), dict(term.values)) == (text, values)


def test_what_a_token_uses_of_a_weight_has_a_name_of_its_own():
    assert weight_term(EXPERTS).name == "experts.up"
    assert weight_term(EXPERTS, used=True).name == "experts.up (used)"
    assert weight_term(EXPERTS._replace(used=None), used=True).name == "experts.up"
    assert weight_term(EXPERTS, used=True).value == 546  # 3·2·13·7


Q = Matmul("attention.q", {"B·T": Tokens(), "D": 13, "N": 6, "H": 5}, times=3)
SCORES = Matmul("attention.scores", {"B·P": Pairs(), "N": 6, "H": 5}, times=3, role="scores")
HEAD = Matmul("head", {"B·T": Logits(), "D": 13, "V": 19})
CROSS = Matmul("cross.k", {"B·M": Memory(once=True), "D": 13}, times=3)


@pytest.mark.parametrize(
    ("matmul", "workload", "text", "values"),
    [
        (Q, Workload(2, 11), "2·L·B·T·D·N·H", {"L": 3, "B": 2, "T": 11, "D": 13, "N": 6, "H": 5}),
        (Q._replace(times=1), Workload(2, 11), "2·B·T·D·N·H", {"B": 2, "T": 11, "D": 13, "N": 6, "H": 5}),
        # without a past there is no p
        (SCORES, Workload(2, 11), "2·L·B·(T·(T + 1) / 2)·N·H", {"L": 3, "B": 2, "T": 11, "N": 6, "H": 5}),
        (
            SCORES,
            Workload(2, 11, 7),
            "2·L·B·(T·p + T·(T + 1) / 2)·N·H",
            {"L": 3, "B": 2, "T": 11, "p": 7, "N": 6, "H": 5},
        ),
        (SCORES, Workload(new_tokens=11, counting="rectangle"), "2·L·B·T·T·N·H", None),
        (HEAD, Workload(2, 11), "2·B·T·D·V", None),
        (HEAD, Workload(2, 11, logits="last"), "2·B·D·V", {"B": 2, "D": 13, "V": 19}),
        (CROSS, Workload(2, 11, memory_tokens=23), "2·L·B·M·D", {"L": 3, "B": 2, "M": 23, "D": 13}),
        (CROSS, Workload(2, 11, 1, memory_tokens=23), "0", {}),  # keys of the encoder are there already
        (CROSS, Workload(2, 11), "0", {}),
    ],
)
def test_the_formula_of_a_matmul(matmul, workload, text, values):
    term = matmul_term(matmul, workload)
    assert term.expression.text() == text
    assert values is None or dict(term.values) == values
    assert term.value == matmul.flops(workload)


def test_a_core_worked_out():
    # 2 x 3 layers x 2 sequences x 11 x 12 / 2 pairs x 6 heads of 5
    term = matmul_term(SCORES, Workload(2, 11))
    assert term.numbers.text() == "2·3·2·(11·(11 + 1) / 2)·6·5"
    assert term.value == 23_760


@pytest.mark.parametrize(
    ("context", "workload", "text"),
    [
        # in a cache the new tokens are called what they are there: the context
        (Context(), Workload(2, 11), "L·B·S·K·H"),
        (Context(), Workload(2, 11, 7), "L·B·(p + S)·K·H"),
        (Context(window=7), Workload(2, 11), "L·B·min(S, 7)·K·H"),
        (PagedContext(16), Workload(2, 11), "L·B·ceil(S / 16)·16·K·H"),
    ],
)
def test_the_formula_of_a_cache(context, workload, text):
    cached = Cached("k_cache", {"B·S": context, "K": 2, "H": 5}, times=3)
    term = cached_term(cached, workload)
    assert term.expression.text() == text
    assert term.value == cached.elements(workload)
    assert (term.values["S"], term.values["K"], term.values["L"]) == (11, 2, 3)


def test_a_scan_is_modelled_and_nothing_else_is():
    scan = Matmul("mixer.scan", {"B·T": Tokens(), "D": 13}, role="scan")
    assert matmul_term(scan, Workload()).nature == "modelled"
    for role in ("weight", "scores", "values"):
        assert matmul_term(scan._replace(role=role), Workload()).nature == "exact"


def test_the_terms_of_gpt3_are_those_of_its_paper():
    """arXiv 2005.14165, table D.1: 2 x 3 x 174.6 B x 300 B tokens; the terms that multiply add up to its 6·N·D."""
    inventory = load("gpt3-175b").inventory
    weights = {weight.path: weight_term(weight).value for weight in inventory.weights}
    assert f"{sum(weights.values()) / 1e6:,.0f}" == "174,604"
    one = Workload()
    multiplied = sum(matmul_term(m, one).value for m in inventory.matmuls if m.role == "weight" and m.runs(one))
    # biases, norms and the table of positions multiply nothing
    assert multiplied == 2 * sum(weights[matmul.of] for matmul in inventory.matmuls if matmul.of)
