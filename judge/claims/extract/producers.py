"""Claims about who writes by name, and what Metadata told the same client of these names.

Knows: Produce up to v12 and Metadata answers. Does not know which id a name has.
Rule: sets of topics per client are bounded (`members.py`); with each member stands where it was said last.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from wirecheck.decode.columns import Table
from wirecheck.judge.claims.batch import Batch, numbered
from wirecheck.judge.claims.claim import ZERO, Claim
from wirecheck.judge.claims.extract.clients import who
from wirecheck.judge.claims.members import hashed, sets
from wirecheck.judge.claims.reduce import Column, Ints, Rows

NO_ID, ERROR = "-", "!"
"""In place of an id: the version carries none, or there is an error."""
HALF = np.uint64(32)
UPPER = np.uint64(0xFFFFFFFF00000000)


def members(batch: Batch) -> Iterator[Claim]:
    """Names that a client writes to with success, and the ids of names as Metadata answered them to a client."""
    topics = batch.lines("Produce", "response", "responses")
    partitions = batch.lines("Produce", "response", "responses.partition_responses")
    if topics and partitions:
        good = np.zeros(len(topics), np.bool_)
        good[partitions.table.parent[partitions["error_code"] == 0]] = True
        rows = np.flatnonzero(good & topics.present("name"))
        yield from named_sets(batch, "wrote", topics.message[rows], topics.column("name", rows))
    if topics := batch.lines("Metadata", "response", "topics"):
        rows = np.flatnonzero(topics.given("name"))
        answers = answer_of(topics.table).take(rows)
        yield from named_sets(batch, "told", topics.message[rows], topics.column("name", rows), answers)


def answer_of(topics: Table) -> Column:
    ids = numbered(topics)
    values = [NO_ID if value in {None, ZERO} else value for value in ids.values or ()]
    return Column(np.where(topics["error_code"] == 0, ids.codes % len(values), len(values)), [*values, ERROR])


def named_sets(batch: Batch, kind: str, message: Ints, names: Column, answers: Column | None = None) -> Iterator[Claim]:
    """Sets of names, or of names with their answers; the members of one name stand side by side."""
    hashes = hashed(names)
    if answers is not None:
        hashes = (hashes & UPPER) | (hashed(answers) >> HALF)

    def values(rows: Ints) -> list[Any]:
        seen = batch.sightings.of(message[rows])
        answered = [""] * len(rows) if answers is None else answers.at(rows)
        return [[*one, name, answer] for one, name, answer in zip(seen, names.at(rows), answered, strict=True)]

    rows = Rows(kind, who(batch, message), message)
    yield from sets(rows, rows, hashes, batch.sightings, values)
