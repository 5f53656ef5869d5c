"""Compiled layouts: one program for everything there is, well-formed, within the machine's bounds."""

from itertools import pairwise

import numpy as np
import pytest

from tests.build import CASES
from wirecheck.decode import machine
from wirecheck.decode.layouts.form import Form, Kind, Slot, number
from wirecheck.decode.layouts.layout import layouts, parse
from wirecheck.decode.layouts.program import Dialect, _Compiler, form, programs
from wirecheck.decode.wire import REQUEST, SIDES


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


def test_programs_begin_with_their_message_and_end():
    table = programs().table
    begins = np.sort(programs().entries[programs().entries >= 0])
    assert (table[begins, machine.OP] == machine.MESSAGE).all()
    assert (table[[*(begins[1:] - 1), len(table) - 1], machine.OP] == machine.END).all()


def test_jumps_stay_inside_their_program():
    table = programs().table
    begins = np.append(np.sort(programs().entries[programs().entries >= 0]), len(table))
    row = np.arange(len(table))
    program = np.searchsorted(begins, row, "right")
    target = np.where(table[:, machine.OP] == machine.MESSAGE, row, table[:, machine.D])
    jumps = target > 0
    assert (np.searchsorted(begins, target[jumps], "right") == program[jumps]).all()


def depth(rows, start, end):
    """Arrays and known tags around the innermost field of a program."""
    most = now = 0
    closing = {machine.NEXT: 1, machine.BLOCK: 1, machine.TAGGED_BLOCK: 1, machine.ROWS: 1, machine.TAG_END: 1}
    for op in rows[start:end, machine.OP]:
        now += int(op in {machine.ARRAY, machine.COMPACT_ARRAY, machine.TAG})
        most = max(most, now)
        now -= closing.get(op, 0)
    assert now == 0
    return most


def test_nothing_nests_deeper_than_the_machine_has_frames():
    table = programs().table
    begins = [*np.sort(programs().entries[programs().entries >= 0]), len(table)]
    deepest = max(depth(table, begin, end) for begin, end in pairwise(begins))
    assert deepest + 2 <= machine.DEEPEST  # a message's own tag section and one array inside


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


@pytest.mark.parametrize(("kind", "turn"), [("int16", machine.ROWS), ("uint16", machine.NEXT)])
def test_rows_with_arrays_are_taken_at_once_only_if_columns_read_them_so(kind, turn):
    (layout,) = parse(f"1 A request v0 flexible none\n  things []\n    port {kind}\n    ids []int32\n")
    compiler = _Compiler()
    compiler.message(Form("A", REQUEST, 1), layout, 0)
    assert turn in {row[machine.OP] for row in compiler.rows}
    assert {machine.ROWS, machine.NEXT} & {row[machine.OP] for row in compiler.rows} == {turn}
