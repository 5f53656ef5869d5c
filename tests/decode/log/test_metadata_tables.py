"""The metadata log as columns: what stands where, and what could not be read."""

import struct

from tests.decode.log.batches import batch, config, entries, entry, leader_change, remove_topic, text, topic, uvarint
from wirecheck.decode.layouts.program import form
from wirecheck.decode.log.metadata_log import joined
from wirecheck.decode.log.metadata_tables import JUDGED, log_tables

ONE, TWO = bytes(15) + b"\x01", bytes(15) + b"\x02"


def ints(*numbers):
    return uvarint(len(numbers) + 1) + struct.pack(f">{len(numbers)}i", *numbers)


def partition(index, topic_id, leader):
    return entry(3, struct.pack(">i", index) + topic_id + ints(1, 2) + ints(1) + ints() * 2
                 + struct.pack(">iii", leader, 4, 5) + b"\x00")  # fmt: skip


def change(index, topic_id, leader=None):
    tags = b"\x00" if leader is None else b"\x01\x01\x04" + struct.pack(">i", leader)
    return entry(5, struct.pack(">i", index) + topic_id + tags)


def broker(number):
    endpoint = text("PLAINTEXT") + text(f"host-{number}") + struct.pack(">Hh", 9092, 0) + b"\x00"
    return entry(0, struct.pack(">i", number) + bytes(16) + struct.pack(">q", 7) + b"\x02" + endpoint + b"\x01"
                 + text(None) + b"\x01\x00\x00", version=1)  # fmt: skip


LOG = leader_change(3, epoch=9) + batch(
    topic("a", ONE), topic("b", TWO), config(), partition(0, ONE, 1), change(0, ONE), change(0, ONE, 2), broker(1),
    broker(2), remove_topic(TWO), base_offset=1, epoch=9,
)  # fmt: skip


def test_rows_say_where_they_stand():
    topics = log_tables(entries(LOG))["TopicRecord"]
    assert len(topics) == 2
    assert topics["name"].strings() == ["a", "b"]
    assert [bytes(i) for i in topics["topic_id"]] == [ONE, TWO]
    assert topics.offset.tolist() == [1, 2]
    assert topics.epoch.tolist() == [9, 9]
    assert topics.timestamp_ms.tolist() == [1_000, 1_000]
    assert topics.entry.tolist() == [1, 2]


def test_each_kind_has_its_columns():
    found = log_tables(entries(LOG))
    assert set(found) == {"TopicRecord", "PartitionRecord", "PartitionChangeRecord", "RegisterBrokerRecord",
                          "RemoveTopicRecord", "LeaderChangeMessage"}  # fmt: skip
    assert found["PartitionRecord"]["replicas"].row(0).tolist() == [1, 2]
    assert found["PartitionRecord"]["leader_epoch"].tolist() == [4]
    changes = found["PartitionChangeRecord"]
    assert changes.present("leader").tolist() == [False, True]
    assert changes["leader"].tolist() == [-2, 2]
    endpoints = found["RegisterBrokerRecord"].inner("end_points")
    assert endpoints["host"].strings() == ["host-1", "host-2"]
    assert endpoints.parent.tolist() == [0, 1]
    assert found["LeaderChangeMessage"]["leader_id"].tolist() == [3]
    assert [bytes(i) for i in found["RemoveTopicRecord"]["topic_id"]] == [TWO]


def test_what_does_not_decode_has_no_row():
    found = log_tables(entries(batch(topic("a"), entry(2, b"broken"), entry(499, b""), entry(2, b"", version=9))))
    assert found["TopicRecord"]["name"].strings() == ["a"]


def test_a_kind_that_did_not_decode_at_all_has_no_table():
    assert log_tables(entries(batch(entry(2, b"broken")))) == {}


def test_many_fields_are_read_in_one_pass():
    found = log_tables(joined([entries(LOG), entries(batch(topic("c"), base_offset=10))]))
    assert found["TopicRecord"]["name"].strings() == ["a", "b", "c"]
    assert found["TopicRecord"].offset.tolist() == [1, 2, 10]


def test_everything_judged_by_is_in_the_schemas():
    for (api, side), paths in JUDGED.items():
        assert {slot.path for slot in form(api, side).root.walk()} >= set(paths)
