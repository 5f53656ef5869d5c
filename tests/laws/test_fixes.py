"""The law of fixes: no card says to do what another card of its cluster forbids, without saying what comes first.

Every check that forbids something is put beside every check that asks for something, and every capture of the
repository is replayed: what forbids comes first, and the first screen folds none of it.
"""

from contextlib import suppress
from ipaddress import AddressValueError
from itertools import product
from pathlib import Path

import pytest

from tests.depth import DEEP
from tests.judge.lab import Lab
from tests.judge.test_checks import CASES
from tests.story.test_causes import NEW, OLD, found
from tests.story.values import findings
from wirecheck import library
from wirecheck.dashboards.verdict import blamed, first_cards
from wirecheck.judge.checks.listed_checks import LISTED
from wirecheck.story.card_context import CardContext
from wirecheck.story.cards import forbidden, with_cards
from wirecheck.story.entries import entries

FORBID = [code for code, check in LISTED.items() if "forbids" in check.sentences]
ASK = [code for code, check in LISTED.items() if "asks" in check.sentences]
WORDS = {"partition": "0", "group": "g", "vanished": "topic u", "hurt_host": "10.0.0.7", "node": "2", "api": "Fetch"}
FIRST = "First do what the card of "
ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tests/scenarios", "examples")
CAPTURES = {path.parent.name: path for folder in FOLDERS for path in (ROOT / folder).rglob("capture.pcap*")}


def held(every):
    """Cards in their order."""
    forbids = [bool(one.card.action.forbids) for one in every]
    assert forbids == sorted(forbids, reverse=True), "what forbids comes first"
    for one, other in product(every, every):
        if one is not other and one.cluster == other.cluster and forbidden(one, other):
            assert other.card.action.sentence.startswith(FIRST), (one.code, other.code)
            assert one.code in other.card.action.sentence


@pytest.mark.parametrize("forbids", FORBID)
def test_no_card_asks_for_what_a_check_forbids_in_its_cluster(forbids):
    conflicts = 0
    for asks in ASK:
        rows = [
            found(asks, at_s=5, topic="t", topic_ids=[OLD], brokers=[2], client_ids=["app"], words=WORDS),
            found(forbids, at_s=40, topic="u", topic_ids=[NEW], brokers=[2], words=WORDS),
        ]
        every = findings(rows)
        made = with_cards(entries(every), [], CardContext({one.id: one for one in every}, every[1].last_ns))
        held(made)
        conflicts += any(one.card.action.sentence.startswith(FIRST) for one in made)
    assert conflicts >= 5


def judged(path, monkeypatch):
    shown = []
    monkeypatch.setattr(library, "verdict", lambda _, verdict: shown.append(verdict))
    library.replay(path)
    return shown[0]


def forbids_are_shown(verdict):
    held(verdict.entries)
    forbids = sum(bool(one.card.action.forbids) for one in blamed(verdict))
    assert sum(one.is_open for one in first_cards(verdict)) == forbids
    return forbids


@pytest.mark.parametrize("name", sorted(CAPTURES) if DEEP else sorted(CAPTURES)[::5])
def test_no_card_of_a_capture_asks_for_what_another_one_forbids(name, monkeypatch):
    forbids_are_shown(judged(CAPTURES[name], monkeypatch))


def test_no_card_of_a_case_asks_for_what_another_one_forbids(monkeypatch, tmp_path):
    """Of checks that forbid something: each is on the first screen."""
    forbids = dict.fromkeys(FORBID, 0)
    for (code, kind), case in CASES.items():
        if code in FORBID and kind.startswith("fires"):
            lab = Lab()
            case(lab)
            path = tmp_path / "capture.pcap"
            with suppress(AddressValueError):  # its hosts are no addresses
                path.write_bytes(lab.pcap())
                forbids[code] += forbids_are_shown(judged(path, monkeypatch))
    assert {code for code, count in forbids.items() if not count} == {"LOG005"}, "it does where topics vanished"
