"""Claims about share groups (KIP-932): where they begin a partition, and what their members do with the records that
they acquire.

Rule: accepted, rejected and renewed records are work that was done; records that are released come again, to whichever
member asks, until the group's limit of deliveries archives them. A batch with several types counts by the first that is
work.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.columns import value_per
from wirecheck.judge.claims.batch import Batch, Lines
from wirecheck.judge.claims.outcomes import SUCCESS
from wirecheck.judge.claims.reduce import Ints, Rows

APIS = ("ShareFetch", "ShareAcknowledge")
BATCHES = "topics.partitions.acknowledgement_batches"
GAP, RELEASE = 0, 2
"""Acknowledgement types: no record is there; it is given back."""


def claims(batch: Batch) -> Iterator[Rows]:
    for api in APIS:
        if batches := batch.lines(api, "request", BATCHES):
            yield acknowledged(batches)
    if acquired := batch.lines("ShareFetch", "response", "responses.partitions.acquired_records"):
        group, known = acquired.other_column("group_id")
        header = batch.lines("ShareFetch", "response")
        lock_ms = value_per(acquired.message, header.table, "acquisition_lock_timeout_ms", absent=0) if header else 0
        key = ["@who", group, "topic_id"]
        peak = {"deliveries": acquired["delivery_count"], "acquired": acquired.ts_ns}
        peak["lock_ms"] = np.zeros(len(acquired), np.int64) + lock_ms
        yield acquired.states("acknowledged", key, known, peak=peak)
    yield from begun(batch)


def begun(batch: Batch) -> Iterator[Rows]:
    """The lowest offset of each partition that a client acquired, and when it acquired any first; whether it was
    answered about it at all. A tool that sets a group's offsets names the topic.
    """
    if answered := batch.lines("ShareFetch", "response", "responses.partitions"):
        group, known = answered.other_column("group_id")
        key = ["@who", group, "-", "topic_id", "partition_index"]
        yield answered.states("shared", key, known)
    if acquired := batch.lines("ShareFetch", "response", "responses.partitions.acquired_records"):
        group, known = acquired.other_column("group_id")
        key = ["@who", group, "-", "topic_id", "partition_index"]
        offset, ts_ns = acquired["first_offset"], acquired.ts_ns
        yield acquired.states("shared", key, known, peak={"lowest": -offset, "begun": -ts_ns})
    if sets := batch.lines("AlterShareGroupOffsets", "request", "topics.partitions"):
        key = ["@who", "group_id", "topic_name", "-", "partition_index"]
        yield sets.states("shared", key, peak={"set": sets.ts_ns})


def acknowledged(batches: Lines) -> Rows:
    kind = kinds_of(batches)
    records = batches["last_offset"] - batches["first_offset"] + 1
    sums = {"released": np.where(kind == RELEASE, records, 0)}
    outcome = np.where(kind == RELEASE, RELEASE, SUCCESS)
    return batches.states("acknowledged", "@who group_id topic_id", kind != GAP, sums=sums, error=outcome)


def kinds_of(batches: Lines) -> Ints:
    """Per batch its type: one for all of its records, or one for each."""
    found = np.full(len(batches), GAP, np.int64)
    types, offsets = batches.table["acknowledge_types"].flat()
    for row, (begin, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        every = {*types[begin:end].tolist()} - {GAP}
        found[row] = next((one for one in sorted(every) if one != RELEASE), RELEASE if every else GAP)
    return found
