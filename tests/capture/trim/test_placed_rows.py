"""Rows by place: what carries a stretch, what waits, what is given up."""

import numpy as np
import pyarrow as pa

from wirecheck.capture.trim.pending_rows import Chunk, Offsets
from wirecheck.capture.trim.placed_rows import Parts, by_row, without
from wirecheck.capture.waiting_rows import vector
from wirecheck.decode.connection.handout import Placed
from wirecheck.decode.connection.segments import Segments

# Two rows of stream 4, the second carries ten bytes of the first again; one of stream 6; one of none.
ROWS = np.array([[4, 0, 30, 100], [6, 0, 20, 200], [-1, -1, 0, 300], [4, 20, 30, 400]], np.int64)


def chunk(left_at=(0, 0, 0, 0, 0)):
    stream, offset, length, ts_ns = ROWS.T
    nothing = np.zeros(0, np.int64)
    at = np.append(0, np.cumsum(length))
    segments = Segments(
        "", (), (), *[nothing] * 3, ts_ns, *[nothing] * 6, length, nothing, nothing,
        np.arange(at[-1]).astype(np.uint8), at, np.array(left_at), nothing, nothing,
    )  # fmt: skip
    return Chunk(pa.record_batch({"ts_ns": ts_ns}), segments, Placed(stream // 2, stream % 2, offset))


def offsets(**streams):
    return Offsets(np.array([int(name[1:]) for name in streams]), np.array([*streams.values()]), 1 << 62)


def parts(*found):
    made = Parts()
    for part in found:
        made.add(*part)
    return made


def kept_pieces(found):
    return list(zip(found.row, found.begin, found.end, strict=True))


def test_a_stretch_is_kept_in_every_row_that_carries_some_of_it():
    rows = chunk().placed
    rows.mark(*map(vector, np.array([[4, 10, 25], [6, 0, 5], [8, 0, 9]], np.int64).T))
    assert kept_pieces(rows.kept) == [(0, 10, 25), (3, 0, 5), (1, 0, 5)]


def test_rows_wait_that_end_behind_what_is_decided_of_an_open_stream():
    rows = chunk()
    assert rows.waiting.tolist() == [0, 1, 3]
    rows.decide(offsets(s4=30))
    assert (rows.waiting.tolist(), rows.first_waiting()) == ([3], 3)
    rows.decide(offsets(s4=50, s6=20))
    assert (rows.waiting.tolist(), rows.first_waiting()) == ([], len(ROWS))


def test_what_is_given_up_waits_no_longer_and_carries_nothing():
    rows = chunk()
    rows.give_up(np.array([3]))
    assert (rows.waiting.tolist(), rows.stream.tolist(), list(rows.placed.stream)) == (
        [0, 1],
        [4, 6, -1, -1],
        [4, 6, -1, -1],
    )
    rows.placed.mark(*map(vector, np.array([[4, 0, 50]], np.int64).T))
    assert kept_pieces(rows.placed.kept) == [(0, 0, 30)]


def test_a_byte_is_read_from_a_row_of_which_all_is_here():
    whole = chunk()
    assert [whole.read(4, at, 2) for at in (25, 45, 50)] == [bytes([25, 26]), bytes([75, 76]), b""]
    assert chunk((0, 1, 1, 1, 1)).read(4, 25, 2) == bytes([55, 56])


def test_offsets_are_those_of_their_streams():
    assert Offsets().of(np.array([-1, 0, 5])).tolist() == [-1, -1, -1]
    some = Offsets(np.array([9, 2]), np.array([90, 20])).moved(np.array([2, 5]), np.array([21, 50]))
    assert (some.stream.tolist(), some.offset.tolist()) == ([2, 5, 9], [21, 50, 90])
    assert some.without(np.array([5, 7])).of(np.array([9, 5, 2, 3])).tolist() == [90, -1, 21, -1]


def test_what_is_excluded_is_cut_out():
    marked = parts((1, 0, 10), (2, 0, 10), (3, 5, 6))
    assert kept_pieces(without(marked, parts((2, 8, 20), (2, 2, 4)))) == [(1, 0, 10), (2, 0, 2), (2, 4, 8), (3, 5, 6)]
    assert kept_pieces(without(parts((2, 3, 5)), parts((2, 0, 9)))) == []


def test_entries_go_to_their_rows_in_order():
    rows, place = np.array([7, 3, 5, 3, 9, 5]), np.array([0, 8, 1, 2, 0, 1])
    at, order = by_row(vector(rows), vector(place), 3, 9)
    assert list(at) == [0, 2, 2, 4, 4, 5, 5]
    assert list(order) == [3, 1, 2, 5, 0]
