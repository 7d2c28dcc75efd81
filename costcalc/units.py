"""Numbers to and from text: grouped digits, human units, and the lengths and counts that people type.

Lengths take binary suffixes (`8k` = 8,192 tokens), counts decimal ones (`15T` = 15 x 10^12). Bytes are shown in powers
of 1,024 (KiB, MiB, GiB), parameters and FLOPs in powers of 1,000.
"""

from __future__ import annotations

import re

from costcalc.errors import CostcalcError, shown

LENGTH_SUFFIXES = {"": 1, "k": 2**10, "m": 2**20}
COUNT_SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
LARGEST_LENGTH = 10**12
LARGEST_COUNT = 10**18
LONGEST_NUMBER = 40
PRINTED_COUNT = r"^[0-9]{1,15}([KMBTkmbt]|\.[0-9]{1,6}[KMBTkmbt])?$"
BYTE_UNITS: dict[str, int] = {
    "b": 1,
    **{f"{letter}ib": 2 ** (10 * power) for power, letter in enumerate("kmgtp", 1)},
    **{f"{letter}b": 10 ** (3 * power) for power, letter in enumerate("kmgtp", 1)},
}
BYTES = re.compile(r"(\d+(?:_\d+)*(?:\.\d+)?|\d{1,3}(?:,\d{3})+)\s*((?:[kmgtp]i?)?b)", re.IGNORECASE | re.ASCII)
DECIMAL_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")
BINARY_PREFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
COUNT_LETTERS = ("", "K", "M", "B", "T")
# 8192, 8_192, 8,192, 1.5k, 1e6; a comma groups three digits or is refused: 1,5 might mean 1.5.
NUMBER = re.compile(
    r"(\d+(?:_\d+)*(?:\.\d+)?|\d{1,3}(?:,\d{3})+)(?:e\+?(\d{1,2}))?\s*([a-z]?)", re.IGNORECASE | re.ASCII
)


def grouped(value: int) -> str:
    """1073741824 -> '1,073,741,824'."""
    return f"{value:,}"


def several(count: int, noun: str) -> str:
    """'1 token', '8,192 tokens'."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def human(value: int, unit: str) -> str:
    """The number a person says: `human(8030261248, "parameters")` -> '8.03 B', bytes -> GiB, FLOPs -> TFLOP."""
    if unit == "bytes":
        return _scaled(value, 1024, BINARY_PREFIXES, "B")
    if unit in ("tokens", "elements", "paths", ""):
        return grouped(value)
    if unit == "FLOPs":
        return _scaled(value, 1000, DECIMAL_PREFIXES, "FLOP")
    return _scaled(value, 1000, COUNT_LETTERS, "")


def _scaled(value: int, base: int, prefixes: tuple[str, ...], unit: str) -> str:
    power = 0
    # 999,999 must not print as '1000.00 k': compare after rounding to two decimals.
    while power < len(prefixes) - 1 and round(abs(value) / base**power, 2) >= base:
        power += 1
    if power == 0:
        return f"{value:,} {unit}".strip()
    return f"{value / base**power:,.2f} {prefixes[power]}{unit}"


def parse_length(text: str, *, name: str, least: int = 1) -> int:
    """Tokens, a batch, a context: `8192`, `8k` (8,192), `1M` (1,048,576); `name` is the option, for errors."""
    example = "a whole number such as 8192 or 8k (= 8,192)"
    length = _parse(text, LENGTH_SUFFIXES, LARGEST_LENGTH, name, example)
    if length < least:
        raise CostcalcError(f"{name} must be at least {least}, got {shown(text)}", hint=f"{name} takes {example}")
    return length


def gigabytes(value: int) -> str:
    """In powers of 1,000, as drives and bandwidths are sold: 141107412992 -> '141.11 GB'."""
    return _scaled(value, 1000, DECIMAL_PREFIXES, "B")


def parse_bytes(text: str, *, name: str) -> int:
    """Memory with its unit: `80GiB` (80 x 2^30), `80GB` (80 x 10^9), `512B`; a broken part of a byte is dropped.

    A bare number or `80G` might mean several things, and is refused.
    """
    match = BYTES.fullmatch(text.strip()) if len(text) <= LONGEST_NUMBER else None
    if match is None:
        raise CostcalcError(f"{shown(text)} is not an amount of memory", hint=f"{name} 80GiB, or 80GB, 512MiB, ...")
    scaled, ten_power = _decimal(match[1])
    value: int = scaled * BYTE_UNITS[match[2].lower()] // ten_power
    if value > LARGEST_COUNT:
        raise CostcalcError(f"{name} {shown(text)} is more than {LARGEST_COUNT:,} bytes", hint=f"{name} 80GiB")
    return value


def parse_count(text: str, *, name: str) -> int:
    """Parameters or training tokens, at least one: `15T` (15 x 10^12), `174.6B`."""
    example = "a whole number such as 15000000 or 15M"
    count = _parse(text, COUNT_SUFFIXES, LARGEST_COUNT, name, example)
    if count < 1:
        raise CostcalcError(f"{name} must be at least 1, got {shown(text)}", hint=f"{name} takes {example}")
    return count


def _parse(text: str, suffixes: dict[str, int], largest: int, name: str, example: str) -> int:
    match = NUMBER.fullmatch(text.strip()) if len(text) <= LONGEST_NUMBER else None
    suffix = match[3].lower() if match else ""
    if match is None or suffix not in suffixes:
        raise CostcalcError(f"{shown(text)} is not a number that {name} takes", hint=f"{name} takes {example}")
    scaled, ten_power = _decimal(match[1])
    value, rest = divmod(scaled * int(10 ** int(match[2] or 0)) * suffixes[suffix], ten_power)
    if rest:
        raise CostcalcError(f"{name} {shown(text)} is not a whole number", hint=f"{name} takes {example}")
    if value > largest:
        raise CostcalcError(f"{name} {shown(text)} is more than {largest:,}", hint=f"{name} takes {example}")
    return value


def _decimal(digits: str) -> tuple[int, int]:
    """'1.5' -> (15, 10): kept as whole numbers, where a float would round."""
    whole, _, decimals = re.sub("[_,]", "", digits).partition(".")
    return int(whole + decimals), int(10 ** len(decimals))


def matches_printed(value: int, printed: int | str) -> bool:
    """Whether `value` rounds to a published figure at the digits that were printed: 174,604,259,328 matches '174.6B'.

    A half may be rounded either way, since sources differ.
    """
    if isinstance(printed, int):
        return value == printed
    text = printed
    suffix = text[-1].lower() if text[-1].isalpha() else ""
    scaled, ten_power = _decimal(text.rstrip("kmbtKMBT "))
    unit = COUNT_SUFFIXES[suffix]
    # |value - scaled * unit / ten_power| <= half a unit of the last printed digit, all over ten_power.
    return 2 * abs(value * ten_power - scaled * unit) <= (unit if suffix else 0)


def is_printed_count(text: str) -> bool:
    """Whether `text` is a published figure such as '174.6B' or '124M'."""
    return re.fullmatch(PRINTED_COUNT, text) is not None


def ranges(layers: list[int]) -> str:
    """[0, 1, 2, 6, 7] -> '0-2, 6-7'; after three ranges an ellipsis."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    said = [f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs[:3]]
    return ", ".join([*said, "..."] if len(runs) > 3 else said)
