"""Snapshots out of chunks: cut anywhere, in order, repeatedly, with holes, within bounds."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.log.batches import Batch, batch, control, record, topic
from wirecheck.decode.errors import BadChecksum
from wirecheck.decode.log import snapshot as s
from wirecheck.decode.message import decode
from wirecheck.decode.nested import nested

WHOLE = (
    control(3, b"\x00\x00" + bytes(8) + b"\x00", epoch=2)
    + batch(topic("a", bytes(15) + b"a"), topic("b", bytes(15) + b"b"), base_offset=1, epoch=2)
    + batch(topic("c", bytes(15) + b"c"), base_offset=3, epoch=2)
    + control(4, b"\x00\x00\x00", base_offset=4, epoch=2)
)


def chunk(begin, end, **rest):
    return s.Chunk(begin, len(WHOLE), WHOLE[begin:end], **rest)


def names(found):
    decoded = decode(found.messages)
    bodies = [nested(decoded, i)["body"] for i in range(len(found))]
    return [b["name"] for b in bodies if "name" in b]


def test_a_snapshot_in_one_piece():
    made = s.Snapshot(40, 2)
    found = made.receive(chunk(0, len(WHOLE)))
    assert names(found) == ["a", "b", "c"]
    assert set(found.offset.tolist()) == {39}
    assert set(found.epoch.tolist()) == {2}
    assert made.complete


@given(st.lists(st.integers(1, len(WHOLE) - 1), max_size=12), st.randoms(), st.booleans())
def test_any_cut_gives_each_entry_once_however_often_it_is_repeated(cuts, rng, restoring):
    edges = sorted({0, len(WHOLE), *cuts})
    pieces = [chunk(a, b) for a, b in pairwise(edges)]
    made, found = s.Snapshot(40, 2), []
    repeated = [each for n, piece in enumerate(pieces) for each in (piece, rng.choice(pieces[: n + 1]))]
    for piece in repeated:
        found += names(made.receive(piece))
        if restoring:
            made = s.Snapshot.restore(made.snapshot())
    assert found == ["a", "b", "c"]
    assert made.complete
    assert made.waiting == []


def test_chunks_of_two_fetchers_may_overlap():
    made = s.Snapshot(40, 2)
    found = []
    for begin, end in ((0, 60), (20, 60), (10, 150), (10, 100), (55, 190), (150, len(WHOLE))):
        found += names(made.receive(chunk(begin, end)))
    assert found == ["a", "b", "c"]
    assert made.complete


@pytest.mark.parametrize("received", [[], [chunk(0, 99)]], ids=["the first", "one between"])
def test_a_snapshot_of_which_a_chunk_is_missing_is_given_up(received):
    made = s.Snapshot(40, 2)
    for before in received:
        made.receive(before)
    assert not made.lost
    assert len(made.receive(chunk(100, len(WHOLE)))) == 0
    assert made.lost
    assert not made.complete


def test_a_left_out_span_in_a_chunk_is_a_hole_in_the_batch():
    made = s.Snapshot(40, 2)
    at = WHOLE.index(topic("b", bytes(15) + b"b"))
    assert names(made.receive(chunk(0, at - 10))) == []
    kept = WHOLE[at - 10 : at] + WHOLE[at + 8 :]
    assert names(made.receive(s.Chunk(at - 10, len(WHOLE), kept, ((10, 8),)))) == ["a", "c"]
    assert made.complete


def test_overlapping_chunks_with_holes_are_cut_where_they_join():
    made = s.Snapshot(40, 2)
    at = WHOLE.index(topic("a", bytes(15) + b"a"))
    made.receive(s.Chunk(0, len(WHOLE), WHOLE[: at + 2], ()))
    made.receive(s.Chunk(at - 4, len(WHOLE), WHOLE[at - 3 : at] + WHOLE[at + 1 :], ((0, 1), (4, 1))))
    assert made.complete


def test_a_header_in_a_hole_is_the_end_of_it():
    made = s.Snapshot(40, 2)
    second = len(control(3, b"\x00\x00" + bytes(8) + b"\x00"))
    assert names(made.receive(s.Chunk(0, len(WHOLE), WHOLE[:second] + WHOLE[second + 9 :], ((second, 9),)))) == []
    assert made.lost
    assert not made.complete


def test_a_refused_batch_is_told():
    broken = Batch([record(topic())], crc=1).bytes()
    made = s.Snapshot(1, 1)
    found = made.receive(s.Chunk(0, len(broken), broken))
    assert [r.reason for r in found.refused] == [BadChecksum]


@pytest.mark.parametrize(
    "wrong",
    [
        s.Chunk(0, len(WHOLE) + 1, WHOLE[:10]),
        s.Chunk(-1, len(WHOLE), WHOLE[:10]),
        s.Chunk(len(WHOLE) - 5, len(WHOLE), WHOLE[:10]),
    ],
)
def test_chunks_that_contradict_the_size_end_it(wrong):
    made = s.Snapshot(40, 2)
    made.receive(chunk(0, 10))
    made.receive(wrong)
    assert made.lost
    assert made.waiting == []
    assert len(made.receive(chunk(0, len(WHOLE)))) == 0
    assert not made.complete


@pytest.mark.parametrize("content", [WHOLE + WHOLE[:5], WHOLE + WHOLE[:40], WHOLE + b"\xff" * 80])
def test_bytes_at_the_end_that_are_no_batch_end_it(content):
    made = s.Snapshot(40, 2)
    assert names(made.receive(s.Chunk(0, len(content), content))) == ["a", "b", "c"]
    assert made.lost


def test_what_waits_is_bounded(monkeypatch):
    monkeypatch.setattr(s, "MOST_WAITING_BYTES", 50)
    made = s.Snapshot(40, 2)
    made.receive(chunk(0, 50))
    assert not made.lost
    made.receive(chunk(50, 51))
    assert made.lost


def test_how_many_pieces_wait_is_bounded(monkeypatch):
    monkeypatch.setattr(s, "MOST_WAITING_CHUNKS", 2)
    made = s.Snapshot(40, 2)
    for at in (0, 1, 2):
        assert not made.lost
        made.receive(chunk(at, at + 1))
    assert made.lost


def test_a_long_batch_in_many_chunks_is_tried_when_it_is_there():
    long = batch(*[topic(f"t{i}", random.Random(i).randbytes(16)) for i in range(200)])
    made, tried = s.Snapshot(9, 1), []
    for at in range(0, len(long), 100):
        tried.append(len(made.receive(s.Chunk(at, len(long), long[at : at + 100]))))
        assert made.needed in {1, len(long), len(long) + 1}
    assert sorted(set(tried)) == [0, 200]


def test_other_versions_of_state_are_refused():
    made = s.Snapshot(40, 2)
    with pytest.raises(ValueError, match="version 99"):
        s.Snapshot.restore(made.snapshot().replace(b'"version": 1', b'"version": 99'))
