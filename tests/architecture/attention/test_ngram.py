"""N-gram attention: its records, the streams of a whole model, ProphetNet's published size, and what it cannot be."""

import pytest

import costcalc
from costcalc import Workload, flops, kv_cache, parameters, verify
from costcalc.architecture.attention import NGram
from costcalc.architecture.places import DECODER, At
from costcalc.errors import CostcalcError
from costcalc.inventory import AheadPairs, Cached, Matmul, Weight

AT = At("decoder.layers.attention", times=3)
SIZES = {"heads": 6, "head_dim": 5, "streams": 2, "buckets": 7, "max_distance": 11}
SMALL = NGram(**SIZES)
POSITIONS = {"kind": "learned", "length": 29, "offset": 1}


def model(*, layer=(), **top):
    """V = 19, D = 13, F = 37; three layers."""
    block = {"repeat": 3, "attention": {"kind": "ngram", **SIZES}, "feed_forward": {"d_ff": 37}, **dict(layer)}
    written = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "positions": POSITIONS, "layers": [block], **top}
    return costcalc.load(written)


def test_what_it_holds():
    """q, k, v and output of 13·30 numbers, and 13·7·6 for the buckets: 4·390 + 546 = 2,106; with biases 3·30 + 42 + 13
    = 145 more.
    """
    held = [r for r in SMALL.records(AT, 13, DECODER) if isinstance(r, Weight)]
    assert [w.path.rpartition(".")[2] for w in held] == ["q", "k", "v", "relative", "output"]
    assert sum(w.parameters for w in held) == 3 * 2_106
    biased = SMALL.model_copy(update={"bias": True, "out_bias": True}).records(AT, 13, DECODER)
    assert sum(r.parameters for r in biased if isinstance(r, Weight)) == 3 * (2_106 + 145)


def test_the_main_stream_alone_is_kept():
    kept = [r for r in SMALL.records(AT, 13, DECODER) if isinstance(r, Cached)]
    assert [c.path.rpartition(".")[2] for c in kept] == ["k_cache", "v_cache"]
    assert [c.elements(Workload(2, 1, 10)) for c in kept] == [3 * 2 * 11 * 30] * 2


@pytest.mark.parametrize("streams", [1, 2, 5])
@pytest.mark.parametrize(("past", "new"), [(0, 11), (0, 1), (1, 3), (2, 1), (10, 1), (13, 5)])
def test_pairs_of_streams_that_look_ahead(streams, past, new):
    """Query q of stream j sees the main stream's 0 .. q - j + 1, the first one always, and itself."""
    seen = 0
    for stream in range(1, streams + 1):
        for query in range(past, past + new):
            seen += sum(1 for key in range(past + new) if key == 0 or key <= query - stream + 1) + 1
    pairs = AheadPairs(streams)
    assert pairs.of(Workload(3, new, past)) == 3 * seen
    rectangle = Workload(3, new, past, counting="rectangle")
    assert pairs.of(rectangle) == 3 * streams * new * (past + 2 * new)


def test_all_streams_go_through_all_of_a_layer():
    """T = 11: 33 rows of 4·390 + 546 + 2·481 numbers in each of three layers; 66 pairs of the main stream, of the two
    others 66 + 11 and 56 + 11 (query i of the second sees one token less, but for the first query); the head 22 rows.
    """
    counted = flops(model(), Workload(new_tokens=11))
    rows, pairs = 33 * (2_106 + 2 * 481), (66 + 77 + 67) * 2 * 30
    assert counted.forward == 2 * (3 * (rows + pairs) + 22 * 19 * 13)
    assert counted.attention == 2 * 3 * pairs
    last = flops(model(), Workload(new_tokens=11, logits="last"))
    assert counted.forward - last.forward == 2 * 20 * 19 * 13
    assert kv_cache(model(), 11).elements == 3 * 2 * 11 * 30


def test_each_stream_looks_at_the_encoder():
    asks = {"cross_attention": {"heads": 3, "head_dim": 7}}
    without = flops(model(layer=asks), Workload(new_tokens=11)).forward
    more = flops(model(layer=asks), Workload(new_tokens=11, memory_tokens=5)).forward - without
    assert more == 2 * 3 * (33 * 2 * 13 * 21 + 5 * 2 * 13 * 21 + 33 * 5 * 2 * 21)


def test_streams_begin_with_rows_of_their_own():
    """Two of 13, beside tables of 19, and 29, and the head's."""
    count = parameters(model())
    assert count.embedding == (2 + 19 + 29 + 19) * 13


@pytest.mark.parametrize("tied", [False, True])
def test_it_verifies(tied):
    result = verify(model(tie_embeddings=tied))
    assert result.faults == ()
    assert result.agrees


def test_the_published_model():
    """ProphetNet large: 391 million (arXiv 2001.04063, appendix); the class's sum."""
    arch = costcalc.load({"model_type": "prophetnet"})
    assert parameters(arch).total == 391_321_600
    assert arch.groups[-1].block.attention.summary(1_024) == "16 heads of 64, 2 streams ahead, 32 buckets of distances"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": "rope"}, "attention of the kind ngram is that of all layers"),
        ({"embedding": {"width": 7}}, "streams that look ahead go with a plain table of embeddings"),
        ({"layer": {"attention": {"kind": "ngram", **SIZES, "buckets": 1}}}, "half the 1 buckets"),
        ({"layer": {"attention": {"kind": "ngram", **SIZES, "streams": 101}}}, "101 streams are more than 100"),
        ({"layer": {"attention": {"kind": "ngram", "heads": 6}}}, "d_model 13 is not a multiple of heads 6"),
        ({"layers": [{"attention": {"kind": "ngram", **SIZES}}, {"attention": {"heads": 1}}]}, "is that of all layers"),
    ],
)
def test_what_it_cannot_be(changes, message):
    with pytest.raises(CostcalcError, match=message):
        model(**changes)


def test_no_encoder_looks_ahead():
    layers = [{"attention": {"kind": "ngram", **SIZES}}]
    with pytest.raises(CostcalcError, match="streams that look ahead are for a decoder"):
        costcalc.load(
            {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "positions": POSITIONS, "encoder": {"layers": layers}}
        )


def test_no_product_is_of_another_form():
    assert not [r for r in SMALL.records(AT, 13, DECODER) if isinstance(r, Matmul) and r.form is not None]
