"""A finding begins with the first message that disagrees, not with the healthy one that it contradicts.

Two truths, both written by hand from the cases:

* `disagrees_at`, above the plain case of each check: when the first message that disagrees was sent.
* `HEALTHY_UNTIL`: cases that are healthy up to a time; what follows comes 1,000 s later.

Findings of the matrix: `test_agreement.py`.
"""

import pytest

from tests.judge.lab import Lab, ns
from tests.judge.test_checks import CASES

PLAIN = {code: function for (code, case), function in CASES.items() if case == "fires"}


def test_every_plain_case_says_when_it_begins_or_why_its_findings_begin_before():
    assert {
        code for code, one in PLAIN.items() if hasattr(one, "disagrees_at_s") == hasattr(one, "disagrees_later")
    } == set()


@pytest.mark.parametrize("code", [code for code, function in PLAIN.items() if hasattr(function, "disagrees_at_s")])
def test_no_finding_begins_before_the_first_message_that_disagrees(code):
    lab = Lab()
    PLAIN[code](lab)
    assert min(finding["first_seen"] for finding in lab.findings(code)) >= ns(PLAIN[code].disagrees_at_s)


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
