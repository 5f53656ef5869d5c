"""Every check has a case that fires, a near miss and a case where nobody can know, all through the real decoder."""

from functools import cache
from typing import Any, NamedTuple

import pytest

from tests.depth import some
from tests.judge import (
    cases_agreement,
    cases_control,
    cases_drafts,
    cases_fetching,
    cases_forwarding,
    cases_lives,
    cases_log_ends,
    cases_new_partitions,
    cases_offsets,
    cases_progress,
    cases_quorum,
    cases_reassignments,
    cases_refined,
    cases_sessions,
    cases_storms,
    cases_topic_ids,
    cases_transactions,
    cases_unauthenticated_hosts,
    cases_unreached_brokers,
    cases_unserved,
    cases_versions,
    cases_wire,
)
from tests.judge.lab import B1, B3, ID_1, ID_2, ID_3, Lab, exchanged, ns
from tests.judge.recorded_reads import outspoken, recorded, undeclared
from wirecheck.judge.checks import catalogue, declaration
from wirecheck.judge.checks.listed_checks import LISTED
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.extract.extraction import claims
from wirecheck.story.causes import linked
from wirecheck.story.fields import ERRORS, statement
from wirecheck.story.verdict import Finding

MODULES = (
    cases_topic_ids, cases_versions, cases_fetching, cases_sessions, cases_control, cases_drafts, cases_offsets,
    cases_agreement, cases_quorum, cases_wire, cases_refined, cases_unauthenticated_hosts, cases_lives,
    cases_unserved, cases_progress, cases_log_ends, cases_forwarding, cases_transactions,
    cases_reassignments, cases_storms, cases_new_partitions,
    cases_unreached_brokers,
)  # fmt: skip
KINDS = ("fires", "near_miss", "cannot_know")
CASES = {
    (name[:6].upper(), name[7:]): function
    for module in MODULES
    for name, function in vars(module).items()
    if name[7:].partition("__")[0] in KINDS
}
"""By code and kind; further cases of a kind have two underscores and what they are about behind it."""


MOST_WORDS = 25
"""Of a finding's sentence, which is read once: times have three, IDs and addresses one."""
LONG = {
    "CLU002": "it names every kind of misuse of one host",
}
"""Checks whose sentence may be longer, with the reason."""


class Recording(NamedTuple):
    """What was read for a case."""

    by_check: set[str]
    """Words as in the catalogue, of the check that the case is about."""
    undeclared: set[Any]
    outspoken: list[Any]


class Read(NamedTuple):
    """What is open in a case."""

    rows: dict[str, Any]
    recording: Recording | None
    """Of RECORDED cases."""


RECORDED = {*some(sorted(CASES)), *((code, "fires") for code in catalogue.CHECKS)}
"""To note what each check asks for costs twice of what it costs to judge."""


@cache
def read(code, case):
    lab = Lab()
    CASES[code, case](lab)
    rows = lab.judge()
    return Read(rows, recording(lab.judged, code) if (code, case) in RECORDED else None)


def recording(judge, code):
    reads = [*recorded(judge)]
    words = {f"{other[0]}:{kind}" for name, *_, asked in reads if name == code for other, kind in asked}
    return Recording(words, undeclared(judge, reads), [*outspoken(judge)])


@pytest.mark.parametrize(("code", "case"), sorted(CASES), ids=lambda part: part)
def test_case(code, case):
    kind = case.partition("__")[0]
    rows = read(code, case).rows
    found = rows["findings"].values()
    measures = {row["measure"] for row in rows["coverage"].values()}
    odd = code.startswith("WIR") or code == "CLU002"  # an unauthenticated host may send any bytes
    assert odd or "undecoded_messages" not in measures
    if kind == "fires":
        assert code in {finding["code"] for finding in found}
        for finding in found:
            assert finding["sides"]
            assert "{" not in finding["summary"]
            assert len(finding["summary"].split()) <= MOST_WORDS or finding["code"] in LONG
            assert finding["first_seen"] <= finding["last_seen"]
            assert numbers(finding).isdisjoint(statement(finding["code"])), "an amount varies: declare it"
    else:
        assert code not in {finding["code"] for finding in found}
    noted = read(code, case).recording
    assert noted is None or (noted.undeclared, noted.outspoken) == (set(), [])


