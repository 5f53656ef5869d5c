"""Text on its way to a terminal: what it would obey is written out, JSON stays the same value, progress is one line."""

import io
import json
import time
from types import SimpleNamespace

import click
import pytest

from tests.story.values import hurt
from wirecheck.commands import screen
from wirecheck.commands.screen import ERASE, Progress, as_json, legible, progress, tell
from wirecheck.decode.peer import Peer
from wirecheck.story.seen import NotKept


def test_escapes_and_turned_text_are_written_out():
    assert legible("a\x1b[2J\u202eb") == r"a\x1b[2J\u202eb"


def test_a_name_begins_no_line_of_its_own():
    assert legible({"name": ["orders\n0 findings\t."]}) == {"name": [r"orders\n0 findings\t."]}
    assert legible("two\nlines") == "two\nlines"


def test_cells_and_values_hold_nothing_to_obey():
    assert legible([("1 s", "a\x1b[2Jb")]) == [("1 s", r"a\x1b[2Jb")]
    assert legible(Peer("\x1b]0;owned", 9092)) == Peer(r"\x1b]0;owned", 9092)
    assert legible(hurt("a\nb")) == hurt(r"a\nb")


def test_json_stays_the_same_value_and_holds_nothing_to_obey():
    value = {"client_id": "a\x1b\x9b\u202e\u2066b\n", "topic": "größe"}
    line = as_json(value)
    assert json.loads(line) == value
    assert not set(line) & set("\x1b\x9b\u202e\u2066\n")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(screen, "sys", SimpleNamespace(stderr=shown))
    monkeypatch.setattr(screen.Display, "quiet", False)  # a command of another test may have been told to be
    monkeypatch.setenv("TERM", "xterm")
    return shown


def test_a_terminal_is_shown_at_once_what_goes_on_and_nothing_of_it_stays(terminal):
    with progress("reading"):
        assert terminal.getvalue().startswith(f"{ERASE}reading ...  ")
    assert terminal.getvalue().endswith(ERASE)


def test_progress_moves_while_nothing_is_said(terminal, monkeypatch):
    monkeypatch.setattr(screen, "REDRAW_S", 0.01)
    with progress("reading"):
        deadline_s = time.monotonic() + 10
        while terminal.getvalue().count("reading") < 3 and time.monotonic() < deadline_s:
            time.sleep(0.01)
    assert terminal.getvalue().count("reading") >= 3


def test_a_line_takes_the_place_of_the_progress(terminal):
    with progress("reading"):
        tell("wirecheck: cut.pcap: broken\x1b[2J")
    assert f"{ERASE}wirecheck: cut.pcap: broken\\x1b[2J\n" in terminal.getvalue()


@pytest.mark.parametrize(
    ("done", "elapsed_s", "columns", "line"),
    [
        (None, 0.4, 80, "Spark is starting ...  0:00"),
        ((0, 4), 61, 80, "checking  [                        ] 0 %  1:01"),
        ((3, 4), 3599.9, 80, "checking  [==================      ] 75 %  59:59"),
        ((9, 4), 1, 80, "checking  [========================] 100 %  0:01"),
        ((0, 0), 1, 80, "checking ...  0:01"),
        ((3, 4), 1, 20, "checking  [========"),
    ],
)
def test_progress_says_what_how_far_and_since_when(done, elapsed_s, columns, line):
    bar = Progress("Spark is starting", then="checking")
    if done is not None:
        bar(*done)
    assert bar.line(elapsed_s, columns) == line


@pytest.mark.parametrize("shown", ["pipe", "dumb"])
def test_what_cannot_take_back_is_shown_no_progress(shown, monkeypatch, terminal):
    monkeypatch.setenv("TERM", "dumb")
    if shown == "pipe":
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    with progress("reading") as advance:
        advance(1, 2)
    assert terminal.getvalue() == ""


def test_quiet_is_neither_progress_nor_notes_until_it_is_taken_back(terminal):
    others = [NotKept("topics", "L", "C", None, None, 2)]
    for quiet in (True, False):
        screen.be_quiet(quiet=quiet)
        with progress("reading"):
            screen.warn_of(others)
        assert ("reading" in terminal.getvalue(), "note: 2 more" in terminal.getvalue()) == (not quiet, not quiet)


CELLS = [("00:20:03.950Z", "time"), ("10.0.0.7:9092 > 10.0.0.9:51810   ", "ends"), ("LeaderAndIsr v7 response", "api"),
         ("orders", "topic"), ("INCONSISTENT_TOPIC_ID", "error"), ("frame 3316", "frame")]  # fmt: skip


def test_a_row_that_a_terminal_has_room_for_is_one_line():
    whole = "  ".join(text for text, _ in CELLS)
    assert screen.row(CELLS, paint=False) == screen.row(CELLS, paint=False, columns=len(whole)) == whole


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_a_longer_row_hangs_below_its_time_and_breaks_no_word(columns):
    first, *rest = screen.row(CELLS, paint=False, columns=columns).split("\n")
    assert rest
    assert max(map(len, (first, *rest))) <= columns
    assert all(line.startswith(screen.HANGING) and line == line.rstrip() and line[15] != " " for line in rest)
    assert " ".join([first, *rest]).split() == "  ".join(text for text, _ in CELLS).split()


def test_a_cell_that_no_line_has_room_for_is_broken_between_words():
    said = screen.row([("00:20:03.950Z", "time"), ("a broker that " * 10, "topic")], paint=False, columns=60)
    assert {len(line) <= 60 for line in said.split("\n")} == {True}
    assert said.split() == ["00:20:03.950Z", *("a broker that " * 10).split()]


def test_paint_changes_no_word_of_a_row_that_hangs():
    painted = screen.row(CELLS, paint=True, columns=60)
    assert click.unstyle(painted) == screen.row(CELLS, paint=False, columns=60)
    assert painted != click.unstyle(painted)


@pytest.mark.parametrize(
    "character",
    [
        "\xad",
        "\u061c",
        "\u200b",
        "\u200d",
        "\u2060",
        "\u3164",
        "\ufe0f",
        "\ufeff",
        "\ufffe",
        "\uffff",
        "\U000e0001",
        "\U000e01ef",
    ],
)
def test_invisible_characters_and_those_that_xml_forbids_are_written_out(character):
    assert legible(f"a{character}b") == f"a{character.encode('unicode_escape').decode()}b"
    shown = as_json({"x": character})
    assert character not in shown
    assert json.loads(shown) == {"x": character}
