"""The picture of a board: every panel shows its answers, and says so where it has none."""

import json
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from tools import board_picture, board_svg
from tools.board_svg import Series
from tools.boards.grafana import FOLDER

BOARD = json.loads((FOLDER / "wirecheck-overview.json").read_text())
FROM_S, TO_S = 1_800_000_000, 1_800_000_600
LABELS = {
    "code": "TID002",
    "kind": "violation",
    "topic": "a<b",
    "broker": "3",
    "cluster": "zoo",
    "id": "x",
    "instance": "m",
}


def rising(name, first=0):
    return Series(LABELS, name, [(FROM_S + 5.0 * step, float(step)) for step in range(first, 121)])


def texts(picture):
    return [node.text or "" for node in ET.fromstring(picture).iter() if node.tag.endswith("text")]


def drawn(found):
    return board_svg.drawn(BOARD, {panel["id"]: found for panel in board_svg.shown(BOARD)}, FROM_S, TO_S)


def test_every_panel_stands_where_the_json_puts_it_and_shows_its_answer():
    said = texts(drawn([rising("TID002 violation")]))
    assert {panel["title"] for panel in board_svg.shown(BOARD)} <= set(said)
    assert {"TID002", "a<b", "zoo"} <= set(said)
    assert sum(text == "120" for text in said) >= 4
    assert not {"no data", "No data", "nothing open"} & set(said)
    assert board_svg.TRUTH in said


def test_a_panel_without_an_answer_says_so():
    said = texts(drawn([]))
    assert sum(text in {"no data", "No data", "nothing open"} for text in said) == len(board_svg.shown(BOARD))


def test_what_is_below_a_folded_row_moves_up():
    places = [(panel, at) for panel, at in board_svg.rows(BOARD)]
    for (one, at), (_, below) in pairwise(places):
        if one.get("collapsed"):
            assert below == at + 1
    assert [at for _, at in places] == sorted(at for _, at in places)


def test_the_kept_answers_are_of_the_board_as_it_is():
    kept = json.loads(board_picture.ANSWERS.read_text())
    assert set(kept["panels"]) == {panel["id"] for panel in board_svg.shown(BOARD)}


def test_a_state_is_drawn_from_when_it_is_there():
    (panel,) = (one for one in board_svg.shown(BOARD) if one["type"] == "state-timeline")
    place = board_svg.Place(0, 0, 810, 100, FROM_S, TO_S)
    (bar,) = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', "".join(
        board_svg.state_timeline(panel, place, [rising("TID002 violation", first=60)])
    ))  # fmt: skip
    assert [float(number) for number in bar] == pytest.approx([510, 300])


@pytest.mark.parametrize(
    ("title", "value", "text", "colour"),
    [
        ("Open violations", 0, "0", "green"),
        ("Open violations", 1, "1", "red"),
        ("Messages decoded", 0.99, "99.00%", "orange"),
        ("Results are behind by", 30, "30 s", "green"),
        ("Results are behind by", 600, "10 min", "red"),
        ("Results are behind by", 180_000, "2 days", "red"),
    ],
)
def test_units_and_thresholds_are_the_board_s(title, value, text, colour):
    (panel,) = (one for one in board_svg.shown(BOARD) if one["title"] == title)
    assert board_svg.said(panel, value) == text
    assert board_svg.by_threshold(panel, value) == board_svg.COLOURS[colour]


def test_names_are_filled_in_as_grafana_does():
    assert board_svg.named("{{code}} {{ kind }} {{role}}", LABELS) == "TID002 violation"
