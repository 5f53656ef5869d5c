"""Rows wait while parts of a label have something to tell each other, and what stands between batches is kept."""

import pytest

from wirecheck.streaming.steps.tagged import MAIL, Tagged
from wirecheck.streaming.steps.turns import MOST_TURNS, Turns
from wirecheck.streaming.store import mailbox
from wirecheck.streaming.store.result_tables import from_ipc, to_ipc

SAID = Tagged("L", 2, MAIL, b"said")


def clients(*rows, label="L"):
    lines = [{"id": key, "revision": number, "label": label, "withdrawn": gone} for key, number, gone in rows]
    return Tagged(label, -1, "clients", to_ipc("clients", lines))


def told(rows):
    return [(row["id"], row["revision"]) for one in rows for row in from_ipc(one.cell).to_pylist()]


def test_rows_wait_until_nobody_speaks_and_then_the_last_revisions_are_told():
    first, now = Turns().after([clients(("a", 1, False), ("b", 4, False)), SAID])
    assert (now, first.open, first.mail) == ([], True, (SAID,))
    second, now = first.after([clients(("a", 2, False), ("c", 1, False)), SAID])
    assert now == []
    third, now = second.after([clients(("c", 2, True), ("b", 5, True))])
    assert sorted(told(now)) == [("a", 2), ("b", 5)]  # c was made and withdrawn meanwhile: nobody's row
    assert third == Turns()


def test_a_label_waits_for_its_own_parts_only():
    first, now = Turns().after([clients(("a", 1, False)), clients(("z", 1, False), label="other"), SAID])
    assert (told(now), first.open) == ([("z", 1)], True)
    _, now = first.after([clients(("a", 2, False))])
    assert told(now) == [("a", 2)]


def test_nothing_is_held_back_for_ever():
    turns = Turns()
    for number in range(MOST_TURNS):
        assert turns.open is (number > 0)
        turns, now = turns.after([clients(("a", number + 1, False)), SAID])
    assert told(now) == [("a", MOST_TURNS)]
    assert (turns.open, turns.mail, turns.waiting) == (False, (SAID,), ())


def test_rows_without_revisions_are_told_all():
    exchange = Tagged("L", -1, "exchanges", to_ipc("exchanges", [{"label": "L", "connection": "c"}]))
    turns, _ = Turns().after([exchange, SAID])
    assert turns.after([exchange])[1] == [exchange, exchange]


def test_what_stands_between_batches_is_found_again(tmp_path):
    turns, _ = Turns().after([clients(("a", 1, False)), SAID])
    turns.write(str(tmp_path), 7)
    assert Turns.read(str(tmp_path), 7) == turns
    assert Turns.read(str(tmp_path), 6) == Turns()
    Turns().write(str(tmp_path), 7)  # the batch is repeated, and nobody speaks
    assert Turns.read(str(tmp_path), 7) == Turns()
    for number in range(7, 12):
        turns.write(str(tmp_path), number)
    assert len([*(tmp_path / mailbox.FOLDER).iterdir()]) == mailbox.KEPT


def test_a_damaged_file_is_named(tmp_path):
    Turns(1, (SAID,)).write(str(tmp_path), 7)
    (tmp_path / mailbox.place(7)).write_bytes(b"half")
    with pytest.raises(ValueError, match=mailbox.place(7)):
        Turns.read(str(tmp_path), 7)
