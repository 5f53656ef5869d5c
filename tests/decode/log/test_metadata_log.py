"""Entries of the metadata log: Kafka's own records, refusals, holes, repetition."""

import base64
import gzip
import json
from pathlib import Path

import cramjam
import pytest

from tests.decode.log.batches import (
    Batch,
    batch,
    config,
    control,
    entries,
    entry,
    leader_change,
    message,
    record,
    topic,
    without,
)
from wirecheck.decode.errors import BadChecksum, BadLength, BadMagic, Truncated, UnexpectedNull, UnknownApi
from wirecheck.decode.log import compression
from wirecheck.decode.log.metadata_log import Refused, joined
from wirecheck.decode.message import Status, decode
from wirecheck.decode.nested import nested
from wirecheck.decode.wire import DATA, RECORD

GOLDEN = Path(__file__).parents[1] / "golden"


def vectors(name):
    return [json.loads(line) for line in gzip.decompress((GOLDEN / name).read_bytes()).splitlines()]


RECORDS = vectors("metadata-records.jsonl.gz")
BATCHES = [v for v in vectors("record-batches.jsonl.gz") if v["name"].startswith(("control", "__cluster"))]


def values(found):
    decoded = decode(found.messages)
    assert (decoded.status == Status.OK).all()
    return [nested(decoded, i)["body"] for i in range(len(found))]


def test_all_of_kafkas_own_records_decode_to_their_meaning():
    found = entries(batch(*(bytes.fromhex(v["hex"]) for v in RECORDS)))
    assert (len(RECORDS), found.refused, found.unseen) == (304, (), 0)
    assert found.messages.key.tolist() == [v["type"] for v in RECORDS]
    assert found.messages.version.tolist() == [v["version"] for v in RECORDS]
    assert values(found) == [v["json"] for v in RECORDS]


@pytest.mark.parametrize("vector", BATCHES, ids=lambda v: v["name"].replace(" ", "-"))
def test_kafkas_own_batches_of_a_metadata_log_are_read(vector):
    found = entries(bytes.fromhex(vector["hex"]))
    (expected,) = vector["batches"]
    if expected["records"][0].get("control_type") in {"COMMIT", "ABORT"}:  # of data logs; never in this one
        assert [r.reason for r in found.refused] == [UnknownApi]
        return
    assert found.offset.tolist() == [r["offset"] for r in expected["records"]]
    assert found.timestamp_ms.tolist() == [r["timestamp"] for r in expected["records"]]
    assert set(found.epoch.tolist()) == {expected["partition_leader_epoch"]}
    if expected["control"]:
        assert values(found) == [r["control"] for r in expected["records"]]
        assert found.messages.side.tolist() == [DATA]
    else:
        framed = [base64.b64decode(r["value"]) for r in expected["records"]]
        assert [entry(*_frame(v)) for v in framed] == framed
        assert found.messages.data.tobytes() == b"".join(_frame(v)[1] for v in framed)


def _frame(value):
    """(type, body, version): all of one byte here."""
    return value[1], value[3:], value[2]


LOG = leader_change(epoch=3) + batch(topic("a"), topic("b"), base_offset=1, epoch=3)


def test_entries_are_in_the_order_of_the_field():
    found = entries(LOG)
    assert found.offset.tolist() == [0, 1, 2]
    assert found.messages.side.tolist() == [DATA, RECORD, RECORD]
    assert found.read_to == len(LOG)


def test_a_cut_off_batch_is_left_over():
    found = entries(LOG[:-1])
    assert (len(found), found.left_over) == (1, len(LOG) - 1 - len(leader_change()))


def test_nothing_is_no_entry():
    assert len(entries(b"")) == 0
    assert len(joined([])) == 0


REFUSED_BATCHES = {
    "wrong sum": (Batch([record(topic())], base_offset=7, crc=1).bytes(), BadChecksum),
    "old format": (message(topic(), offset=7), BadMagic),
    "broken record": (Batch([record(topic())[:-1]], base_offset=7).bytes(), Truncated),
    "no entry": (batch(b"", base_offset=7), Truncated),
    "null": (Batch([record(None)], base_offset=7).bytes(), UnexpectedNull),
}


