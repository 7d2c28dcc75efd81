import pytest

from costcalc import load, parameters
from costcalc.architecture import Architecture
from costcalc.inventory import Workload


def made(**bottleneck):
    attention = {"heads": 3, "head_dim": 5, "bias": True, "out_bias": True}
    network = {"d_ff": 37, "bias": True}
    layer = {"norms": "post", "attention": attention, "feed_forward": network, "bottleneck": bottleneck}
    return Architecture(vocab_size=19, d_model=42, norm="layernorm", encoder={"layers": [layer]})


def held(arch):
    return sum(weight.parameters for weight in arch.inventory.weights if weight.path.startswith("encoder.layers"))


def test_a_layer_of_fewer_numbers_than_the_stream():
    """In by 42·15 + 15 and a norm of 30, twice; q, k 15·15 + 15; v 42·15 + 15; out 15·15 + 15 and 30.

    Three networks of 2·15·37 + 37 + 15 and 30; back by 15·42 + 42 and 84.
    """
    into, network = 42 * 15 + 15 + 30, 2 * 15 * 37 + 37 + 15 + 30
    attention = 3 * (15 * 15 + 15) + 42 * 15 + 15 + 30
    assert held(made(width=15, networks=3)) == 2 * into + attention + 3 * network + 15 * 42 + 42 + 84


def test_a_spare_bottleneck_is_held_and_not_used():
    one, other = made(width=15, attends="input"), made(width=15, attends="input", spare=True)
    assert held(other) - held(one) == 42 * 15 + 15 + 30
    asked = Workload(new_tokens=11)
    flops = [sum(matmul.flops(asked) for matmul in arch.inventory.matmuls) for arch in (one, other)]
    assert flops[0] == flops[1]


@pytest.mark.parametrize(
    ("bottleneck", "message"),
    [
        ({"width": 16}, "16 is not a multiple of heads 3"),
        ({"attends": "shared"}, "without a `width` there is only the `stream`"),
        ({"width": 15, "spare": True}, "a `spare` bottleneck is one that"),
        ({"width": 15, "networks": 1001}, "more than 1,000 networks"),
    ],
)
def test_what_cannot_be(bottleneck, message):
    with pytest.raises(ValueError, match=message):
        made(**bottleneck)


def test_mobilebert():
    """24.6M without head and pooler (25.3M in arXiv 2004.02984), 36.6M with: the total of the shared recording."""
    arch = load({"model_type": "mobilebert"})
    assert parameters(arch).total == 36_596_538
    bare = parameters(load({"model_type": "mobilebert", "architectures": ["MobileBertModel"]})).total
    assert round((bare - 512 * 512 - 512) / 1e6, 1) == 24.6
    assert arch.groups[0].block.bottleneck.summary() == "128 wide, 4 networks, attention of the shared"
