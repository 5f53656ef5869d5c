"""What follows from what: the table has no circle, the function knows no order, and nothing is guessed."""

import datetime as dt
import random
from itertools import permutations

import pytest

from tests.story.values import linked
from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.judge.checks.cause_rules import rules
from wirecheck.judge.checks.listed_checks import LISTED
from wirecheck.story import causes

NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
OLD, NEW = "qC48IeRqScOXv2y8GPXuKw", "KHrEQJ4WSduMdJpyMZSmXg"


def found(code, name="", at_s=0, lasts_s=60, **columns):
    """A row of the table of findings."""
    return {
        "id": name or code,
        "code": code,
        "kind": CHECKS[code].kind,
        "label": "L",
        "cluster": "C",
        "topic": None,
        "topic_ids": [],
        "client_ids": [],
        "brokers": [],
        "first_seen": NOON + dt.timedelta(seconds=at_s),
        "last_seen": NOON + dt.timedelta(seconds=at_s + lasts_s),
        "words": {},
        "sides": [],
        "others": None,
        **columns,
    }


def side(api, version, connection="10.0.0.7:1>10.0.0.1:9092"):
    return {"api": api, "version": version, "connection": connection}


RECREATED = found("TID001", topic="t", topic_ids=[OLD, NEW])
STUCK = found("FET001", at_s=10, topic="t", topic_ids=[OLD], client_ids=["reader"], brokers=[1, 2])
ASLEEP = found("LOG003", lasts_s=600, brokers=[4])
BEHIND = (
    found("TID007", at_s=30, topic="t", topic_ids=sorted((OLD, NEW)), brokers=[4]),
    found("LOG001", at_s=30, topic="t", topic_ids=[OLD, NEW], brokers=[4]),
    found("TID010", at_s=30, topic="t", topic_ids=[OLD], brokers=[4]),
    found("TID017", at_s=30, topic="t", topic_ids=[OLD], brokers=[4], client_ids=["broker-4-fetcher-0"]),
    found(
        "FET001",
        "fetcher",
        at_s=31,
        topic="t",
        topic_ids=[OLD],
        brokers=[2, 3],
        words={"requester": "4"},
        client_ids=["broker-4-fetcher-0"],
    ),
)


def test_the_table_names_checks_there_are_and_each_cause_has_a_sentence():
    for rule in rules():
        assert {rule.cause, rule.consequence} <= set(CHECKS)
        assert set(rule.relations) <= set(causes.KEYS)
        assert rule.why.endswith(".")
    assert {rule.cause for rule in rules()} == {code for code, one in LISTED.items() if one.as_a_cause}
    pairs = [(rule.cause, rule.consequence, rule.sure) for rule in rules()]
    assert len(pairs) == len(set(pairs))


def test_the_table_has_no_circle():
    edges = {(rule.cause, rule.consequence) for rule in rules()}
    codes = {code for edge in edges for code in edge}
    while first := {code for code in codes if not any(after == code for _, after in edges)}:
        codes -= first
        edges = {edge for edge in edges if edge[0] in codes}
    assert codes == set()


def is_alone(one):
    return (one.cause, one.possible_causes, one.consequences) == (None, (), ())


def test_a_broker_that_sleeps_is_the_cause_of_all_that_it_then_does():
    links = linked([RECREATED, ASLEEP, *BEHIND])
    assert links["LOG003"].consequences == tuple(sorted(row["id"] for row in BEHIND))
    assert {links[row["id"]].cause for row in BEHIND} == {"LOG003"}
    assert is_alone(links["TID001"])
    assert links["fetcher"].cause == "LOG003"


LOST = {"topic_ids": [OLD], "words": {"vanished": "topic t"}}


def test_topics_that_a_new_controller_lacks_are_the_cause_of_what_brokers_then_do():
    """Also of what brokers that disagree may be the cause of: that one goes back to it, too."""
    differs = found("TID007", at_s=10, topic="t", topic_ids=[OLD], brokers=[1])
    stuck = found("FET001", at_s=15, topic="t", topic_ids=[OLD], brokers=[1], client_ids=["broker-2-fetcher-0"])
    links = linked([found("LOG005", at_s=10, **LOST), differs, stuck])
    assert {links[code].cause for code in ("TID007", "FET001")} == {"LOG005"}
    links = linked([found("LOG005", at_s=10, topic_ids=[OLD]), differs, stuck])
    assert (links["TID007"].cause, links["FET001"].possible_causes) == (None, ("TID007",))


