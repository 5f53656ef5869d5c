"""Topics as they were known at a time, from rows of result tables."""

import pytest

from wirecheck.streaming.store.run_result import Result
from wirecheck.streaming.store.topics_at import FOREVER_NS, described
from wirecheck.wording import ns_of

OLD, NEW = "1kItcVyISSW2qinBWMWing", "-dQYQ6GHSY6paRw3TwiVqA"


def at(second):
    return ns_of(f"2026-11-21T00:00:{second:02}Z")


def topic(topic_id, state, first, last, earlier=()):
    return {
        "id": topic_id, "revision": 1, "cluster": "c", "name": "orders", "topic_id": topic_id, "state": state,
        "first_seen": at(first), "last_seen": at(last), "earlier_ids": list(earlier), "sources": [],
    }  # fmt: skip


def state(topic_id, epoch, isr, first, until=None, partition=0):
    return {
        "id": f"{topic_id}{partition}{epoch}{isr}", "revision": 1, "cluster": "c", "name": None, "topic_id": topic_id,
        "partition": partition, "leader": 1, "leader_epoch": epoch, "replicas": [1, 2], "isr": isr,
        "offline_replicas": None, "source": "metadata", "connection": "a:1>b:2", "first_seen": at(first),
        "until": until and at(until),
    }  # fmt: skip


RESULT = Result.of(
    {
        "topics": [topic(OLD, "replaced", 1, 20), topic(NEW, "current", 10, 30, [OLD])],
        "partitions": [
            state(OLD, 0, [1, 2], 1),
            state(NEW, 0, [1, 2], 10, 20),  # shrank at 12, was back by 20, and then came the next epoch
            state(NEW, 0, [1], 12, 12),
            state(NEW, 1, [1, 2], 20),
        ],
        "descriptions": [],
    }
)


def known(second=None):
    return {topic.topic_id: topic for topic in described(RESULT, FOREVER_NS if second is None else at(second))}


def test_the_last_description_has_every_id_with_its_state():
    found = known()
    assert {topic_id: (topic.state, topic.earlier_ids) for topic_id, topic in found.items()} == {
        OLD: ("replaced", ()), NEW: ("current", (OLD,)),
    }  # fmt: skip
    assert found[NEW].topic_id_hex == "f9d41843-a187-498e-a969-1c374f0895a8"
    assert found[NEW].partitions[0].time_ns == at(20)


@pytest.mark.parametrize(
    ("second", "states", "isr"),
    [
        (5, {OLD: "current"}, None),
        (10, {OLD: "replaced", NEW: "current"}, (1, 2)),
        (12, {OLD: "replaced", NEW: "current"}, (1,)),
        (13, {OLD: "replaced", NEW: "current"}, (1, 2)),
        (25, {OLD: "replaced", NEW: "current"}, (1, 2)),
    ],
)
def test_at_a_time_only_what_was_known_then_is_said(second, states, isr):
    found = known(second)
    assert {topic_id: topic.state for topic_id, topic in found.items()} == states
    if isr:
        assert found[NEW].partitions[0].isr == isr
        assert found[NEW].earlier_ids == (OLD,)


def test_before_anything_was_seen_there_is_nothing():
    assert known(0) == {}


def test_what_nobody_said_is_null():
    topic = known()[NEW]
    assert (topic.internal, topic.authorized_operations, topic.internal_claim) == (None, None, None)


@pytest.mark.parametrize(
    ("second", "old", "new"),
    [(5, 1, None), (11, 1, 10), (13, 1, 12), (19, 1, 12), (25, 20, 20), (30, 20, 30), (59, 20, 30)],
)
def test_at_a_time_a_topic_was_seen_when_it_was_seen_and_not_when_it_is_asked_for(second, old, new):
    found = {topic_id: topic.last_ns for topic_id, topic in known(second).items()}
    expected = {OLD: old} | ({NEW: new} if new else {})
    assert found == {topic_id: at(last) for topic_id, last in expected.items()}
