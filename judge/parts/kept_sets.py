"""Who reads what, and who is told of what, kept with a part's state: sets by subject and kind of claims.

Knows: how they are found again after a restart, in shards as the ledger has them: only those that are asked for are
loaded, only those that changed are given back. Does not know who is in them.
Rule: a set that nobody is in any more is not there.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.claims.kinds import SPACES
from wirecheck.judge.ledger.ledger import shard_of
from wirecheck.judge.parts.part_message import Wanted

Member = TypeVar("Member")
ByKind = dict[str, set[Member]]


class KeptSets(Generic[Member]):
    """`stored`: a shard's state by name; None where there is none. `member`: one of a set, from JSON."""

    def __init__(self, name: str, stored: Callable[[str], Any], member: Callable[[Any], Member]) -> None:
        self.name, self.stored, self.member = name, stored, member
        self.shards: dict[str, dict[Subject, ByKind[Member]]] = {}
        self.changed: set[str] = set()

    def kinds(self, subject: Subject) -> ByKind[Member]:
        """All sets about one subject; not to be changed."""
        return self.shard(self.name_of(subject)).get(subject, {})

    def of(self, wanted: Wanted) -> frozenset[Member] | set[Member]:
        kinds = self.shard(self.name_of(wanted.subject)).get(wanted.subject)
        return kinds.get(wanted.kind, frozenset()) if kinds else frozenset()

    def add(self, wanted: Wanted, member: Member) -> bool:
        """Whether it is the first one there."""
        name = self.name_of(wanted.subject)
        found = self.shard(name).setdefault(wanted.subject, {}).setdefault(wanted.kind, set())
        if member in found:
            return False
        found.add(member)
        self.changed.add(name)
        return len(found) == 1

    def discard(self, wanted: Wanted, member: Member) -> bool:
        """Whether it was the last one there."""
        name = self.name_of(wanted.subject)
        kinds = self.shard(name).get(wanted.subject, {})
        found = kinds.get(wanted.kind)
        if not found or member not in found:
            return False
        self.changed.add(name)
        found.discard(member)
        if found:
            return False
        del kinds[wanted.kind]
        if not kinds:
            del self.shard(name)[wanted.subject]
        return True

    def wants(self, subject: Subject) -> bool:
        """Whether anything about it has members."""
        return subject in self.shard(self.name_of(subject))

    def __iter__(self) -> Iterator[tuple[Wanted, Member]]:
        """All there are, as they are now."""
        for space, shards in SPACES.items():
            for number in range(shards):
                shard = self.shard(f"{self.name}-{space}-{number:02d}")
                said = [(Wanted(subject, kind), found) for subject, by in shard.items() for kind, found in by.items()]
                yield from ((wanted, member) for wanted, found in said for member in sorted(found))  # type: ignore[type-var]

    def name_of(self, subject: Subject) -> str:
        return f"{self.name}-{shard_of(subject)}"

    def shard(self, name: str) -> dict[Subject, ByKind[Member]]:
        if name not in self.shards:
            self.shards[name] = {
                tuple(subject): {kind: {self.member(one) for one in found} for kind, found in kinds.items()}
                for subject, kinds in self.stored(name) or ()
            }
        return self.shards[name]

    def changed_shards(self) -> dict[str, Any]:
        """Since the last call."""
        changed = {
            name: [
                (subject, {kind: sorted(found) for kind, found in kinds.items()})  # type: ignore[type-var]
                for subject, kinds in self.shards[name].items()
            ]
            for name in sorted(self.changed)
        }
        self.changed.clear()
        return changed
