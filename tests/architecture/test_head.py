import pytest

from costcalc.architecture.component import RuleError
from costcalc.architecture.embedding import Embedding
from costcalc.architecture.head import ClassifierHead, NoHead, VocabularyHead, pooler_records
from costcalc.architecture.norm import LayerNorm
from costcalc.inventory import Logits, Matmul, Sequences, Weight

PLAIN, NARROW = Embedding(), Embedding(width=7)
OWN = Weight("head", {"V": 19, "D": 13}, table=True)
TIED = "decoder.embedding"


def records(head, *, embedding, tied):
    return list(head.records(13, vocab_size=19, embedding=embedding, tied=tied, table_path=TIED))


def test_a_head_with_its_own_table_holds_it_and_multiplies_by_it():
    assert records(VocabularyHead(), embedding=PLAIN, tied=False) == [
        OWN,
        Matmul("head", {"B·T": Logits(), "V": 19, "D": 13}, of="head"),
    ]


def test_a_tied_head_multiplies_by_the_embedding_and_holds_nothing():
    assert records(VocabularyHead(), embedding=PLAIN, tied=True) == [
        Matmul("head", {"B·T": Logits(), "V": 19, "D": 13}, of=TIED),
    ]


@pytest.mark.parametrize("tied", [False, True])
def test_a_head_may_have_a_bias_for_each_word(tied):
    assert records(VocabularyHead(bias=True), embedding=PLAIN, tied=tied)[-1] == Weight("head_bias", {"V": 19})


def test_a_head_that_is_tied_to_a_factorised_table_projects_first():
    assert records(VocabularyHead(), embedding=NARROW, tied=True) == [
        Weight("head.projection", {"D": 13, "W": 7}),
        Matmul("head.projection", {"B·T": Logits(), "D": 13, "W": 7}, of="head.projection"),
        Matmul("head", {"B·T": Logits(), "V": 19, "W": 7}, of=TIED),
    ]


def test_a_head_of_its_own_is_as_wide_as_the_model_whatever_the_embedding():
    assert records(VocabularyHead(), embedding=NARROW, tied=False) == records(
        VocabularyHead(), embedding=PLAIN, tied=False
    )


def test_the_formula_of_the_head_is_printed_in_order():
    *_, matmul = records(VocabularyHead(), embedding=PLAIN, tied=True)
    assert list(matmul.axes) == ["B·T", "V", "D"]
    _, projection, _ = records(VocabularyHead(), embedding=NARROW, tied=True)
    assert list(projection.axes) == ["B·T", "D", "W"]


TRANSFORM = VocabularyHead(transform=True, norm=LayerNorm(), bias=True)


def shapes(head, **asked):
    return [(type(r).__name__, r.path, tuple(r.axes.items())[-2:]) for r in records(head, **asked)]


def test_a_transform_is_a_square_matrix_and_a_norm():
    """BERT's masked-LM head: D·D + D + 2·D, the tied table, and V: 13·13 + 13 + 26 + 19 = 227."""
    made = records(TRANSFORM, embedding=PLAIN, tied=True)
    assert made == [
        Weight("head.transform", {"D": 13, "D_out": 13}),
        Matmul("head.transform", {"B·T": Logits(), "D": 13, "D_out": 13}, of="head.transform"),
        Weight("head.transform_bias", {"D_out": 13}),
        Weight("head.norm", {"D": 13}),
        Weight("head.norm_bias", {"D": 13}),
        Matmul("head", {"B·T": Logits(), "V": 19, "D": 13}, of=TIED),
        Weight("head_bias", {"V": 19}),
    ]
    assert sum(record.parameters for record in made if type(record) is Weight) == 227


@pytest.mark.parametrize("tied", [False, True])
def test_a_transform_of_a_factorised_table_is_the_projection(tied):
    """ALBERT's and ELECTRA's: D·W + W + 2·W; a table of its own has the width W as well."""
    made = shapes(TRANSFORM, embedding=NARROW, tied=tied)
    assert made[0] == ("Weight", "head.transform", (("D", 13), ("W", 7)))
    assert ("Weight", "head.norm", (("W", 7),)) in made
    assert made[-2] == ("Matmul", "head", (("V", 19), ("W", 7)))
    assert (("Weight", "head", (("V", 19), ("W", 7))) in made) is not tied


