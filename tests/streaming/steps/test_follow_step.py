"""An agent's files are followed in their order, whatever order they come in."""

from collections import Counter, deque
from itertools import chain, pairwise

import pytest

from wirecheck.capture.frames import AWAY, DROPPED, ENDED, INPUT_ERROR, PROGRESS, QUARANTINED, SKIPPED, STARTED, Mark
from wirecheck.decode.connection.connection import ends_of
from wirecheck.decode.connection.exchanges import (
    CLOSED_BY_CLIENT,
    CLOSED_BY_SERVER,
    PENDING,
    Connection,
    Exchanges,
    Gap,
)
from wirecheck.decode.connection.follower import Follower, Limits
from wirecheck.decode.connection.shared import MOST_FAILED
from wirecheck.decode.connection.stream.modes import IN_SYNC, OPEN
from wirecheck.decode.message import Messages
from wirecheck.decode.peer import Conversation, Peer
from wirecheck.streaming.steps import follow_step
from wirecheck.streaming.steps.cells import from_cell, to_cell
from wirecheck.streaming.steps.follow_step import Bucket, Marks, Progress, StateVersionMismatch, rounds
from wirecheck.streaming.steps.pack_step import FrameFile, file_cell, pack_files, read_file
from wirecheck.streaming.steps.settings import AgentFiles, Settings
from wirecheck.streaming.steps.tagged import EXCHANGES, MARKS
from wirecheck.streaming.steps.tagged import PROGRESS as FRONT

S = 1_000_000_000


def file(seq, *marks, agent="a"):
    return file_cell(FrameFile(agent, seq, (*marks, Mark(PROGRESS, seq * 1000)), None))


def fronts(rows):
    return [from_cell(row.cell, Progress) for row in rows if row.route == FRONT]


def said(rows):
    return [from_cell(row.cell, Marks, Mark) for row in rows if row.route == MARKS]


def absences(rows):
    return [mark for marks in said(rows) for mark in marks.marks if mark.kind == AWAY]


def restored(bucket):
    again = Bucket(bucket.label, bucket.number, bucket.settings)
    again.restore(bucket.snapshot())
    return again


def test_the_frontier_moves_over_contiguous_files_only():
    bucket = Bucket("L", 0, Settings())
    assert fronts(bucket.receive([file(2), file(4)])) == []
    bucket = restored(bucket)
    assert fronts(bucket.receive([file(1)])) == [Progress("a", 2000, False)]
    assert fronts(restored(bucket).receive([file(3)])) == [Progress("a", 4000, False)]


def test_a_replay_knows_where_files_begin_and_which_are_missing():
    bucket = Bucket("L", 0, Settings(agents={"a": AgentFiles(5, (range(6, 8),))}))
    rows = list(bucket.receive([file(8), file(5)]))
    assert fronts(rows) == [Progress("a", 8000, False)]
    assert [marks.missing_files for marks in said(rows)] == [2]


def test_a_file_that_does_not_come_is_given_up_when_too_many_wait():
    bucket = Bucket("L", 0, Settings(held_files=3))
    assert fronts(bucket.receive([file(1), file(3), file(4), file(5)])) == [Progress("a", 1000, False)]
    rows = list(bucket.receive([file(6)]))
    assert (fronts(rows), [marks.missing_files for marks in said(rows)]) == ([Progress("a", 6000, False)], [1])
    assert fronts(bucket.receive([file(2)])) == []


def test_files_that_were_gone_when_it_started_are_not_waited_for():
    """A stop longer than the agent keeps its files: what came before the first that is there counts as missing."""
    before = Bucket("L", 0, Settings())
    list(before.receive([file(1), file(3)]))
    bucket = Bucket("L", 0, Settings(agents={"a": AgentFiles(7)}))
    bucket.restore(before.snapshot())
    rows = list(bucket.receive([file(8)]))
    assert (fronts(rows), [marks.missing_files for marks in said(rows)]) == ([Progress("a", 3000, False)], [1])
    rows = list(restored(bucket).receive([file(7)]))
    assert (fronts(rows), [marks.missing_files for marks in said(rows)]) == ([Progress("a", 8000, False)], [3])


def test_a_second_file_of_an_agent_and_number_is_named_and_never_replaces_the_first():
    bucket = Bucket("L", 0, Settings())
    first, second = file(2, Mark(STARTED, 1)), file(2, Mark(DROPPED, 1, "eth0", 7, "kernel"))
    early = list(bucket.receive([first, second]))
    rows = list(bucket.receive([file(1)]))
    assert fronts(rows) == [Progress("a", 2000, False)]
    kinds = [mark.kind for marks in said(rows) for mark in marks.marks]
    assert (STARTED in kinds, DROPPED in kinds) == (True, False)
    named = [(mark.kind, mark.source) for marks in said(early) for mark in marks.marks]
    assert named == [(INPUT_ERROR, "a-0000000002.parquet"), (QUARANTINED, "a-0000000002.parquet")]


