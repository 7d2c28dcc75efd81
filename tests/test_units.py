import pytest

from costcalc.errors import CostcalcError
from costcalc.units import (
    gigabytes,
    grouped,
    human,
    is_printed_count,
    matches_printed,
    parse_bytes,
    parse_count,
    parse_length,
    several,
)


def test_digits_are_grouped_by_three():
    assert grouped(1073741824) == "1,073,741,824"
    assert grouped(999) == "999"


def test_one_of_a_thing_and_several():
    assert several(1, "token") == "1 token"
    assert several(8192, "token") == "8,192 tokens"
    assert several(0, "layer") == "0 layers"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (8_030_261_248, "parameters", "8.03 B"),
        (124_439_808, "parameters", "124.44 M"),
        (1_500, "parameters", "1.50 K"),
        (999, "parameters", "999"),
        (0, "parameters", "0"),
        (999_994, "parameters", "999.99 K"),
        (999_996, "parameters", "1.00 M"),  # not 1000.00 K
        (2 * 10**12, "parameters", "2.00 T"),
        (10**15, "parameters", "1,000.00 T"),  # no letter beyond T
        (536_870_912, "elements", "536,870,912"),
        (1_023, "bytes", "1,023 B"),
        (1_024, "bytes", "1.00 KiB"),
        (131_072, "bytes", "128.00 KiB"),
        (2**20 - 1, "bytes", "1.00 MiB"),  # not 1024.00 KiB
        (2**30, "bytes", "1.00 GiB"),
        (3 * 2**40, "bytes", "3.00 TiB"),
        (2**50, "bytes", "1.00 PiB"),
        (2**60, "bytes", "1.00 EiB"),
        (2**70, "bytes", "1.00 ZiB"),
        (2**80, "bytes", "1.00 YiB"),
        (2**90, "bytes", "1,024.00 YiB"),
        (999, "FLOPs", "999 FLOP"),
        (1_000, "FLOPs", "1.00 kFLOP"),
        (10**6, "FLOPs", "1.00 MFLOP"),
        (15_009_849_344, "FLOPs", "15.01 GFLOP"),
        (721_655_169_024_000, "FLOPs", "721.66 TFLOP"),
        (10**15, "FLOPs", "1.00 PFLOP"),
        (10**18, "FLOPs", "1.00 EFLOP"),
        (314 * 10**21, "FLOPs", "314.00 ZFLOP"),
        (38 * 10**24, "FLOPs", "38.00 YFLOP"),
        (10**27, "FLOPs", "1.00 RFLOP"),
        (10**30, "FLOPs", "1.00 QFLOP"),
        (10**34, "FLOPs", "10,000.00 QFLOP"),
        (8_192, "tokens", "8,192"),
        (1_048_576, "tokens", "1,048,576"),
        (-1_500, "parameters", "-1.50 K"),
    ],
)
def test_a_person_says_it_so(value, unit, text):
    assert human(value, unit) == text


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("8192", 8_192),
        ("8k", 8_192),  # 8 x 1,024
        ("8K", 8_192),
        ("1M", 1_048_576),  # 1,024 x 1,024
        ("1m", 1_048_576),
        ("1.5k", 1_536),
        ("0.5k", 512),
        ("0", 0),
        ("1e3", 1_000),
        ("1E3", 1_000),
        ("1e+3", 1_000),
        ("2.5e3", 2_500),
        ("7.0", 7),
        ("8,192", 8_192),
        ("1_048_576", 1_048_576),
        (" 8 k ", 8_192),
        ("1000000000000", 10**12),
        ("0" * 39 + "7", 7),
    ],
)
def test_lengths_take_binary_suffixes(text, tokens):
    assert parse_length(text, name="--context", least=0) == tokens


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("15T", 15 * 10**12),
        ("15t", 15 * 10**12),
        ("174.6B", 174_600_000_000),
        ("124M", 124_000_000),
        ("1.005k", 1_005),  # 1.005 x 1000 as floats is 1004.9999999999999
        ("300", 300),
        ("1000000T", 10**18),
    ],
)
def test_counts_take_decimal_suffixes(text, count):
    assert parse_count(text, name="--tokens") == count


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "k", "eight", "8kb", "8kk", "8b", "8T", "-1", "+1", "1e-3", "0x10", "1/2", "nan", "inf", "8k 8k"),
        *(".5k", "1.", "1e", "1e100", "8\n8", "\u0668", "0" * 40 + "7"),
    ],
)
def test_a_length_that_is_no_number_is_refused_with_what_to_type(text):
    with pytest.raises(CostcalcError) as caught:
        parse_length(text, name="--context")
    assert caught.value.what.endswith("is not a number that --context takes")
    assert caught.value.hint == "--context takes a whole number such as 8192 or 8k (= 8,192)"


