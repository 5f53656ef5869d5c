"""Which of many things were seen at the same time.

Rule: what comes one after the other costs nothing, however much of it there is.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from wirecheck.judge.claims.claim import Sighting

MOST_BESIDE = 64
"""Processes, or endpoints, that are compared with one that began later."""


class Spanned(Protocol):
    """What was seen from one sighting to another."""

    @property
    def first(self) -> Sighting: ...

    @property
    def last(self) -> Sighting: ...


Seen = TypeVar("Seen", bound=Spanned)


def overlapping(seen: Iterable[Seen]) -> Iterator[tuple[Seen, Seen]]:
    """The pairs that were seen at the same time, the earlier first. What comes one after the other costs nothing: a
    broker that restarts all day has many epochs.
    """
    lasting: list[Seen] = []
    for later in sorted(seen, key=lambda one: one.first):
        lasting = [one for one in lasting if one.last >= later.first][-MOST_BESIDE:]
        yield from ((one, later) for one in lasting)
        lasting.append(later)
