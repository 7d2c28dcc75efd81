"""Projections in groups: of the numbers that come in, each group makes its own part of what comes out (SqueezeBERT)."""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.component import Component, Rule, Size


class ProjectionGroups(Component):
    """In how many groups each projection of an attention is split (arXiv 2006.11316, section 3); 1 for none."""

    q: Size = 1
    k: Size = 1
    v: Size = 1
    output: Size = 1

    def rules_for(self, read: int, made: dict[str, int]) -> Iterator[Rule]:
        """Groups divide what comes in, and what comes out. made: by name what each projection gives."""
        for name, gives in made.items():
            groups = getattr(self, name)
            takes = read if name != "output" else made["q"]
            holds = takes % groups == 0 and gives % groups == 0
            yield holds, f"{groups} groups of {name} do not divide {takes} numbers and {gives}", "change `groups`"