def test_without_its_cause_what_is_next_to_it_takes_its_place():
    links = linked([RECREATED, *BEHIND])
    assert {name: link.cause for name, link in links.items()} == {
        "TID001": None,
        "LOG001": None,
        "TID007": "LOG001",
        "TID010": "LOG001",
        "TID017": "LOG001",
        "fetcher": "LOG001",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"brokers": [5]},
        {"cluster": "D"},
        {"label": "M"},
        {"cluster": None},
        {"others": 3},
        {"first_seen": NOON - dt.timedelta(seconds=20)},
        {"first_seen": NOON + dt.timedelta(hours=1)},
    ],
    ids=str,
)
def test_another_broker_another_cluster_or_another_time_is_no_cause(change):
    apart = {**BEHIND[2], **change}
    assert linked([ASLEEP, apart])["LOG003"].consequences == ()


def test_a_client_that_a_sleeping_broker_may_have_told_the_old_id_has_two_possible_causes():
    links = linked([RECREATED, ASLEEP, *BEHIND, STUCK | {"first_seen": NOON + dt.timedelta(seconds=40)}])
    assert links["FET001"].cause is None
    assert links["FET001"].possible_causes == ("LOG003", "TID001")


def test_a_client_that_keeps_an_id_which_ended_follows_from_the_recreation():
    assert linked([RECREATED, STUCK])["FET001"].cause == "TID001"
    assert linked([RECREATED, STUCK | {"topic_ids": [NEW]}])["FET001"].cause is None


def test_a_client_that_keeps_the_leader_of_a_recreated_topic_follows_from_the_recreation():
    former = found("FET007", at_s=5, topic="t", client_ids=["writer"], brokers=[4])
    assert linked([RECREATED, former])["FET007"].cause == "TID001"
    for other in ({"topic": "u"}, {"first_seen": NOON + dt.timedelta(hours=1)}):
        assert linked([RECREATED, former | other])["FET007"].cause is None


def test_a_cause_that_explains_some_of_the_brokers_only_is_possible():
    served = found("TID010", at_s=30, topic="t", topic_ids=[OLD], brokers=[4, 5])
    assert linked([ASLEEP, served])["TID010"].possible_causes == ("LOG003",)
    fifth = found("LOG003", "LOG003-5", lasts_s=600, brokers=[5])
    assert linked([ASLEEP, fifth, served])["TID010"].possible_causes == ("LOG003", "LOG003-5")


def test_of_brokers_that_disagree_one_that_sleeps_is_enough_and_its_fetcher_needs_no_other_witness():
    """Seen from after the recreation: nobody knows which of the two ids is the older one."""
    disagree = BEHIND[0] | {"brokers": [2, 3, 4]}
    links = linked([ASLEEP, disagree, BEHIND[-1]])
    assert links["TID007"].cause == links["fetcher"].cause == "LOG003"
    for other in ("5", ""):
        links = linked([ASLEEP, disagree, BEHIND[-1] | {"words": {"requester": other}}])
        assert (links["fetcher"].cause, links["fetcher"].possible_causes) == (None, ("LOG003",))


def test_a_client_that_calls_itself_as_a_broker_does_follows_from_nothing_of_that_broker():
    impostor = BEHIND[-1] | {"client_ids": ["broker-4-fetcher-0"], "words": {"requester": ""}}
    assert is_alone(linked([ASLEEP, impostor])["fetcher"])


def test_a_disk_that_refuses_a_renumbered_topic_follows_from_the_renumbering_with_all_behind_it():
    lost = found("TID004", topic="t", topic_ids=[OLD, NEW])
    refuses = [found("TID002", f"TID002-{n}", topic="t", topic_ids=[NEW], brokers=[n]) for n in (1, 2)]
    never = found("CTL011", at_s=5, topic="t", topic_ids=[NEW], brokers=[2])
    stuck = STUCK | {"topic_ids": [NEW]}
    links = linked([lost, *refuses, never, stuck])
    assert links["TID004"].consequences == ("CTL011", "FET001", "TID002-1", "TID002-2")
    without = linked([*refuses, never, stuck])
    assert without["CTL011"].cause == "TID002-2"
    assert without["FET001"].possible_causes == ("TID002-1", "TID002-2")


def test_a_refused_version_follows_from_the_client_that_sends_it():
    old = found("VER005", client_ids=["a"], sides=[side("Produce", 2)])
    refused = found("VER001", client_ids=["a"], brokers=[1], sides=[side("ApiVersions", 3), side("Produce", 2)])
    assert linked([old, refused])["VER001"].cause == "VER005"
    for other in (
        {"client_ids": ["b"]},
        {"sides": [side("Fetch", 2)]},
        {"sides": [side("Produce", 2, "10.0.0.8:1>10.0.0.1:9092")]},
    ):
        assert linked([old, refused | other])["VER001"].cause is None


def test_a_close_follows_from_the_malformed_request_before_it():
    broken = found("WIR003", client_ids=["a"], sides=[side("Metadata", 11)])
    closed = found("CLI001", client_ids=["a"], brokers=[1], sides=[side("Metadata", 11)])
    assert linked([broken, closed])["CLI001"].cause == "WIR003"
    assert linked([broken, closed | {"client_ids": ["b"]}])["CLI001"].cause is None
    assert linked([broken, closed | {"sides": [side("Metadata", 12)]}])["CLI001"].cause is None


