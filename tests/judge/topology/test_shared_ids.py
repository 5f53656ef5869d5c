"""Endpoints of one broker number that name a topic by different IDs."""

import pytest

from tests.judge.made import claim
from wirecheck.judge.topology.membership import MOST_ENDS, Twins, contradictions, listener_of, taken_apart


def named(ends):
    """Claims, in the order of their times: each lists broker 1 at itself and names one topic by an ID of its own."""
    lists = [claim("address", end, end, 1, at=at) for at, end in enumerate(ends)]
    names = [claim("names", end, at=at, peak={f"least:t:{at:022}": 0}) for at, end in enumerate(ends)]
    return {"address": lists, "names": names}


def test_two_endpoints_of_a_broker_contradict_each_other():
    ((number, ends, ids), *again) = contradictions(named(["10.0.0.1:9092", "10.9.0.1:9092"]))
    assert (number, ends, ids) == (1, ("10.0.0.1:9092", "10.9.0.1:9092"), (f"{0:022}", f"{1:022}"))
    assert all(other[1] == ends for other in again)


def test_a_host_that_claims_thousands_is_compared_a_bounded_number_of_times_and_displaces_nobody():
    """2,000 took minutes. Those named first stay: an attacker's addresses come later, whatever they are."""
    true = ["66.0.0.1:9092", "66.0.0.2:9092"]
    found = list(contradictions(named([*true, *(f"10.{i >> 8}.{i & 255}.1:9092" for i in range(2000))])))
    assert len({ends for _, ends, _ in found}) == MOST_ENDS * (MOST_ENDS - 1) // 2
    assert tuple(true) in {ends for _, ends, _ in found}


OLD, MINE, THEIRS = "o" * 22, "m" * 22, "t" * 22
CONTROLLER, COPY, BROKER = "10.0.0.9:9093", "10.9.0.9:9093", "10.0.0.1:9092"


def keys(broker_reports, copy_reports=(OLD, THEIRS)):
    """Two controllers of one ClusterId that are two clusters, and a broker whose registration was not captured: the
    cluster of each endpoint.
    """
    reports = {CONTROLLER: (OLD, MINE), COPY: copy_reports, BROKER: broker_reports}
    names = [claim("names", end, peak={f"least:t:{one}": 1 for one in ids}) for end, ids in reports.items()]
    lists = [claim("address", BROKER, BROKER, 1)]
    twins = [Twins(CONTROLLER, COPY, (names[0], names[1]), "both lead")]
    found = taken_apart({(end, 0): "x" for end in reports}, names, twins, listener_of(lists))
    return {end: key for (end, _), key in found.items()}


def test_a_broker_is_of_the_cluster_whose_later_id_it_reports():
    assert keys((OLD, MINE)) == {CONTROLLER: f"x@{BROKER}", BROKER: f"x@{BROKER}", COPY: f"x@{COPY}"}
    assert keys((OLD, THEIRS)) == {CONTROLLER: f"x@{CONTROLLER}", BROKER: f"x@{BROKER}", COPY: f"x@{BROKER}"}


@pytest.mark.parametrize(
    ("broker", "copy"),
    [
        ((OLD,), (OLD, THEIRS)),  # from before the copy: both had it
        ((OLD, MINE), ()),  # the other cluster never named the topic, and may have it as well
        ((OLD, MINE, THEIRS), (OLD, THEIRS)),
        ((OLD, MINE), (OLD,)),  # it may only lag
    ],
)
def test_what_both_clusters_may_report_tells_nothing(broker, copy):
    assert keys(broker, copy)[BROKER] == "x"


def test_a_controller_that_reports_nothing_is_of_the_only_cluster_on_its_host():
    brokers = ("10.0.0.1:9092", "10.9.0.1:9092")
    lists = [claim("address", end, end, 1) for end in brokers]
    names = [claim("names", end, peak={f"least:t:{number:022}": 0}) for number, end in enumerate(brokers)]
    twins = [Twins(*brokers, (names[0], names[1]), "both answer as broker 1")]
    controllers = {"10.0.0.1:9093": "x@10.0.0.1:9092", "10.9.0.1:9093": "x@10.9.0.1:9092", "10.5.0.1:9093": "x"}
    stated = {(end, 0): "x" for end in (*brokers, *controllers)}
    found = taken_apart(stated, names, twins, listener_of(lists))
    assert {end: found[end, 0] for end in controllers} == controllers
