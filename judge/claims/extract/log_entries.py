"""Claims of the KRaft metadata log: TopicRecord binds a name, RemoveTopicRecord ends the binding, in the order of
epochs and offsets.

Rule: every entry makes a claim with its epoch and offset, committed or not; time orders nothing here. Chunks of
snapshots are read in the order of their positions. At most MOST_SNAPSHOTS are in progress. Beyond that the one whose
last chunk is the oldest is dropped, and so is one whose waiting chunks are too large for `Snapshot`. A snapshot is
removed when it is complete.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wirecheck.decode.log.log_order import LogOrder
from wirecheck.decode.log.metadata_log import Entries, Known, field_entries, joined
from wirecheck.decode.log.metadata_tables import LogTable, log_tables
from wirecheck.decode.log.snapshot import MOST_WAITING_BYTES, MOST_WAITING_CHUNKS, Chunk, Snapshot
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.claim import Claim, Key, Sighting
from wirecheck.judge.claims.extract import node_features, servers
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.claims.reduce import Column, Ints, Rows, Sightings, constant, ids, lists, reduced, spelled, texts

SOURCE = "metadata-log"
MS = 1_000_000
"""Nanoseconds."""
SNAPSHOT = "snapshot:"
"""Prefix of the place of a record from a snapshot, whose original place is not known."""


CHUNK = "chunk"
"""The kind of claim that is put together here and never filed."""
MOST_SNAPSHOTS = 16
Stored = list[list[Any]]
RECOVERING = 1
"""LeaderRecoveryState of a partition whose leader was elected although it was not in sync."""


@dataclass(frozen=True)
class Part:
    """The log as one answer shows it."""

    message: int
    entries: Entries
    high_watermark: int
    leader_epoch: int = -1
    """In which the answer was given."""


def claims(batch: Batch) -> Iterator[Rows]:
    yield from stated([part for part in batch.once(answers) if len(part.entries)], "", batch.endpoint)


def stated(parts: list[Part], how: str, endpoint: servers.Endpoint) -> Iterator[Rows]:
    """What records state. `how`: a prefix of their places; `endpoint`: from messages to the endpoints that made the
    statements.
    """
    if not parts:
        return
    found = log_tables(joined([part.entries for part in parts]))
    message = np.repeat([part.message for part in parts], [len(part.entries) for part in parts])
    for name, kind in (("TopicRecord", "binding"), ("RemoveTopicRecord", "deletion")):
        if name in found:
            table = found[name]
            named = texts(table["name"]) if kind == "binding" else constant(None, len(table))
            source, no_endpoint = (constant(word, len(table)) for word in (SOURCE, None))  # no endpoint's word alone
            key = [named, ids(table["topic_id"]), source, no_endpoint, places(table, how)]
            yield Rows(kind, key, message[table.entry], peak=written(table))
    if "PartitionRecord" in found:
        yield placed(found["PartitionRecord"], message)
    if "PartitionChangeRecord" in found:
        yield unclean(found["PartitionChangeRecord"], message)
    if "LeaderChangeMessage" in found and not how:
        yield begun(found["LeaderChangeMessage"], message, endpoint)
    yield from servers.registered_in_log(found, message, endpoint)
    yield from node_features.in_log(found, message, endpoint)


def orders(batch: Batch) -> Iterator[Claim]:
    """What each response shows of the order of the log."""
    parts = batch.once(answers)
    shown: dict[Entries, dict[str, Any]] = {}
    for part, seen in zip(parts, batch.sightings.of(np.array([part.message for part in parts], np.int64)), strict=True):
        if part.entries not in shown:
            order = LogOrder()
            order.absorb(part.entries)
            shown[part.entries] = peaks(order)
        peak = {**shown[part.entries], "high_watermark": max(part.high_watermark, -1), **high_watermark(part, seen)}
        yield Claim("log_order", (seen.server,), seen, peak=peak)
    yield from diverged(batch)


def high_watermark(part: Part, seen: Sighting) -> dict[str, Any]:
    """The high watermark with its earliest time in the slot, its leader's epoch and where it was seen; and by how much
    the writer's clock is ahead of ours, less the age of the newest entry.
    """
    found: dict[str, Any] = {}
    if part.high_watermark >= 0:
        where = [part.high_watermark, -seen.ts_ns, part.leader_epoch, *seen[1:]]
        found[f"at:{seen.ts_ns // SLOT_NS}"] = where
    if len(part.entries):
        found["clock"] = int(part.entries.timestamp_ms.max()) * MS - seen.ts_ns
    return found


def diverged(batch: Batch) -> Iterator[Claim]:
    """Answers of a leader that its log of an epoch ends below what the follower has read (KIP-595)."""
    partitions = batch.lines("Fetch", "response", "responses.partitions")
    if partitions is None:
        return
    end, epoch = partitions["diverging_epoch.end_offset"], partitions["diverging_epoch.epoch"]
    leader_epoch = partitions["current_leader.leader_epoch"]
    for row in np.flatnonzero(servers.of_log(partitions) & (end >= 0) & (epoch >= 0)).tolist():
        seen = batch.sightings.at(int(partitions.message[row]))
        place = (int(leader_epoch[row]), int(epoch[row]), int(end[row]))
        yield Claim("log_diverged", (seen.server, *place), seen)


def peaks(order: LogOrder) -> dict[str, Any]:
    """An order as values of which the greatest holds."""
    return {
        "high_watermark": order.high_watermark,
        **{f"start:{epoch}": -offset for epoch, offset in order.starts.items()},
        **{f"end:{epoch}": -offset for epoch, offset in order.ends.items()},
        **{f"mark:{offset}": list(marker) for offset, marker in order.markers.items()},
    }


def answers(batch: Batch) -> list[Part]:
    """Each distinct batch of records is decoded once, however many nodes read the log."""
    partitions = batch.lines("Fetch", "response", "responses.partitions")
    if partitions is None:
        return []
    known: Known = {}
    found: list[Part] = []
    records, high = partitions.table["records"], partitions["high_watermark"]
    leader_epoch = partitions["current_leader.leader_epoch"]
    for row in np.flatnonzero(servers.of_log(partitions)).tolist():
        field = records.field(row)
        if field is not None:
            watermark = int(high[row])  # -1: a leader just elected sends records before it knows its own (KIP-595)
            message, epoch = int(partitions.message[row]), int(leader_epoch[row])
            found.append(Part(message, field_entries(field, known), watermark, epoch))
    return found


def chunks(batch: Batch) -> Iterator[Claim]:
    """Pieces of snapshots, as they are: they begin and end anywhere; to read one takes all before it."""
    tables = batch.tables("FetchSnapshot", "response")
    if not tables:
        return
    partitions = tables["topics.partitions"]
    host, endpoint = batch.host(partitions.message), batch.endpoint(partitions.message)
    records, end, epoch = (partitions[f] for f in ("unaligned_records", "snapshot_id.end_offset", "snapshot_id.epoch"))
    for row in np.flatnonzero((partitions["error_code"] == 0) & (end > 0)).tolist():
        field = records.field(row)
        if field is not None:
            place = (int(end[row]), int(epoch[row]), int(partitions["position"][row]), int(partitions["size"][row]))
            seen = batch.sightings.at(int(partitions.message[row]))
            kept, left_out = np.ones(len(field), np.bool_), []
            for begin, stop in field.holes.tolist():
                kept[begin:stop] = False
                left_out.append([begin, stop - begin])
            peak = {"kept": base64.b64encode(field.data[kept].tobytes()).decode(), "left_out": left_out}
            yield Claim(CHUNK, (host.value(row), endpoint.value(row), *place), seen, peak=peak)


def chunk_of(claim: Claim) -> Chunk:
    left_out = tuple((offset, length) for offset, length in claim.peak["left_out"])
    return Chunk(claim["position"], claim["size"], base64.b64decode(claim.peak["kept"]), left_out)


def snapshot_claims(entries: Entries, snapshot: Snapshot, seen: Sighting) -> Iterator[Claim]:
    """What the records of a snapshot state, all at the snapshot's end offset, where they are certain to hold."""
    sightings = Sightings({name: Column(np.zeros(1, np.int64), [value]) for name, value in seen._asdict().items()})
    parts = [Part(0, entries, snapshot.end_offset)] if len(entries) else []
    for rows in stated(parts, SNAPSHOT, lambda message: constant(seen.server, len(message))):
        yield from reduced(rows, sightings)
    order = LogOrder()
    order.covered(snapshot.end_offset, snapshot.epoch)
    yield Claim("log_order", (seen.server,), seen, peak=peaks(order))


