import pytest
from pydantic import TypeAdapter, ValidationError

from costcalc.architecture.norm import LayerNorm, Norm, RMSNorm
from costcalc.architecture.places import At
from costcalc.inventory import Weight

AT = At("decoder.layers", times=3)
GAIN = Weight("decoder.layers.norm", {"D": 13}, times=3)
BIAS = Weight("decoder.layers.norm_bias", {"D": 13}, times=3)


@pytest.mark.parametrize(
    ("norm", "records"),
    [
        (LayerNorm(), [GAIN, BIAS]),
        (LayerNorm(bias=False), [GAIN]),  # Cohere, MPT
        (LayerNorm(weight=False), [BIAS]),
        (LayerNorm(weight=False, bias=False), []),  # OLMo-1
        (RMSNorm(), [GAIN]),
        (RMSNorm(weight=False), []),
    ],
)
def test_a_norm_holds_a_gain_and_a_bias_where_it_has_them(norm, records):
    assert list(norm.records(AT, "norm", {"D": 13})) == records


def test_a_norm_may_be_over_any_axes():
    (gain,) = RMSNorm().records(AT, "q_norm", {"N": 6, "H": 5})
    assert gain == Weight("decoder.layers.q_norm", {"N": 6, "H": 5}, times=3)


def test_the_kind_picks_the_norm():
    read = TypeAdapter(Norm).validate_python
    assert read({"kind": "layernorm", "bias": False}) == LayerNorm(bias=False)
    assert read({"kind": "rmsnorm"}) == RMSNorm()
    with pytest.raises(ValidationError):
        read({"kind": "rmsnorm", "bias": False})  # an RMSNorm has none
    with pytest.raises(ValidationError):
        read({"kind": "batchnorm"})


def test_eps_is_the_paper_s_code_unless_written():
    """torch.nn.LayerNorm has 1e-5, LLaMA's RMSNorm 1e-6."""
    assert (LayerNorm().eps, RMSNorm().eps) == (1e-5, 1e-6)
    assert list(RMSNorm(eps=0.5).records(AT, "norm", {"D": 13})) == list(RMSNorm().records(AT, "norm", {"D": 13}))
