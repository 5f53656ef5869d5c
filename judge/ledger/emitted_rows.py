"""What was told before: the rows of every subject with their revisions, in shards beside those of the ledger.

Knows: how a row is found again, what its next revision is, and what is kept of rows that were settled: per shard and
table one number, above which every later revision begins, so that they cost nothing however long a run goes on. Does
not know what a row says or when it is settled (`step.py`).
Rule: revisions of one row only ever grow, whether it was forgotten in between or not.
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


class Revision(NamedTuple):
    """The last revision of one row."""

    number: int
    open: bool
    body: dict[str, Any]
    stranger: bool = False
    """A finding about what was never answered without error when it was told (`overflow.py`)."""


NEVER = Revision(0, open=False, body={})


class Before:
    """Rows told so far. `stored`: a shard's state by name; None where there is none."""

    def __init__(self, stored: Callable[[str], Stored | None]) -> None:
        self.stored = stored
        self.shards: dict[str, Stored] = {}
        self.changed: set[str] = set()

    def rows(self, subject: Subject) -> Mapping[str, Revision]:
        """By table and id what one subject has told."""
        found = self.shard(subject)["cells"].get(key_of(subject), {})
        return {name: Revision(*told) for name, told in found.items()}

    def found(self, subject: Subject) -> bool:
        """Whether a finding stands that this subject told."""
        return any(table_of(name) == FINDINGS and told.open for name, told in self.rows(subject).items())

    def blamed(self, subject: Subject) -> bool:
        """Whether a violation or an anomaly stands that this subject told; every topic has its information."""
        told = (told for name, told in self.rows(subject).items() if table_of(name) == FINDINGS)
        return any(row.open and row.body["kind"] in BLAMED for row in told)

    def tell(self, subject: Subject, name: str, before: Revision, body: dict[str, Any], *, is_open: bool) -> int:
        """The number of a row's new revision."""
        shard = self.shard(subject, changing=True)
        number = (before.number or shard["floors"].get(table_of(name), 0)) + 1
        shard["cells"].setdefault(key_of(subject), {})[name] = (number, is_open, body, before.stranger)
        return number

    def settle(self, subject: Subject, name: str) -> None:
        """Forget a row that stands as it was told last, or was withdrawn."""
        shard = self.shard(subject, changing=True)
        rows = shard["cells"][key_of(subject)]
        number, table = rows.pop(name)[0], table_of(name)
        if not rows:
            del shard["cells"][key_of(subject)]
        shard["floors"][table] = max(number, shard["floors"].get(table, 0))

    def shard(self, subject: Subject, *, changing: bool = False) -> Stored:
        name = f"told-{shard_of(subject)}"
        if changing:
            self.changed.add(name)
        if name not in self.shards:
            self.shards[name] = self.stored(name) or {"floors": {}, "cells": {}}
        return self.shards[name]

    def taken(self) -> dict[str, Stored]:
        """The shards that have changed since they were last asked for."""
        changed = {name: self.shards[name] for name in sorted(self.changed)}
        self.changed.clear()
        return changed


def withdrawn(body: dict[str, Any]) -> dict[str, Any]:
    """The last revision of a row that nothing says any more."""
    return {**body, "state": "withdrawn"} if "code" in body else {**body, "withdrawn": True}


def key_of(subject: Subject) -> str:
    return orjson.dumps(subject).decode()


def table_of(name: str) -> str:
    return name.partition("|")[0]