def numbers(finding):
    """Fields of its sentence that are amounts: numbers, but of errors and of another node."""
    found = {word["name"] for word in finding["words"] if word["value"].replace(",", "").isdecimal()}
    return found & LISTED[finding["code"]].fields - ERRORS - {"other"}


def test_each_check_is_about_one_of_the_verdicts_questions():
    """The marks are made of it; who is in doubt is a client."""
    checks = catalogue.CHECKS.values()
    assert {check.question for check in checks} == {*declaration.QUESTIONS}
    doubtful = [check for check in checks if check.question == declaration.IN_DOUBT]
    assert all("client" in check.one_per or "group" in check.one_per for check in doubtful)


def test_no_check_lacks_a_case():
    built = {*catalogue.CHECKS}
    assert {(code, kind) for code in built for kind in KINDS} <= set(CASES)


@pytest.mark.parametrize(
    ("code", "case", "kind"),
    [
        ("TID013", "fires__of_another_form", "information"),
        ("TID013", "fires__of_several_ids", "information"),
        ("DRF002", "fires__newer_than_known", "visibility"),
        ("DRF002", "fires", "anomaly"),
        ("CLU001", "fires__a_client_that_poses_as_a_node", "anomaly"),
        ("CLU001", "fires", "violation"),
        ("CLU001", "fires__in_turn_for_less_than_10_s", "violation"),
        ("CLU001", "fires__each_client_has_its_cluster", "information"),
        ("CTL018", "fires__alone", "information"),
        ("CTL018", "fires", "violation"),
        ("VER007", "fires__of_no_release", "information"),
        ("VER007", "fires__beside_a_release", "information"),
        ("VER007", "fires__upside_down", "violation"),
        ("VER007", "fires__beside_a_release__what_two_releases_do_not_have_in_common", "information"),
        ("CLU003", "fires__two_addresses_with_the_ranges_of_one_proxy", "information"),
        ("VER007", "fires__a_version_that_it_rejects", "violation"),
        ("VER007", "fires__to_and_fro_in_one_release", "anomaly"),
        ("VER007", "fires__what_the_controller_handles", "information"),
        ("VER007", "fires__restarted_with_another_range", "information"),
        ("TID020", "fires__to_different_clients", "information"),
        ("TID020", "fires__to_different_clients_of_a_broker", "violation"),
    ],
)
def test_what_is_less_than_the_check_says_so(code, case, kind):
    lab = Lab()
    CASES[code, case](lab)
    assert [finding["kind"] for finding in lab.findings(code)] == [kind]


@pytest.mark.parametrize(
    ("case", "kinds"),
    [
        ("fires__in_a_roll_of_all_brokers", ["information"] * 3),
        ("fires__in_a_roll_that_stopped", ["anomaly"] * 2),
    ],
)
def test_brokers_that_go_back_together_were_meant_to(case, kinds):
    lab = Lab()
    CASES["VER007", case](lab)
    assert [finding["kind"] for finding in lab.findings("VER007")] == kinds


@pytest.mark.parametrize(
    ("code", "case", "both"),
    [
        ("CLU002", "fires__a_server", True),
        ("CLU002", "fires__a_server_with_other_leaders", False),
        ("CLU003", "fires__by_answers_of_one_broker_number", True),
        ("CLU003", "fires__by_registrations_of_one_epoch", False),
    ],
)
def test_what_a_renaming_proxy_does_too_has_both_readings(code, case, both):
    lab = Lab()
    CASES[code, case](lab)
    assert {"proxy" in finding["summary"] for finding in lab.findings(code)} == {both}


