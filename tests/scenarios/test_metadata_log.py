"""Topic names and ids from the metadata log alone, out of real captures: nothing but raft answers is looked at.

The log comes from Fetch answers and, where a node was new, from FetchSnapshot chunks of 1500 bytes. The truth comes
from dumps of the controllers' logs.
"""

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from tests.decode.log.batches import entries, secret_spans, without
from tests.judge.lab import open_rows
from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.decode.columns import tables
from wirecheck.decode.log.log_order import COMMITTED, LogOrder
from wirecheck.decode.log.metadata_log import TOPIC_ID, TOPIC_NAME, joined
from wirecheck.decode.log.metadata_tables import log_tables
from wirecheck.decode.log.secrets import LogSecrets
from wirecheck.decode.log.snapshot import Chunk, Snapshot
from wirecheck.decode.message import Status, decode, only
from wirecheck.decode.show.message_lines import followed
from wirecheck.decode.wire import RESPONSE
from wirecheck.judge.claims.extract.extraction import claims
from wirecheck.judge.revisions.judge import Judge

CAPTURES = Path(__file__).parent / "captures"
FETCH, SNAPSHOT = ("Fetch", "response"), ("FetchSnapshot", "response")
WANTED = only(
    {
        FETCH: ["responses.topic_id", "responses.partitions.high_watermark", "responses.partitions.records"],
        SNAPSHOT: [
            "topics.name", "topics.partitions.error_code", "topics.partitions.snapshot_id.end_offset",
            "topics.partitions.snapshot_id.epoch", "topics.partitions.size", "topics.partitions.position",
            "topics.partitions.unaligned_records",
        ],
    }
)  # fmt: skip


class Log:
    """All that a capture shows of the metadata log."""

    def __init__(self, name):
        self.order = LogOrder()
        self.parts, self.snapped_parts, self.fields, self.chunks, self.snapshots = [], [], [], [], {}
        for exchanges in followed(read_frames([CAPTURES / name / "capture.pcap.gz"])):
            decoded = decode(exchanges.messages, WANTED)
            self.fetched(tables(decoded, *FETCH))
            self.snapped(tables(decoded, *SNAPSHOT))

    def fetched(self, found):
        partitions = found["responses.partitions"]
        of_log = (found["responses"]["topic_id"] == np.frombuffer(TOPIC_ID, np.uint8)).all(axis=1)
        for row in np.flatnonzero(of_log[partitions.parent]).tolist():
            field = partitions["records"].raw(row)
            part = entries(field or b"")
            self.fields.append(field or b"")
            self.parts.append(part)
            self.order.absorb(part)
            self.order.below(int(partitions["high_watermark"][row]))

    def snapped(self, found):
        partitions = found["topics.partitions"]
        assert set(found["topics"]["name"].strings()) <= {TOPIC_NAME}
        for row in np.flatnonzero(partitions["error_code"] == 0).tolist():
            end_offset, epoch, size, position = (
                int(partitions[c][row]) for c in ("snapshot_id.end_offset", "snapshot_id.epoch", "size", "position")
            )
            snapshot = self.snapshots.setdefault((end_offset, epoch), Snapshot(end_offset, epoch))
            chunk = Chunk(position, size, partitions["unaligned_records"].raw(row))
            self.chunks.append(((end_offset, epoch), chunk))
            self.parts.append(snapshot.receive(chunk))
            self.snapped_parts.append(self.parts[-1])
            self.order.covered(end_offset, epoch)

    def bindings(self):
        found = joined(self.parts)
        topics = log_tables(found)["TopicRecord"]
        assert (self.order.fates(topics.offset, topics.epoch) == COMMITTED).all()
        return set(zip(topics["name"].strings(), (bytes(i) for i in topics["topic_id"]), strict=True))


def truth(name):
    topics = json.loads((CAPTURES / name / "truth.json").read_text())["topics"]
    return {(topic["name"], uuid(topic["topic_id"])) for topic in topics}


def uuid(text):
    return base64.urlsafe_b64decode(text + "==")


@pytest.fixture(scope="module", params=["kraft4-healthy", "kraft4-snapshot"])
def log(request):
    found = Log(request.param)
    found.name = request.param
    return found


def test_names_and_ids_are_those_of_the_controllers(log):
    assert log.bindings() == truth(log.name)


