import pytest

from costcalc import load, parameters
from costcalc.architecture import Architecture
from costcalc.architecture.attention import TransformerXL
from costcalc.architecture.places import ENCODER, At
from costcalc.inventory import Distances, EachDistances, Matmul, Tokens, Weight, Workload

AT = "encoder.layers.attention"
ASKED = Workload(batch=3, new_tokens=11)


def records(**fields):
    return list(TransformerXL(heads=6, **fields).records(At(AT, 2), 42, ENCODER))


def test_distances_are_projected_in_each_sequence():
    """3 x 22 rows of sinusoids, 42·42 each; then every one of 33 tokens with its 22."""
    found = {record.path.removeprefix(f"{AT}."): record for record in records() if isinstance(record, Matmul)}
    assert found["distance_k"].axes == {"B·distances": EachDistances(), "D": 42, "N": 6, "H": 7}
    assert found["distance_k"].flops(ASKED) == 2 * 2 * 66 * 42 * 42
    assert found["to_position.scores"].axes == {"B·T": Tokens(), "distances": Distances(None), "N": 6, "H": 7}
    assert found["to_position.scores"].flops(ASKED) == 2 * 2 * 33 * 22 * 42


def test_what_is_held():
    """Five matrices and two shifts; with segments one shift and a vector for each more."""
    held = [
        sum(record.parameters for record in made if isinstance(record, Weight))
        for made in (records(), records(segments=2))
    ]
    assert held == [2 * (5 * 42 * 42 + 2 * 42), 2 * (5 * 42 * 42 + 5 * 42)]


@pytest.mark.parametrize(
    ("d_model", "heads", "message"),
    [(42, 5, "d_model 42 is not a multiple of heads 5"), (21, 3, "d_model 21 is odd")],
)
def test_what_cannot_be(d_model, heads, message):
    layers = [{"attention": {"kind": "transformer_xl", "heads": heads}}]
    with pytest.raises(ValueError, match=message):
        Architecture(vocab_size=19, d_model=d_model, norm="layernorm", encoder={"layers": layers})


def test_xlnet_large():
    """As the class makes it by default: the total of the shared recording of all classes."""
    arch = load({"model_type": "xlnet"})
    assert parameters(arch).total == 360_300_800
    summary = arch.groups[0].block.attention.summary(1024)
    assert summary == "16 heads of 64, sinusoids of distances, 2 segments"