def test_at_an_address_that_changed_cluster_ids_without_a_name_and_other_versions_follow_from_the_change():
    switched = found("CLU004", lasts_s=5, topic_ids=[OLD], sides=[side("DescribeCluster", 1)])
    unnamed = found("TID014", at_s=600, topic_ids=[OLD], sides=[side("Fetch", 13)])
    versions = found("VER007", at_s=20, sides=[side("ApiVersions", 3)])
    assert linked([switched, unnamed, versions])["CLU004"].consequences == ("TID014", "VER007")
    elsewhere = "10.0.0.7:1>10.0.0.2:9092"
    for row, other in (
        (unnamed, {"topic_ids": [NEW]}),
        (unnamed, {"sides": [side("Fetch", 13, elsewhere)]}),
        (versions, {"sides": [side("ApiVersions", 3, elsewhere)]}),
        (versions, {"first_seen": NOON + dt.timedelta(seconds=60)}),
        (versions, {"first_seen": NOON - dt.timedelta(seconds=60)}),
    ):
        assert linked([switched, row | other])["CLU004"].consequences == ()


def test_a_client_is_stuck_by_the_first_change_of_cluster_of_an_address_that_changed_twice():
    """Its finding is one of the last cluster; nothing else is compared across clusters."""
    first = found("CLU004", "first", cluster="B", topic_ids=[OLD], sides=[side("DescribeCluster", 1)])
    second = found("CLU004", "second", at_s=60, topic_ids=[OLD], sides=[side("DescribeCluster", 1)])
    stuck = {**STUCK, "sides": [side("Fetch", 13)]}
    assert linked([first, second, stuck])["FET001"].cause == "first"
    assert linked([RECREATED | {"cluster": "B"}, stuck])["FET001"].cause is None


def test_many_causes_of_one_id_cost_a_consequence_no_more_than_it_can_name(monkeypatch):
    compared = []
    fits = causes.fits
    monkeypatch.setattr(causes, "fits", lambda *some: compared.append(some) or fits(*some))
    changes = [{**RECREATED, "id": f"TID001-{n:03}"} for n in range(200)]
    links = linked([*changes, *({**STUCK, "id": f"FET001-{n:03}"} for n in range(200))])
    assert links["FET001-000"].possible_causes == tuple(f"TID001-{n:03}" for n in range(causes.MOST_POSSIBLE))
    assert len(compared) <= 200 * (causes.MOST_POSSIBLE + 1)


def test_the_order_of_findings_changes_nothing():
    rows = [RECREATED, ASLEEP, *BEHIND, STUCK]
    expected = linked(rows)
    for seed in range(50):
        random.Random(seed).shuffle(rows)
        assert linked(rows) == expected
    assert all(
        linked(order) == linked([RECREATED, ASLEEP, STUCK]) for order in permutations([RECREATED, ASLEEP, STUCK])
    )


def crowd(seed):
    """Findings about few topics, brokers and clients, so that most relations hold."""
    dice = random.Random(seed)
    codes = sorted({code for rule in rules() for code in (rule.cause, rule.consequence)})
    return [
        found(
            dice.choice(codes),
            f"f{n}",
            at_s=dice.randrange(100),
            lasts_s=dice.randrange(100),
            topic=dice.choice("tu"),
            topic_ids=dice.sample([OLD, NEW, "dm3VbxWfQveFYPAqMlysXw"], dice.randrange(3)),
            brokers=dice.sample([1, 2, 3], dice.randrange(3)),
            client_ids=["reader"],
            words={"requester": dice.choice(["", "1", "1,2"])},
        )
        for n in range(120)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_found_causes_and_consequences_fit_each_other_and_make_no_circle(seed):
    rows = crowd(seed)
    links = linked(rows)
    assert set(links) == {row["id"] for row in rows}
    assert any(link.cause for link in links.values())
    for name, link in links.items():
        assert link.consequences == tuple(sorted(n for n, other in links.items() if other.cause == name))
        if link.cause:
            assert links[link.cause].cause is None
            assert link.consequences == link.possible_causes == ()
        for possible in link.possible_causes:
            assert links[possible].cause is None
            assert possible != name
    random.Random(seed).shuffle(rows)
    assert linked(rows) == links


@pytest.mark.parametrize(("at", "surely"), [("10.0.0.1", True), ("10.0.0.1:9092", True), ("10.0.0.1:19092", False)])
def test_who_fetches_at_a_broker_did_not_get_an_old_id_from_a_proxy_on_its_host(at, surely):
    kept = found("TID007", topic="t", topic_ids=sorted((OLD, NEW)), words={"at": at})
    links = linked([kept, {**STUCK, "sides": [side("Fetch", 13)]}])
    assert bool(links["TID007"].consequences) is surely
    assert links["FET001"].possible_causes == (() if surely else ("TID007",))
