import doctest

import pytest

import costcalc.reference


def test_what_the_page_shows_is_what_is_printed():
    tried = doctest.testmod(costcalc.reference)
    assert tried.attempted >= 5
    assert tried.failed == 0


@pytest.mark.parametrize("name", costcalc.reference.__all__)
def test_every_name_that_is_offered_is_there(name):
    assert getattr(costcalc.reference, name).__doc__
