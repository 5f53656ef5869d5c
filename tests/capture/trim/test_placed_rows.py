"""Rows by place: what carries a stretch, what waits, what is given up."""

import numpy as np

from wirecheck.capture.trim.pending_rows import Decided
from wirecheck.capture.trim.placed_rows import Parts, PlacedRows, Waiting, without
from wirecheck.capture.waiting_rows import vector

# Two rows of stream 4, the second carries ten bytes of the first again; one of stream 6; one of none.
ROWS = np.array([[4, 0, 30, 100], [6, 0, 20, 200], [-1, -1, 0, 300], [4, 20, 30, 400]], np.int64)


def placed():
    return PlacedRows(*map(vector, ROWS.T))


def parts(*found):
    made = Parts()
    for part in found:
        made.add(*part)
    return made


def told(found):
    return list(zip(found.row, found.begin, found.end, strict=True))


def frontier(**streams):
    opened = [(int(name[1:]) // 2, int(name[1:]) % 2, offset) for name, offset in streams.items()]
    return Decided(np.array(opened, np.int64).reshape(-1, 3)).frontier


def test_a_stretch_is_kept_in_every_row_that_carries_some_of_it():
    rows = placed()
    rows.mark(*map(vector, np.array([[4, 10, 25], [6, 0, 5], [8, 0, 9]], np.int64).T))
    assert told(rows.kept) == [(0, 10, 25), (3, 0, 5), (1, 0, 5)]


def test_rows_wait_that_end_behind_what_is_decided_of_an_open_stream():
    waiting = Waiting()
    assert placed().undecided(frontier(s4=30), 0, waiting) == 3
    assert (list(waiting.streams), list(waiting.bytes), list(waiting.oldest_ns)) == ([4], [30], [400])
    assert placed().undecided(frontier(s4=50, s6=20), 0, Waiting()) == len(ROWS)


def test_what_is_given_up_waits_no_longer_and_carries_nothing():
    rows, of = placed(), frontier(s4=30, s6=10)
    assert told(rows.give_up_waiting(of, 0, vector(np.array([4])))) == [(4, 50, 30)]
    waiting = Waiting()
    assert (rows.undecided(of, 0, waiting), list(waiting.streams)) == (1, [6])
    rows.mark(*map(vector, np.array([[4, 0, 50]], np.int64).T))
    assert told(rows.kept) == [(0, 0, 30)]


def test_rows_that_begin_before_what_was_given_up_are_given_up():
    rows = placed()
    rows.give_up_before(4, 20)
    assert list(rows.stream) == [-1, 6, -1, 4]


def test_a_byte_is_read_from_a_row_of_which_all_is_here():
    whole, cut = vector(np.zeros(5)), vector(np.array([0, 1, 1, 1, 1]))
    assert (placed().carrier(4, 25, whole), placed().carrier(4, 25, cut), placed().carrier(4, 50, whole)) == (0, 3, -1)


def test_what_is_excluded_is_cut_out():
    marked = parts((1, 0, 10), (2, 0, 10), (3, 5, 6))
    assert told(without(marked, parts((2, 8, 20), (2, 2, 4)))) == [(1, 0, 10), (2, 0, 2), (2, 4, 8), (3, 5, 6)]
    assert told(without(parts((2, 3, 5)), parts((2, 0, 9)))) == []
