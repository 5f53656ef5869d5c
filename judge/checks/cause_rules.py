"""The table of what can follow from what, as data (causes.tsv).

Knows: its lines, and under which relation each holds. Does not know what a relation compares, and how a finding's cause
is found: that is the story's (`story/causes.py`).
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple


class CauseRule(NamedTuple):
    """One line of the table: when findings of one check follow from those of another."""

    cause: str
    consequence: str
    rank: int
    """Rules of a higher rank only count where no rule of a lower one found anything."""
    sure: bool
    """Else (perhaps) it makes a possible cause and no more, even where nothing else fits."""
    lasting: bool
    """Whether it must begin while the cause is there (while), or any time later (after)."""
    relations: tuple[str, ...]
    """All of them must hold."""
    why: str


@cache
def rules() -> tuple[CauseRule, ...]:
    lines = Path(__file__).with_name("causes.tsv").read_text("ascii").splitlines()[1:]
    found = [line.split("\t") for line in lines]
    return tuple(
        CauseRule(cause, after, int(rank[0]), rank[1:] == "", span == "while", tuple(relations.split(",")), why)
        for cause, after, rank, span, relations, why in found
    )


@cache
def rules_by_consequence() -> Mapping[str, tuple[CauseRule, ...]]:
    found: dict[str, list[CauseRule]] = defaultdict(list)
    for rule in sorted(rules(), key=lambda rule: rule.rank):
        found[rule.consequence].append(rule)
    return {code: tuple(of_code) for code, of_code in found.items()}
