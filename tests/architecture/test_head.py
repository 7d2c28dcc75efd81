import pytest

from costcalc.architecture.embedding import Embedding
from costcalc.architecture.head import Head
from costcalc.inventory import Logits, Matmul, Weight

PLAIN, NARROW = Embedding(), Embedding(width=7)
OWN = Weight("head", {"V": 19, "D": 13}, table=True)
TIED = "decoder.embedding"


def records(head, *, embedding, tied):
    return list(head.records(13, vocab_size=19, embedding=embedding, tied=tied, table_path=TIED))


def test_a_head_with_its_own_table_holds_it_and_multiplies_by_it():
    assert records(Head(), embedding=PLAIN, tied=False) == [
        OWN,
        Matmul("head", {"B·T": Logits(), "V": 19, "D": 13}, of="head"),
    ]


def test_a_tied_head_multiplies_by_the_embedding_and_holds_nothing():
    assert records(Head(), embedding=PLAIN, tied=True) == [
        Matmul("head", {"B·T": Logits(), "V": 19, "D": 13}, of=TIED),
    ]


@pytest.mark.parametrize("tied", [False, True])
def test_a_head_may_have_a_bias_for_each_word(tied):
    assert records(Head(bias=True), embedding=PLAIN, tied=tied)[-1] == Weight("head_bias", {"V": 19})


def test_a_head_that_is_tied_to_a_factorised_table_projects_first():
    assert records(Head(), embedding=NARROW, tied=True) == [
        Weight("head.projection", {"D": 13, "W": 7}),
        Matmul("head.projection", {"B·T": Logits(), "D": 13, "W": 7}, of="head.projection"),
        Matmul("head", {"B·T": Logits(), "V": 19, "W": 7}, of=TIED),
    ]


def test_a_head_of_its_own_is_as_wide_as_the_model_whatever_the_embedding():
    assert records(Head(), embedding=NARROW, tied=False) == records(Head(), embedding=PLAIN, tied=False)


def test_the_formula_of_the_head_is_printed_in_order():
    *_, matmul = records(Head(), embedding=PLAIN, tied=True)
    assert list(matmul.axes) == ["B·T", "V", "D"]
    _, projection, _ = records(Head(), embedding=NARROW, tied=True)
    assert list(projection.axes) == ["B·T", "D", "W"]
