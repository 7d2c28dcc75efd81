from costcalc.architecture.embedding import Embedding
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Matmul, Tokens, Weight

PROJECTION = "decoder.embedding_projection"


def records(embedding):
    return list(embedding.records(At("decoder"), 13, DECODER, vocab_size=19))


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


def test_the_parameters_of_albert_base(made):
    """ALBERT (arXiv 1909.11942): V 30,000, W 128, D 768, a bias on the projection."""
    model = made(vocab_size=30_000, d_model=768, embedding={"width": 128, "bias": True})
    held = {w.path: w.parameters for w in model.inventory.weights if w.path.startswith("decoder.embedding")}
    # 30,000 x 128 = 3,840,000; 128 x 768 = 98,304; 768
    assert held == {"decoder.embedding": 3_840_000, PROJECTION: 98_304, f"{PROJECTION}_bias": 768}
