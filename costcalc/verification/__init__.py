"""Stated against recorded: what an architecture says it costs, and what a forward pass of its real shapes did."""

from costcalc.verification.faults import Compared, Fault
from costcalc.verification.limits import refuse_too_large
from costcalc.verification.properties import Property
from costcalc.verification.run import Phase, Verification, verify

__all__ = ["Compared", "Fault", "Phase", "Property", "Verification", "refuse_too_large", "verify"]
