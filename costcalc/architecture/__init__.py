"""What a model is: frozen components that state their own records."""

from costcalc.architecture.architecture import Architecture
from costcalc.architecture.block import Block
from costcalc.architecture.component import Component, RuleError
from costcalc.architecture.stack import Pattern, Stack

__all__ = ["Architecture", "Block", "Component", "Pattern", "RuleError", "Stack"]