def test_servers_of_an_unknown_release_are_one_finding_whatever_they_advertise():
    lab = Lab()
    CASES["VER009", "fires__once_for_many_ranges"](lab)
    (finding,) = lab.findings("VER009")
    assert (finding["count"], finding["brokers"]) == (41, [1, 2])
    assert "brokers 1, 2: the advertised" in finding["summary"].lower()
    assert "(Fetch v99)" in finding["summary"]


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("fires", "replicas in the ISR do not confirm them"),
        ("fires__the_client_allows_1_ms", "the client allows 1 ms"),
        ("fires__the_client_allows_nothing", "the client allows 0 ms"),
        ("fires__some_writes_in_time", "the client allows 1 ms"),
        ("fires__another_server_is_allowed_more", "the client allows 1 ms"),
    ],
)
def test_a_write_that_times_out_names_what_its_client_allows(case, why):
    lab = Lab()
    CASES["CTL015", case](lab)
    (finding,) = lab.findings("CTL015")
    assert f": {why} (REQUEST_TIMED_OUT" in finding["summary"]
    assert lab.findings("CLI006") == []


@pytest.mark.parametrize(("known_until", "ended"), [(140, True), (72, True), (66, False), (62, False)])
def test_a_broker_that_denied_a_topic_has_an_end_once_it_has_answered_like_the_others_for_10_s(known_until, ended):
    lab = Lab()
    cases_topic_ids.denied(lab, range(0, 140, 4), range(2, 62, 4))
    for at in range(62, known_until, 2):
        lab.metadata(at, [("orders", ID_1)], server=B3)
    (finding,) = lab.findings("TID007")
    times = {word["name"]: word["time"] for word in finding["times"]}
    assert times.get("until") == (ns(58.001) if ended else None)
    assert finding["summary"].startswith(f"Brokers report{'ed' * ended} different IDs for topic orders: ")


@pytest.mark.parametrize(("case", "rule", "answers"), cases_refined.CREATE_TOPICS)
def test_a_rule_of_create_topics_is_named_with_prediction_and_answer(case, rule, answers):
    lab = Lab()
    case(lab)
    (finding,) = lab.findings("ADM001")
    assert finding["summary"].endswith(f"; KIP-4 rule {rule} applies. {answers}")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [("3.7.2", "4.2.2", "was upgraded from Kafka 3.7 to 4.2"), ("4.2.2", "4.1.2", "went back from Kafka 4.2 to 4.1")],
)
def test_a_node_with_two_listeners_is_upgraded_once(before, after, said):
    lab = Lab()
    cases_versions.both_listeners(lab, before, after)
    (finding,) = lab.findings("VER008")
    assert f"Broker 1 {said} at " in finding["summary"]
    assert len({side["connection"].rpartition(">")[2] for side in finding["sides"]}) == 2


def test_a_recreation_after_a_restore_is_dated_by_the_deletion_in_that_life_of_the_log():
    lab = Lab()
    cases_lives.recreated_and_restored(lab)
    (finding,) = lab.findings("TID001")
    assert finding["topic_ids"] == [ID_1, ID_3]
    assert "(deleted at 2027-01-15 08:00:41" in finding["summary"]


def test_an_id_of_the_cluster_before_the_former_one_keeps_its_name():
    lab = Lab()
    for at, topic_id, cluster_id in ((0, ID_1, "A" * 22), (40, ID_2, "B" * 22), (60, ID_3, "C" * 22)):
        lab.metadata(at, [("orders", topic_id)], brokers={B1: 1}, cluster_id=cluster_id)
        lab.metadata(at + 5, [("orders", topic_id)], brokers={B1: 1}, cluster_id=cluster_id)
    lab.fetches(range(66, 130, 2), ID_1, 100, client_id="reader")
    (finding,) = lab.findings("FET001")
    assert (finding["topic"], finding["cluster"]) == ("orders", "C" * 22)