def test_a_file_that_comes_behind_later_ones_is_passed_over_and_named():
    bucket = Bucket("L", 0, Settings(agents={"a": AgentFiles(5)}))
    list(bucket.receive([file(5), file(6)]))
    rows = list(bucket.receive([file(4), file(7)]))
    assert fronts(rows) == [Progress("a", 7000, False)]
    named = [(mark.kind, mark.source, mark.reason) for marks in said(rows) for mark in marks.marks if mark.source]
    name, reason = "a-0000000004.parquet", "it came after later files of its agent had been judged"
    assert named == [(INPUT_ERROR, name, reason), (QUARANTINED, name, reason)]
    assert said(Bucket("L", 1, Settings(agents={"a": AgentFiles(5)})).receive([file(5)])) == []


def test_agents_wait_for_their_own_files_only():
    bucket = Bucket("L", 0, Settings())
    assert fronts(bucket.receive([file(2, agent="b"), file(1)])) == [Progress("a", 1000, False)]


def test_only_the_first_bucket_passes_marks_on():
    files = [file(1, Mark(STARTED, 1), Mark(DROPPED, 5, None, 7, "kernel"))]
    (marks,) = said(Bucket("L", 0, Settings()).receive(files))
    assert [(mark.kind, mark.count) for mark in marks.marks] == [(STARTED, 0), (DROPPED, 7), (PROGRESS, 0)]
    assert said(Bucket("L", 1, Settings()).receive(files)) == []


def test_it_ends_when_every_expected_agent_has_ended():
    bucket = Bucket("L", 0, Settings(agents={"a": AgentFiles(), "b": AgentFiles()}))
    assert [front.ended for front in fronts(bucket.receive([file(1, Mark(ENDED, 1000))]))] == [True]
    assert not bucket.all_ended()
    list(bucket.receive([file(1, Mark(ENDED, 1000), agent="b")]))
    assert bucket.all_ended()


