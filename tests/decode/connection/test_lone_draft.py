"""One request on a connection, of which a tag section cannot be read: a draft's inline form, or no Kafka message.

The inline form has no tag section behind its client ID, so that the first byte of its first field looks like a count.
"""

import pytest

from tests.decode.connection.conversations import follow, only, sized
from tests.traffic import Talk

FETCH, STOP_REPLICA, PRODUCE = 1, 5, 0
REPLICA_ID = b"\xff\xff\xff\xff"


def inline(key=FETCH, version=12, client=b"consumer-1", body=REPLICA_ID + bytes(60)):
    name = len(client).to_bytes(2, "big", signed=True) + client
    return sized(key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes([0, 0, 0, 7]) + name + body)


def lone(data):
    results = follow(Talk().open().request(data).close().segments)
    return only(results).protocol


@pytest.mark.parametrize(("key", "version"), [(FETCH, 12), (STOP_REPLICA, 2), (2, 6), (23, 4), (6, 7), (52, 0)])
def test_a_lone_request_of_an_inline_draft_is_a_message(key, version):
    assert lone(inline(key, version)) == "kafka"


@pytest.mark.parametrize(
    "data",
    [
        inline(version=13),
        inline(PRODUCE, 9),
        inline(client=b""),
        inline(client=b"con\0sumer"),
        inline() + b"\0",
        inline()[:-1],
    ],
    ids=["another version", "another API", "no client ID", "a client ID of no client", "a byte too many", "cut off"],
)
def test_other_bytes_that_are_no_request_of_a_client_are_not(data):
    assert lone(data) != "kafka"
