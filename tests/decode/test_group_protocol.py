"""Subscriptions and assignments: what Kafka's own layouts build is read, other bytes are not."""

import random
import struct

import pytest

from wirecheck.decode.group_protocol import assignment, subscription

READERS = {"ConsumerProtocolSubscription": subscription, "ConsumerProtocolAssignment": assignment}


def text(word):
    return struct.pack(">h", len(word)) + word


def topics(*rows):
    parts = [text(name) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers) for name, numbers in rows]
    return struct.pack(">i", len(rows)) + b"".join(parts)


USER = struct.pack(">i", 6) + b"S3CRET"
JOINED = struct.pack(">hi", 3, 1) + text(b"orders") + USER + topics((b"orders", (0, 2))) + struct.pack(">i", 7)
JOINED += text(b"rack-a")
GIVEN = struct.pack(">h", 1) + topics((b"orders", (1, 3)), (b"audit.log", ())) + USER


def test_a_subscription_says_topics_what_is_owned_and_its_generation():
    found = subscription(JOINED)
    assert (found.topics, found.owned, found.generation) == (("orders",), (("orders", (0, 2)),), 7)
    assert [JOINED[at : at + length] for at, length in found.content] == [b"S3CRET", b"rack-a"]


def test_an_assignment_says_topics_and_partitions():
    found = assignment(GIVEN)
    assert found.topics == (("orders", (1, 3)), ("audit.log", ()))
    assert [GIVEN[at : at + length] for at, length in found.content] == [b"S3CRET"]


def test_what_a_newer_version_adds_is_content():
    newer = struct.pack(">h", 4) + JOINED[2:] + b"MORE"
    at, length = subscription(newer).content[-1]
    assert newer[at : at + length] == b"MORE"


@pytest.mark.parametrize("read", READERS.values())
@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0\1", JOINED + b"x", GIVEN[:-1], b"\0\0\0\0\0\x24", bytes(200), b"\xff" * 40]
)
def test_other_bytes_are_not_read(read, data):
    assert read(data) is None


def test_connects_own_protocol_is_not_read():
    """An assignment of Connect (ConnectProtocol, version 1): version, error, leader, its URL, offset, connectors."""
    connect = struct.pack(">hh", 1, 0) + text(b"connect-1") + text(b"http://c:8083/") + struct.pack(">q", 7) + bytes(4)
    assert (assignment(connect), subscription(connect)) == (None, None)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_are_read_or_refused(seed):
    rng = random.Random(seed)
    for whole in (JOINED, GIVEN):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        for read in READERS.values():
            found = read(bytes(data))
            assert found is None or all(at >= 0 and at + n <= len(data) for at, n in found.content)
