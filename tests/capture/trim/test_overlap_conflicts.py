"""Bytes that came again with other values are found in the packet that came later, and in no other."""

import numpy as np

from tests.capture.trim.test_placed_rows import kept_pieces
from wirecheck.capture.trim.placed_rows import MOST_LOOKED_AT, Carried, Parts, PlacedRows, conflicts
from wirecheck.capture.waiting_rows import vector


def carried(*packets):
    """(stream, offset, payload) of each, in the order they came."""
    stream, offset, payload = zip(*packets, strict=True)
    length = np.array([len(data) for data in payload])
    at = np.append(0, np.cumsum(length))
    order = np.lexsort((offset, stream))
    rows = PlacedRows(*(vector(np.array(column)) for column in (stream, offset, length, order)))
    return Carried(rows, vector(at), b"".join(payload).__bytes__)


def differing(old, new):
    found = Parts()
    conflicts(old, new, found)
    return kept_pieces(found)


def test_the_same_bytes_again_are_no_conflict():
    batch = carried((2, 0, b"abcdef"), (2, 2, b"cdefgh"), (4, 2, b"CDEF"))
    assert differing(batch, batch) == []
    assert differing(batch, carried((2, 0, b"abcd"), (6, 0, b"x"))) == []


def test_from_the_first_byte_that_differs_on_the_later_one_is_not_kept():
    batch = carried((2, 4, b"efgh"), (2, 0, b"abcdeXgh"))
    assert differing(batch, batch) == [(1, 5, 8)]
    assert differing(carried((2, 0, b"abcd"), (4, 0, b"zz")), carried((4, 0, b"zz"), (2, 2, b"cZef"))) == [(1, 1, 2)]


def test_of_a_packet_that_too_many_overlap_nothing_is_kept():
    batch = carried(*[(2, 0, b"same")] * (MOST_LOOKED_AT + 2))
    assert (MOST_LOOKED_AT + 1, 0, 4) in differing(batch, batch)
