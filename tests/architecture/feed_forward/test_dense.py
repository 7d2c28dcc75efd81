import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from costcalc.architecture.feed_forward import Dense, FeedForward, Gated
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Matmul, Tokens, Weight, Workload

AT = At("decoder.layers.feed_forward", times=3)
UP, DOWN = "decoder.layers.feed_forward.up", "decoder.layers.feed_forward.down"


def test_two_matrices_and_their_matmuls():
    assert list(Dense(d_ff=37).records(AT, 13, DECODER)) == [
        Weight(UP, {"D": 13, "F": 37}, times=3),
        Matmul(UP, {"B·T": Tokens(), "D": 13, "F": 37}, times=3, of=UP),
        Weight(DOWN, {"F": 37, "D": 13}, times=3),
        Matmul(DOWN, {"B·T": Tokens(), "F": 37, "D": 13}, times=3, of=DOWN),
    ]


def test_each_matrix_may_have_a_bias_as_wide_as_what_it_gives():
    weights = {r.path: r.axes for r in Dense(d_ff=37, bias=True).records(AT, 13, DECODER) if type(r) is Weight}
    assert weights == {
        UP: {"D": 13, "F": 37},
        f"{UP}_bias": {"F": 37},
        DOWN: {"F": 37, "D": 13},
        f"{DOWN}_bias": {"D": 13},
    }


def test_the_mlp_of_gpt2():
    """A GPT-2 block's MLP: 8·D^2 + 5·D with D = 768, F = 3,072."""
    records = Dense(d_ff=3072, bias=True).records(At("mlp"), 768, DECODER)
    assert sum(r.parameters for r in records if type(r) is Weight) == 8 * 768**2 + 5 * 768 == 4_722_432


def test_one_line_for_a_reader():
    assert Dense(d_ff=3072).summary() == "dense gelu, 3,072 wide"
    assert Dense(d_ff=37, activation="relu", bias=True).summary() == "dense relu, 37 wide, biases"


@pytest.mark.parametrize(
    "activation",
    ["gelu", "gelu_new", "gelu_tanh", "quick_gelu", "silu", "relu", "relu_squared", "sigmoid", "tanh"],
)
def test_an_activation_changes_no_count(activation):
    records = list(Dense(d_ff=37, activation=activation).records(AT, 13, DECODER))
    assert records == list(Dense(d_ff=37).records(AT, 13, DECODER))


@pytest.mark.parametrize("activation", ["swiglu", "", None, True])
def test_an_unknown_activation_is_refused(activation):
    with pytest.raises(ValidationError):
        Dense(d_ff=37, activation=activation)


def test_the_kind_picks_the_feed_forward():
    read = TypeAdapter(FeedForward).validate_python
    assert read({"kind": "dense", "d_ff": 37}) == Dense(d_ff=37)
    assert read({"kind": "gated", "d_ff": 37}) == Gated(d_ff=37)
    for written in ({"kind": "mixture", "d_ff": 37}, {"kind": "dense"}):
        with pytest.raises(ValidationError):
            read(written)


def test_a_sweep_gives_the_numbers_of_one_model_at_a_time():
    widths, models = np.array([37, 41, 43]), np.array([13, 17, 19])
    swept = list(Dense.model_construct(d_ff=widths, bias=True).records(AT, models, DECODER))
    for index, (d_ff, d_model) in enumerate(zip(widths.tolist(), models.tolist(), strict=True)):
        one = list(Dense(d_ff=d_ff, bias=True).records(AT, d_model, DECODER))
        for many, single in zip(swept, one, strict=True):
            if type(single) is Weight:
                assert many.parameters[index] == single.parameters
            else:
                assert many.flops(Workload(new_tokens=11))[index] == single.flops(Workload(new_tokens=11))


@pytest.mark.parametrize("kind", [Dense, Gated])
def test_xielu_holds_two_numbers_and_two_constants(kind):
    """Apertus-8B: 32 layers of 2 learned numbers, `alpha_p` and `alpha_n`, and of 2 constants beside them."""
    plain = list(kind(d_ff=37, activation="silu").records(AT, 13, DECODER))
    own = [r for r in kind(d_ff=37, activation="xielu").records(AT, 13, DECODER) if r not in plain]
    at = "decoder.layers.feed_forward.activation"
    assert own == [
        *(Weight(f"{at}_{name}", {"one": 1}, times=3) for name in ("alpha_p", "alpha_n")),
        *(Weight(f"{at}_{name}", {"one": 1}, times=3, role="buffer") for name in ("beta", "eps")),
    ]


def test_experts_have_numbers_each():
    """5 experts, of which a token uses 2, in each of 3 layers."""
    there = AT.of_experts("experts", 5, chosen=2)
    (alpha, *_) = [
        r for r in Dense(d_ff=37, activation="xielu").records(there, 13, DECODER) if r.path.endswith("alpha_p")
    ]
    assert (alpha.axes, alpha.times, alpha.used) == ({"E": 5, "one": 1}, 3, {"E": 2})
