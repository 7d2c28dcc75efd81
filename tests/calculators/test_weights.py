from fractions import Fraction

import pytest

from costcalc import load
from costcalc.calculators.parameters import parameters
from costcalc.calculators.weights import (
    MOST_BITS,
    WeightFormat,
    bits_format,
    vector_parameters,
    weight_bytes,
    weight_format,
    weight_formats,
    weight_sizes,
)
from costcalc.dtypes import ALIASES, DTYPES, FILE_MIXES, WEIGHT_BLOCKS
from costcalc.errors import CostcalcError
from costcalc.inventory import Inventory, Weight

BITS = {
    # 8 x bytes of a block / its values
    **{"fp64": "64", "fp32": "32", "fp16": "16", "bf16": "16", "fp8": "8", "int8": "8", "int4": "4"},
    **{"q8_0": "8.5", "q5_1": "6", "q5_0": "5.5", "q4_1": "5", "q4_0": "4.5", "mxfp8": "8.25", "mxfp4": "4.25"},
    "q6_k": "6.5625",  # 6 bits, 16 scales of 8 bits and one of 16 for 256: 6 + 144 / 256
    "q5_k": "5.5",  # 5 bits, 8 scales and 8 minimums of 6 bits, two of 16: 5 + 128 / 256
    "q4_k": "4.5",  # 4 + 128 / 256
    "q3_k": "3.4375",  # 3 bits, 16 scales of 6 bits, one of 16: 3 + 112 / 256
    "q2_k": "2.625",  # 2 bits, 16 scales and minimums of 4 bits, two of 16: 2 + 160 / 256
    "iq4_nl": "4.5",  # 4 + 16 / 32
    "iq4_xs": "4.25",  # 4 bits, 8 scales of 6 bits, one of 16: 4 + 64 / 256
    "nvfp4": "4.5",  # 4 + 8 / 16
    "gptq_g128": "4.15625",  # 4 + (16 + 4) / 128
    "awq_g128": "4.15625",
    "nf4": "4.5",  # 4 + 32 / 64
    "nf4_double": "4.126953125",  # 4 + 8 / 64 + 32 / (64 x 256)
    **{"q3_k_m": "3.91", "q4_k_s": "4.58", "q4_k_m": "4.84", "q5_k_s": "5.52", "q5_k_m": "5.68"},
}


def test_the_bits_of_every_format():
    assert {form.name: form.bits for form in weight_formats()} == {name: Fraction(bits) for name, bits in BITS.items()}
    for name, bits in BITS.items():
        assert weight_format(name) == WeightFormat(name, Fraction(bits), "modelled" if name in FILE_MIXES else "exact")


def test_the_widest_comes_first():
    formats = weight_formats()
    assert (formats[0].name, formats[-1].name) == ("fp64", "q2_k")
    assert [form.bits for form in formats] == sorted((form.bits for form in formats), reverse=True)
    assert len(formats) == len(DTYPES) + len(WEIGHT_BLOCKS) + len(FILE_MIXES) == len(BITS)


@pytest.mark.parametrize(
    ("word", "name"),
    [("Q4_K_M", "q4_k_m"), (" bf16 ", "bf16"), ("BFloat16", "bf16"), ("half", "fp16"), *ALIASES.items()],
)
def test_other_ways_to_write_a_name(word, name):
    assert weight_format(word).name == name


@pytest.mark.parametrize(
    ("word", "name", "bits"),
    [
        ("4.82bits", "4.82 bits", "4.82"),
        ("4.82 bits", "4.82 bits", "4.82"),
        ("4.82 BITS", "4.82 bits", "4.82"),
        ("1bit", "1 bits", "1"),
        ("4.82bpw", "4.82 bits", "4.82"),
        ("4.5", "4.5 bits", "4.5"),
        ("3", "3 bits", "3"),
        ("1.58bits", "1.58 bits", "1.58"),
        ("0.000001bits", "0.000001 bits", "0.000001"),
        ("128bits", "128 bits", "128"),
    ],
)
def test_any_number_of_bits(word, name, bits):
    assert weight_format(word) == WeightFormat(name, Fraction(bits), "exact")


@pytest.mark.parametrize("word", ["0bits", "0", "0.0bits", "129bits", "128.1", "999bits"])
def test_too_few_bits_and_too_many_are_refused(word):
    with pytest.raises(CostcalcError) as caught:
        weight_format(word)
    assert caught.value.what == f"'{word}' is not between 0 and {MOST_BITS} bits"
    assert caught.value.hint == "such as 4.82bits"


@pytest.mark.parametrize("word", ["4.82", " 4.82BITS ", "4.82 bpw"])
def test_bits_for_an_option(word):
    assert bits_format(word, name="--bits") == weight_format("4.82bits")


@pytest.mark.parametrize("word", ["bf16", "q4_k_m", "", "-1", "4.82x"])
def test_an_option_for_bits_takes_no_name(word):
    with pytest.raises(CostcalcError) as caught:
        bits_format(word, name="--bits")
    assert (caught.value.what, caught.value.hint) == (f"'{word}' is not a number of bits", "--bits 4.82")


def test_an_option_for_bits_has_the_same_limits():
    with pytest.raises(CostcalcError, match="is not between 0 and 128 bits"):
        bits_format("129", name="--bits")


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        *(("q4km", "q4_k_m"), ("gptq", "gptq_g128"), ("q6", "q6_k"), ("bf61", "bf16")),
        *(("mxf4", "mxfp4"), ("float61", "float16"), ("nvfp", "nvfp4"), ("q8-0.", "q8_0")),
        ("fp4", "nvfp4"),  # and not fp64, which is near in letters only
    ],
)
def test_an_unknown_word_is_refused_with_the_nearest_name(word, nearest):
    with pytest.raises(CostcalcError) as caught:
        weight_format(word)
    assert (caught.value.what, caught.value.hint) == (f"unknown weight format '{word}'", f"did you mean {nearest}?")


