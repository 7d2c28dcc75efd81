import pytest

from costcalc import load, parameters
from costcalc.architecture import Architecture
from costcalc.architecture.attention import GroupedQuery, MixedConvolution
from costcalc.architecture.places import ENCODER, At
from costcalc.inventory import Matmul, Tokens, Weight, Workload

AT = "encoder.layers.attention"


def records(heads=3, taps=5):
    return list(MixedConvolution(heads=heads, taps=taps).records(At(AT, 2), 42, ENCODER))


def test_half_of_the_numbers_attend():
    """Two layers of q, k, v, span_key and span_value: 5 x 42·21; span_kernel 21·15; 42·5 of neighbours; 42·42 back.

    Biases of q, k, v, span_key and span_value (5·21), of the kernel (15) and of the output (42).
    """
    held = sum(record.parameters for record in records() if isinstance(record, Weight))
    assert held == 2 * (5 * 42 * 21 + 21 * 15 + 42 * 5 + 42 * 42 + 5 * 21 + 15 + 42)


def test_each_token_mixes_its_span():
    """2·2·33 tokens·21 numbers·5 taps, and scores of 3 texts of 11·11 pairs·21 numbers."""
    found = {record.path.removeprefix(f"{AT}."): record for record in records() if isinstance(record, Matmul)}
    asked = Workload(batch=3, new_tokens=11)
    assert found["spans.values"].flops(asked) == 2 * 2 * 33 * 21 * 5
    assert found["scores"].flops(asked) == 2 * 2 * 3 * 121 * 21
    neighbours = {"B·T": Tokens(), "channels": 42, "taps": 5}
    assert found["span_depthwise"] == Matmul(f"{AT}.span_depthwise", neighbours, 2, f"{AT}.span_depthwise")


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        ({"heads": 2}, "d_model 42 is not a multiple of twice the heads 2"),
        ({"heads": 3, "taps": 4}, "a span of 4 taps gives other places: an odd number is needed"),
    ],
)
def test_what_cannot_be(attention, message):
    layers = [{"attention": {"kind": "mixed_convolution", **attention}}]
    with pytest.raises(ValueError, match=message):
        Architecture(vocab_size=19, d_model=42, norm="layernorm", encoder={"layers": layers})


def test_convbert_base():
    """106M (arXiv 2008.02496, table 3), as the class makes it by default: the total of the shared recording."""
    arch = load({"model_type": "convbert"})
    assert parameters(arch).total == 106_303_170
    assert arch.groups[0].block.attention.summary(768) == "6 heads of 64, and as many that convolve spans of 9"


def grouped(**groups):
    attention = GroupedQuery(heads=6, bias=True, out_bias=True, groups=groups or None)
    return list(attention.records(At(AT), 42, ENCODER))


def test_groups_split_a_projection():
    """42·42 / 2 of q, / 3 of k, all of v, / 6 of the output; biases are those of whole matrices."""
    whole = sum(record.parameters for record in grouped() if isinstance(record, Weight))
    split = grouped(q=2, k=3, output=6)
    saved = [42 * 42 * (groups - 1) // groups for groups in (2, 3, 6)]
    assert whole - sum(record.parameters for record in split if isinstance(record, Weight)) == sum(saved)
    product = next(record for record in split if isinstance(record, Matmul) and record.path.endswith("output"))
    assert product.axes == {"B·T": Tokens(), "groups": 6, "block_in": 7, "block_out": 7}


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"attention": {"heads": 6, "groups": {"q": 5}}}, "5 groups of q do not divide 42 numbers and 42"),
        (
            {"feed_forward": {"d_ff": 37, "down_groups": 2}},
            "2 groups do not divide d_model 42 and d_ff 37",
        ),
    ],
)
def test_groups_that_do_not_divide(layer, message):
    with pytest.raises(ValueError, match=message):
        Architecture(vocab_size=19, d_model=42, norm="layernorm", encoder={"layers": [layer]})


def test_squeezebert():
    """51.1M (arXiv 2006.11316, section 4.2), as the class makes it by default: the total of the shared recording."""
    assert parameters(load({"model_type": "squeezebert"})).total == 51_712_314