def placed(table: LogTable, message: Ints) -> Rows:
    state = [Column(table["leader_epoch"]), Column(table["leader"]), lists(table["replicas"]), lists(table["isr"])]
    key = [ids(table["topic_id"]), Column(table["partition_id"]), constant(SOURCE, len(table)), *state]
    return Rows("partition", key, message[table.entry], peak=written(table))


def unclean(table: LogTable, message: Ints) -> Rows:
    """Elections of a replica that was not in sync: its leader has to recover (KIP-704)."""
    key = [ids(table["topic_id"]), Column(table["partition_id"]), Column(table["leader"]), places(table, "")]
    elected = (table["leader_recovery_state"] == RECOVERING) & (table["leader"] >= 0)
    return Rows("unclean", key, message[table.entry], peak=written(table)).where(elected)


def written(table: LogTable) -> dict[str, Ints]:
    """Where each record is in the log, and when its leader wrote it (ms)."""
    return {"offset": table.offset, "epoch": table.epoch, "written": table.timestamp_ms}


def begun(table: LogTable, message: Ints, endpoint: servers.Endpoint) -> Rows:
    """A leader's first record in its epoch."""
    rows = message[table.entry]
    key = [endpoint(rows), Column(table.epoch), Column(table.offset), Column(table.timestamp_ms)]
    return Rows("log_epoch", key, rows)


