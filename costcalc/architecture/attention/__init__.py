"""The kinds of attention. A new kind is a file here, a file in `reference/`, a member of this union, and test cases."""

from typing import Annotated

from pydantic import Field

from costcalc.architecture.attention.convolved import Convolved
from costcalc.architecture.attention.grouped_query import GroupedQuery
from costcalc.architecture.attention.latent import Latent

Attention = Annotated[GroupedQuery | Latent | Convolved, Field(discriminator="kind")]

__all__ = ["Attention", "Convolved", "GroupedQuery", "Latent"]
