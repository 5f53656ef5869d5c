"""Emitted rows: the last revision of each, by subject, in shards of their own.

Rule: the revision of a row only grows, even if the row was forgotten in between.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.ledger.ledger import shard_of

FINDINGS = "findings"
BLAMED = {"violation", "anomaly"}
"""Kinds of findings that keep a subject in the ledger longer."""
Stored = dict[str, Any]


class EmittedRow(NamedTuple):
    table: str
    key: str
    revision: int
    body: dict[str, Any]


class Revision(NamedTuple):
    number: int
    open: bool
    body: dict[str, Any]
    unanswered: bool = False
    """A finding about what was never answered without error when it was emitted (`subject_eviction.py`)."""


NEVER = Revision(0, open=False, body={})


class EmittedRows:
    """`stored`: from a shard's name to its state, None without one."""

    def __init__(self, stored: Callable[[str], Stored | None]) -> None:
        self.stored = stored
        self.shards: dict[str, Stored] = {}
        self.changed: set[str] = set()
        self.asked: tuple[Subject, str] = ((), "")
        """The subject that was asked for last, with the name of its shard: its rows are asked for one after the other.
        """
        self.last = False
        """Whether nothing will be asked of what is emitted from now on: it is not kept."""

    def rows(self, subject: Subject) -> Mapping[str, Revision]:
        """The rows of one subject, by table and id."""
        rows = self.shard(subject)["rows"]
        found = rows.get(key_of(subject)) if rows else None
        return {name: Revision(*row) for name, row in found.items()} if found else {}

    def has_finding(self, subject: Subject) -> bool:
        return any(table_of(name) == FINDINGS and row.open for name, row in self.rows(subject).items())

    def blamed(self, subject: Subject) -> bool:
        """Whether there is an open violation or anomaly about this subject. Information does not count, because every
        topic has some.
        """
        findings = (row for name, row in self.rows(subject).items() if table_of(name) == FINDINGS)
        return any(row.open and row.body["kind"] in BLAMED for row in findings)

    def emit(self, subject: Subject, name: str, before: Revision, body: dict[str, Any], *, is_open: bool) -> EmittedRow:
        """A row's new revision."""
        shard = self.shard(subject, changing=not self.last)
        table, _, key = name.partition("|")
        number = (before.number or shard["floors"].get(table, 0)) + 1
        if not self.last:
            shard["rows"].setdefault(key_of(subject), {})[name] = (number, is_open, body, before.unanswered)
        return EmittedRow(table, key, number, body)

    def forget(self, subject: Subject, name: str) -> None:
        """Forget a row that remains as it was emitted last, or was withdrawn."""
        shard = self.shard(subject, changing=True)
        key = key_of(subject)
        rows = shard["rows"][key]
        number, table = rows.pop(name)[0], table_of(name)
        if not rows:
            del shard["rows"][key]
        shard["floors"][table] = max(number, shard["floors"].get(table, 0))

    def shard(self, subject: Subject, *, changing: bool = False) -> Stored:
        if self.asked[0] != subject:
            self.asked = subject, f"rows-{shard_of(subject)}"
        name = self.asked[1]
        if changing:
            self.changed.add(name)
        shard = self.shards.get(name)
        if shard is None:
            shard = self.shards[name] = self.stored(name) or {"floors": {}, "rows": {}}
        return shard

    def changed_shards(self) -> dict[str, Stored]:
        changed = {name: self.shards[name] for name in sorted(self.changed)}
        self.changed.clear()
        return changed


def key_of(subject: Subject) -> str:
    return orjson.dumps(subject).decode()


def withdrawn(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "state": "withdrawn"} if "code" in body else {**body, "withdrawn": True}


def table_of(name: str) -> str:
    return name.partition("|")[0]