def places(table: LogTable, how: str) -> Column:
    """epoch@offset of each row."""
    return spelled(f"{how}{{}}@{{}}".format, Column(table.epoch), Column(table.offset))


class Assembly:
    """One snapshot under way: its chunks wait here until all before them were received."""

    def __init__(self, snapshot: Snapshot, latest: Sighting | None = None) -> None:
        self.snapshot, self.latest = snapshot, latest
        """`latest`: where the newest of the chunks that were read was seen."""
        self.waiting: dict[int, Claim] = {}
        """By position."""

    def receive(self, claim: Claim) -> Iterator[Claim]:
        known = self.waiting.get(claim["position"])
        if known is None or chunk_of(claim).end > chunk_of(known).end:
            self.waiting[claim["position"]] = claim
        while self.waiting and min(self.waiting) <= self.snapshot.end and not self.snapshot.lost:
            yield from self.read(self.waiting.pop(min(self.waiting)))

    def read(self, claim: Claim) -> Iterator[Claim]:
        chunk = chunk_of(claim)
        if chunk.end > self.snapshot.end:
            self.latest = max(claim.first, self.latest or claim.first)
            yield from snapshot_claims(self.snapshot.receive(chunk), self.snapshot, self.latest)

    @property
    def over(self) -> bool:
        waiting = sum(len(claim.peak["kept"]) for claim in self.waiting.values())
        too_many = waiting > MOST_WAITING_BYTES or len(self.waiting) > MOST_WAITING_CHUNKS
        return self.snapshot.complete or self.snapshot.lost or too_many


class Snapshots:
    """All snapshots under way, by host, endpoint, end offset and epoch."""

    def __init__(self, stored: Stored | None = None) -> None:
        self.under_way: dict[Key, Assembly] = {}
        for key, state, latest, waiting in stored or ():
            found = Assembly(Snapshot.restore(base64.b64decode(state)), Sighting(*latest) if latest else None)
            found.waiting = {claim["position"]: claim for claim in map(claim_of, waiting)}
            self.under_way[tuple(key)] = found
        self.changed = False

    def receive(self, claim: Claim) -> Iterator[Claim]:
        self.changed = True
        key = claim.key[:4]
        end_offset, epoch = key[2:]
        found = self.under_way.pop(key, None) or Assembly(Snapshot(end_offset, epoch))
        yield from found.receive(claim)
        if not found.over:
            self.under_way[key] = found  # last in the order: the newest
        while len(self.under_way) > MOST_SNAPSHOTS:
            del self.under_way[next(iter(self.under_way))]

    def state(self) -> Stored:
        return [
            [
                key,
                base64.b64encode(found.snapshot.snapshot()).decode(),
                found.latest,
                [[claim.key, claim.first, claim.peak] for _, claim in sorted(found.waiting.items())],
            ]
            for key, found in self.under_way.items()
        ]


def claim_of(stored: list[Any]) -> Claim:
    key, first, peak = stored
    return Claim(CHUNK, tuple(key), Sighting(*first), peak=peak)