@pytest.mark.parametrize(("listener", "who"), [("C", "Controller"), ("B", "Server")])
def test_a_server_without_a_broker_id_is_called_what_it_is(listener, who):
    lab = Lab()
    lab.metadata(0)
    lab.versions(1, cases_versions.ranges("3.7.2", listener), server="10.0.0.77:9093")
    lab.versions(60, cases_versions.ranges("4.2.2", listener), server="10.0.0.77:9093")
    (finding,) = lab.findings("VER008")
    assert finding["summary"].startswith(f"{who} 10.0.0.77 was upgraded from Kafka 3.")


def test_a_broker_that_uses_an_unresolved_id_is_called_by_its_number():
    lab = Lab()
    cases_topic_ids.tid014_fires__of_a_broker_and_a_client(lab)
    (finding,) = lab.findings("TID014")
    assert finding["summary"].endswith(f" topic ID {ID_1}, which broker 2, app used in Fetch.")


def test_a_stuck_fetch_is_dated_by_its_first_error():
    lab = Lab()
    lab.metadata(0, [("orders", ID_1)])
    lab.fetches(range(13, 91, 2), ID_1, 100)
    (finding,) = lab.findings("FET001")
    assert finding["first_seen"] == ns(13.001)
    assert "since 2027-01-15 08:00:13.001 UTC" in finding["summary"]


def test_a_pause_begins_with_the_first_request_that_waited():
    """A standby without a request for 3 s was not seen to stand still then."""
    lab = Lab()
    cases_wire.vis008_fires(lab)
    (pause,) = [one["summary"] for one in lab.findings() if one["code"] == "VIS008"]
    assert "answered nothing for 18.0 s, from 2027-01-15 08:00:22.000 UTC to 2027-01-15 08:00:40.000 UTC" in pause


def test_partitions_without_a_leader_are_named_until_they_have_one():
    lab = Lab()
    cases_control.ctl016_fires__and_ends(lab)
    (finding,) = lab.findings("CTL016")
    since, until = "2027-01-15 08:00:02.001 UTC", "2027-01-15 08:00:59.001 UTC"
    assert finding["summary"] == (
        f"orders partitions 0, 2 had no leader from {since} until {until}: 2 clients could not write or read."
    )
    assert (finding["topic"], finding["topic_ids"], finding["brokers"]) == ("orders", [ID_1], [2, 3])
    assert finding["client_ids"] == ["other", "writer"]


def test_partitions_that_still_have_no_leader_are_said_to_have_none():
    lab = Lab()
    cases_control.ctl016_fires(lab)
    (finding,) = lab.findings("CTL016")
    since = "2027-01-15 08:00:02.001 UTC"
    assert finding["summary"] == f"orders partition 0 has had no leader since {since}: 1 client cannot write or read."


def test_a_partition_without_a_leader_is_one_finding_for_clients_that_learn_its_id_and_those_that_do_not():
    lab = Lab()
    cases_control.ctl016_fires__of_old_and_new_clients(lab)
    (finding,) = lab.findings("CTL016")
    assert (finding["client_ids"], finding["topic_ids"]) == (["old", "writer"], [ID_1])


def test_a_topic_that_is_missing_is_said_to_be_so_until_it_is_created_again():
    lab = Lab()
    cases_control.tid019_fires__and_is_created_again(lab)
    (finding,) = lab.findings("TID019")
    since, until = "2027-01-15 08:00:02.001 UTC", "2027-01-15 08:00:59.001 UTC"
    assert finding["summary"] == (
        f"Brokers answered from {since} until {until} that topic orders does not exist; "
        "2 clients that used it asked for it."
    )
    assert finding["client_ids"] == ["other", "writer"]
    rows = [row for row in lab.judge()["harms"].values() if row["errors"] == ["UNKNOWN_TOPIC_OR_PARTITION"]]
    assert [(row["client_id"], row["api"], row["count"], row["recovered"]) for row in rows] == [
        ("other", "Metadata", 20, True),
        ("writer", "Metadata", 20, True),
    ]


