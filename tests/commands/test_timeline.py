"""`wirecheck timeline`: events in order of time, of what was seen, and none that was not."""

import json

import pytest

import wirecheck
from tests.commands.conftest import ROOT
from tests.judge.lab import B1, B2, ID_1, ID_2, Lab
from wirecheck.commands.timeline import KINDS
from wirecheck.questions import timeline

STALE = ROOT / "examples/kraft4-stale-broker/capture.pcap.gz"
T = "orders"


@pytest.fixture
def listed(tmp_path):
    def of(lab):
        (tmp_path / "one.pcap").write_bytes(lab.pcap())
        return [(one.kind, one.subject, one.text) for one in wirecheck.timeline(tmp_path / "one.pcap")]

    return of


def of_kind(found, kind):
    return [(subject, text) for of, subject, text in found if of == kind]


def test_elections_of_one_second_are_one_event(listed):
    lab = Lab()
    lab.metadata(0, [(T, ID_1, 0, 4), ("pay", ID_2, 0, 4)], leader=1)
    lab.metadata(10, [(T, ID_1, 0, 5), ("pay", ID_2, 0, 5)], leader=2)
    lab.metadata(10.5, [(T, ID_1, 0, 5), ("pay", ID_2, 0, 5)], leader=2, server=B2)
    assert of_kind(listed(lab), "election") == [("", "broker 1 -> broker 2 leads 2 partitions: orders (1) and pay (1)")]


@pytest.mark.parametrize(
    ("later", "why"),
    [
        ((T, ID_1, 0, 3), "a broker that lags behind has the leader of an older epoch"),
        ((T, ID_2, 0, 5), "it is another topic of that name"),
    ],
)
def test_what_is_no_election(listed, later, why):
    lab = Lab()
    lab.metadata(0, [(T, ID_1, 0, 4)], leader=1)
    lab.metadata(10, [later], leader=2, server=B2)
    assert of_kind(listed(lab), "election") == [], why


def test_members_that_join_and_leave_and_why(listed):
    lab = Lab()
    lab.metadata(0)
    talks = [lab.talk(client_id=f"app-{n}", host=f"10.0.0.{7 + n}") for n in range(2)]
    for n, talk in enumerate(talks):
        talk.ask(5 + n, "JoinGroup", 9, {"groupId": "g", "protocolType": "consumer"},
                 {"generationId": 3, "memberId": f"m{n}", "leader": "m0"}, answered_in=3 - n)  # fmt: skip
    talks[1].ask(
        60,
        "LeaveGroup",
        5,
        {"groupId": "g", "members": [{"memberId": "m1", "reason": "the consumer is being closed"}]},
        {},
    )
    new = lab.talk(client_id="new", host="10.0.0.20")
    new.ask(70, "ConsumerGroupHeartbeat", 0, {"groupId": "h", "memberId": "x", "memberEpoch": 0},
            {"memberId": "x", "memberEpoch": 4})  # fmt: skip
    assert of_kind(listed(lab), "group") == [
        ("g", "generation 3 with 2 members, took 3.0 s"),
        ("g", "app-1 leaves: the consumer is being closed"),
        ("h", "new joins"),
    ]


def test_clients_that_appear_and_fall_silent(listed):
    lab = Lab()
    for at in range(0, 100, 5):
        lab.metadata(at)  # app, from the beginning to the end
    for client_id in ("late", "later"):
        lab.talk(client_id=client_id, host="10.0.0.9").ask(20.1, "Metadata", 12, {"topics": None}, {})
    found = of_kind(listed(lab), "client")
    assert found == [
        ("", "first request of late (10.0.0.9) and later (10.0.0.9)"),
        ("", "last request of late (10.0.0.9) and later (10.0.0.9)"),
    ]


def test_a_broker_that_starts_is_one_that_registers(listed):
    lab = Lab()
    lab.metadata(0)
    asked = {"brokerId": 3, "clusterId": "c", "incarnationId": ID_1}
    lab.talk(server=B1, client_id="3").ask(9, "BrokerRegistration", 0, asked, {"errorCode": 0, "brokerEpoch": 1203})
    lab.talk(server=B1, client_id="4").ask(9, "BrokerRegistration", 0, asked | {"brokerId": 4}, {"errorCode": 101})
    assert of_kind(listed(lab), "broker") == [("broker 3", "registers with the controller, broker epoch 1,203")]


def test_the_story_of_a_real_incident_in_its_order(run):
    lines = [json.loads(line) for line in run("timeline", STALE, "--format", "json").stdout.splitlines()]
    times = [one["time"] for one in lines]
    assert times == sorted(times)
    assert {one["kind"] for one in lines} <= set(KINDS)
    story = [(one["kind"], one["subject"], one["text"].split()[0], one["code"]) for one in lines]
    expected = [
        ("change", "tickets", "CreateTopics", None),
        ("finding", "broker 4", "Broker", "LOG003"),
        ("change", "tickets", "DeleteTopics", None),
        ("hurt", "p-lost (127.0.0.1)", "Produce", None),
    ]
    places = [story.index(one) for one in expected]
    assert places == sorted(places)


def test_what_is_asked_for_is_listed(run):
    about = run("timeline", STALE, "--about", "p-lost").stdout.splitlines()[1:]
    assert about
    assert all("p-lost" in line for line in about)
    kinds = {line.split()[1] for line in run("timeline", STALE, "--kind", "change").stdout.splitlines()[1:]}
    assert kinds == {"change"}
    early = run("timeline", STALE, "--until", "00:36:20").stdout.splitlines()[1:]
    assert early
    assert all(line.split()[0] <= "00:36:20" for line in early)
    ended = run("timeline", STALE, "--since", "01:00", "--until", "00:30")
    assert (ended.exit_code, ended.stderr.startswith("wirecheck: --until is before --since")) == (2, True)


def test_results_have_what_their_tables_keep(run, tmp_path):
    run("replay", STALE, "--out", tmp_path / "out")
    kept = [json.loads(line) for line in run("timeline", tmp_path / "out", "--format", "json").stdout.splitlines()]
    whole = [json.loads(line) for line in run("timeline", STALE, "--format", "json").stdout.splitlines()]
    listed_too = [one | {"cluster": None} for one in whole if one["kind"] not in {"election", "broker"}]
    assert [one | {"cluster": None} for one in kept] == listed_too  # tables know the cluster of more changes
    assert len(wirecheck.timeline(tmp_path / "out")) == len(kept)


def test_results_have_who_joined_and_left_as_the_capture_has(run, tmp_path):
    capture = ROOT / "tests/scenarios/captures/kraft4-groups-recreate/capture.pcap.gz"
    run("replay", capture, "--out", tmp_path / "out")
    kept, whole = (
        run("timeline", place, "--kind", "group", "--kind", "client", "--format", "json").stdout
        for place in (tmp_path / "out", capture)
    )
    assert kept == whole
    assert kept.count('"group"') > 3


def test_without_principals_no_event_names_one(run):
    every = run("timeline", STALE, "--kind", "change").stdout
    hidden = run("timeline", STALE, "--kind", "change", "--no-principals").stdout
    assert "User:ANONYMOUS" in every
    assert "User:ANONYMOUS" not in hidden
    assert len(every.splitlines()) == len(hidden.splitlines())


def test_the_kinds_are_those_of_the_events():
    assert KINDS == timeline.KINDS
