import numpy as np
import pytest
from pydantic import ValidationError

from costcalc.architecture.feed_forward import Dense, Gated
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Matmul, Tokens, Weight, Workload

AT = At("decoder.layers.feed_forward", times=3)
GATE, UP, DOWN = (f"decoder.layers.feed_forward.{name}" for name in ("gate", "up", "down"))


def test_three_matrices_each_of_the_whole_width():
    rows = {"B·T": Tokens()}
    assert list(Gated(d_ff=37).records(AT, 13, DECODER)) == [
        Weight(GATE, {"D": 13, "F": 37}, times=3),
        Matmul(GATE, {**rows, "D": 13, "F": 37}, times=3, of=GATE),
        Weight(UP, {"D": 13, "F": 37}, times=3),
        Matmul(UP, {**rows, "D": 13, "F": 37}, times=3, of=UP),
        Weight(DOWN, {"F": 37, "D": 13}, times=3),
        Matmul(DOWN, {**rows, "F": 37, "D": 13}, times=3, of=DOWN),
    ]


def test_each_matrix_may_have_a_bias_as_wide_as_what_it_gives():
    weights = {r.path: r.axes for r in Gated(d_ff=37, bias=True).records(AT, 13, DECODER) if type(r) is Weight}
    assert weights == {
        GATE: {"D": 13, "F": 37},
        f"{GATE}_bias": {"F": 37},
        UP: {"D": 13, "F": 37},
        f"{UP}_bias": {"F": 37},
        DOWN: {"F": 37, "D": 13},
        f"{DOWN}_bias": {"D": 13},
    }


def test_the_mlp_of_a_7b():
    """A Llama-7B block: 3 x 4,096 x 11,008; a calculator that counts two matrices gives 90,177,536."""
    records = Gated(d_ff=11_008).records(At("mlp"), 4096, DECODER)
    assert sum(r.parameters for r in records if type(r) is Weight) == 135_266_304


def test_a_gated_network_is_a_dense_one_and_half_as_much_again():
    for record in (Weight, Matmul):
        gated = [r for r in Gated(d_ff=37).records(AT, 13, DECODER) if type(r) is record]
        dense = [r for r in Dense(d_ff=37).records(AT, 13, DECODER) if type(r) is record]
        assert (len(gated), len(dense)) == (3, 2)


@pytest.mark.parametrize("sparsity", [-0.1, 1.0, 1, "0.5"])
def test_what_is_no_share(sparsity):
    with pytest.raises(ValidationError):
        Gated(d_ff=37, sparsity=sparsity)


def test_sparse_gates_cost_as_much():
    assert list(Gated(d_ff=37, sparsity=0.95).records(AT, 13, DECODER)) == list(Gated(d_ff=37).records(AT, 13, DECODER))


def test_one_line_for_a_reader():
    assert Gated(d_ff=14_336).summary() == "gated silu, 14,336 wide"
    assert Gated(d_ff=37, sparsity=0.95).summary() == "gated silu, 37 wide, 95% of the gate zero"
    assert Gated(d_ff=37, activation="gelu_tanh", bias=True).summary() == "gated gelu_tanh, 37 wide, biases"


def test_a_sweep_gives_the_numbers_of_one_model_at_a_time():
    widths, models = np.array([37, 41, 43]), np.array([13, 17, 19])
    swept = list(Gated.model_construct(d_ff=widths, bias=True).records(AT, models, DECODER))
    for index, (d_ff, d_model) in enumerate(zip(widths.tolist(), models.tolist(), strict=True)):
        one = list(Gated(d_ff=d_ff, bias=True).records(AT, d_model, DECODER))
        for many, single in zip(swept, one, strict=True):
            if type(single) is Weight:
                assert many.parameters[index] == single.parameters
            else:
                assert many.flops(Workload(new_tokens=11))[index] == single.flops(Workload(new_tokens=11))


def test_a_norm_inside_is_of_the_numbers_that_the_last_matrix_reads():
    """BitNet b1.58: F = 37 gains a network more, and F biases where the norm has some."""
    plain = list(Gated(d_ff=37).records(AT, 13, DECODER))
    normed = list(Gated(d_ff=37, inner_norm={"kind": "layernorm"}).records(AT, 13, DECODER))
    assert [r for r in normed if r not in plain] == [
        Weight("decoder.layers.feed_forward.inner_norm", {"F": 37}, times=3),
        Weight("decoder.layers.feed_forward.inner_norm_bias", {"F": 37}, times=3),
    ]
    assert Gated(d_ff=37, inner_norm={"kind": "rmsnorm"}).summary() == "gated silu, 37 wide, normed inside"