@pytest.mark.parametrize("case", REFUSED_BATCHES)
def test_what_is_refused_is_told_and_its_neighbours_are_used(case):
    broken, reason = REFUSED_BATCHES[case]
    found = entries(batch(topic("a")) + broken + batch(topic("b"), base_offset=8))
    assert found.offset.tolist() == [0, 8]
    assert found.refused == (Refused(len(batch(topic("a"))), 7, reason),)


def test_bytes_that_are_no_batch_end_the_field():
    found = entries(LOG + b"\xff" * 70)
    assert (len(found), found.refused) == (3, (Refused(len(LOG) + 16, -1, BadMagic),))


def test_bombs_share_one_bound():
    values = [record(topic(), offset=i) for i in range(2)] + [record(b"\x01\x14\x00" + bytes(40 << 20), offset=2)]
    block = bytes(cramjam.zstd.compress(b"".join(values)))
    bomb = [Batch(block=block, attributes=4, count=3, base_offset=3 * i).bytes() for i in range(2)]
    found = entries(b"".join(bomb))
    assert found.offset.tolist() == [0, 1, 2]
    assert [r.reason for r in found.refused] == [BadLength]


def test_bombs_that_are_refused_cost_their_share(monkeypatch):
    """Each would be unpacked to the whole bound before it is refused."""
    limits, unpack = [], compression.decompressed

    def counted(codec, block, limit):
        limits.append(limit)
        return unpack(codec, block, limit)

    monkeypatch.setattr(compression, "decompressed", counted)
    block = bytes(cramjam.zstd.compress(bytes(compression.LARGEST_OUTPUT_BYTES + 1)))
    bombs = [Batch(block=block, attributes=4, count=3, base_offset=3 * i).bytes() for i in range(10)]
    assert len(entries(b"".join(bombs)).refused) == 10
    assert limits == [compression.LARGEST_OUTPUT_BYTES * (8 - i) // 8 for i in range(8)]


def test_tiny_records_in_blocks_share_one_bound():
    """Some bytes on the wire, and not many unpacked: what costs is each record."""
    many = compression.MOST_RECORDS // 4
    block = bytes(cramjam.zstd.compress(record(b"\x01\x14\x00") * many))
    bombs = [Batch(block=block, attributes=4, count=many, base_offset=many * i).bytes() for i in range(6)]
    found = entries(b"".join(bombs))
    assert [r.reason for r in found.refused if r.reason is BadLength] == [BadLength] * 2


def test_a_left_out_value_changes_nothing_else():
    data = batch(topic("a"), config("hunter2"), topic("b"), config("hunter3"))
    spans = [(data.index(b"hunter2"), 7), (data.index(b"hunter3") + 2, 5)]
    found = entries(without(data, *spans), left_out=spans)
    assert (found.refused, found.unseen) == ((), 0)
    whole, seen = values(entries(data)), values(found)
    assert [v["value"] for v in (seen[1], seen[3])] == [{"left_out": 7}] * 2
    assert [seen[0], seen[2]] == [whole[0], whole[2]]
    assert seen[1] | {"value": "hunter2"} == whole[1]


def test_entries_in_holes_are_counted():
    data = batch(topic("a"), topic("b"), topic("c"))
    at = data.index(topic("b"))
    found = entries(without(data, (at, 2)), left_out=[(at, 2)])
    assert (found.offset.tolist(), found.unseen) == ([0, 2], 1)
    begin = at - 6  # the record's own length
    assert entries(without(data, (begin, 1)), left_out=[(begin, 1)]).unseen == 2
    hidden = [(len(data) + 3, 30)]
    assert entries(without(data * 2, *hidden), left_out=hidden).unseen == 1


def test_entries_of_many_fields_are_one_batch_for_the_machine():
    data = batch(config("hunter2"), base_offset=3, epoch=4)
    span = (data.index(b"hunter2"), 7)
    parts = [entries(LOG), entries(without(data, span), left_out=[span]), entries(batch(b""))]
    whole = joined(parts)
    assert whole.offset.tolist() == [0, 1, 2, 3]
    assert whole.epoch.tolist() == [3, 3, 3, 4]
    assert values(whole) == [v for p in parts for v in values(p)]
    assert len(whole.refused) == 1


def test_voters_and_version_are_control_records_too():
    found = entries(control(5, b"\x00\x00\x00\x01\x00") + control(4, b"\x00\x00\x00", base_offset=1))
    assert values(found) == [{"version": 0, "kRaftVersion": 1}, {"version": 0}]
