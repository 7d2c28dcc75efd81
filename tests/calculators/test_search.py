import pytest

from costcalc.calculators.search import LARGEST, first_true, last_true


class Asked:
    """A curve that says yes from `first` on, and notes where it was asked."""

    def __init__(self, first):
        self.first, self.at = first, []

    def __call__(self, n):
        self.at.append(n)
        return n >= self.first


@pytest.mark.parametrize("first", [*range(1, 70), 4_095, 4_096, 4_097, 31_232, 2**39, 2**39 + 1, LARGEST - 1, LARGEST])
def test_the_first_place_where_it_holds(first):
    asked = Asked(first)
    assert first_true(asked) == first
    assert len(asked.at) <= 2 * first.bit_length() + 2  # doubled, then halved
    assert all(1 <= n <= LARGEST for n in asked.at)


@pytest.mark.parametrize("last", [0, *range(1, 70), 4_095, 4_096, 31_232, LARGEST - 1])
def test_the_last_place_where_it_holds(last):
    assert last_true(lambda n: n <= last) == last


def test_what_never_ends_is_found_nowhere():
    asked = Asked(LARGEST + 1)
    assert first_true(asked) is None
    assert asked.at[-1] == LARGEST == 10**12
    assert len(asked.at) == 41  # 2^40 is more than 10^12
    assert last_true(lambda n: n <= LARGEST) is None
    assert last_true(lambda _: True) is None


def test_what_holds_everywhere_or_nowhere():
    assert first_true(lambda _: True) == 1
    assert last_true(lambda _: False) == 0