@pytest.mark.parametrize(
    "word",
    ["banana", "", "int3", "fp6", "4-bit", "-4bits", "1e2", "1.5.5", "4.bits", ".5", "1000bits", "4.8200001", "٤"],
)
def test_a_word_that_is_near_none_is_refused_with_all_of_them(word):
    with pytest.raises(CostcalcError) as caught:
        weight_format(word)
    assert caught.value.what == f"unknown weight format '{word}'"
    names = ", ".join(form.name for form in weight_formats())
    assert caught.value.hint == f"a number of bits such as 4.82bits, or one of: {names}"


def test_weights_worked_out(small):
    # 2 x 247 in tables, 3 layers of 1,040 + 962 in matrices and 2 x 13 in norms, a final norm: 6,591
    inventory = small()
    assert weight_bytes(inventory, weight_format("bf16")).value == 13_182
    assert weight_bytes(inventory, weight_format("int4")).value == 3_296  # 3,295.5 up
    assert weight_bytes(inventory, weight_format("q8_0")).value == 7_003  # 7,002.9 up
    assert weight_bytes(inventory, weight_format("q2_k")).value == 2_163  # 2,162.7 up
    assert weight_bytes(inventory, weight_format("q4_k_m")).value == 3_988  # 3,987.6 up
    assert weight_bytes(inventory, weight_format("0.000001bits")).value == 1


@pytest.mark.parametrize("name", BITS)
def test_the_bytes_of_every_format(small, name):
    exact = 6_591 * Fraction(BITS[name]) / 8
    figure = weight_bytes(small(), weight_format(name))
    assert 0 <= figure.value - exact < 1
    assert figure.nature == ("modelled" if name in FILE_MIXES else "exact")
    assert (figure.name, figure.unit) == (f"weight_bytes_{name}", "bytes")


def test_the_working_of_weights(small):
    figure = weight_bytes(small(), weight_format("4.82bits"))
    assert figure.name == "weight_bytes_4.82_bits"
    assert figure.formula.text() == "ceil(total_parameters·bits / 8)"
    assert figure.numbers.text() == "ceil(6,591·4.82 / 8)"
    assert weight_bytes(small(), weight_format("bf16")).numbers.text() == "ceil(6,591·16 / 8)"
    assert figure.source == "4.82 bits: 4.82 bits a weight, scales included"
    assert [below.value for below in figure.inputs] == [parameters(small()).total]
    assert (
        weight_bytes(small(), weight_format("nf4_double")).source
        == "nf4_double: 4.12695 bits a weight, scales included"
    )


@pytest.mark.parametrize(
    ("model", "form", "size"),
    [
        # the model cards' safetensors, two bytes a parameter
        ("llama-3-70b", "bf16", "141,107,412,992"),
        ("llama-3-8b", "bf16", "16,060,522,496"),
        ("llama-2-7b", "fp16", "13,476,831,232"),
    ],
)
def test_published_weights(model, form, size):
    assert f"{weight_bytes(load(model).inventory, weight_format(form)).value:,}" == size


def test_published_quantised_files():
    # Llama-3-70B at 4.82 bits a weight, and Llama-2-7B's q4_k_m of 3.80 GiB (llama.cpp's quantize)
    assert f"{weight_bytes(load('llama-3-70b').inventory, weight_format('4.82bits')).value / 1e9:.2f}" == "42.51"
    assert f"{weight_bytes(load('7b').inventory, weight_format('q4_k_m')).value / 2**30:.2f}" == "3.80"


def test_sizes_in_several_formats(small):
    forms = [weight_format(word) for word in ("q4_k_m", "4.82bits", "bf16")]
    sizes = weight_sizes(small(), forms)
    assert list(sizes) == ["q4_k_m", "4.82 bits", "bf16"]
    assert list(sizes.values()) == [weight_bytes(small(), form) for form in forms]


def test_twice_the_bits_are_twice_the_bytes(small):
    narrow, wide = (weight_bytes(small(), weight_format(word)).value for word in ("8bits", "16bits"))
    assert wide == 2 * narrow


def test_vectors_are_gains_and_biases(small):
    assert vector_parameters(small()) == 7 * 13  # two norms in each of three layers, a final one
    assert vector_parameters(small(norm="layernorm")) == 2 * 7 * 13
    # three layers of q, k and v biases 30 + 10 + 10, output 13; a head's 19; no position table
    more = small(
        head={"bias": True}, positions={"kind": "learned", "length": 11}, attention={"bias": True, "out_bias": True}
    )
    assert vector_parameters(more) == 7 * 13 + 3 * 63 + 19
    # GPT-2: 25 norms of 2 D, and biases 4 D + 5 D a layer, D = 768
    assert vector_parameters(load("gpt2").inventory) == 25 * 2 * 768 + 12 * 9 * 768
    # what stands beside the total is not counted
    extra = Inventory((Weight("extra.norm", {"D": 13}, role="extra"), Weight("norm", {"D": 5}, role="frozen")), {})
    assert vector_parameters(extra) == 5
    assert vector_parameters(small(positions={"kind": "sinusoidal", "stored": "buffer", "length": 11})) == 7 * 13


def test_formats_are_frozen():
    with pytest.raises(AttributeError):
        weight_format("bf16").bits = 4
