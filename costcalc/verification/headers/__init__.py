"""A checkpoint's headers against what an architecture states, tensor by tensor; no table of any model's names."""

from costcalc.verification.headers.compare import HeaderCheck, compare_headers
from costcalc.verification.headers.differing import Differing
from costcalc.verification.headers.leaves import Leaf
from costcalc.verification.headers.match import Match
from costcalc.verification.headers.names import Tensor
from costcalc.verification.headers.shapes import said

__all__ = ["Differing", "HeaderCheck", "Leaf", "Match", "Tensor", "compare_headers", "said"]
