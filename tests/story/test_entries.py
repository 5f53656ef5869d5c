"""Findings as they are read: equal ones together, consequences under their cause, every one of them once."""

import random
from dataclasses import replace

from tests.story.test_causes import ASLEEP, BEHIND, NEW, OLD, found, side
from tests.story.values import finding, findings
from wirecheck.judge.checks.listed_checks import LISTED
from wirecheck.judge.checks.page import remedy
from wirecheck.story.entries import entries, remedies_of
from wirecheck.story.fields import ABOUT, ERRORS, SERVERS, SPEAKS, VARIES
from wirecheck.wording import ns_of


def read(rows, **how):
    return entries(findings(rows), **how)


def disagrees(n, **columns):
    topic, topic_id = f"t.{n}", f"{n:022}"
    words = {"one_brokers": "broker 3", "one": "no such topic", "other_brokers": "brokers 1, 2", "other": topic_id}
    summary = f"Brokers disagree on {topic}: broker 3 answers no such topic, brokers 1, 2 answer {topic_id}."
    about = {"topic": topic, "topic_ids": [topic_id], "brokers": [3], "words": words, "summary": summary}
    return found("TID007", f"d{n:03}", **about | columns)


def test_a_cause_stands_on_top_with_the_number_of_what_follows():
    (cause,) = read([ASLEEP, *BEHIND])
    assert cause.sentence == "Broker 4 stopped following the metadata log at 12:00:00; 5 findings follow from it."
    assert cause.role == "cause"
    assert sorted(under.code for under in cause.consequences) == [
        "FET001",
        "LOG001",
        "TID007",
        "TID010",
        "TID017",
    ]
    assert not any(under.own_next for under in cause.consequences)


def test_of_several_days_a_sentence_has_its_day():
    (cause,) = read([ASLEEP, BEHIND[0]], dated=True)
    assert cause.sentence.startswith(
        "Broker 4 stopped following the metadata log at 2026-11-21 12:00:00; 1 finding follows"
    )


def test_what_a_client_does_with_an_ended_id_has_a_next_of_its_own():
    recreated = found("TID001", topic="t", topic_ids=[OLD, NEW])
    stuck = found("FET001", topic="t", topic_ids=[OLD], client_ids=["reader"])
    (cause,) = read([recreated, stuck])
    assert [under.own_next for under in cause.consequences] == [True]


def test_the_same_said_of_many_topics_is_one_entry_with_a_count_and_a_list():
    (entry,) = read([disagrees(n) for n in range(45)])
    assert entry.count == len(entry.findings) == len(set(entry.topics)) == 45
    assert entry.sentence.startswith("Brokers disagree on t.0: broker 3 answers")
    assert entry.sentence.endswith("(44 more like it).")


def test_of_those_that_begin_at_once_the_first_partition_is_named():
    def idle(partition, name):
        return found("GRP009", name, topic="t", client_ids=["a"], words={"partition": partition, "offset": "7"})

    (entry,) = read([idle("10", "a"), idle("2", "b")])
    assert entry.findings == ("b", "a")


def test_another_broker_or_another_sentence_is_another_entry():
    other = disagrees(1) | {"brokers": [2]}
    said = disagrees(2) | {"words": {"one": "otherwise"}}
    assert len(read([disagrees(0), other, said])) == 3


def test_the_same_said_by_several_brokers_about_one_topic_is_one_entry():
    def refuses(broker):
        words = {"where": str(broker), "partitions": "partitions 0, 1", "earlier": ""}
        return found("TID002", f"r{broker}", topic="t", topic_ids=[NEW], brokers=[broker], words=words)

    (entry,) = read([refuses(1), refuses(2)])
    assert (entry.count, entry.brokers) == (2, (1, 2))
    assert len(read([refuses(1), {**refuses(2), "topic": "u", "topic_ids": [OLD]}])) == 2


def test_the_same_clients_at_several_servers_are_one_entry():
    def closes(client, server, host="10.0.0.7"):
        words = {"server": server, "does": "closed", "what": "it answered ApiVersions only", "may": "SASL"}
        return found("CLI001", f"{client}{server}{host}", client_ids=[client], words=words | {"host": host})

    both = [closes(client, server) for client in ("a", "b") for server in ("broker 2", "broker 3")]
    (entry,) = read(both)
    assert (entry.count, entry.client_ids) == (4, ("a", "b"))
    others = [closes("c", "broker 3"), closes("a", "broker 3", "10.0.0.8")]
    assert len(read([*both[:1], others[0]])) == 2, "other clients"
    assert len(read([*both[:1], others[1]])) == 2, "of another host"


