"""Attacks on readers of length-prefixed formats, as regression tests of the machine.

Two are known from Wireshark: tag sections that never end, which its Kafka dissector looped over, and arrays that are
not there, which it allocated for. The machine refuses before it loops, and its tokens cost what the bytes cost.
"""

import struct
import time
import tracemalloc

import numpy as np
import pytest

from tests.decode.log.batches import uvarint
from wirecheck import extension_modules
from wirecheck.decode.message import Status, decode
from wirecheck.decode.nested import nested
from wirecheck.decode.wire import RECORD, REQUEST, RESPONSE, pack

METADATA, FETCH, PRODUCE = 3, 1, 0
MOST_UINT32 = b"\xff\xff\xff\xff\x0f"
MOST_INT32 = b"\x7f\xff\xff\xff"
MOST_SECONDS = 30 if extension_modules.PLAIN else 1  # plain Python under a tracer takes some hundred times as long


def request(key, version, body, *, flexible):
    return struct.pack(">hhih", key, version, 1, -1) + (b"\x00" if flexible else b"") + body


def decoded(payload, side, key, version):
    """The outcome, with its price checked."""
    messages = pack([payload], [side], [key], [version])
    decode(messages)  # compiled
    begin = time.thread_time()
    decode(messages)
    took = time.thread_time() - begin
    tracemalloc.start()
    result = decode(messages)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < MOST_SECONDS
    assert peak < 4 << 20
    return result


FETCH_12_BEFORE_TOPICS = struct.pack(">iiiibii", -1, 500, 1, 1 << 20, 0, 0, -1)

BOMBS = {
    "tags without end in a header": (struct.pack(">hhih", METADATA, 12, 1, -1) + MOST_UINT32, REQUEST, METADATA, 12),
    "tags without end in a body": (
        request(METADATA, 12, b"\x00\x01\x00" + MOST_UINT32, flexible=True), REQUEST, METADATA, 12,
    ),
    "tags without end, of zeros": (
        request(METADATA, 12, b"\x00\x01\x00" + MOST_UINT32 + bytes(900), flexible=True), REQUEST, METADATA, 12,
    ),
    "a tag without end": (
        request(METADATA, 12, b"\x00\x01\x00\x01\x05" + MOST_UINT32, flexible=True), REQUEST, METADATA, 12,
    ),
    "tags in a struct of an array": (
        request(METADATA, 12, b"\x02" + bytes(16) + b"\x00" + MOST_UINT32 + bytes(30), flexible=True),
        REQUEST, METADATA, 12,
    ),
    "a compact array": (request(METADATA, 12, MOST_UINT32 + bytes(30), flexible=True), REQUEST, METADATA, 12),
    "a plain array": (request(METADATA, 1, MOST_INT32 + bytes(30), flexible=False), REQUEST, METADATA, 1),
    "an array in an array": (
        request(FETCH, 12, FETCH_12_BEFORE_TOPICS + b"\x02\x02t" + MOST_UINT32 + bytes(90), flexible=True),
        REQUEST, FETCH, 12,
    ),
    "an array of integers": (
        struct.pack(">i", 1) + b"\x00" + bytes(4) + b"\x01\x00\x00\x00\x00\x01\x02\x00\x00\x02t" + bytes(17) + b"\x02"
        + bytes(14) + MOST_UINT32 + bytes(30), RESPONSE, METADATA, 12,
    ),
    "a string": (request(METADATA, 12, b"\x02" + bytes(16) + MOST_UINT32 + bytes(30), flexible=True),
                 REQUEST, METADATA, 12),
    "records": (
        request(PRODUCE, 9, b"\x00\x00\x01\x00\x00\x00\x01\x02\x02t\x02\x00\x00\x00\x00" + MOST_UINT32 + bytes(30),
                flexible=True), REQUEST, PRODUCE, 9,
    ),
    "a varint without end": (request(METADATA, 12, b"\x80" * 900, flexible=True), REQUEST, METADATA, 12),
    "replicas of a partition record": (struct.pack(">i", 0) + bytes(16) + MOST_UINT32 + bytes(30), RECORD, 3, 1),
    "arrays as large as what remains": (
        request(METADATA, 12, uvarint(900) + bytes(900), flexible=True), REQUEST, METADATA, 12,
    ),
}  # fmt: skip

MALFORMED = range(Status.TRUNCATED, Status.LEFTOVER_BYTES + 1)


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_not_there_is_neither_looped_over_nor_allocated(name):
    result = decoded(*BOMBS[name])
    assert result.status[0] in MALFORMED
    assert result.token_at.tolist() == [0, 0]


@pytest.mark.parametrize("count", [1_000, 16_000])
def test_many_empty_unknown_tags_cost_what_their_bytes_cost(count):
    tags = b"".join(uvarint(number) + b"\x00" for number in range(10, 10 + count))
    payload = request(METADATA, 12, b"\x00\x01\x00" + uvarint(count) + tags, flexible=True)
    result = decoded(payload, REQUEST, METADATA, 12)
    assert result.status[0] == Status.OK
    assert result.token_at[1] <= 2 * len(payload)
    assert len(nested(result, 0)["body"]["_unknownTaggedFields"]) == count


@pytest.mark.parametrize("tags", [b"\x02\x0a\x00\x0a\x00", b"\x02\x0b\x00\x0a\x00"])
def test_tags_that_repeat_or_descend_end_the_message(tags):
    payload = request(METADATA, 12, b"\x00\x01\x00" + tags, flexible=True)
    assert decoded(payload, REQUEST, METADATA, 12).status[0] == Status.BAD_TAG


def test_a_bomb_does_not_harm_its_neighbours():
    good = request(METADATA, 12, b"\x00\x01\x00\x00", flexible=True)
    rows = [(good, REQUEST, METADATA, 12)]
    for bomb in BOMBS.values():
        rows += [bomb, (good, REQUEST, METADATA, 12)]
    result = decode(pack(*(list(column) for column in zip(*rows, strict=True))))
    assert (result.status[::2] == Status.OK).all()
    assert np.isin(result.status[1::2], MALFORMED).all()
    assert all(nested(result, i) == nested(result, 0) for i in range(0, len(rows), 2))
