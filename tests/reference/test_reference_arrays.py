import numpy as np
import pytest

from costcalc.reference.arrays import FLOAT, floats


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_stay_what_they_are(dtype):
    x = np.arange(7, dtype=dtype)
    assert floats(x) is x


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint32, bool])
def test_whole_numbers_become_floats(dtype):
    x = np.array([0, 1, 1], dtype)
    assert floats(x).dtype == np.float64
    assert floats(x).tolist() == [0.0, 1.0, 1.0]


def test_a_pass_is_in_single_precision():
    assert FLOAT is np.float32
