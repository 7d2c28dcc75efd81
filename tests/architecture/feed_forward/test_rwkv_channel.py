"""RWKV-4's channel mixing: 13 wide, 37 inside."""

from costcalc.architecture.feed_forward import RWKVChannel
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Cached, Matmul, Weight, Workload

RECORDS = list(RWKVChannel(d_ff=37).records(At("feed_forward", 3), 13, DECODER))


def test_three_matrices_and_two_mixes():
    weights = {r.path.removeprefix("feed_forward."): r.parameters for r in RECORDS if type(r) is Weight}
    assert weights == {"mix_k": 3 * 13, "k": 3 * 481, "mix_r": 3 * 13, "r": 3 * 169, "v": 3 * 481}  # 13 · 37 = 481


def test_every_matrix_multiplies_each_token():
    flops = {r.of: r.flops(Workload(new_tokens=11)) for r in RECORDS if type(r) is Matmul}
    assert list(flops.values()) == [2 * 11 * 3 * 481, 2 * 11 * 3 * 169, 2 * 11 * 3 * 481]


def test_the_token_before_is_held():
    (held,) = [r for r in RECORDS if type(r) is Cached]
    assert (held.kind, held.dtype, held.elements(Workload(batch=2, new_tokens=11))) == ("state", None, 2 * 3 * 13)


def test_one_line_for_a_reader():
    assert RWKVChannel(d_ff=37).summary() == "RWKV-4 channel mixing, 37 wide"
