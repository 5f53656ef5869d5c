"""Compiled layouts: one program for everything there is, well-formed, within the interpreter's bounds."""

from itertools import pairwise

import numpy as np
import pytest

from tests.build import CASES
from wirecheck.decode.interpret import instruction as op
from wirecheck.decode.interpret.interpreter import DEEPEST
from wirecheck.decode.layouts.form import Form, Kind, Slot, number
from wirecheck.decode.layouts.layout import SIDES, layouts, parse
from wirecheck.decode.layouts.program import Dialect, form, programs
from wirecheck.decode.layouts.program_writer import Writer
from wirecheck.decode.wire import REQUEST


def test_every_version_of_every_layout_has_a_program():
    missing = [
        (layout.api, layout.side, version)
        for name in ("kafka", "metadata_records", "other")
        for layout in layouts(name)
        if layout.side != "header"
        for version in layout.versions
        if programs().entries[Dialect.KAFKA, SIDES.index(layout.side), layout.key, version] < 0
    ]
    assert missing == []
    assert (programs().entries >= 0).sum() == len(CASES)


def each_program():
    begins = np.sort(programs().entries[programs().entries >= 0]).tolist()
    return [programs().instructions[begin:end] for begin, end in pairwise([*begins, len(programs().instructions)])]


def test_programs_begin_with_their_message_and_end():
    assert {program[0].op for program in each_program()} == {op.MESSAGE}
    assert {program[-1].op for program in each_program()} == {op.END}


def test_jumps_stay_inside_their_program():
    for program in each_program():
        inside = set(program)
        for now in program:
            jumps = {now.next, now.target, now.after, now.first_tag or now, now.next_tag or now}
            assert jumps <= inside


def test_an_instruction_that_goes_on_knows_where():
    """Only what ends a program or begins a known tag points at itself."""
    for program in each_program():
        assert [now.op for now in program if now.next is now] == [op.END]
        jumping = {op.ARRAY, op.COMPACT_ARRAY, op.NEXT, op.NULLABLE_STRUCT, op.TAGS, op.NEXT_TAG, op.RUN}
        assert not [now.op for now in program if now.op in jumping and now.target is now]
        assert not [now.op for now in program if now.op in {op.NEXT, op.BLOCK, op.ROWS} and now.after is now]


def test_a_copy_points_where_its_original_does():
    for now in max(each_program(), key=len):
        other = now.copy()
        names = [name for name in dir(now) if not name.startswith("_") and name != "copy"]
        assert len(names) == 16
        for name in names:
            value = getattr(now, name)
            assert getattr(other, name) is value or getattr(other, name) == value


def depth(program):
    """Arrays and known tags around the innermost field of a program."""
    most = now = 0
    closing = {op.NEXT: 1, op.BLOCK: 1, op.TAGGED_BLOCK: 1, op.ROWS: 1, op.TAG_END: 1}
    for kind in (now.op for now in program):
        now += int(kind in {op.ARRAY, op.COMPACT_ARRAY, op.TAG})
        most = max(most, now)
        now -= closing.get(kind, 0)
    assert now == 0
    return most


def test_nothing_nests_deeper_than_the_interpreter_has_frames():
    deepest = max(map(depth, each_program()))
    assert deepest + 2 <= DEEPEST  # a message's own tag section and one array inside


def test_slots_mean_the_same_whatever_the_version():
    here = form("Fetch", "request")
    assert here is form(1, "request")
    assert {"", "topics", "topics.partitions", "forgotten_topics_data"} <= set(here.tables)
    assert form("AlterIsr", "request") is form("AlterPartition", "request")
    numbers = [slot.number for slot in programs().slots]
    assert numbers == list(range(len(numbers)))


def test_labels_are_kafkas_names_and_paths_are_columns():
    labels = {slot.label: slot.path for slot in form("Fetch", "request").root.walk() if slot.kind == Kind.INTEGER}
    assert labels["topics.partitions.fetchOffset"] == "topics.partitions.fetch_offset"
    assert labels["header.correlationId"] == "correlation_id"


def test_layouts_that_disagree_about_a_field_are_our_bug():
    (layout,) = parse("1 A request v0-1 flexible none\n  a string v0\n  b []int32\n")
    root = Slot("", Kind.MESSAGE)
    root.of(layout.fields[0])
    with pytest.raises(AssertionError, match="a is TEXT here and INTEGER there"):
        root.child("a", Kind.INTEGER)


def test_numbering_gives_each_array_its_own_rows():
    here = Form("A", REQUEST, 1)
    body = here.root.child("body", Kind.STRUCT)
    element = body.child("things", Kind.ARRAY).element(Kind.ELEMENT)
    element.child("name", Kind.TEXT)
    slots, levels = number([here])
    assert [slot.level for slot in slots] == [0, 0, 0, 1, 1]
    assert (levels, [slot.path for slot in slots]) == (2, ["", "", "things", "things", "things.name"])


def test_of_a_version_changed_in_place_both_layouts_are_there():
    for dialect in (Dialect.KAFKA, Dialect.KAFKA_CHANGED):
        assert programs().entries[dialect, REQUEST, 54, 0] >= 0
    assert Dialect.KAFKA_CHANGED_TWICE.label == "kafka-changed-twice"


@pytest.mark.parametrize(("kind", "turn"), [("int16", op.ROWS), ("uint16", op.NEXT)])
def test_rows_with_arrays_are_taken_at_once_only_if_columns_read_them_so(kind, turn):
    (layout,) = parse(f"1 A request v0 flexible none\n  things []\n    port {kind}\n    ids []int32\n")
    writer = Writer()
    writer.message(Form("A", REQUEST, 1), layout, 0)
    assert {op.ROWS, op.NEXT} & {now.op for now in writer.instructions} == {turn}
