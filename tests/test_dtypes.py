from fractions import Fraction

import pytest

from costcalc.dtypes import ALIASES, DTYPES, FILE_MIXES, WEIGHT_BLOCKS, bits_said, bytes_for, canonical_dtype
from costcalc.errors import CostcalcError


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("fp64", 64),
        ("fp32", 32),
        ("fp16", 16),
        ("bf16", 16),
        ("fp8", 8),
        ("int8", 8),
        ("int4", 4),
        # ggml blocks of 32 values (ggml-common.h): fp16 scale, for _1 an fp16 minimum too, 4 bytes of fifth bits in q5
        ("q8_0", 8.5),  # (2 + 32) x 8 / 32
        ("q5_1", 6),  # (2 + 2 + 4 + 16) x 8 / 32
        ("q5_0", 5.5),  # (2 + 4 + 16) x 8 / 32
        ("q4_1", 5),  # (2 + 2 + 16) x 8 / 32
        ("q4_0", 4.5),  # (2 + 16) x 8 / 32
        # OCP Microscaling 1.0, table 1: 32 values share one 8-bit scale
        ("mxfp8", 8.25),  # (1 + 32) x 8 / 32
        ("mxfp4", 4.25),  # (1 + 16) x 8 / 32
    ],
)
def test_bits_a_value(dtype, bits):
    size, values = DTYPES[dtype]
    assert size * 8 / values == bits


def test_the_table_above_is_whole():
    assert len(DTYPES) == 14
    assert set(ALIASES.values()) <= set(DTYPES)
    assert not set(ALIASES) & set(DTYPES)


@pytest.mark.parametrize(
    ("name", "size", "values"),
    [
        # ggml-common.h, blocks of 256: low bits, high bits, scales (and minimums), one fp16 or two
        ("q2_k", 64 + 16 + 2 * 2, 256),  # 2 bits, 16 pairs of 4-bit scale and minimum
        ("q3_k", 32 + 64 + 12 + 2, 256),  # 1 + 2 bits, 16 scales of 6 bits
        ("q4_k", 128 + 12 + 2 * 2, 256),  # 4 bits, 8 pairs of 6-bit scale and minimum
        ("q5_k", 32 + 128 + 12 + 2 * 2, 256),  # 1 + 4 bits, the same scales
        ("q6_k", 128 + 64 + 16 + 2, 256),  # 4 + 2 bits, 16 scales of 8 bits
        ("iq4_nl", 2 + 16, 32),
        ("iq4_xs", 2 + 2 + 4 + 128, 256),  # fp16 scale, high and low bits of 8 scales of 6 bits, 4 bits each
        ("nvfp4", 8 + 1, 16),  # 16 fp4 values and an fp8 scale
        # 128 values of 4 bits are 512, an fp16 scale 16, a zero 4: 532 bits; two groups have whole bytes
        ("gptq_g128", 133, 256),
        ("awq_g128", 133, 256),
        ("nf4", 32 + 4, 64),  # 64 values of 4 bits, an fp32 constant
        # 256 blocks of 64: 8,192 bytes, 256 constants of 8 bits, one of fp32
        ("nf4_double", 256 * 32 + 256 + 4, 256 * 64),
    ],
)
def test_blocks_of_weights(name, size, values):
    assert WEIGHT_BLOCKS[name] == (size, values)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        # as llama.cpp's and QLoRA's authors print them
        *(("q2_k", 2.625), ("q3_k", 3.4375), ("q4_k", 4.5), ("q5_k", 5.5), ("q6_k", 6.5625), ("iq4_xs", 4.25)),
        ("nvfp4", 4.5),
        ("gptq_g128", 4.15625),
        ("nf4_double", 4 + 0.127),  # arXiv 2305.14314: 0.5 bits a weight of constants become 0.127
    ],
)
def test_published_bits_a_weight(name, bits):
    size, values = WEIGHT_BLOCKS[name]
    assert size * 8 / values == pytest.approx(bits, abs=5e-5)


def test_published_bits_of_mixed_files():
    # llama.cpp, tools/quantize/README.md, Llama 2 7B
    assert FILE_MIXES == {"q3_k_m": "3.91", "q4_k_s": "4.58", "q4_k_m": "4.84", "q5_k_s": "5.52", "q5_k_m": "5.68"}
    # and its list of types, there: 6.74 B weights of q4_k_m take 3.80 GiB
    assert f"{6_738_415_616 * float(FILE_MIXES['q4_k_m']) / 8 / 2**30:.2f}" == "3.80"


