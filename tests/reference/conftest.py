"""Places in a model whose parameters are given arrays."""

import numpy as np
import pytest

from costcalc.reference import Given, Scope, Tape


@pytest.fixture
def place():
    """place({name: array}, path="here"): a scope whose parameters are these arrays, in float32."""

    def make(arrays, path="here"):
        given = {f"{path}.{name}": np.asarray(values, np.float32) for name, values in arrays.items()}
        return Scope(Tape(Given(given)), path)

    return make