def test_listeners_of_one_broker_that_stopped_at_once_are_one_entry():
    def refuses(port, at_s, broker=3, served="12:00:00 UTC"):
        words = {"endpoint": f"10.0.0.{broker}:{port}", "node": str(broker), "served": served}
        return found("WIR008", f"{broker} {port}", at_s, brokers=[broker], words=words)

    first = refuses(9092, 0)
    assert [one.count for one in read([first, refuses(9093, 4)])] == [2]
    others = {
        "another broker": refuses(9093, 0, broker=2),
        "a listener that stopped later": refuses(9093, 6),
        "an address that was never right": refuses(9093, 0, served=""),
    }
    assert {name: [one.count for one in read([first, other])] for name, other in others.items()} == {
        name: [1, 1] for name in others
    }


def test_one_error_by_several_apis_of_a_client_is_one_entry():
    def rejected(api, errors="TOPIC_AUTHORIZATION_FAILED", **columns):
        words = {"api": api, "errors": errors, "host": "10.0.0.7", "about": " of t", "before": "and never succeeded"}
        return found("CLI006", f"{api}{errors}{columns}", client_ids=["a"], words=words) | columns

    both = [rejected("Produce"), rejected("InitProducerId", topic=None)]
    (entry,) = read(both)
    assert entry.count == 2
    assert len(read([both[0], rejected("Fetch", "OFFSET_OUT_OF_RANGE")])) == 2, "another error"
    assert len(read([both[0], rejected("Fetch", client_ids=["b"], topic="u")])) == 2, "another client"


def test_one_fault_is_one_entry_whether_or_not_its_clients_were_granted_the_same_before():
    def rejected(client, kind, before, errors="INVALID_TIMESTAMP"):
        words = {"api": "Produce", "errors": errors, "host": "10.0.0.7", "about": " of t", "before": before}
        return found("CLI006", client, client_ids=[client], topic="t", words=words) | {"kind": kind}

    both = [rejected("a", "information", "and never succeeded"), rejected("b", "anomaly", "after it had succeeded")]
    for rows in (both, both[::-1]):
        (entry,) = read(rows)
        assert (entry.client_ids, entry.kind) == (("a", "b"), "anomaly")
    assert len(read([both[0], rejected("b", "anomaly", "after it had succeeded", "INVALID_RECORD")])) == 2


def test_the_same_said_of_many_clients_is_one_entry():
    def refused(n, api):
        words = {"software": f" (java 0.{n})", "api": api.partition(" ")[0], "versions": api, "minimum": "3"}
        return found("VER005", f"v{n}", client_ids=[f"writer-{n}"], words=words)

    (entry,) = read([refused(1, "Produce v2"), refused(2, "Fetch v2, v3"), refused(3, "Produce v1")])
    assert entry.client_ids == ("writer-1", "writer-2", "writer-3")


def test_what_a_server_advertised_is_not_what_its_client_sends():
    """kafka-node 5.0 against 4.3.1: the server's word for its versions came in another client's ApiVersions."""
    sides = [side("ApiVersions", 4), side("CreateTopics", 1)]
    outside = found("VER002", client_ids=["a"], sides=sides)
    closed = found("VER001", client_ids=["a"], sides=sides[1:])
    (cause,) = read([outside, closed])
    assert cause.sentence.startswith("a sends CreateTopics v1 to a server that does not advertise it; 1 finding")
    (cause,) = read([outside | {"sides": sides[:1]}, closed | {"sides": sides[:1]}])
    assert cause.sentence.startswith("a sends ApiVersions v4 to a server")


def test_few_that_differ_in_topic_and_client_stay_apart_and_a_crowd_does_not():
    def stuck(n):
        words = {
            "errors": "UNKNOWN_TOPIC_ID (100)",
            "since": ns_of("2026-11-21T00:42:10Z"),
            "servers": f"10.0.0.{n}:9092",
        }
        columns = {"topic": f"t-{n}", "topic_ids": [f"{n:022}"], "client_ids": [f"reader-{n}"], "words": words}
        return found("FET001", f"s{n:03}", **columns)

    assert len(read(map(stuck, range(3)))) == 3
    assert [entry.count for entry in read(map(stuck, range(500)))] == [500]