@pytest.mark.parametrize("text", ["1,5k", "8,19", "1,0000", ",5", "1,,000", "1__0", "1_", "1,000,00"])
def test_a_comma_that_groups_no_thousands_is_not_guessed_at(text):
    """Where people write decimals with a comma, 1,5k is 1,536 and not 15,360."""
    with pytest.raises(CostcalcError, match="is not a number that --context takes"):
        parse_length(text, name="--context")


@pytest.mark.parametrize("text", ["0.5", "1.0001k", "1.25e1", "0.0000001M"])
def test_a_length_that_is_no_whole_number_is_refused(text):
    with pytest.raises(CostcalcError) as caught:
        parse_length(text, name="--batch")
    assert caught.value.what == f"--batch '{text}' is not a whole number"
    assert caught.value.hint == "--batch takes a whole number such as 8192 or 8k (= 8,192)"


@pytest.mark.parametrize("text", ["1000000000001", "1e99", "10000000M", "9" * 40])
def test_a_length_above_a_million_million_is_refused(text):
    with pytest.raises(CostcalcError) as caught:
        parse_length(text, name="--context")
    assert caught.value.what.endswith(" is more than 1,000,000,000,000")
    assert caught.value.hint == "--context takes a whole number such as 8192 or 8k (= 8,192)"


@pytest.mark.parametrize("text", ["0", "0k", "0.0", "0e9"])
def test_a_length_of_nothing_is_refused_unless_it_is_asked_for(text):
    with pytest.raises(CostcalcError) as caught:
        parse_length(text, name="--context")
    assert caught.value.what == f"--context must be at least 1, got '{text}'"
    assert caught.value.hint == "--context takes a whole number such as 8192 or 8k (= 8,192)"
    assert parse_length(text, name="--past-tokens", least=0) == 0


@pytest.mark.parametrize("least", [0, 1, 7])
def test_a_length_may_be_as_small_as_its_least(least):
    assert parse_length(str(least), name="--context", least=least) == least


def test_a_count_above_a_million_million_million_is_refused():
    with pytest.raises(CostcalcError) as caught:
        parse_count("1000001T", name="--tokens")
    assert caught.value.what == "--tokens '1000001T' is more than 1,000,000,000,000,000,000"
    assert caught.value.hint == "--tokens takes a whole number such as 15000000 or 15M"


@pytest.mark.parametrize(
    ("value", "printed", "agrees"),
    [
        (8_030_261_248, 8_030_261_248, True),
        (8_030_261_248, 8_030_261_249, False),
        (174_604_320_768, "174.6B", True),
        (174_550_000_000, "174.6B", True),  # half a digit away: rounded either way
        (174_650_000_000, "174.6B", True),
        (174_650_000_000, "174.7B", True),
        (174_549_999_999, "174.6B", False),
        (174_650_000_001, "174.6B", False),
        (124_439_808, "124M", True),
        (124_439_808, "125M", False),
        (124_439_808, "124m", True),
        (1_500_000, "1.5M", True),
        (1_449, "1.5K", False),
        (1_450, "1.5K", True),
        (2_000_000_000_000, "2T", True),
        (1_499_999_999_999, "2T", False),
        (7, "7", True),
        (8, "7", False),
    ],
)
def test_a_published_figure_is_compared_at_its_printed_digits(value, printed, agrees):
    assert matches_printed(value, printed) is agrees


