import pytest

from costcalc.architecture import Architecture
from costcalc.inventory import Matmul, Tokens, Weight


def made(**convolution):
    layers = [{"name": "first", "attention": {"heads": 6}, "convolution": convolution}, {"attention": {"heads": 6}}]
    return Architecture(vocab_size=19, d_model=42, norm="layernorm", encoder={"layers": layers})


def test_neighbours_times_a_matrix():
    """3·42·42 + 42 and a norm of 2·42; in 7 groups 7·3·6·6."""
    at = "encoder.layers.first.convolution"
    records = {record.path: record for record in made(taps=3).inventory.records if record.path.startswith(at)}
    axes = {"groups": 1, "taps": 3, "block_in": 42, "block_out": 42}
    assert [type(record) for record in records.values()] == [Matmul, Weight, Weight, Weight]
    assert records[at] == Matmul(at, {"B·T": Tokens(), **axes}, of=at)
    held = [weight.parameters for weight in made(taps=3, groups=7).inventory.weights if weight.path.startswith(at)]
    assert held == [7 * 3 * 6 * 6, 42, 42, 42]


@pytest.mark.parametrize(
    ("convolution", "message"),
    [
        ({"taps": 2}, "a convolution of 2 taps gives other places: an odd number is needed"),
        ({"taps": 3, "groups": 5}, "d_model 42 is not a multiple of groups 5"),
    ],
)
def test_what_cannot_be(convolution, message):
    with pytest.raises(ValueError, match=message):
        made(**convolution)


def test_a_reader_is_told():
    assert made(taps=3, groups=7).groups[0].block.convolution.summary() == "convolution over 3 tokens in 7 groups, tanh"
