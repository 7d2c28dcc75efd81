"""What a tape writes down, and what it refuses."""

import numpy as np
import pytest

from costcalc.reference import Arena, Scope, Tape
from costcalc.reference.tape import Product

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 11, 13)).astype(np.float32)
W = RNG.normal(size=(13, 37)).astype(np.float32)
BIAS = RNG.normal(size=37).astype(np.float32)
TABLE = RNG.normal(size=(19, 13)).astype(np.float32)


def test_a_product_is_two_flops_for_each_pair_of_numbers():
    assert Product(batch=6, rows=3, inner=5, columns=11).flops == 2 * 6 * 3 * 5 * 11 == 1_980


def test_places():
    root = Scope(Tape(Arena(1, deviation=1.0)))
    assert root.named("head") == "head"
    assert root.under("decoder").under("layers.7").named("norm") == "decoder.layers.7.norm"
    assert root.under("decoder").tape is root.tape


@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_map(place, bias):
    here = place({"up": W, "up_bias": BIAS})
    y = here.linear("up", X, 37, bias=bias)
    np.testing.assert_allclose(y, X.astype(float) @ W + bias * BIAS, rtol=1e-4, atol=1e-5)
    assert y.shape == (3, 11, 37)
    assert here.tape.parameters == {
        "here.up": (481, "trainable"),
        **({"here.up_bias": (37, "trainable")} if bias else {}),
    }
    assert here.tape.products == {"here.up": [Product(1, 33, 13, 37)]}
    assert here.tape.of == {"here.up": "here.up"}


def test_a_product_of_two_activations(place):
    here = place({})
    a, b = RNG.normal(size=(3, 2, 7, 5)).astype(np.float32), RNG.normal(size=(3, 2, 5, 11)).astype(np.float32)
    np.testing.assert_allclose(here.product("scores", a, b), a.astype(float) @ b, rtol=1e-4, atol=1e-5)
    here.product("scores", a[0, 0], b[0, 0])
    here.product("scores", a[:, :, None], b[:, :, None])
    assert here.tape.products == {"here.scores": [Product(6, 7, 5, 11), Product(1, 7, 5, 11), Product(6, 7, 5, 11)]}
    assert here.tape.of == {}
    assert here.tape.flops() == {"here.scores": 2 * 7 * 5 * 11 * (6 + 1 + 6)}


def test_a_parameter_and_a_gain(place):
    here = place({"some_bias": BIAS, "norm": BIAS})
    np.testing.assert_array_equal(here.parameter("some_bias", 37), BIAS)
    np.testing.assert_array_equal(here.gain("norm", 37), BIAS)
    assert here.tape.parameters == {"here.some_bias": (37, "trainable"), "here.norm": (37, "trainable")}


@pytest.mark.parametrize("role", ["trainable", "frozen", "buffer"])
def test_rows_of_a_table(place, role):
    here = place({"embedding": TABLE})
    table = here.table("embedding", 19, 13, role=role)
    tokens = np.array([[0, 18, 7], [7, 7, 1]])
    np.testing.assert_array_equal(table.rows(tokens), TABLE[tokens])
    assert table.rows(np.zeros((3, 0), int)).shape == (3, 0, 13)
    assert here.tape.parameters == {"here.embedding": (247, role)}
    assert here.tape.products == {}  # looking up multiplies nothing


@pytest.mark.parametrize(("tokens", "row"), [([0, 19], 19), ([3, 97], 97), ([-1, 5], -1)])
def test_a_row_that_is_not_there_is_named(place, tokens, row):
    table = place({"embedding": TABLE}).table("embedding", 19, 13)
    with pytest.raises(IndexError, match=rf"^here\.embedding has 19 rows, row {row} was asked for$"):
        table.rows(np.array(tokens))


def test_a_product_with_every_row_of_a_table(place):
    here = place({"embedding": TABLE})
    logits = here.table("embedding", 19, 13).product("head", X)
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, X.astype(float) @ TABLE.T, rtol=1e-4, atol=1e-5)
    assert here.tape.products == {"head": [Product(1, 33, 13, 19)]}
    assert here.tape.of == {"head": "here.embedding"}


