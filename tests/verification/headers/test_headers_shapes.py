"""Shapes that a weight with named axes may be stored in, and those that it may not."""

import pytest

from costcalc.verification.headers.shapes import fits, said, together


@pytest.mark.parametrize(
    ("axes", "stored"),
    [
        ((13, 6, 5), (30, 13)),  # q, as a linear layer has it
        ((13, 6, 5), (13, 30)),  # as GPT-2's Conv1D has it
        ((6, 5, 13), (13, 30)),
        ((6, 5), (30,)),
        ((3, 13, 37), (3, 37, 13)),  # experts
        ((24, 4), (24, 1, 4)),  # a convolution
        ((13, 1), (1, 13)),
        ((30,), (6, 5)),
        ((10, 2, 7, 11), (110, 7, 2)),  # a grouped convolution: groups·outputs, inputs, taps
        ((), ()),
    ],
)
def test_fits(axes, stored):
    assert fits(axes, stored)


@pytest.mark.parametrize(
    ("axes", "stored"),
    [((13, 6, 5), (6, 65)), ((13, 6, 5), (30, 14)), ((13, 37), (37, 13, 2)), ((6,), (5,)), ((3, 13, 37), (39, 37, 2))],
)
def test_does_not_fit(axes, stored):
    assert not fits(axes, stored)


def test_together():
    q, k = (13, 6, 5), (13, 2, 5)
    assert together([q, k, k], (50, 13))  # 30 + 10 + 10
    assert together([q, k, k], (13, 50))
    assert together([(6, 5), (2, 5), (2, 5)], (50,))
    assert together([(3, 13, 37), (3, 13, 37)], (3, 74, 13))
    assert not together([q, k], (50, 13))
    assert not together([q, k, k], (25, 26))
    assert not together([q, q], (30, 26, 2))


def test_said():
    assert said((30_522, 384)) == "30,522 x 384"
    assert said(()) == "scalar"
