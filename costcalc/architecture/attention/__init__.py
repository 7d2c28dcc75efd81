"""The kinds of attention. A new kind is a file here, a file in `reference/`, a member of this union, and test cases."""

from costcalc.architecture.attention.grouped_query import GroupedQuery

Attention = GroupedQuery  # one kind so far; the second makes this a union discriminated by `kind`

__all__ = ["Attention", "GroupedQuery"]
