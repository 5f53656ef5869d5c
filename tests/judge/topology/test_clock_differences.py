"""Clocks of two agents that differ by 5 s: where time decides about the order of IDs, and where nothing does.

What one server reports has one clock, and so has what one capture point shows. Nothing on the wire measures how far the
clocks of two capture points are apart: what two servers report is put in an order by time alone only beyond CLOCKS_NS.
"""

import pytest

from tests.judge.lab import B1, B2, ID_1, ID_2, Lab

AHEAD, BEHIND = 2.5, -2.5


def reports(lab, server, clock, *reported_ms):
    """What one server reports, by the clock of its agent: (second, ID)."""
    for at, topic_id in reported_ms:
        lab.metadata(at + clock, [("orders", topic_id)], server=server).source = f"{server}.pcap"


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


def test_two_single_words_within_the_difference_are_in_no_order():
    lab = Lab()
    reports(lab, B1, AHEAD, (10, ID_1))
    reports(lab, B2, BEHIND, (13, ID_2))
    assert states(lab) == {ID_1: "current", ID_2: "current"}


def test_what_one_capture_point_shows_has_one_clock():
    lab = Lab()
    for at, server, topic_id in ((10, B1, ID_1), (10.5, B2, ID_2)):
        lab.metadata(at, [("orders", topic_id)], server=server)
    assert states(lab) == {ID_1: "replaced", ID_2: "current"}


@pytest.mark.parametrize("later", [True, False])
def test_a_deletion_that_names_no_id_ends_what_came_before_it_by_more_than_clocks_may_differ(later):
    lab = Lab()
    reports(lab, B1, 0, (5, ID_1))
    lab.deleted(20, "orders", server=B1).source = f"{B1}.pcap"
    at = 28 if later else 17.5  # as a clock that is 2.5 s behind shows what came at once after the deletion
    reports(lab, B2, 0, (at, ID_2), (60, ID_2), (95, ID_2))
    lab.until = 200
    assert states(lab) == {ID_1: "replaced", ID_2: "current"}
    assert {"violation", "anomaly"}.isdisjoint(finding["kind"] for finding in lab.findings())