def test_mixes_are_wider_than_the_block_that_they_are_called_after():
    for mix, bits in FILE_MIXES.items():
        size, values = WEIGHT_BLOCKS[mix[:4]]
        assert Fraction(8 * size, values) < Fraction(bits) < Fraction("6.5625")  # the rest of them is q6_k at most


def test_a_name_means_one_format():
    assert not set(WEIGHT_BLOCKS) & set(DTYPES)
    assert not set(FILE_MIXES) & (set(DTYPES) | set(WEIGHT_BLOCKS))
    assert len(WEIGHT_BLOCKS) == 12


@pytest.mark.parametrize(
    ("dtype", "said"),
    [
        ("fp32", "32 bits a value"),
        ("bf16", "16 bits a value"),
        ("fp8", "8 bits a value"),
        ("q8_0", "34 bytes for 32 values, 8.5 bits each"),
        ("int4", "1 byte for 2 values, 4 bits each"),
        ("mxfp4", "17 bytes for 32 values, 4.25 bits each"),
    ],
)
def test_how_a_dtype_is_said(dtype, said):
    assert bits_said(dtype) == said


@pytest.mark.parametrize(
    ("elements", "dtype", "size"),
    [
        (7, "bf16", 14),
        (7, "fp8", 7),
        (32, "q8_0", 34),
        (31, "q8_0", 33),  # 32.94 up
        (33, "q8_0", 36),  # 35.06 up
        (7, "int4", 4),  # 3.5 up
        (1, "mxfp4", 1),  # 0.53 up
        (0, "q8_0", 0),
        (10**30 + 1, "fp64", 8 * 10**30 + 8),  # exact beyond what a float holds
    ],
)
def test_bytes_are_rounded_up_once(elements, dtype, size):
    assert bytes_for(elements, dtype) == size


@pytest.mark.parametrize(
    ("word", "dtype"),
    [
        ("bf16", "bf16"),
        (" BF16 ", "bf16"),
        ("bfloat16", "bf16"),
        ("half", "fp16"),
        ("float16", "fp16"),
        ("f16", "fp16"),
        ("float32", "fp32"),
        ("f32", "fp32"),
        ("float", "fp32"),
        ("double", "fp64"),
        ("float64", "fp64"),
        ("f64", "fp64"),
        ("float8", "fp8"),
        ("fp8_e4m3", "fp8"),
        ("fp8_e5m2", "fp8"),
        ("float8_e4m3fn", "fp8"),
        ("float8_e5m2", "fp8"),
        ("i8", "int8"),
        ("i4", "int4"),
        ("Q8_0", "q8_0"),
    ],
)
def test_the_names_of_a_dtype(word, dtype):
    assert canonical_dtype(word) == dtype


def test_an_unknown_dtype_is_refused_with_the_nearest():
    with pytest.raises(CostcalcError) as caught:
        canonical_dtype("bf61")
    assert (caught.value.what, caught.value.hint) == ("unknown dtype 'bf61'", "did you mean bf16?")
    with pytest.raises(CostcalcError) as caught:
        canonical_dtype("bfloat61")
    assert caught.value.hint == "did you mean bfloat16?"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("fp61", "did you mean fp16?"),  # nearer to fp64, in letters
        ("fp4", "did you mean mxfp4?"),
        ("float46", "did you mean float64?"),
        ("fp65", f"one of: {', '.join(DTYPES)}"),
        ("int3", f"one of: {', '.join(DTYPES)}"),
    ],
)
def test_what_is_suggested_has_the_same_digits(word, hint):
    with pytest.raises(CostcalcError) as caught:
        canonical_dtype(word)
    assert caught.value.hint == hint


@pytest.mark.parametrize(("word", "said"), [(None, "nothing"), (16, "16"), (b"bf16", "b'bf16'")])
def test_a_dtype_that_is_no_word_is_refused_as_well(word, said):
    with pytest.raises(CostcalcError) as caught:
        canonical_dtype(word)
    assert caught.value.what == f"unknown dtype {said}"


def test_a_dtype_that_is_near_none_is_refused_with_all_of_them():
    with pytest.raises(CostcalcError) as caught:
        canonical_dtype("banana")
    assert caught.value.hint.startswith("one of: fp64, fp32, fp16, bf16, fp8, int8, int4, q8_0, ")


def test_the_beginning_of_a_name_is_near_it():
    with pytest.raises(CostcalcError) as caught:
        canonical_dtype("q8")
    assert caught.value.hint == "did you mean q8_0?"
