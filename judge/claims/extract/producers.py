"""Claims about who writes by name, and what Metadata told the same client of these names.

Knows: Produce up to v12 and Metadata answers. Does not know which id a name has.
Rule: sets of topics per client are bounded (`members.py`); with each member stands where it was said last.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.columns import Table
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.claim import ZERO, Claim
from wirecheck.judge.claims.extract.bindings import numbered
from wirecheck.judge.claims.extract.clients import who
from wirecheck.judge.claims.members import hashed, sets
from wirecheck.judge.claims.reduce import Column, Ints, Rows, texts

NO_ID, ERROR = "-", "!"
"""In place of an id: the version carries none, or there is an error."""
HALF = np.uint64(32)
UPPER = np.uint64(0xFFFFFFFF00000000)


def members(batch: Batch) -> Iterator[Claim]:
    yield from wrote(batch)
    yield from metadata_answers(batch)


def wrote(batch: Batch) -> Iterator[Claim]:
    """Names that a client writes to with success."""
    tables = batch.tables("Produce", "response")
    if tables:
        topics, partitions = tables["responses"], tables["responses.partition_responses"]
        good = np.zeros(len(topics), np.bool_)
        good[partitions.parent[partitions["error_code"] == 0]] = True
        rows = np.flatnonzero(good & topics.present("name"))
        yield from named_sets(batch, "wrote", topics.message[rows], texts(topics["name"]).take(rows))


def metadata_answers(batch: Batch) -> Iterator[Claim]:
    """The ids of names as Metadata answered them to a client."""
    tables = batch.tables("Metadata", "response")
    if tables:
        topics = tables["topics"]
        rows = np.flatnonzero(topics["name"].length >= 0)
        names, answers = texts(topics["name"]).take(rows), answer_of(topics).take(rows)
        yield from named_sets(batch, "told", topics.message[rows], names, answers)


def answer_of(topics: Table) -> Column:
    ids = numbered(topics)
    values = [NO_ID if value in {None, ZERO} else value for value in ids.values or ()]
    return Column(np.where(topics["error_code"] == 0, ids.codes % len(values), len(values)), [*values, ERROR])


def named_sets(batch: Batch, kind: str, message: Ints, names: Column, answers: Column | None = None) -> Iterator[Claim]:
    """Sets of names, or of names with their answers; the members of one name stand side by side."""
    hashes = hashed(names)
    if answers is not None:
        hashes = (hashes & UPPER) | (hashed(answers) >> HALF)

    def value(row: int) -> object:
        seen = batch.sightings.at_rank(int(batch.sightings.rank[message[row]]))
        return [*seen, names.value(row), answers.value(row) if answers is not None else ""]

    rows = Rows(kind, who(batch, message), message)
    yield from sets(rows, rows, hashes, batch.sightings, value)
