"""One label's step: which totals stand beside what the judge tells, and that its state is all it needs."""

import gc

from wirecheck.capture.frames import PROGRESS, SKIPPED, Mark
from wirecheck.judge.ledger.ledger import Ledger
from wirecheck.judge.revisions.judge import Judge
from wirecheck.streaming.steps import judge_step
from wirecheck.streaming.steps.cells import to_cell
from wirecheck.streaming.steps.follow_step import Marks, Progress
from wirecheck.streaming.steps.judge_step import judge_rows
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import AgentFiles, Settings
from wirecheck.streaming.steps.tagged import MARKS, Tagged
from wirecheck.streaming.steps.tagged import PROGRESS as FRONT
from wirecheck.streaming.store.result_tables import from_ipc

SETTINGS = Settings(buckets=1)


def followed(seq):
    marks = Marks("a", (Mark(PROGRESS, seq * 1000),), 0, seq)
    front = Progress("a", seq * 1000, ended=False)
    return [Tagged("L", 0, MARKS, to_cell(marks)), Tagged("L", 0, FRONT, to_cell(front))]


def refused(count):
    """Frames a bucket had no room for: said beside the marks of the files, without a number."""
    return Tagged("L", 3, MARKS, to_cell(Marks("a", (Mark(SKIPPED, 1000, None, count, "too many"),), 0)))


def totals(state, rows):
    """(revision, count) of what a batch told of the totals, by measure; the state goes on."""
    rows_out, changed = judge_rows("L", iter(rows), state.get, SETTINGS)
    state.update(changed)
    lines = [line for row in rows_out if row.route == "totals" for line in from_ipc(row.cell).to_pylist()]
    return {line["measure"]: (line["revision"], line["count"]) for line in lines}


def test_what_is_skipped_for_want_of_room_moves_no_agent_back_to_its_first_file():
    state = {}
    assert totals(state, followed(7))["followed_files"] == (1, 7)
    emitted = totals(state, [*followed(8), refused(5)])
    assert emitted["followed_files"] == (2, 8)
    assert emitted["skipped_frames"] == (1, 5)
    assert "followed_files" not in totals(state, [refused(2)])


def test_a_batch_that_is_repeated_tells_the_same():
    state = {}
    totals(state, followed(1))
    before = dict(state)
    first = totals(state, [*followed(2), refused(1)])
    assert totals(before, [*followed(2), refused(1)]) == first
    assert before == state


def test_what_a_batch_knew_is_freed_without_being_looked_for(frames_files, monkeypatch):
    """A ring of objects that holds the ledger would stay until the collector comes, which looks through every claim."""
    known = []

    class Seen(Judge):
        def __init__(self, *about):
            super().__init__(*about)
            known.append(id(self.ledger))

    monkeypatch.setattr(judge_step, "Judge", Seen)
    loop = Loop(Settings(agents={"a": AgentFiles()}))
    was_on = gc.isenabled()
    gc.disable()
    try:
        for file in frames_files:
            loop.batch([file])
        held = [each for each in gc.get_objects() if isinstance(each, Ledger) and id(each) in known]
    finally:
        if was_on:
            gc.enable()
    assert len(known) == len(frames_files)
    assert held == []
