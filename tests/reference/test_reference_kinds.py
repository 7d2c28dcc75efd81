import pytest

from costcalc.reference import NoReferenceError
from costcalc.reference.kinds import of_kind


def test_the_function_of_a_kind():
    assert of_kind({"dense": len, "gated": sum}, "gated", "feed-forward") is sum


def test_a_kind_without_a_function_is_named():
    with pytest.raises(NoReferenceError) as caught:
        of_kind({"dense": len}, "experts", "feed-forward")
    assert str(caught.value) == "feed-forward of kind experts has no forward pass"
    assert isinstance(caught.value, LookupError)