def test_nothing_was_refused_or_unseen(log):
    assert [r for part in log.parts for r in part.refused] == []
    assert sum(part.unseen for part in log.parts) == 0
    assert (decode(joined(log.parts).messages).status == Status.OK).all()


def test_every_snapshot_that_was_fetched_is_whole(log):
    assert all(snapshot.complete for snapshot in log.snapshots.values())
    assert len(log.snapshots) == {"kraft4-healthy": 0, "kraft4-snapshot": 2}[log.name]


def test_a_transaction_of_the_bootstrap_is_seen_and_ended(log):
    assert [kind for _, (_, kind) in sorted(log.order.markers.items())] == [23, 24]


def test_trimming_takes_secrets_and_nothing_else(log):
    hidden = 0
    for field in {field for field in log.fields if field}:
        spans = secret_spans(field)
        whole, trimmed = entries(field), entries(without(field, *spans), left_out=spans)
        assert (trimmed.refused, trimmed.unseen) == ((), 0)
        assert trimmed.messages.size.tolist() == whole.messages.size.tolist()
        assert trimmed.offset.tolist() == whole.offset.tolist()
        hidden += sum(length for _, length in spans)
    assert hidden > 0


def test_trimmed_chunks_give_the_same_topics(log):
    walks, again = {}, {}
    names = set()
    for key, chunk in log.chunks:
        spans = walks.setdefault(key, LogSecrets()).feed(chunk.kept)
        trimmed = Chunk(chunk.position, chunk.size, without(chunk.kept, *spans), tuple(spans))
        part = again.setdefault(key, Snapshot(*key)).receive(trimmed)
        found = log_tables(part)
        if "TopicRecord" in found:
            names |= set(found["TopicRecord"]["name"].strings())
    assert all(snapshot.complete for snapshot in again.values())
    assert names == ({t for t, _ in log.bindings()} & names)
    assert bool(names) == bool(log.chunks)


FORWARDED = {"CreateTopics", "DeleteTopics"}
"""Inside Envelopes."""
ONLY_THE_LOG = {("Fetch", 1), ("FetchSnapshot", 59)}


def judged(name, apis, batches=1):
    """What the judge makes of a capture of which only these answers can be read, in so many batches."""
    keys = [key for api, key in ONLY_THE_LOG if api in apis]
    parts = []
    for exchanges in followed(read_frames([CAPTURES / name / "capture.pcap.gz"])):
        decoded = decode(exchanges.messages)
        unread = (decoded.messages.side == RESPONSE) & ~np.isin(decoded.messages.key, keys)
        decoded.status[unread] = Status.NO_REQUEST
        parts += [claim for claim in claims(exchanges, decoded) if claim.first.api not in FORWARDED]
    end = max(claim.last.ts_ns for claim in parts)
    size, shards, rows = -(-len(parts) // batches), {}, []
    for begin in range(0, len(parts), size):
        judge = Judge("default", shards.get)
        judge.absorb(parts[begin : begin + size])
        if begin + size >= len(parts):
            judge.progress("agent", end, ended=True)
        rows += judge.rows()
        shards |= judge.shards()
    return open_rows(rows)


@pytest.mark.parametrize("name", ["kraft4-healthy", "kraft4-snapshot"])
def test_the_log_alone_names_every_fetch(name):
    found = judged(name, {"Fetch", "FetchSnapshot"})
    rows = {(row["name"], uuid(row["topic_id"])) for row in found["topics"].values()}
    assert rows == truth(name)
    assert all("metadata-log" in row["sources"] for row in found["topics"].values())
    assert [row["code"] for row in found.get("findings", {}).values() if row["kind"] != "information"] == []


@pytest.mark.parametrize("batches", [1, 40])
def test_a_snapshot_alone_names_what_it_holds(batches, log):
    if not log.snapshots:
        pytest.skip("no snapshot was fetched")
    found = judged(log.name, {"FetchSnapshot"}, batches)
    topics = log_tables(joined(log.snapped_parts))["TopicRecord"]
    held = set(zip(topics["name"].strings(), (bytes(i) for i in topics["topic_id"]), strict=True))
    assert {(row["name"], uuid(row["topic_id"])) for row in found["topics"].values() if row["name"]} == held
    assert held < truth(log.name)