@pytest.mark.parametrize("outputs", [19, 13])
@pytest.mark.parametrize("held", [1, 2, 5, 7, 13, 18, 19, 37])
def test_what_is_held_in_part_repeats(held, outputs):
    """A matrix by its columns, a table by its rows: the same as if all of it were held."""
    arena = Arena(13 * held, deviation=0.3)
    here = Scope(Tape(arena), "here")
    columns = arena.matrix("here.up", 13, outputs)
    assert columns.shape == (13, min(held, outputs))
    repeated = np.tile(columns, outputs)[:, :outputs]
    np.testing.assert_allclose(here.linear("up", X, outputs, bias=False), X @ repeated, rtol=1e-4, atol=1e-5)
    table, rows = here.table("embedding", outputs, 13), arena.table("here.embedding", outputs, 13)
    repeated = np.tile(rows, (outputs, 1))[:outputs]
    np.testing.assert_allclose(table.product("head", X), X @ repeated.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(table.rows(np.arange(outputs)), repeated)
    # What is recorded is whole.
    size = 13 * outputs, "trainable"
    assert here.tape.parameters == {"here.up": size, "here.embedding": size}
    assert here.tape.products == {name: [Product(1, 33, 13, outputs)] for name in ("here.up", "head")}


@pytest.mark.parametrize(
    "call",
    [
        lambda here: here.linear("up", X.astype(float), 37, bias=False),
        lambda here: here.linear("wide", X, 37, bias=False),
        lambda here: here.linear("up", X, 37, bias=True),
        lambda here: here.product("scores", X.astype(float), X.swapaxes(1, 2)),
        lambda here: here.product("scores", X, X.swapaxes(1, 2).astype(float)),
        lambda here: here.parameter("wide_bias", 37),
        lambda here: here.gain("wide_bias", 37),
        lambda here: here.table("embedding", 19, 13).product("head", X.astype(float)),
        lambda here: here.table("wide_embedding", 19, 13).product("head", X),
        lambda here: here.linear("up", X.astype(np.float16), 37, bias=False),
    ],
)
def test_what_is_not_float32_is_refused(place, call):
    here = place({"up": W, "embedding": TABLE})
    here.tape.weights.arrays |= {
        "here.wide": W.astype(float),
        "here.up_bias": BIAS.astype(float),
        "here.wide_bias": BIAS.astype(float),
        "here.wide_embedding": TABLE.astype(float),
    }
    with pytest.raises(TypeError, match=r"^(here\.|head).*: float(64|16) in a pass of float32$"):
        call(here)


def test_float64_in_blocks_is_refused_too():
    here = Scope(Tape(Arena(13 * 5, deviation=0.3)), "here")
    with pytest.raises(TypeError, match=r"here\.up: float64"):
        here.linear("up", X.astype(float), 37, bias=False)


@pytest.mark.parametrize(
    "call",
    [
        lambda here: here.linear("some", X, 37, bias=False),
        lambda here: here.parameter("some", 13, 37),
        lambda here: here.table("some", 13, 37),
        lambda here: here.gain("gain", 37),
    ],
)
def test_one_path_has_one_array(place, call):
    here = place({"some": W, "gain": BIAS})
    call(here)
    with pytest.raises(ValueError, match=r"^here\.(some|gain) is allocated twice in one pass$"):
        call(here)


def test_products_of_one_path_add_up(place):
    tape = place({}).tape
    tape.multiplied("here.scores", Product(1, 2, 3, 5))
    tape.multiplied("here.scores", Product(1, 2, 3, 7))
    tape.multiplied("head", Product(1, 1, 1, 1), of="decoder.embedding")
    assert tape.flops() == {"here.scores": 60 + 84, "head": 2}
    assert tape.of == {"head": "decoder.embedding"}


def test_the_worst_row_is_kept(place):
    tape = place({}).tape
    assert tape.row_sum_error is None
    tape.watch_rows(np.array([[0.25, 0.75], [0.5, 0.625]]))
    assert tape.row_sum_error == 0.125
    tape.watch_rows(np.array([[0.25, 0.6875]]))
    assert tape.row_sum_error == 0.125
    tape.watch_rows(np.array([[[0.25, 0.5]]]))
    assert tape.row_sum_error == 0.25


def test_rows_that_are_no_numbers_are_kept(place):
    tape = place({}).tape
    tape.watch_rows(np.array([[0.25, 0.75]]))
    tape.watch_rows(np.array([[np.nan, 0.75]]))
    tape.watch_rows(np.array([[0.25, 0.75]]))
    assert not tape.row_sum_error <= 1e-5


def test_a_product_of_no_rows_is_none(place):
    here = place({"up": W})
    assert here.linear("up", X[:0], 37, bias=False).shape == (0, 11, 37)
    assert (here.tape.products, here.tape.of) == ({}, {})
    assert here.tape.parameters == {"here.up": (481, "trainable")}


def test_a_place_that_is_lent_its_parameters(place):
    """Products stand under the place, parameters under the lender, where they were written down before."""
    lender = place({"part.up": W, "part.up_bias": BIAS, "norm": BIAS, "some": BIAS, "table": TABLE})
    again = Scope(lender.tape, "again", lender="here")
    first = lender.under("part").linear("up", X, 37, bias=True)
    np.testing.assert_array_equal(again.under("part").linear("up", X, 37, bias=True), first)
    assert set(lender.tape.products) == {"here.part.up", "again.part.up"}
    assert set(lender.tape.of.values()) == {"here.part.up"}
    for call in (
        lambda at: at.gain("norm", 37),
        lambda at: at.parameter("some", 37),
        lambda at: at.table("table", 19, 13).rows(np.array([3])),
    ):
        np.testing.assert_array_equal(call(lender), call(again))
    assert set(lender.tape.parameters) == {
        f"here.{name}" for name in ("part.up", "part.up_bias", "norm", "some", "table")
    }


@pytest.mark.parametrize(("outputs", "is_there"), [(37, False), (36, True)])
def test_what_is_lent_is_there_and_as_large(place, outputs, is_there):
    lender = place({"up": W})
    if is_there:
        lender.linear("up", X, 37, bias=False)
    with pytest.raises(ValueError, match=r"^here\.up is shared by parts that differ, or that come before it$"):
        Scope(lender.tape, "again", lender="here").linear("up", X, outputs, bias=False)


def test_a_parameter_has_the_role_it_is_given(place):
    here = place({"bias": BIAS})
    here.parameter("bias", 37, role="buffer")
    assert here.tape.parameters == {"here.bias": (37, "buffer")}


# Equal parts, such as experts: five networks of 13·37 and a bias of 37.
STACK, BIASES = RNG.normal(size=(5, 13, 37)), RNG.normal(size=(5, 37))


def test_equal_parts_are_written_down_as_one_array(place):
    here = place({"experts.up": STACK, "experts.up_bias": BIASES})
    for index in (3, 0, 3):
        y = here.under("experts").one_of(index, 5).linear("up", X[:, :7], 37, bias=True)
        np.testing.assert_allclose(y, X[:, :7].astype(float) @ STACK[index] + BIASES[index], rtol=1e-4, atol=1e-5)
    assert here.tape.parameters == {
        "here.experts.up": (5 * 481, "trainable"),
        "here.experts.up_bias": (185, "trainable"),
    }
    assert here.tape.products == {"here.experts.up": [Product(1, 21, 13, 37)] * 3}
    assert here.tape.of == {"here.experts.up": "here.experts.up"}


def test_parts_of_parts(place):
    """Expert 2 of 5 in module 1 of 3 is number 7 of 15."""
    inner = place({}).one_of(1, 3).under("experts").one_of(2, 5)
    assert (inner.member.index, inner.member.count) == (7, 15)


def test_parts_that_differ_are_no_equal_parts():
    here = Scope(Tape(Arena(13 * 37, deviation=0.3)), "here")
    here.one_of(0, 5).linear("up", X, 37, bias=False)
    with pytest.raises(ValueError, match=r"^here\.up is shared by parts that differ, or that come before it$"):
        here.one_of(1, 5).linear("up", X, 36, bias=False)
    with pytest.raises(ValueError, match=r"^here\.up is allocated twice in one pass$"):
        here.linear("up", X, 37, bias=False)


def test_equal_parts_of_a_place_that_is_lent_its_parameters(place):
    lender = place({"experts.up": STACK})
    again = Scope(lender.tape, "again", lender="here")
    first = lender.under("experts").one_of(2, 5).linear("up", X, 37, bias=False)
    second = again.under("experts").one_of(2, 5).linear("up", X, 37, bias=False)
    np.testing.assert_array_equal(first, second)
    assert lender.tape.parameters == {"here.experts.up": (5 * 481, "trainable")}
    assert set(lender.tape.products) == {"here.experts.up", "again.experts.up"}


@pytest.mark.parametrize("held", [1, 2, 5, 11, 14, 15, 97])
def test_heads_meet_their_own_columns_from_either_side(held):
    """Three heads of five columns of 13: B=2, T=7."""
    arena = Arena(13 * held, deviation=0.3)
    here = Scope(Tape(arena), "here")
    columns = arena.matrix("here.up", 13, 15)
    whole = np.tile(columns, 15)[:, :15].reshape(13, 3, 5)
    x, y = (RNG.normal(size=(2, 3, 7, inner)).astype(np.float32) for inner in (13, 5))
    there = here.by_head("up", x, 5, width=5, back=False)
    np.testing.assert_allclose(there, np.einsum("bnti,inw->bntw", x, whole), rtol=1e-4, atol=1e-5)
    here.tape.parameters.clear()
    np.testing.assert_allclose(
        here.by_head("up", y, 13, width=5, back=True), np.einsum("bntw,inw->bnti", y, whole), rtol=1e-4, atol=1e-5
    )
    assert here.tape.parameters == {"here.up": (13 * 15, "trainable")}
    assert here.tape.products == {"here.up": [Product(3, 14, 13, 5), Product(3, 14, 5, 13)]}
    assert here.tape.of == {"here.up": "here.up"}


def test_heads_in_float64_are_refused(place):
    with pytest.raises(TypeError, match=r"^here\.up: float64 in a pass of float32$"):
        place({"up": W[:, :15]}).by_head("up", np.ones((2, 3, 7, 13)), 5, width=5, back=False)
