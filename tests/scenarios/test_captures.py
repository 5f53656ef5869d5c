"""Real clusters, by the plain loop: what was true is what is reported, and nothing else is alleged."""

import shlex
from collections import Counter, defaultdict
from random import Random

import pytest
from click.testing import CliRunner

from tests.depth import some
from tests.scenarios.engines import NAMES, Scenario, frames, looped, packets, plain
from wirecheck import cli
from wirecheck.capture import frames_file
from wirecheck.client_ids import is_internal, is_of_node
from wirecheck.dashboards.verdict import blamed, sentence
from wirecheck.questions.error_rows import error_rows
from wirecheck.questions.traffic import GIVEN_UP, UNANSWERED, Traffic
from wirecheck.story.card_context import FILE
from wirecheck.story.harm import NO_RESPONSE, SILENT

LONG_NS = 30_000_000_000


@pytest.fixture(scope="module", params=NAMES)
def captured(request, tmp_path_factory):
    scenario = Scenario(request.param)
    return scenario, frames([scenario.pcap], tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def found(captured):
    scenario, files = captured
    return scenario, looped([files], scenario.settings)


@pytest.fixture(scope="module")
def judged(found):
    scenario, result = found
    return scenario, result.json()


def test_topics_and_ids_are_those_of_the_truth(judged):
    scenario, result = judged
    expect = scenario.truth["expect"]
    unseen, unnamed = map(tuple, expect["ids_not_on_wire"]), {topic_id for _, topic_id in expect["ids_never_named"]}
    true = {(topic["name"], topic["topic_id"]) for topic in scenario.truth["topics"] if topic["topic_id"]} - set(unseen)
    true = {(None if topic_id in unnamed else name, topic_id) for name, topic_id in true}
    assert {(row["name"], row["topic_id"]) for row in result["topics"] if row["topic_id"]} == true


def test_a_recreated_topic_knows_its_earlier_ids_oldest_first(judged):
    scenario, result = judged
    for row in result["topics"]:
        if row["state"] != "current" or row["topic_id"] is None:
            continue
        lives = sorted(
            (topic["created_at"], topic["topic_id"])
            for topic in scenario.truth["topics"]
            if topic["name"] == row["name"] and topic["topic_id"] and of_cluster(topic, scenario, row)
        )
        assert row["earlier_ids"] == [topic_id for _, topic_id in lives if topic_id != row["topic_id"]]


def of_cluster(topic, scenario, row):
    ids = scenario.truth["cluster_id"]
    return not isinstance(ids, dict) or ids[topic["cluster"]] == row["cluster"]


def test_clusters_are_told_apart(judged):
    scenario, result = judged
    ids = scenario.truth["cluster_id"]
    true = set(ids.values()) if isinstance(ids, dict) else {ids}
    found = [cluster["cluster_id"] for cluster in result["clusters"]]
    assert len(found) == scenario.truth["expect"].get("clusters", 1)
    assert set(found) <= true


def test_what_has_to_be_found_is_found(judged):
    scenario, result = judged
    for wanted in scenario.truth["expect"]["must"]:
        found = [
            finding
            for finding in result["findings"]
            if finding["code"] == wanted["code"]
            and finding["topic"] == wanted.get("topic", finding["topic"])
            and wanted.get("client_id", "") in [*finding["client_ids"], ""]
        ]
        assert found, wanted
        assert {topic_id for finding in found for topic_id in finding["topic_ids"]} >= set(wanted.get("topic_ids", []))


def test_nothing_false_is_found(judged):
    scenario, result = judged
    allowed = {wanted["code"] for wanted in scenario.truth["expect"]["must"]} | set(scenario.truth["expect"]["may"])
    grave = [finding for finding in result["findings"] if finding["kind"] in {"violation", "anomaly"}]
    assert [finding["summary"] for finding in grave if finding["code"] not in allowed and "*" not in allowed] == []


def test_every_client_that_is_hurt_is_named_and_no_other(judged):
    """Truth by the clients' own counters and logs: refused or without a response for longer than a client's grace."""
    scenario, result = judged
    named = {client["client_id"] for entry in result["entries"] for client in entry["card"]["harm"]["clients"]}
    assert named == set(scenario.truth["hurt_clients"])


def test_who_does_no_work_or_lost_records_is_on_a_card(judged):
    _, result = judged
    on_cards = {client["client_id"] for entry in result["entries"] for client in entry["card"]["harm"]["clients"]}
    hurt = {one["client_id"] for one in result["clients"] if one["state"] in {"stalled", "in part", "skipped"}}
    assert {name for name in hurt if not is_of_node(name)} <= on_cards


@pytest.fixture(scope="module")
def listed(captured):
    """What `errors` lists."""
    scenario, files = captured
    return error_rows(Traffic(dialects=scenario.settings.dialects).read(frames_file.read(file) for file in files))


def test_the_ledger_the_clients_and_the_list_of_errors_count_the_same(listed, judged):
    """A response is rejected if it grants nothing; the list has a row for each error and topic of it."""
    _, result = judged
    ledger, of_client = defaultdict(Counter), Counter()
    for row in result["activities"]:
        ledger[row["client_id"], row["address"], row["api"]].update({name: row[name] for name in OUTCOMES})
        of_client[row["client_id"], row["address"]] += row["requests"]
    clients = Counter()
    for row in result["clients"]:
        clients[row["client_id"] or None, row["address"]] += row["requests"]
    assert clients == of_client
    errors = defaultdict(Counter)
    for row in listed:
        if row.effect not in {"throttled", "connection refused"}:
            assert row.count <= row.requests == ledger[row.client_id, row.host, row.api]["requests"], row
            errors[row.client_id, row.host, row.api][ENDINGS.get(row.error, "rejected")] += row.count
    for key, counts in ledger.items():
        ended = {name: errors[key][name] for name in ENDINGS.values()}
        assert ended == {name: counts[name] for name in ENDINGS.values()}, key
        assert counts["rejected"] <= errors[key]["rejected"], key


OUTCOMES = ("requests", "rejected", "closed", "given_up")
ENDINGS = {UNANSWERED: "closed", GIVEN_UP: "given_up"}


def test_cards_and_the_list_of_errors_tell_one_story_of_who_still_fails(listed, judged):
    """A client whose connection is closed is a row of no topic there, and of no version. Whose connection was refused
    is unknown where a host has several clients.
    """
    _, result = judged
    hurt = [client for entry in result["entries"] for client in entry["card"]["harm"]["clients"]]
    for client in hurt:
        api, known = client["api"].partition(" ")[0], set(client["error"].split(", "))
        mine = [
            row for row in listed if (row.client_id, row.host, row.api) == (client["client_id"], client["address"], api)
        ]
        of_error = [row for row in mine if row.error in known and row.topic in {client["topic"], None}]
        about = of_error or [row for row in mine if row.effect == "no response"]
        assert about or known & {NO_RESPONSE, *SILENT}, client
        assert not about or client["ongoing"] == any(row.status == "ongoing" for row in about), client
    named = {client["client_id"] for client in hurt}
    lasting = {
        row.client_id
        for row in listed
        if row.status == "ongoing" and row.last_ns - row.first_ns >= LONG_NS and not is_internal(row.client_id)
        and not row.is_of_unknown
    }  # fmt: skip
    assert lasting <= named


@pytest.mark.parametrize(("loss", "seed"), some([(0.08, 2), (0.03, 1), (0.01, 0)]))
def test_cards_and_the_list_of_errors_tell_one_story_of_what_was_not_lost(loss, seed, tmp_path):
    """One client has 5 errors, another 28 at two brokers: what was lost between them may have been a success."""
    lossy = tmp_path / "lossy.pcap"
    head, *rest = packets(Scenario("kraft4-stale-broker"))
    dice = Random(seed)
    lossy.write_bytes(head + b"".join(packet for packet in rest if dice.random() >= loss))
    files = frames([lossy], tmp_path / "frames")
    rows = error_rows(Traffic().read(frames_file.read(file) for file in files))
    counted = {
        (row.client_id, row.error): (row.count, row.status == "ongoing")
        for row in rows
        if row.last_ns - row.first_ns >= LONG_NS and row.effect.endswith("rejected") and not is_internal(row.client_id)
    }
    cards = [entry["card"]["harm"] for entry in plain([files])["entries"]]
    named = [client for harm in cards for client in (*harm["clients"], *harm["briefly"])]
    assert {client for client, _ in counted} == {"p-lost", "c-lost"}
    assert {(one["client_id"], one["error"]): (one["count"], one["ongoing"]) for one in named} == counted


def test_every_command_that_a_card_prints_shows_something(judged):
    scenario, result = judged
    commands = [one for entry in result["entries"] for one in entry["card"]["action"]["commands"]]
    for command in dict.fromkeys(commands):
        arguments = [str(scenario.pcap) if word == FILE else word for word in shlex.split(command)[1:]]
        ran = CliRunner().invoke(cli.main, arguments)
        assert ran.exit_code == 0, command
        assert ran.stdout, command


def test_every_message_captured_whole_is_decoded(judged):
    _, result = judged
    coverage = result["coverage"]
    assert (coverage["decoded_messages"], coverage["undecoded_messages"]) == (coverage["messages"], 0)


def test_of_two_clusters_seen_late_the_one_that_does_not_say_which_it_is_is_unknown(tmp_path):
    """Only one of them still says its ClusterId; all endpoints used to be shown under that one."""
    scenario = Scenario("two-clusters-one-wire")
    head, *rest = packets(scenario)
    late = tmp_path / "late.pcap"
    late.write_bytes(head + b"".join(rest[len(rest) * 4 // 5 :]))
    result = plain([frames([late], tmp_path / "frames")])
    found = {
        cluster["cluster_id"]: {end.rpartition(":")[0] for end in cluster["endpoints"]}
        for cluster in result["clusters"]
    }
    assert found == {scenario.truth["cluster_id"]["west"]: {"127.0.2.92"}, None: {"127.0.2.91"}}
    assert {topic["topic_id"] for topic in result["topics"] if topic["cluster"] is None} <= {
        topic["topic_id"] for topic in scenario.truth["topics"] if topic["cluster"] == "east"
    }
    assert not [finding for finding in result["findings"] if finding["kind"] in {"violation", "anomaly"}]


STORIES = {
    "kip516-draft-contradiction": [("TID006", ["TID003", "TID018"])],
    "kraft-clients-zoo": [("VER005", ["VER001"])],
    "kraft-version-sweep": [("ADM001", []), ("ADM001", []), ("ADM002", []), ("ADM002", [])],
    "kraft4-groups-recreate": [("TID001", ["GRP004"])],
    # A producer and a consumer asked broker 4 for metadata, which gave them the ID of before the recreation.
    # p-good and p-lost wrote 646 records, and c-good read 645: by their own counters.
    "kraft4-stale-broker": [
        ("LOG003", ["FET001", "LOG001", "TID007", "TID010", "TID017"]),
        ("TID001", ["GRP010"]),
    ],
    "kraft4-wrong-cluster": [("CLU001", [])],
    # Commits of goes were accepted until 20:25:40; the answer to OffsetFetch at 20:25:44 has none.
    "zk38-migration-rolled-back": [("TID001", ["GRP004"])],
    "zk39-inconsistent-id": [("TID002", [])],
    "zk39-stubborn-client": [("TID001", ["FET001", "FET001"])],
    "zk39-tls12-mutual-inconsistent-id": [("TID002", [])],
    "zk39-zombie-controller": [("VIS008", ["CTL001"])],
}
"""By capture where each fault began, and what follows from it; all others are healthy."""


def test_each_fault_is_one_story_and_health_is_none(found):
    scenario, result = found[0], found[1].verdict()
    stories = [(entry.code, sorted(under.code for under in entry.consequences)) for entry in blamed(result)]
    assert stories == STORIES.get(scenario.name, [])
    assert not any(finding.possible_causes for finding in result.findings)
    healthy = sentence(result).startswith("No contradiction about topic IDs or versions was found")
    assert healthy == (scenario.name not in STORIES)