@pytest.mark.parametrize("ends", [(), (ENDED,)])
def test_what_an_agent_missed_between_two_runs_is_counted(ends):
    """Killed, or stopped: nothing is known of that time. The first start is none, and a quick one does not count."""
    start = 1_800_000_000 * S
    shown = [(1, start), (2, start + 9 * S), (3, start + 30 * S), (4, start + 31 * S)]
    begun = {1: start - S, 3: start + 21 * S, 4: start + 30 * S + S // 2}
    files = []
    for seq, at in shown:
        first = [Mark(STARTED, begun[seq])] if seq in begun else []
        files.append(
            file_cell(FrameFile("a", seq, (*first, *(Mark(kind, at) for kind in ends), Mark(PROGRESS, at)), None))
        )
    bucket, found = Bucket("L", 0, Settings()), []
    for one in files:
        bucket = restored(bucket)
        found += absences(bucket.receive([one]))
    (away,) = found
    assert (away.count, away.ts_ns) == (12, begun[3])
    assert away.reason == "a did not capture, from 2027-01-15 08:00:09 UTC to 2027-01-15 08:00:21 UTC"
    assert absences(Bucket("L", 0, Settings()).receive(files)) == [away]


def test_an_agent_that_ended_may_begin_again():
    bucket = Bucket("L", 0, Settings())
    ends = [file(1, Mark(ENDED, 1000)), file(2, Mark(STARTED, 1500)), file(3, Mark(ENDED, 3000))]
    assert [[front.ended for front in fronts(bucket.receive([cell]))] for cell in ends] == [[True], [False], [True]]


def test_a_replay_ends_an_agent_with_its_last_file_mark_or_not():
    bucket = Bucket("L", 0, Settings(agents={"a": AgentFiles(1, (), 2, "L"), "b": AgentFiles(1, (), 9, "other")}))
    assert [front.ended for front in fronts(bucket.receive([file(1)]))] == [False]
    assert [front.ended for front in fronts(bucket.receive([file(2)]))] == [True]
    assert bucket.all_ended()


def test_an_agent_of_unreadable_files_keeps_no_other_from_its_end():
    bucket = Bucket("L", 0, Settings())
    unreadable = file_cell(FrameFile("b", 1, (Mark(INPUT_ERROR, 0, "b-0000000001.parquet", 1, "bad"),), None))
    list(bucket.receive([unreadable, file(1, Mark(ENDED, 1000))]))
    assert bucket.all_ended()
    list(bucket.receive([file(2, agent="b")]))
    assert not bucket.all_ended()


def test_connections_beyond_the_bound_are_counted_as_skipped(frames_files):
    settings = Settings(buckets=1, agents={"a": AgentFiles()})
    bucket = Bucket("L", 0, settings)
    bucket.follower = Follower(Limits(connections=2))
    cells = [row.cell for rows in pack_files(map(str, frames_files), settings) for row in rows]
    marks = [mark for marks in said(bucket.receive(cells)) for mark in marks.marks if mark.kind == SKIPPED]
    assert [mark.reason for mark in marks if mark.count > 100] == ["too many open connections"]


def test_a_checkpoint_of_another_version_is_refused():
    for magic in (7, "wirecheck bucket 3", "wirecheck bucket 5"):  # as former versions wrote it, and as a later one may
        with pytest.raises(StateVersionMismatch, match=r"^the checkpoint holds no bucket of state version 4$"):
            Bucket("L", 0, Settings()).restore(to_cell((magic, b"", b"")))


def test_real_files_give_exchanges_whatever_the_batches(frames_files):
    settings = Settings(buckets=1, agents={"a": AgentFiles()})
    cells = [row.cell for rows in pack_files(map(str, frames_files), settings) for row in rows]
    at_once = messages(Bucket("L", 0, settings).receive(cells))
    bucket, one_by_one = Bucket("L", 0, settings), []
    for cell in reversed(cells):
        one_by_one += messages(bucket.receive([cell]))
        bucket = restored(bucket)
    assert len(at_once) > 1000
    assert sorted(one_by_one) == sorted(at_once)


def test_a_cell_is_parsed_once(frames_files, monkeypatch):
    """Also one that waits for an earlier file over a restart."""
    settings = Settings(buckets=1, agents={"a": AgentFiles()})
    cells = [row.cell for rows in pack_files(map(str, frames_files), settings) for row in rows]
    parsed = []
    monkeypatch.setattr(follow_step, "read_file", lambda cell: parsed.append(cell) or read_file(cell))
    bucket = Bucket("L", 0, settings)
    list(bucket.receive(cells[1:]))
    assert parsed == []
    bucket = restored(bucket)
    list(bucket.receive(cells[:1]))
    assert sorted(parsed) == sorted(cells)


def test_one_agents_files_are_followed_a_few_at_a_time_and_several_agents_together(frames_files, monkeypatch):
    settings = Settings(buckets=1, agents={"a": AgentFiles()})
    cells = [row.cell for rows in pack_files(map(str, frames_files), settings) for row in rows]
    at_once = messages(Bucket("L", 0, settings).receive(cells))
    sizes = [len(read_file(cell).segments) for cell in cells]
    monkeypatch.setattr(follow_step, "FRAMES_A_CALL", sizes[0] + sizes[1])
    alone = [len(files) for files in rounds({"a": deque(cells)})]
    assert (alone[0], sum(alone)) == (2, len(cells))
    assert [len(files) for files in rounds({"a": deque(cells), "b": deque([file(1, agent="b")])})] == [len(cells) + 1]
    assert sorted(messages(Bucket("L", 0, settings).receive(cells))) == sorted(at_once)


def test_small_results_of_calls_share_a_cell_and_large_ones_do_not(frames_files, monkeypatch):
    settings = Settings(buckets=1, agents={"a": AgentFiles()})
    cells = [row.cell for rows in pack_files(map(str, frames_files), settings) for row in rows]

    def of_cells(most):
        monkeypatch.setattr(follow_step, "MESSAGES_A_CELL", most)
        return [messages([row]) for row in Bucket("L", 0, settings).receive(cells) if row.route == EXCHANGES]

    apart, by_two, together = of_cells(0), of_cells(2000), of_cells(10**9)
    assert len(together) == 1 < len(by_two) < len(apart)
    assert [*chain(*by_two)] == [*chain(*apart)] == together[0]
    assert all(len(here) + len(after) > 2000 for here, after in pairwise(by_two))


def messages(rows):
    found = []
    for row in rows:
        if row.route == EXCHANGES:
            part = from_cell(row.cell, Exchanges, Messages, Connection, Gap, Peer)
            at = part.messages.at
            found += [bytes(part.messages.data[at[i] : at[i + 1]]) for i in range(len(at) - 1)]
    return found


def files_of(frames_files, buckets=1):
    settings = Settings(buckets=buckets, agents={"a": AgentFiles()})
    return settings, [row.cell for rows in pack_files(map(str, frames_files), settings) for row in rows]


def break_(connection):
    """As a mistake of ours would: the next frame of it, or its end, raises, for what is out of order is no chunk."""
    direction = connection.requests()
    direction.out_of_order.chunks.append(object())
    return direction.mode == IN_SYNC


def test_a_connection_that_cannot_be_followed_is_set_aside_and_all_others_go_on(frames_files):
    settings, cells = files_of(frames_files)
    bucket, whole = Bucket("L", 0, settings), Bucket("L", 0, settings)
    expected = [*whole.receive(cells[:1]), *whole.receive(cells[1:])]
    rows = list(bucket.receive(cells[:1]))
    later = Counter(name for name, *_ in exchanged(expected)) - Counter(name for name, *_ in exchanged(rows))
    connections = {str(Conversation(*ends_of(key))): c for key, c in bucket.follower._connections.items()}
    connections |= {">".join(reversed(name.split(">"))): c for name, c in connections.items()}
    name = next(name for name, _ in later.most_common() if name in connections)
    break_(connections[name])
    rows += bucket.receive(cells[1:])
    marks = [(m.kind, set(m.source.split(">"))) for said_ in said(rows) for m in said_.marks if m.kind == INPUT_ERROR]
    assert marks == [(INPUT_ERROR, set(name.split(">")))]
    assert [e for e in exchanged(rows) if e[0] != name] == [e for e in exchanged(expected) if e[0] != name]
    assert Counter(e[0] for e in exchanged(rows))[name] < Counter(e[0] for e in exchanged(expected))[name]


def test_what_raises_at_the_end_of_connections_ends_them_all_the_same(frames_files):
    settings, cells = files_of(frames_files)
    bucket = Bucket("L", 0, settings)
    list(bucket.receive(cells[:1]))
    every = [one for one in bucket.follower._connections.values() if one.life == OPEN and one.client >= 0]
    broken = [connection for connection in every if break_(connection)]
    open_before = bucket.follower.open
    handed_out = [bucket.contained(bucket.follower.drain, most)[0][0] for most in (3, None)]
    assert (bucket.follower.open, bucket.follower.pending) == (0, 0)
    assert sum(one.over for part in handed_out for one in part.connections) == open_before
    assert 3 < len(bucket.failed) == min(len(broken), 3 + MOST_FAILED)


def test_a_follower_by_itself_raises(frames_files):
    _, cells = files_of(frames_files)
    follower = Follower()
    follower.receive(read_file(cells[0]).segments)
    assert any(break_(one) for one in follower._connections.values() if one.life == OPEN and one.client >= 0)
    with pytest.raises((AttributeError, TypeError)):  # the plain source, the compiled one
        follower.drain()


def exchanged(rows):
    """Exchanges by what they are: how they are cut into cells is not told."""
    found = [from_cell(row.cell, Exchanges, Messages, Connection, Gap, Peer) for row in rows if row.route == EXCHANGES]
    return sorted(
        (e.connections[c].name, int(m), int(o))
        for e in found
        for c, m, o in zip(e.connection[e.request], e.messages.correlation_id[e.request], e.outcome, strict=True)
    )


@pytest.mark.parametrize("fails", ["_columns", "_hand_out"])
def test_a_file_whose_frames_make_the_follower_raise_is_quarantined_and_the_others_are_followed(
    monkeypatch, frames_files, fails
):
    """A fault outside any connection, before the frames are followed or after."""
    settings, cells = files_of(frames_files)
    whole = exchanged(Bucket("L", 0, settings).receive(cells))
    poison = read_file(cells[1])
    times = set(poison.segments.ts_ns.tolist())
    columns, original, now = Follower._columns, getattr(Follower, fails), []

    def of_segments(self, segments):
        now[:] = times & set(segments.ts_ns.tolist())
        return columns(self, segments)

    def failing(self, *given):
        found = of_segments(self, *given) if fails == "_columns" else original(self, *given)
        if now:
            now.clear()
            raise LookupError("what a packet holds")
        return found

    monkeypatch.setattr(Follower, "_columns", of_segments)
    monkeypatch.setattr(Follower, fails, failing)
    bucket = Bucket("L", 0, settings)
    rows = [*bucket.receive(cells[:1]), *restored(bucket).receive(cells[1:])]
    marks = [mark for said_ in said(rows) for mark in said_.marks]
    [quarantined] = [mark for mark in marks if mark.kind == QUARANTINED]
    assert quarantined.source == f"a-{poison.file_seq:010d}.parquet"
    assert quarantined.reason.startswith("its frames could not be followed: LookupError in ")
    joined = [mark for mark in marks if mark.kind == INPUT_ERROR and "joined again" in mark.reason]
    assert len(joined) == 2, "all frames of a call, then those of the file alone"
    followed = exchanged(rows)
    assert len(whole) // 2 < len(followed) < len(whole)
    assert not Counter(pairs(followed)) - Counter(pairs(whole)), "nothing is handed out twice"
    assert not {*unanswered(followed)} - {*unanswered(whole)}, "no request counts as unanswered"


def pairs(exchanges):
    return [(name, correlation) for name, correlation, _ in exchanges]


def unanswered(exchanges):
    return [one for one in exchanges if one[2] in {CLOSED_BY_SERVER, CLOSED_BY_CLIENT, PENDING}]
