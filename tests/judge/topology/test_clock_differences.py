"""Clocks of two agents that differ by 5 s: where time decides about the order of IDs, and where nothing does.

The bound is fixed (SKEW_NS, 1 s) and not measured: what one server reports has one clock, and two servers' words are
put in an order by time alone only where neither reported both IDs, neither goes on, and no deletion, creation or log
was seen. There it fails, which the last case shows.
"""

import pytest

from tests.judge.lab import B1, B2, ID_1, ID_2, Lab

AHEAD, BEHIND = 2.5, -2.5


def reports(lab, server, clock, *told):
    """What one server reports, by the clock of its agent: (second, ID)."""
    for at, topic_id in told:
        lab.metadata(at + clock, [("orders", topic_id)], server=server)


def states(lab):
    lab.until = 200
    return {row["topic_id"]: row["state"] for row in lab.judge()["topics"].values()}


@pytest.mark.parametrize(("one", "other"), [(AHEAD, BEHIND), (BEHIND, AHEAD), (0, 0)])
def test_what_a_server_reports_itself_has_one_clock(one, other):
    lab = Lab()
    for server, clock in ((B1, one), (B2, other)):
        reports(lab, server, clock, (5, ID_1), (29, ID_1), (31, ID_2), (60, ID_2))
    assert states(lab) == {ID_1: "replaced", ID_2: "current"}
    assert {"violation", "anomaly"}.isdisjoint(finding["kind"] for finding in lab.findings())


@pytest.mark.parametrize(("one", "other"), [(AHEAD, BEHIND), (BEHIND, AHEAD)])
def test_two_servers_that_each_go_on_with_their_own_id_are_in_no_order(one, other):
    lab = Lab()
    reports(lab, B1, one, (10, ID_1), (20, ID_1))
    reports(lab, B2, other, (13, ID_2), (22, ID_2))
    assert states(lab) == {ID_1: "current", ID_2: "current"}
    assert [finding for finding in lab.findings() if finding["kind"] == "violation"] == []


def test_beyond_the_difference_time_decides():
    lab = Lab()
    reports(lab, B1, AHEAD, (10, ID_1))
    reports(lab, B2, BEHIND, (20, ID_2))
    assert states(lab) == {ID_1: "replaced", ID_2: "current"}


@pytest.mark.xfail(strict=True, reason="no clock difference is measured: two single words within it may be swapped")
def test_two_single_words_within_the_difference_are_in_no_order():
    lab = Lab()
    reports(lab, B1, AHEAD, (10, ID_1))
    reports(lab, B2, BEHIND, (13, ID_2))
    assert states(lab) == {ID_1: "current", ID_2: "current"}