@pytest.mark.parametrize(("dialects", "codes"), [((), [1001, 1003]), (("kip4-draft",), [1003])])
def test_a_code_of_the_draft_is_odd_where_the_named_draft_does_not_have_it(dialects, codes):
    """1003 answers AlterTopic alone."""
    lab = Lab()
    for at, error in enumerate((1001, 1003)):
        topics = {"topics": [{"name": f"t{error}", "errorCode": error}]}
        lab.talk(B1, "admin", "10.0.0.9").ask(at, "CreateTopics", 0, {"topics": [{"name": f"t{error}"}]}, topics)
    halves = [exchanged(talk) for talk in lab.talks]
    found = [
        one for half in halves for one in claims(*half, Batch(*half, dialects=dialects)) if one.kind == "draft_code"
    ]
    assert [one["error"] for one in found] == codes


@pytest.mark.parametrize(
    ("case", "summary", "clients", "brokers"),
    [
        (
            cases_wire.wir003_fires__a_server,
            "10.0.0.1:9092 sends malformed Metadata v12 responses: leftover bytes; 3 times.",
            ["", "app", "billing"],
            [],
        ),
        (
            cases_wire.wir003_fires__a_client,
            "app (10.0.0.99) sends malformed Metadata v12 requests: leftover bytes; 2 times; the servers read them.",
            ["app"],
            [],
        ),
        (
            cases_wire.wir003_fires__what_a_broker_closes_on,
            "app (10.0.0.99) sends malformed Metadata v12 requests: leftover bytes; 1 time.",
            ["app"],
            [],
        ),
        (
            cases_wire.wir003_fires__what_comes_out_of_a_host_that_received_it_whole,
            (
                "10.0.9.1, which receives requests of app itself, sends malformed Metadata v12 requests: leftover "
                "bytes; 1 time."
            ),
            ["app"],
            [],
        ),
        (
            cases_wire.wir003_fires__a_client_beside_a_server,
            "app (10.0.9.1) sends malformed Metadata v12 requests: leftover bytes; 1 time.",
            ["app"],
            [],
        ),
        (
            cases_wire.wir003_fires__a_proxy_that_breaks_what_it_sends_on,
            (
                "10.0.9.1, which receives requests of app-1 itself, sends malformed Metadata v12 requests: leftover "
                "bytes; 1 time."
            ),
            ["app-1"],
            [],
        ),
        (
            cases_wire.wir003_fires__a_client_behind_a_proxy,
            "app-1 (10.0.8.1) sends malformed Metadata v12 requests: leftover bytes; 1 time.",
            ["app-1"],
            [],
        ),
        (
            cases_wire.wir003_fires__a_server_behind_a_proxy,
            "Broker 1 (10.0.0.1:9092) sends malformed Metadata v12 responses: leftover bytes; 1 time.",
            ["app-1"],
            [1],
        ),
    ],
)
def test_a_malformed_message_is_one_finding_about_its_sender(case, summary, clients, brokers):
    lab = Lab()
    case(lab)
    (found,) = lab.findings("WIR003")
    assert found["summary"] == summary
    assert (sorted(found["client_ids"]), found["brokers"]) == (clients, brokers)


def test_the_general_check_of_ids_leaves_out_what_a_special_one_says():
    """In each case of all checks: no two findings of one name about the same IDs."""
    gives_way_to = LISTED["TID020"].gives_way_to
    beside = 0
    for code, case in sorted(CASES):
        rows = list(read(code, case).rows["findings"].values())
        special = {(one["topic"], frozenset(one["topic_ids"])) for one in rows if one["code"] in gives_way_to}
        general = {(one["topic"], frozenset(one["topic_ids"])) for one in rows if one["code"] == "TID020"}
        assert general.isdisjoint(special), (code, case)
        beside += len(special)
    assert beside > 20


def test_two_ids_that_two_processes_of_one_node_state_follow_from_them():
    rows = read("TID020", "fires__two_processes_of_one_node").rows["findings"]
    every = linked([Finding.of({**row, "id": name, "label": "lab"}) for name, row in rows.items()])
    by_code = {one.code: one for one in every}
    assert by_code["TID020"].cause == by_code["CTL012"].id
