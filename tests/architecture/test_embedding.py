import pytest

from costcalc.architecture.embedding import Embedding
from costcalc.architecture.embedding_table import EmbeddingTable
from costcalc.architecture.norm import LayerNorm
from costcalc.architecture.places import DECODER, SOURCE, At
from costcalc.architecture.positions import LearnedPositions, NoPositions
from costcalc.inventory import Matmul, Memory, Tokens, Weight

PROJECTION = "decoder.embedding_projection"


TYPES = {"token_types": 3, "norm": LayerNorm()}
NOWHERE, LEARNED = NoPositions(), LearnedPositions(length=11)


def records(embedding, positions=NOWHERE, **changed):
    asked = {"at": At("decoder"), "d_model": 13, "stream": DECODER, "positions": positions, "vocab_size": 19, **changed}
    return list(embedding.records(**asked))


def test_a_vocabulary_table_is_looked_up_so_it_takes_no_matmul():
    assert records(Embedding()) == [Weight("decoder.embedding", {"V": 19, "D": 13}, table=True)]


def test_a_factorised_table_is_narrower_and_projected_to_the_models_width():
    assert records(Embedding(width=7)) == [
        Weight("decoder.embedding", {"V": 19, "W": 7}, table=True),
        Weight(PROJECTION, {"W": 7, "D": 13}),
        Matmul(PROJECTION, {"B·T": Tokens(), "W": 7, "D": 13}, of=PROJECTION),
    ]


def test_the_projection_may_have_a_bias():
    assert records(Embedding(width=7, bias=True))[-1] == Weight(f"{PROJECTION}_bias", {"D": 13})


def test_only_a_projection_has_a_bias(refusal):
    error = refusal(embedding={"bias": True})
    assert str(error) == "`bias` belongs to a projection, which needs a `width`"
    assert error.where == ("embedding",)


def test_positions_types_and_a_norm_are_added_in_this_order():
    """BERT's: V·D + length·D + types·D + 2·D."""
    assert records(Embedding(**TYPES), LEARNED) == [
        Weight("decoder.embedding", {"V": 19, "D": 13}, table=True),
        Weight("decoder.positions", {"length": 11, "D": 13}, table=True),
        Weight("decoder.token_types", {"token_types": 3, "D": 13}, table=True),
        Weight("decoder.embedding_norm", {"D": 13}),
        Weight("decoder.embedding_norm_bias", {"D": 13}),
    ]


def test_a_projection_stands_before_them_or_after():
    """OPT-350m's positions have the model's width, ALBERT's and ELECTRA's the table's."""
    before = records(Embedding(width=7, **TYPES), LEARNED)
    assert [(r.path.removeprefix("decoder."), tuple(r.axes)) for r in before] == [
        ("embedding", ("V", "W")),
        ("embedding_projection", ("W", "D")),
        ("embedding_projection", ("B·T", "W", "D")),
        ("positions", ("length", "D")),
        ("token_types", ("token_types", "D")),
        ("embedding_norm", ("D",)),
        ("embedding_norm_bias", ("D",)),
    ]
    after = records(Embedding(width=7, project="after", **TYPES), LEARNED)
    assert [(r.path.removeprefix("decoder."), tuple(r.axes)) for r in after] == [
        ("embedding", ("V", "W")),
        ("positions", ("length", "W")),
        ("token_types", ("token_types", "W")),
        ("embedding_norm", ("W",)),
        ("embedding_norm_bias", ("W",)),
        ("embedding_projection", ("W", "D")),
        ("embedding_projection", ("B·T", "W", "D")),
    ]


def test_where_another_stacks_table_is_looked_up_only_the_rest_is_held():
    shared = records(Embedding(width=7, **TYPES), LEARNED, at=At("encoder"), stream=SOURCE, vocab_size=None)
    whole = records(Embedding(width=7, **TYPES), LEARNED, at=At("encoder"), stream=SOURCE)
    assert shared == whole[1:]
    assert shared[1].axes["B·M"] == Memory(once=True)


def test_only_a_projection_stands_somewhere(refusal):
    error = refusal(embedding={"project": "after"})
    assert str(error) == "`project` says where the projection stands, which needs a `width`"
    assert error.where == ("embedding",)


def test_the_parameters_of_albert_base(made):
    """ALBERT (arXiv 1909.11942): V 30,000, W 128, D 768, a bias on the projection."""
    model = made(vocab_size=30_000, d_model=768, embedding={"width": 128, "bias": True})
    held = {w.path: w.parameters for w in model.inventory.weights if w.path.startswith("decoder.embedding")}
    # 30,000 x 128 = 3,840,000; 128 x 768 = 98,304; 768
    assert held == {"decoder.embedding": 3_840_000, PROJECTION: 98_304, f"{PROJECTION}_bias": 768}


def test_what_enters_the_first_layer_may_be_shifted_and_scaled():
    """ZAYA1: twice D numbers, behind all else, whatever the table's width."""
    pair = [Weight(f"decoder.embedding_{name}", {"D": 13}) for name in ("gain", "shift")]
    assert records(Embedding(affine=True))[1:] == pair
    narrow = {"width": 7, "project": "after", **TYPES}
    assert records(Embedding(affine=True, **narrow), LEARNED) == [*records(Embedding(**narrow), LEARNED), *pair]


ADDED = EmbeddingTable(name="boxes", rows=5)
JOINED = EmbeddingTable(name="shape", rows=3, width=11, use="joined")
HELD = EmbeddingTable(name="languages", rows=2, use="held")


def test_further_tables_are_added_joined_or_held():
    """Of W = 7 and 11 numbers side by side 13 are made: 18·13 + 13; tables of 5·13, 3·11 and 2·13."""
    made = records(Embedding(width=7, bias=True, tables=(ADDED, JOINED, HELD)))
    joined = {"joined": 18, "D": 13}
    assert made == [
        Weight("decoder.embedding", {"V": 19, "W": 7}, table=True),
        Weight(PROJECTION, joined),
        Matmul(PROJECTION, {"B·T": Tokens(), **joined}, of=PROJECTION),
        Weight(f"{PROJECTION}_bias", {"D": 13}),
        Weight("decoder.tables.boxes", {"rows": 5, "D": 13}, table=True),
        Weight("decoder.tables.shape", {"rows": 3, "W_table": 11}, table=True),
        Weight("decoder.tables.languages", {"rows": 2, "D": 13}, table=True),
    ]


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        ({"tables": [{"name": "a", "rows": 3, "width": 5}]}, "a table that is added is as wide as what it is added to"),
        ({"width": 7, "tables": [{"name": "a", "rows": 3, "use": "joined"}]}, "a table that is joined needs a `width`"),
        (
            {"tables": [{"name": "a", "rows": 3, "use": "joined", "width": 5}]},
            "what `tables` or `neighbours` join is projected: that needs a `width`, and `project: before`",
        ),
        ({"tables": [{"name": "a", "rows": 3}, {"name": "a", "rows": 5}]}, "two `tables` have one name"),
    ],
)
def test_tables_that_cannot_be(refusal, embedding, message):
    assert str(refusal(embedding=embedding)) == message