def test_a_crowd_that_differs_in_hosts_and_brokers_is_one_entry():
    def stranger(n):
        host = f"10.0.{n // 250}.{n % 250}"
        words = {"who": f"Host {host}", "why": "nobody names it", "what": f"unknown topic IDs {n} times, at [::{n}]:1"}
        return found("CLU002", f"h{n:03}", brokers=[n % 5], words=words)

    assert len(read(map(stranger, range(3)))) == 3
    assert [entry.count for entry in read(map(stranger, range(400)))] == [400]


def test_equal_causes_are_one_with_all_that_follows():
    rows = []
    for n in range(20):
        old, new = f"{n:022}", f"{n + 100:022}"
        rows.append(
            found("TID001", f"c{n:02}", topic=f"t{n}", topic_ids=[old, new], summary=f"Topic t{n} was recreated.")
        )
        rows.append(
            found(
                "FET001",
                f"f{n:02}",
                topic=f"t{n}",
                topic_ids=[old],
                client_ids=["r"],
                summary=f"r fetches {old} of t{n}.",
            )
        )
    (cause,) = read(rows)
    (under,) = cause.consequences
    assert (cause.count, under.count) == (20, 20)
    assert cause.sentence == "Topic t0 was recreated at 12:01:00 (19 more like it); 20 findings follow from them."


def test_what_stands_for_many_is_never_one_of_them():
    rest = disagrees(1) | {"others": 7, "words": {}}
    assert [entry.count for entry in read([disagrees(0), disagrees(2), rest])] == [2, 1]


def test_every_finding_is_in_one_entry_in_whatever_order_they_come():
    rows = [ASLEEP, *BEHIND, *(disagrees(n, at_s=n % 7) for n in range(30))]
    expected = read(rows)
    ids = [name for root in expected for name in root.finding_ids]
    assert sorted(ids) == sorted(row["id"] for row in rows)
    for seed in range(20):
        random.Random(seed).shuffle(rows)
        assert read(rows) == expected


def test_a_finding_whose_cause_is_not_listed_stands_by_itself_and_names_it():
    rows = [{"summary": f"{row['code']}.", "count": 1, **row} for row in (ASLEEP, *BEHIND)]
    every = findings(rows)
    (entry,) = entries([every[1]], every)
    assert entry.sentence == "TID007."
    assert entry.follows_from == "LOG003 LOG003: Broker 4 stopped following the metadata log at 12:00:00."
    assert [cause.follows_from for cause in entries(every, every)] == [None]


def test_consequences_of_many_causes_that_are_not_listed_are_one_entry():
    rows = []
    for n in range(20):
        topic, old, new = f"t{n}", f"{n:022}", f"{n + 100:022}"
        rows.append(found("TID001", f"c{n:02}", topic=topic, topic_ids=[old, new], summary=f"{topic} was recreated."))
        rows.append(
            found("FET001", f"f{n:02}", topic=topic, topic_ids=[old], client_ids=["r"], summary=f"r has {old}.")
        )
    every = findings(rows)
    (entry,) = entries([one for one in every if one.code == "FET001"], every)
    assert entry.count == 20
    assert entry.follows_from == "TID001 c00: Topic t0 was recreated at 12:01:00 (19 more like it)."


def test_the_name_of_a_field_means_one_thing_and_a_check_has_it():
    kinds = (ERRORS, SERVERS, SPEAKS, ABOUT, VARIES)
    assert sum(map(len, kinds)) == len(frozenset().union(*kinds))
    used = frozenset().union(*(check.fields for check in LISTED.values())) | {"dialect"}
    assert frozenset().union(*kinds) <= used
    assert all(check.varies <= check.fields - VARIES for check in LISTED.values())


def test_a_consequence_has_the_remedy_of_the_cause_that_ends_it():
    """While a twin lives, nothing advises to restart the broker."""
    twin, stale = (finding(found(code)) for code in ("CTL012", "CTL004"))
    assert remedies_of([twin, replace(stale, cause="CTL012")])["CTL004"] == remedy("CTL012")
    assert remedies_of([replace(stale, cause="CTL012")])["CTL004"] == remedy("CTL004")
    assert remedies_of([stale])["CTL004"] == remedy("CTL004")
    recreated, stuck = finding(found("TID001", "a")), replace(finding(found("FET001", "b")), cause="a")
    assert remedies_of([recreated, stuck])["b"] == remedy("FET001")