@pytest.mark.parametrize("text", ["174.6B", "124M", "1.5k", "2T", "7", "9" * 15, "9" * 15 + ".123456B"])
def test_a_printed_count(text):
    assert is_printed_count(text)


@pytest.mark.parametrize(
    "text", ["", "B", "174.6", "174.6 B", ".5B", "5.B", "1e9", "-1B", "124M\n", "9" * 16, "1.1234567B", "1P", "\u0661M"]
)
def test_not_a_printed_count(text):
    assert not is_printed_count(text)


def test_a_length_has_a_least():
    assert parse_length("1", name="--batch") == 1
    assert parse_length("0", name="--past-tokens", least=0) == 0
    with pytest.raises(CostcalcError) as caught:
        parse_length("0", name="--batch")
    assert caught.value.what == "--batch must be at least 1, got '0'"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.00 kB"),
        (999_996, "1.00 MB"),  # not 1000.00 kB
        (35_276_853_248, "35.28 GB"),
        (141_107_412_992, "141.11 GB"),
        (2 * 10**12, "2.00 TB"),
        (-42_508_608_164, "-42.51 GB"),
    ],
)
def test_gigabytes_are_powers_of_1000(value, text):
    assert gigabytes(value) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("80GiB", 85_899_345_920),  # 80 x 2^30
        ("80GB", 80_000_000_000),
        ("80 GB", 80_000_000_000),
        (" 80gib ", 85_899_345_920),
        ("80gb", 80_000_000_000),
        ("512B", 512),
        ("512b", 512),
        ("0B", 0),
        ("1KiB", 1_024),
        ("1kB", 1_000),
        ("1MiB", 2**20),
        ("1MB", 10**6),
        ("1TiB", 2**40),
        ("1TB", 10**12),
        ("1PiB", 2**50),
        ("1PB", 10**15),
        ("1.5KiB", 1_536),
        ("79.65GiB", 85_523_536_281),  # ...281.6: the broken part of a byte is dropped
        ("0.5B", 0),
        ("1.005kB", 1_005),  # as floats 1004.9999999999999
        ("1,024MiB", 2**30),
        ("1_024MiB", 2**30),
        ("16,060,522,496 B", 16_060_522_496),
        ("888PiB", 888 * 2**50),
    ],
)
def test_memory_has_a_unit(text, size):
    assert parse_bytes(text, name="--memory") == size


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "80",
            "80G",
            "80Gi",
            "80g",
            "GiB",
            "80 Gi B",
            "80Gib/s",
            "-80GiB",
            "+80GiB",
            "1e3GB",
            "80EB",
            "80XB",
        ),
        *("80GiB 1", "8,0GiB", "1,5GB", "80..GiB", ".5GiB", "5.GiB", "0x5GB", "\u0668GB", "8\n0GB", "0" * 40 + "GB"),
    ],
)
def test_memory_that_might_mean_several_things_is_refused(text):
    with pytest.raises(CostcalcError) as caught:
        parse_bytes(text, name="--reserve")
    assert caught.value.what.endswith("is not an amount of memory")
    assert caught.value.hint == "--reserve 80GiB, or 80GB, 512MiB, ..."


@pytest.mark.parametrize("text", ["1001PB", "889PiB", "9" * 30 + "B"])
def test_memory_of_more_than_a_million_million_million_bytes_is_refused(text):
    with pytest.raises(CostcalcError) as caught:
        parse_bytes(text, name="--memory")
    assert caught.value.what == f"--memory '{text}' is more than 1,000,000,000,000,000,000 bytes"
    assert caught.value.hint == "--memory 80GiB"


@pytest.mark.parametrize("value", [0, 1, 512, 10**9 + 7, 2**40])
def test_memory_in_bytes_is_itself(value):
    assert parse_bytes(f"{value:,}B", name="--memory") == parse_bytes(f"{value}B", name="--memory") == value
