import pytest

from costcalc.dtypes import ALIASES, DTYPES, bytes_for, canonical_dtype
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


@pytest.mark.parametrize(("word", "said"), [(None, "nothing"), (16, "16"), (b"bf16", "b'bf16'")])
def test_a_dtype_that_is_no_word_is_refused_as_well(word, said):
    with pytest.raises(CostcalcError) as caught:
        canonical_dtype(word)
    assert caught.value.what == f"unknown dtype {said}"


def test_a_dtype_that_is_near_none_is_refused_with_all_of_them():
    with pytest.raises(CostcalcError) as caught:
        canonical_dtype("banana")
    assert caught.value.hint.startswith("one of: fp64, fp32, fp16, bf16, fp8, int8, int4, q8_0, ")
