"""The agenda: which subjects are to be judged again, and from which capture time on.

Knows: how what waits is found again after a restart, in a few shards by the time that is waited for, so that a batch
writes what is soon due and what it added. Does not know why a subject waits.
Rule: a subject waits for one time, the earliest that it was given.
"""

from collections.abc import Callable, Iterable
from typing import Any

from wirecheck.judge.claims.claim import Subject

SHARDS, SLOT_NS = 8, 16_000_000_000


class Agenda:
    """`stored`: a shard's state by name; None where there is none. `name`: before the numbers of its shards."""

    def __init__(self, stored: Callable[[str], Any], name: str = "agenda") -> None:
        self.names = [f"{name}-{number}" for number in range(SHARDS)]
        self.shards: list[dict[Subject, int]] = [
            {tuple(subject): due_ns for subject, due_ns in stored(name) or ()} for name in self.names
        ]
        self.due: dict[Subject, int] = {subject: due for shard in self.shards for subject, due in shard.items()}
        self.changed: set[int] = set()

    def __contains__(self, subject: Subject) -> bool:
        return subject in self.due

    def wait(self, subject: Subject, due_ns: int) -> None:
        before = self.due.get(subject)
        if before is None or due_ns < before:
            self.drop(subject)
            self.due[subject] = due_ns
            self.shards[shard_of(due_ns)][subject] = due_ns
            self.changed.add(shard_of(due_ns))

    def update(self, due: Iterable[tuple[Subject, int]]) -> None:
        for subject, due_ns in due:
            self.wait(subject, due_ns)

    def drop(self, subject: Subject) -> None:
        """It waits for nothing any more."""
        due_ns = self.due.pop(subject, None)
        if due_ns is not None:
            del self.shards[shard_of(due_ns)][subject]
            self.changed.add(shard_of(due_ns))

    def ripe(self, watermark_ns: int, **others_ns: int) -> set[Subject]:
        """The subjects whose time has come; those of some spaces go by a time of their own."""
        return {one for one, due_ns in self.due.items() if due_ns <= others_ns.get(one[0], watermark_ns)}

    def changed_shards(self) -> dict[str, Any]:
        """Since the last call."""
        changed = {self.names[number]: [*self.shards[number].items()] for number in sorted(self.changed)}
        self.changed.clear()
        return changed


def shard_of(due_ns: int) -> int:
    return due_ns // SLOT_NS % SHARDS
