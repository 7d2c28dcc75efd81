import pytest

from costcalc import CostcalcError, Workload, flops, load, parameters
from costcalc.architecture import Architecture
from costcalc.architecture.attention import Disentangled
from costcalc.architecture.places import ENCODER, At
from costcalc.inventory import Distances, EachDistances, Matmul, Tokens, Weight

HEADS = {"N": 6, "H": 7}
AT = "encoder.layers.attention"
ROWS = {"kind": "relative_rows", "span": 5}


def records(**fields):
    return list(Disentangled(heads=6, span=5, **fields).records(At(AT, 2), 42, ENCODER))


def made(attention=(), **top):
    layer = {"repeat": 2, "attention": {"kind": "disentangled", "heads": 6, "span": 5, **dict(attention)}}
    written = {"vocab_size": 19, "d_model": 42, "norm": "layernorm", "positions": ROWS, "encoder": {"layers": [layer]}}
    return Architecture(**{**written, **top})


def test_each_token_meets_all_rows_of_distances():
    """Projected once for all sequences: 10·42·42; then 33 tokens x 10 rows x 42, both ways."""
    found = {record.path.removeprefix(f"{AT}."): record for record in records() if isinstance(record, Matmul)}
    rows = {"rows_of_distances": 10}
    assert found["distance_k"] == Matmul(f"{AT}.distance_k", {**rows, "D": 42, **HEADS}, 2, f"{AT}.distance_k")
    axes = {"B·T": Tokens(), **rows, **HEADS}
    assert found["to_position.scores"] == Matmul(f"{AT}.to_position.scores", axes, 2, role="scores")
    asked = Workload(batch=3, new_tokens=11)
    assert found["distance_q"].flops(asked) == 2 * 2 * 10 * 42 * 42
    assert found["from_position.scores"].flops(asked) == 2 * 2 * 33 * 10 * 42


def test_shared_weights_make_both_and_hold_none():
    shared = records(weights="shared", from_position=False)
    assert not [record for record in shared if isinstance(record, Weight) and "distance" in record.path]
    products = {record.path: record.of for record in shared if isinstance(record, Matmul) and "distance" in record.path}
    assert products == {f"{AT}.distance_k": f"{AT}.k", f"{AT}.distance_q": f"{AT}.q"}


def test_a_short_text_trims_the_rows_of_the_first_version():
    """2·min(T, 5): 6 rows for 3 tokens, 10 for 11, whatever the batch."""
    found = {record.path: record for record in records(trimmed=True) if isinstance(record, Matmul)}
    product = found[f"{AT}.distance_k"]
    assert product.axes == {"distances": Distances(5), "D": 42, **HEADS}
    assert product.flops(Workload(batch=3, new_tokens=3)) == 2 * 2 * 6 * 42 * 42
    assert product.flops(Workload(batch=3, new_tokens=11)) == 2 * 2 * 10 * 42 * 42


def test_distances_are_twice_the_tokens():
    workload = Workload(batch=3, new_tokens=11)
    assert [Distances(reach).of(workload) for reach in (5, 11, 19)] == [10, 22, 22]
    assert EachDistances().of(workload) == 66


def test_keys_without_biases():
    """4·42·42 of the projections, 2·42·42 of those of distances; biases on q, v, the output and distance_q: 4·42."""
    held = sum(record.parameters for record in records(key_bias=False) if isinstance(record, Weight))
    assert held == 2 * (6 * 42 * 42 + 4 * 42)


def test_rows_stand_on_the_stack():
    """19·42 of the embedding and of the head, 10·42 of distances and their norm's 2·42."""
    arch = made(positions={**ROWS, "norm": "layernorm"})
    tables = {weight.path: weight.parameters for weight in arch.inventory.weights if "distances" in weight.path}
    assert tables == {"encoder.distances": 420, "encoder.distances_norm": 42, "encoder.distances_norm_bias": 42}
    assert arch.longest() is None
    assert made(positions={**ROWS, "length": 23}).longest() == 23
    assert arch.groups[0].block.positions.summary() == "10 rows of distances"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": "rope"}, "goes with positions of the kind `relative_rows`, of the same `span`"),
        ({"positions": {**ROWS, "span": 7}}, "goes with positions of the kind `relative_rows`, of the same `span`"),
        ({"attention": {"heads": 5}}, "d_model 42 is not a multiple of heads 5"),
        ({"positions": {**ROWS, "max_distance": 3}}, "growing steps need a span of at least 4"),
    ],
)
def test_what_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        made(**changes)


def test_it_is_for_an_encoder_alone():
    layer = {"attention": {"kind": "disentangled", "heads": 6, "span": 5}}
    small = {"vocab_size": 19, "d_model": 42, "norm": "layernorm", "positions": ROWS}
    with pytest.raises(ValueError, match="reads all of the text at once: it is for an encoder"):
        Architecture(**small, layers=[layer])
    asking = {"attention": {"heads": 6}, "cross_attention": {"heads": 6}, "positions": "none"}
    with pytest.raises(ValueError, match="is for an encoder alone"):
        Architecture(**small, encoder={"layers": [layer]}, decoder={"positions": "none", "layers": [asking]})


def test_deberta_v3_base():
    """86M in the layers and 98M in the table of 128,100 rows (arXiv 2111.09543, table 2), of the base model."""
    config = {
        "model_type": "deberta-v2", "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_size": 768,
        "intermediate_size": 3072, "max_position_embeddings": 512, "relative_attention": True, "position_buckets": 256,
        "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p", "layer_norm_eps": 1e-7,
        "max_relative_positions": -1, "position_biased_input": False, "num_attention_heads": 12, "type_vocab_size": 0,
        "num_hidden_layers": 12, "vocab_size": 128_100, "architectures": ["DebertaV2Model"],
    }  # fmt: skip
    count = parameters(load(config))
    assert count.total == 183_831_552
    assert round((count.total - 128_100 * 768) / 1e6) in (85, 86)
    assert flops(load(config), Workload(new_tokens=512)).attention > 0
    with pytest.raises(CostcalcError, match="`pos_att_type` must have words out of c2p and p2c"):
        load({**config, "pos_att_type": "p2p"})
