"""Rows and messages less what is not kept: pieces, and the spans between them."""

import numpy as np

from tests.capture.trim.test_placed_rows import kept_pieces, parts
from wirecheck.capture.trim.kept_pieces import MessageSpans, Payloads, between, trimmed
from wirecheck.capture.waiting_rows import vector


def cut(marked, payload_at, length, left=(), tls=0):
    """(pieces, left-out spans) of one row whose bytes begin at 100."""
    left_at = [0, len(left)]
    offsets, lengths = ([span[i] for span in left] for i in (0, 1))
    numbers = (payload_at, [length], left_at, offsets, lengths)
    payloads = Payloads(*(vector(np.array(column, np.int64)) for column in numbers))
    pieces = trimmed(0, 1, marked, payloads, vector(np.array([tls])))
    edges = list(pieces.edges)
    return list(zip(edges[::2], edges[1::2], strict=True)), list(zip(pieces.offset, pieces.length, strict=True))


def test_what_no_mark_names_is_left_out_and_marks_may_overlap():
    marked = parts((0, 20, 30), (0, 5, 12), (0, 10, 15))
    assert cut(marked, [100, 140], 40) == ([(105, 115), (120, 130)], [(0, 5), (15, 5), (30, 10)])
    assert cut(parts(), [100, 140], 40) == ([], [(0, 40)])


def test_what_was_left_out_before_stays_so():
    assert cut(parts((0, 0, 40)), [100, 130], 40, [(10, 10)]) == ([(100, 130)], [(10, 10)])
    assert cut(parts((0, 15, 25)), [100, 130], 40, [(10, 10)]) == ([(110, 115)], [(0, 20), (25, 15)])


def test_pieces_that_touch_are_one_over_rows_too():
    columns = ([100, 140, 150], [40, 10], [0, 0, 0], [], [])
    payloads = Payloads(*(vector(np.array(column, np.int64)) for column in columns))
    pieces = trimmed(0, 2, parts((0, 30, 40), (1, 0, 10)), payloads, vector(np.array([0, 0])))
    assert (list(pieces.edges), list(pieces.at)) == ([130, 150], [0, 10, 20])
    assert (list(pieces.offset), list(pieces.length), list(pieces.left_at)) == ([0], [30], [0, 1, 1])


def test_of_a_row_without_a_mark_stays_what_says_that_it_is_tls():
    assert cut(parts(), [100, 140], 40, tls=5) == ([(100, 105)], [(5, 35)])
    assert cut(parts((0, 8, 9)), [100, 140], 40, tls=5) == ([(108, 109)], [(0, 8), (9, 31)])


def test_of_messages_stays_what_lies_between_spans_with_their_sizes():
    columns = ([100, 0], [50, 20], [0, 2, 2], [10, 40], [5, 30])
    spans = MessageSpans(*(vector(np.array(column, np.int64)) for column in columns))
    assert kept_pieces(between(vector(np.array([1, 0])), spans)) == [(1, 0, 24), (0, 100, 114), (0, 119, 144)]