def test_parts_of_a_transform_may_be_left_out():
    bare = VocabularyHead(transform=True, transform_bias=False, norm=None)
    assert [r.path for r in records(bare, embedding=PLAIN, tied=True)] == ["head.transform", "head.transform", "head"]


def test_a_bias_that_is_held_but_no_parameter():
    """`final_logits_bias` of BART."""
    made = records(VocabularyHead(bias="buffer"), embedding=PLAIN, tied=True)
    assert made[-1] == Weight("head_bias", {"V": 19}, role="buffer")


def test_a_second_bias_that_nothing_reads():
    """Two names of one array in a tied masked-LM head, two arrays in an untied one."""
    made = records(VocabularyHead(bias="spare"), embedding=PLAIN, tied=False)
    assert made[-2:] == [Weight("head_bias", {"V": 19}), Weight("head_spare_bias", {"V": 19})]


def test_no_head_is_nothing():
    assert records(NoHead(), embedding=PLAIN, tied=False) == []


def test_a_pooler_reads_one_row_of_each_sequence():
    path = "pooler.dense"
    assert list(pooler_records(13, Sequences())) == [
        Weight(path, {"D": 13, "D_out": 13}),
        Matmul(path, {"B": Sequences(), "D": 13, "D_out": 13}, of=path),
        Weight(f"{path}_bias", {"D_out": 13}),
    ]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (VocabularyHead(transform=True), "`transform` ends in a norm: write `norm:`, or `norm: null` for none"),
        (VocabularyHead(norm=LayerNorm()), "`norm` belongs to a `transform`"),
        (VocabularyHead(transform_bias=False), "`transform_bias` belongs to a `transform`"),
    ],
)
def test_a_transform_says_what_it_has_and_nothing_else_does(head, message):
    with pytest.raises(RuleError) as caught:
        head.check(("head",), d_model=13)
    assert (str(caught.value), caught.value.where) == (message, ("head",))


def test_the_rules_of_the_head_are_those_of_the_model(refusal):
    error = refusal(head={"transform_bias": False})
    assert (str(error), error.where) == ("`transform_bias` belongs to a `transform`", ("head",))


def test_labels_of_each_token_are_one_product_and_a_bias():
    assert records(ClassifierHead(labels=5), embedding=PLAIN, tied=False) == [
        Weight("head.classifier", {"D": 13, "labels": 5}),
        Matmul("head.classifier", {"B·T": Logits(), "D": 13, "labels": 5}, of="head.classifier"),
        Weight("head.classifier_bias", {"labels": 5}),
    ]


def test_labels_of_a_text_are_told_once_behind_a_dense_layer():
    head = ClassifierHead(labels=5, of="text", transform=True, transform_width=7, norm=LayerNorm())
    made = records(head, embedding=PLAIN, tied=False)
    # 13·7 + 7 of the dense layer, 2·7 of its norm, 7·5 + 5 of the labels
    assert sum(record.parameters for record in made if type(record) is Weight) == 152
    assert {record.axes["B"] for record in made if type(record) is Matmul} == {Sequences()}


@pytest.mark.parametrize(
    "fields", [{"norm": LayerNorm()}, {"transform_width": 7}, {"transform_bias": False}, {"activation": "gelu"}]
)
def test_what_belongs_to_the_dense_layer_of_a_classifier_needs_one(fields):
    with pytest.raises(RuleError, match="belongs to a `transform`"):
        ClassifierHead(labels=5, **fields).check(("head",), 13)


def test_a_head_of_some_rows_has_a_table_of_its_own():
    """11 of 19 entries: 11·13 numbers; a bias for each of the 11."""
    assert records(VocabularyHead(rows=11, bias=True), embedding=PLAIN, tied=False) == [
        Weight("head", {"V": 11, "D": 13}, table=True),
        Matmul("head", {"B·T": Logits(), "V": 11, "D": 13}, of="head"),
        Weight("head_bias", {"V": 11}),
    ]
