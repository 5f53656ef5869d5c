"""Batches of messages: taken apart, put together, with what was left out."""

from dataclasses import replace

import numpy as np
import pytest

from wirecheck.decode.interpret.vectors import bytes_of
from wirecheck.decode.wire import DATA, RECORD, REQUEST, RESPONSE, client_id, pack, together, wire_offset

BATCH = pack(
    [b"\0\1\0\2" + b"\0\0\0\7" + b"rest", b"\0\0\0\x09abcdef", b"xyz", b""],
    [REQUEST, RESPONSE, RECORD, DATA],
    [1, 1, 2, 0],
    [2, 2, 0, 0],
    [[(4, 2), (8, 1)], [(5, 3)], [], []],
)


def test_spans_are_cut_out_and_sizes_stay_true():
    assert BATCH.data.tobytes() == b"\0\1\0\2\0\7est" + b"\0\0\0\x09aef" + b"xyz"
    assert BATCH.at.tolist() == [0, 9, 16, 19, 19]
    assert BATCH.size.tolist() == [12, 10, 3, 0]
    assert BATCH.correlation_id.tolist() == [7, 9, 0, 0]
    assert len(BATCH) == 4


def test_rows_can_be_taken_in_any_order():
    taken = BATCH.take(np.array([2, 0]))
    assert taken.data.tobytes() == b"xyz\0\1\0\2\0\7est"
    assert (taken.span_at.tolist(), taken.span_offset.tolist()) == ([0, 0, 2], [4, 8])
    assert taken.key.tolist() == [2, 1]
    masked = BATCH.take(np.array([False, True, False, False]))
    assert (masked.data.tobytes(), masked.span_length.tolist()) == (b"\0\0\0\x09aef", [3])


def test_batches_are_put_together_as_if_they_had_been_one():
    first, second = np.array([0]), np.array([1, 2, 3])
    whole = together([BATCH.take(first), BATCH.take(second)])
    assert all(np.array_equal(getattr(whole, name), getattr(BATCH, name)) for name in BATCH.__slots__)


def test_messages_lie_in_bytes_that_hold_more_and_are_put_together_without_it():
    around = b"before" + BATCH.data.tobytes() + b"behind"
    data = np.frombuffer(memoryview(around), np.uint8)[6:-6]
    inside = replace(BATCH, data=data).in_place()
    assert bytes_of(inside.data) is around
    assert inside.at.tolist() == [6, 15, 22, 25, 25]
    whole = together([inside, inside.take(np.array([0]))])
    assert whole.data.tobytes() == BATCH.data.tobytes() + BATCH.data.tobytes()[:9]


def test_places_in_the_data_are_offsets_on_the_wire():
    message = np.array([0, 0, 0, 0, 1, 2])
    place = np.array([2, 4, 5, 7, 15, 17])
    assert wire_offset(BATCH, message, place).tolist() == [2, 4, 7, 10, 9, 1]


@pytest.mark.parametrize(
    ("data", "spans", "expected"),
    [
        ("0003000c00000001 0003 617070 00", [], "app"),
        ("0003000c00000001 0003 617070 ff", [], "app"),
        ("0003000c00000001 0000", [], ""),
        ("0003000c00000001 ffff", [], None),
        ("0003000c00000001 0003 6170", [], None),
        ("0003000c00000001 00", [], None),
        ("0003000c00000001 0001 ff", [], "\ufffd"),
        ("0003000c00000001 0003 617070 000000", [(14, 2)], "app"),
        ("0003000c00000001 0003 617070 000000", [(12, 4)], None),
        ("0007000000000001 0001 61", [], None),
    ],
)
def test_the_client_id_of_a_request_is_known_whatever_follows_it(data, spans, expected):
    data = bytes.fromhex(data)
    assert client_id(pack([data], [0], [data[1]], [data[3]], [spans]), 0) == expected
