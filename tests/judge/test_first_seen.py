"""A finding begins with the first message that disagrees, not with the healthy one that it contradicts.

Two truths, both written by hand from the cases:

* `FIRST_S`: of each check, when the first message that disagrees was sent in its plain case.
* `HEALTHY_UNTIL`: cases that are healthy up to a time; what follows comes 1,000 s later.

Findings of the matrix: `test_agreement.py`.
"""

import pytest

from tests.judge.lab import Lab, ns
from tests.judge.test_checks import CASES
from wirecheck.judge.checks import catalogue

TIMES = """
ADM001 0  ADM002 0  ADM003 1  CLI001 1  CLI002 1  CLI003 1  CLI006 20  CLI007 6  CLI008 3  CLI009 39  CLI010 4  CLI012 0
CLI013 1  CLU001 1  CLU002 10  CLU003 6
CLU004 61  CLU005 0  CTL001 20  CTL002 5  CTL003 0  CTL004 0  CTL005 60  CTL006 0  CTL008 0  CTL009 0  CTL010 0
CTL012 30  CTL013 20  CTL014 1  CTL015 2  CTL016 2  CTL017 2  CTL019 10  CTL020 10  CTL021 60  CTL022 10
CTL023 60  DRF001 0  DRF002 0  FET001 1  FET002 0
FET003 0  FET004 5  FET005 10  FET006 1  FET007 10  FET008 1  GRP001 90  GRP002 60  GRP003 5  GRP004 60
GRP006 2  GRP007 80  GRP008 310  GRP009 20  GRP010 50  GRP011 45  GRP012 20  GRP013 2  GRP014 301
GRP015 38  GRP016 29  GRP017 30
LOG002 5  LOG004 40  LOG005 40  LOG006 10  LOG007 6  LOG008 30
TID001 35  TID002 1
TID004 60  TID006 0.5  TID007 41  TID008 5  TID009 2  TID011 0  TID012 1  TID013 0  TID014 0  TID015 60
TID016 60  TID018 20  TID019 2  TID020 2  TID021 0  TID022 1
VER001 10  VER003 1  VER004 60  VER005 0  VER007 60  VER008 60
VER009 0  VER010 1  VER011 0
VIS001 0  VIS002 0  VIS003 0  VIS004 0  VIS005 0  VIS006 0  VIS007 0  VIS008 22  WIR001 0  WIR002 1
WIR003 0  WIR004 0  WIR005 0  WIR006 0  WIR007 10  WIR008 10  WIR009 10
WIR010 10
"""
FIRST_S = dict(zip(TIMES.split()[::2], map(float, TIMES.split()[1::2]), strict=True))
"""By check the second of the first message that disagrees."""
FROM_BEFORE = {
    "CLI004": "what stays away: from when it was due",
    "CLI011": "what stays away: known to 10 s",
    "CLI005": "what stays away: from the last answer",
    "CLU006": "what stays away: from the last answer of any broker",
    "CLU007": "a connection counts its versions without their times: from its beginning",
    "CTL007": "what goes on after a change: from the change, since the state of a partition has two times, not all",
    "CTL011": "what stays away: from when it was due",
    "CTL018": "known to 10 s, and says so",
    "GRP005": "what goes on after a change: from the change",
    "LOG001": "what goes on after a change: from the change",
    "LOG003": "what stays away: from when it was last seen",
    "TID003": "what goes on after a change: from the change",
    "TID005": "what goes on after a change: from the next slot of 10 s that has a use, or the change",
    "TID010": "what goes on after a change: from the change",
    "TID017": "what goes on after a change: from the next slot of 10 s that has a use, or the change",
    "VER002": "a connection counts its versions without their times: from its beginning",
    "VER006": "what goes on after a change: from the change",
}
"""Checks whose findings may begin before, with the reason."""


def test_every_check_has_a_first_message_or_a_reason():
    assert {*FIRST_S} | {*FROM_BEFORE} == {*catalogue.CHECKS}
    assert not {*FIRST_S} & {*FROM_BEFORE}


@pytest.mark.parametrize(("code", "second"), [*FIRST_S.items()])
def test_no_finding_begins_before_the_first_message_that_disagrees(code, second):
    lab = Lab()
    CASES[code, "fires"](lab)
    assert min(finding["first_seen"] for finding in lab.findings(code)) >= ns(second)


LATER = 1000
HEALTHY_UNTIL = {
    ("CTL002", "fires"): 5,
    ("CTL005", "fires"): 60,
    ("CTL005", "fires__and_goes_on"): 60,
    ("TID001", "fires"): 35,
    ("TID008", "fires"): 5,
    ("TID016", "fires"): 60,
    ("VER002", "fires__ranges_of_another_connection"): 5,
    ("VER003", "fires__two_senders"): 100,
    ("VER003", "fires__longer_than_a_roll"): 30,
    ("VER007", "fires"): 60,
    ("VER007", "fires__one_of_two_clusters"): 60,
    ("VER008", "fires"): 60,
}
"""By case the time in seconds of the first message that disagrees."""


def beginning(lab, until):
    """What was exchanged before that time."""
    for talk in lab.talks:
        pairs = [(asked, answer, outcome) for asked, answer, outcome in talk.exchanges if at(talk, asked) < until]
        said = [place for asked, answer, _ in pairs for place in (asked, answer) if place >= 0]
        talk.exchanges = [(said.index(q), said.index(a) if a >= 0 else -1, outcome) for q, a, outcome in pairs]
        talk.messages = [talk.messages[place] for place in said]
    lab.talks = [talk for talk in lab.talks if talk.messages]


def at(talk, place):
    return talk.messages[place][-1]


def delay(lab, since):
    """The messages of that time and later come later; so do their responses."""
    for talk in lab.talks:
        talk.messages = [(*message, ts + (LATER if ts >= since else 0)) for *message, ts in talk.messages]
    lab.until += LATER


@pytest.mark.parametrize(("code", "case"), HEALTHY_UNTIL)
def test_the_beginning_is_healthy(code, case):
    lab = Lab()
    CASES[code, case](lab)
    beginning(lab, HEALTHY_UNTIL[code, case])
    lab.until += 2 * LATER
    assert lab.findings(code) == []


@pytest.mark.parametrize(("code", "case"), HEALTHY_UNTIL)
def test_a_finding_begins_with_the_first_message_that_disagrees(code, case):
    lab = Lab()
    CASES[code, case](lab)
    delay(lab, HEALTHY_UNTIL[code, case])
    first = [finding["first_seen"] for finding in lab.findings(code)]
    assert first
    assert min(first) >= ns(HEALTHY_UNTIL[code, case])
