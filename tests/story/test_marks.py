"""The two marks: a tick is earned, and the exit status follows them."""

from dataclasses import replace

import pytest

from tests.dashboards.results import RESULT
from tests.story.test_causes import found, side
from tests.story.values import activity, finding, harm
from wirecheck.story.marks import STATES, marks_of, with_states
from wirecheck.story.seen import Activity, ClientState, Coverage

READ = Coverage(messages=100, decoded_messages=100)


def result(*states, granted=True, coverage=READ):
    from tests.commands.test_topics import client

    clients = tuple(
        replace(client(cluster="C"), client_id=f"app-{number}", granted=granted, work=ClientState(state, None, ""))
        for number, state in enumerate(states)
    )
    return replace(RESULT, clients=clients, entries=(), findings=(), harms=(), coverage=coverage)


@pytest.mark.parametrize(
    ("states", "mark", "sentence"),
    [
        (["working"] * 3, "clear", "all 3 clients get their work done"),
        (["working"], "clear", "the only client gets its work done"),
        (["working", "stalled", "in part", "in doubt", "failing"], "violation",
         "1 stalled, 1 rejected in part, 2 in doubt of 5 clients"),
        (["working", "failing"], "visibility", "1 in doubt of 2 clients"),
        ([], "visibility", "no client was read"),
        (["working", "working", "not captured"], "clear",
         "all 2 other clients get their work done · 1 client was not captured"),
        (["working", "not captured", "not captured"], "visibility",
         "3 clients, none known to be stalled · 2 clients were not captured"),
    ],
)  # fmt: skip
def test_the_mark_of_work_is_the_worst_client(states, mark, sentence):
    work = marks_of(result(*states)).work
    assert (work.mark, work.sentence) == (mark, sentence)


def lost_at(first, seconds):
    """The same with a client whose last connection the server closed so long before the end."""
    (one, *others) = first.clients
    work = ClientState("lost", first.last_ns - round(seconds * 1e9), "server closed its last connection")
    return replace(first, clients=(replace(one, work=work), *others))


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        (61, "all 2 other clients get their work done · 1 client lost its last connection and did not come back"),
        (59, "all 3 clients get their work done"),
    ],
)
def test_who_was_cut_off_and_did_not_come_back_is_not_counted_as_at_work(seconds, sentence):
    """As where the only broker moved to another port: three of eleven libraries look for it at the former one."""
    work = marks_of(lost_at(result("working", "working", "working"), seconds)).work
    assert (work.mark, work.sentence) == ("clear", sentence)


def test_a_party_that_was_never_granted_anything_is_in_no_count():
    assert marks_of(result("working", granted=False)).work.sentence == "no client was read"
    assert marks_of(result("stalled", granted=False)).work.mark == "violation", "its login fails: it asks for work"


def test_what_was_not_read_is_said_in_numbers():
    coverage = Coverage(messages=100, decoded_messages=99, encrypted_connections=340, undecoded_messages=1)
    sentence = "all 2 clients get their work done · 340 encrypted connections were not read · 1 message was not decoded"
    assert marks_of(result("working", "working", coverage=coverage)).work.sentence == sentence


def test_times_without_an_agent_are_said():
    coverage = Coverage(messages=1, measures={"agent_away_seconds": 12})
    sentence = "the only client gets its work done · 12 seconds were not captured"
    assert marks_of(result("working", coverage=coverage)).work.sentence == sentence


def test_brokers_that_were_not_captured_are_said_and_agree_with_nobody():
    seen = replace(RESULT.clusters[0], brokers=(1, 2, 3), uncaptured_brokers=1)
    marks = marks_of(replace(result("working"), clusters=(seen,)))
    assert marks.work.sentence == "the only client gets its work done · 1 of 3 brokers was not captured"
    assert marks.ids_and_versions.sentence == "1 topic and 2 brokers agree"


def test_nothing_is_ticked_where_nothing_was_read():
    marks = marks_of(result("working", coverage=Coverage()))
    assert marks.ids_and_versions.mark == "visibility"


def test_nobody_is_no_client_that_works():
    """One left without any work, and the other was not captured."""
    known = result("left", "not captured")
    left, unseen = known.clients
    left = replace(left, work=ClientState("left", 7, "Fetch: TOPIC_AUTHORIZATION_FAILED"))
    work = marks_of(replace(known, clients=(left, unseen))).work
    sentence = "2 clients, none known to be stalled · 1 client left, granted no work · 1 client was not captured"
    assert (work.mark, work.sentence) == ("visibility", sentence)


def test_nothing_is_known_to_agree_where_most_messages_were_not_decoded():
    marks = marks_of(result("working", coverage=Coverage(messages=100, decoded_messages=49, undecoded_messages=51)))
    sentence = "none known to disagree; most messages were not decoded"
    assert (marks.ids_and_versions.mark, marks.ids_and_versions.sentence[-len(sentence) :]) == ("visibility", sentence)


@pytest.mark.parametrize(
    ("granted", "unknown", "expected"),
    [
        (5, 17, ClientState("not captured", None, "Fetch: 17 of 22 responses not captured or not decoded")),
        (17, 17, ClientState("working", None, "")),
        (0, 2, ClientState("working", None, "")),
    ],
)
def test_a_client_most_of_whose_work_was_not_seen_is_not_known_to_work(granted, unknown, expected):
    """Two are in flight as a capture ends."""
    (app,) = result("working").clients
    app, beats = replace(app, address="127.0.0.1"), activity("Heartbeat", "group", 90, 0)
    fetches = replace(activity("Fetch", "reads", granted, 0), requests=granted + unknown, unknown=unknown)
    (one,) = with_states((app,), (beats, fetches), (), ())
    assert one.work == expected
    (one,) = with_states((app,), (beats, replace(fetches, in_flight=unknown, unknown=0)), (), ())
    assert one.work == ClientState("working", None, ""), "what is in flight lacks nothing"


def test_states_are_listed_worst_first():
    worst_first = "stalled, in part, skipped, failing, in doubt, not captured, elsewhere, lost, left, working"
    assert ", ".join(STATES) == worst_first


def test_a_client_without_any_rejection_works():
    (one,) = with_states(result("working").clients[:1], (), (), ())
    assert one.work == ClientState("working", None, "")


def test_a_client_without_a_connection_has_left_or_is_lost():
    (working,) = result("working").clients[:1]
    (left,) = with_states([replace(working, closed_ns=7, closed_by="client")], (), (), ())
    (lost,) = with_states([replace(working, closed_ns=7, closed_by="server")], (), (), ())
    idle_ns = working.last_ns + 15_000_000_000
    (idle,) = with_states([replace(working, closed_ns=idle_ns, closed_by="server")], (), (), ())
    assert idle.work == ClientState("working", None, ""), "it had nothing to ask"
    unanswered = replace(activity("Produce", "writes", 9, 0), requests=10, closed=1)
    app = replace(working, address="127.0.0.1", closed_ns=idle_ns, closed_by="server")
    answered = replace(unanswered, last_ns=app.last_ns + 1)
    (served,) = with_states([app], (answered,), (), ())
    assert served.work.state == "working", "its last request was answered"
    (waited,) = with_states([app], (replace(unanswered, last_ns=app.last_ns),), (), ())
    assert waited.work.state == "lost", "it waited for an answer"
    node = replace(
        working, client_id="raft-client-4", address="127.0.0.1", closed_ns=working.last_ns, closed_by="server"
    )
    (served,) = with_states([node], (), (), ())
    assert served.work.state == "working", "a controller stopped, and its node asks the others"
    asked = replace(unanswered, client_id="raft-client-4", last_ns=node.last_ns)
    (waited,) = with_states([node], (asked,), (), ())
    assert waited.work.state == "lost", "it waited for an answer"
    assert left.work == ClientState("left", 7, "")
    assert lost.work == ClientState("lost", 7, "server closed its last connection")
    assert marks_of(replace(result("working"), clients=(left, lost))).work.mark == "clear", "what it did was granted"


def test_a_doubt_about_one_client_is_none_about_others_with_its_id():
    app, twin = (replace(one, client_id="app") for one in result("working", "working").clients)
    app, twin = replace(app, address="10.0.0.7"), replace(twin, address="10.0.0.8")
    doubts = found("CLI010", client_ids=["app"], sides=[side("Heartbeat", 4, "10.0.0.7:40000>10.0.0.1:9092")])
    assert [one.work.state for one in with_states((app, twin), (), (), [finding(doubts)])] == ["in doubt", "working"]
    unseen = finding(found("CLI010", client_ids=["app"]))
    assert [one.work.state for one in with_states((app, twin), (), (), [unseen])] == ["in doubt", "in doubt"]


def test_harm_without_an_address_is_of_the_only_client_with_that_id():
    (app, other) = result("working", "working").clients
    harm = finding(found("WIR008", client_ids=[app.client_id]))
    assert [one.work.state for one in with_states((app, other), (), (), [harm])] == ["stalled", "working"]
    twin = replace(app, address="10.0.0.99")
    assert [one.work.state for one in with_states((app, twin), (), (), [harm])] == ["working", "working"]
    fails = replace(activity("Fetch", "reads", 0, 3), client_id=app.client_id, state="failing", address=app.address)
    assert with_states((app,), (fails,), (), [harm])[0].work.state == "stalled", "what is rejected besides is less"


def test_a_client_that_an_address_refuses_works_in_part_where_it_writes_at_others():
    (app,) = result("working").clients
    app, refused = replace(app, address="127.0.0.1"), finding(found("WIR008", client_ids=["app-0"]))
    writes = replace(activity("Produce", "writes", 9, 0), last_ns=refused.last_ns)
    (one,) = with_states((app,), (writes,), (), [refused])
    assert one.work.state == "in part"
    for other in (replace(writes, granted=0), replace(writes, step="metadata"), replace(writes, client_id="other")):
        (one,) = with_states((app,), (other,), (), [refused])
        assert one.work.state == "stalled"


def test_a_client_that_finds_no_coordinator_is_hurt_as_its_ledger_says():
    (app,) = result("working").clients
    app, refused = replace(app, address="127.0.0.1"), harm(
        cluster="C", level="hurt", client_id="app-0", address="127.0.0.1", api="FindCoordinator", topic=None,
        topic_id=None, partitions=(), errors=("COORDINATOR_NOT_AVAILABLE",), brokers=(2,), metadata_brokers=(),
        count=165, first_seen="2026-11-01T12:00:00Z", last_seen="2026-11-01T12:01:00Z", blocked_ms=60_000,
        recovered=False,
    )  # fmt: skip
    finds = activity("FindCoordinator", "coordinator", 0, 99)
    for state in ("in part", "stalled"):
        (one,) = with_states((app,), (replace(finds, state=state),), [refused], ())
        assert one.work.state == state


def test_a_client_whose_only_login_was_rejected_does_not_work():
    (app,) = result("working", granted=False).clients
    app = replace(app, address="127.0.0.1")
    versions, login = activity("ApiVersions", "versions", 1, 0), activity("SaslHandshake", "login", 0, 1)
    (one,) = with_states((app,), (versions, login), (), ())
    assert one.work == ClientState("failing", 7, "SaslHandshake: nothing was granted")
    (one,) = with_states((app,), (versions, login, activity("Metadata", "metadata", 1, 0)), (), ())
    assert one.work == ClientState("working", None, "")


def test_who_asks_for_versions_in_one_that_the_broker_has_not_asks_again():
    """KIP-511. What it asks for next was not captured."""
    (app,) = result("working").clients
    app = replace(app, address="127.0.0.1")
    (one,) = with_states((app,), (activity("ApiVersions", "versions", 1, 1),), (), ())
    assert one.work == ClientState("working", None, "")
    (one,) = with_states((app,), (activity("ApiVersions", "versions", 0, 1),), (), ())
    assert one.work == ClientState("failing", 7, "ApiVersions: nothing was granted")


def test_who_began_before_the_capture_may_have_been_granted_work_by_then():
    """Its last write and its end are in the capture, or its move to another broker."""
    (app,) = result("working").clients
    app = replace(app, address="127.0.0.1", closed_ns=12, closed_by="client")
    denied = replace(activity("Produce", "writes", 0, 1), errors=("NOT_LEADER_OR_FOLLOWER",))
    (one,) = with_states((app,), (denied,), (), ())
    assert one.work == ClientState("left", 12, "")
    (one,) = with_states((app,), (denied, activity("ApiVersions", "versions", 1, 0)), (), ())
    assert one.work == ClientState("failing", 7, "Produce: nothing was granted")
    (one,) = with_states((app,), (replace(denied, state="stalled"),), (), ())
    assert one.work.state == "failing", "so long, it is"


@pytest.mark.parametrize(
    ("rejected", "lasted_s", "state"), [(3, 30, "failing"), (3, 29, "working"), (2, 90, "working")]
)
def test_who_began_before_the_capture_and_is_rejected_for_longer_than_an_election_takes_does_not_work(
    rejected, lasted_s, state
):
    (app,) = result("working").clients
    app = replace(app, address="127.0.0.1")
    denied = replace(activity("Produce", "writes", 0, rejected), errors=("NOT_LEADER_OR_FOLLOWER",))
    (one,) = with_states((app,), (replace(denied, last_ns=denied.first_ns + lasted_s * 10**9),), (), ())
    assert one.work.state == state


def test_a_later_connection_begins_as_the_first_one_did():
    """Its write was rejected before, on a connection from before the capture."""
    (app,) = result("working").clients
    app = replace(app, address="127.0.0.1", closed_ns=12, closed_by="client")
    denied = replace(activity("Produce", "writes", 0, 1), errors=("NOT_LEADER_OR_FOLLOWER",))
    greets = activity("ApiVersions", "versions", 1, 0)
    (one,) = with_states((app,), (denied, replace(greets, first_ns=denied.first_ns + 1)), (), ())
    assert one.work == ClientState("left", 12, "")
    (one,) = with_states((app,), (replace(denied, first_ns=greets.first_ns + 1), greets), (), ())
    assert one.work.state == "failing"


@pytest.mark.parametrize(
    ("api", "error", "work"),
    [
        ("ListOffsets", "UNKNOWN_TOPIC_OR_PARTITION", "left"),
        ("Metadata", "LEADER_NOT_AVAILABLE", "left"),
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", "left"),
        ("ListOffsets", "TOPIC_AUTHORIZATION_FAILED", "failing"),
        ("JoinGroup", "MEMBER_ID_REQUIRED", "failing"),
    ],
)
def test_who_is_answered_once_that_it_is_not_there_or_not_yet_has_its_answer(api, error, work):
    (app,) = result("working").clients
    app = replace(app, address="127.0.0.1", closed_ns=12, closed_by="client")
    looks = replace(activity(api, "metadata", 0, 1), errors=(error,))
    (one,) = with_states((app,), (activity("ApiVersions", "versions", 1, 0), looks), (), ())
    assert (one.work.state, one.work.how if work == "left" else "") == (work, "")


def test_who_asks_whether_a_topic_is_there_has_its_answer():
    (app,) = result("working").clients
    app = replace(app, address="127.0.0.1", closed_ns=12, closed_by="client")
    greets, missing = activity("ApiVersions", "versions", 1, 0), ("UNKNOWN_TOPIC_OR_PARTITION",)
    for count, work in ((2, ("left", "")), (3, ("failing", "Metadata: nothing was granted"))):
        looks = replace(activity("Metadata", "metadata", 0, count), errors=missing)
        (one,) = with_states((app,), (greets, looks), (), ())
        assert (one.work.state, one.work.how) == work
    looks = replace(looks, requests=1, rejected=1)
    denied = replace(looks, errors=("TOPIC_AUTHORIZATION_FAILED",))
    for client, asks in ((app, denied), (replace(app, closed_ns=None, closed_by=None), looks)):
        (one,) = with_states((client,), (greets, asks), (), ())
        assert one.work.state == "failing", "or its application waits for it"


def test_who_left_without_any_work_granted_is_under_no_tick():
    app, other = result("working", "working").clients
    app = replace(app, address="127.0.0.1", closed_ns=12, closed_by="client")
    denied = replace(activity("Produce", "writes", 0, 2), errors=("TOPIC_AUTHORIZATION_FAILED",))
    known = (activity("Metadata", "metadata", 1, 0), activity("InitProducerId", "transactions", 1, 0), denied)
    found = with_states((app, other), known, (), ())
    assert found[0].work == ClientState("left", 12, "Produce: TOPIC_AUTHORIZATION_FAILED")
    mark = marks_of(replace(result("working"), clients=found)).work
    assert (mark.mark, mark.sentence) == (
        "clear",
        "the only other client gets its work done · 1 client left, granted no work",
    )
    assert marks_of(replace(result("working"), clients=found[:1])).work.mark == "visibility"


@pytest.mark.parametrize(("rejected", "how"), [(20, "Produce: TOPIC_AUTHORIZATION_FAILED"), (9, "")])
def test_one_lost_response_of_many_rejections_does_not_hide_that_no_work_was_granted(rejected, how):
    app = replace(result("working").clients[0], address="127.0.0.1", closed_ns=12, closed_by="client")
    denied = replace(activity("Produce", "writes", 0, rejected), errors=("TOPIC_AUTHORIZATION_FAILED",), unknown=1)
    (left,) = with_states((app,), (activity("Metadata", "metadata", 1, 0), denied), (), ())
    assert left.work == ClientState("left", 12, how)


@pytest.mark.parametrize(("until_ns", "state"), [(None, "failing"), (8, "left")])
def test_who_asks_until_it_is_granted_leaves_and_does_not_fail(until_ns, state):
    """Whether its last request was granted is not known."""
    app = replace(result("working").clients[0], address="127.0.0.1", closed_ns=12, closed_by="client")
    asked = replace(
        activity("CreateTopics", "administration", 0, 47),
        errors=("INVALID_REPLICATION_FACTOR",),
        unknown=1,
        state="stalled",
        until_ns=until_ns,
    )
    (left,) = with_states((app,), (activity("Metadata", "metadata", 1, 0), asked), (), ())
    assert left.work.state == state


def test_who_wrote_and_left_was_granted_work():
    (app,) = result("working").clients
    app = replace(app, address="127.0.0.1", closed_ns=12, closed_by="client")
    denied = replace(activity("OffsetCommit", "commits", 0, 2), errors=("GROUP_AUTHORIZATION_FAILED",))
    for other in (activity("Produce", "writes", 5, 1), replace(activity("Fetch", "reads", 0, 0), unknown=1)):
        (left,) = with_states((app,), (activity("Metadata", "metadata", 1, 0), denied, other), (), ())
        assert left.work == ClientState("left", 12, "")


def test_what_is_part_of_the_protocol_is_no_rejection_of_a_client_that_left():
    (app,) = result("working").clients
    app = replace(app, address="127.0.0.1", closed_ns=12, closed_by="client")
    loads = replace(activity("InitProducerId", "transactions", 0, 1), errors=("COORDINATOR_LOAD_IN_PROGRESS",))
    (left,) = with_states((app,), (activity("Metadata", "metadata", 1, 0), loads), (), ())
    assert left.work == ClientState("left", 12, "")


def test_a_tool_that_gets_a_final_answer_was_not_rejected():
    """The first broker does not lead the cluster; the second one says that the topic is there."""
    (app,) = result("working").clients
    app = replace(app, address="127.0.0.1", closed_ns=12, closed_by="client")
    metadata, creates = activity("Metadata", "metadata", 1, 0), activity("CreateTopics", "administration", 0, 2)
    for last, how in (
        ("TOPIC_ALREADY_EXISTS", ""),
        ("TOPIC_AUTHORIZATION_FAILED", "CreateTopics: NOT_CONTROLLER, TOPIC_AUTHORIZATION_FAILED"),
    ):
        (left,) = with_states((app,), (metadata, replace(creates, errors=("NOT_CONTROLLER", last))), (), ())
        assert left.work == ClientState("left", 12, how)


def test_who_only_administers_and_is_always_rejected_does_not_work():
    (app,) = result("working").clients
    app = replace(app, address="127.0.0.1")
    denied = activity("DescribeConfigs", "administration", 0, 90)
    denied = replace(denied, state="stalled", errors=("CLUSTER_AUTHORIZATION_FAILED",))
    known, seen = (activity("Metadata", "metadata", 1, 0), denied), RESULT.clusters[0]
    (one,) = with_states((app,), known, (), ())
    assert one.work == ClientState("failing", 7, "DescribeConfigs: CLUSTER_AUTHORIZATION_FAILED")
    (one,) = with_states((app,), (*known, activity("ListGroups", "administration", 1, 0)), (), ())
    assert one.work.state == "working", "one that may do a part of what it asks for"
    (one,) = with_states((app,), known, (), (), [replace(seen, uncaptured_brokers=1)])
    assert one.work.state == "working", "it may be granted the rest at a broker that was not captured"


def test_a_node_whose_requests_another_node_refuses_is_no_client_that_fails():
    """Its row says what the mark says of it, as the table of activities does."""
    (app,) = result("working").clients
    node = replace(app, address="127.0.0.1", client_id="raft-client-3")
    refused = replace(activity("BeginQuorumEpoch", "administration", 0, 90), client_id="raft-client-3")
    refused = replace(refused, errors=("FENCED_LEADER_EPOCH",))
    (one,) = with_states((node,), (refused,), (), ())
    assert one.work == ClientState("working", None, "")
    stalled = replace(refused, state="stalled", since_ns=7)
    (one,) = with_states((node,), (stalled,), (), ())
    assert one.work == ClientState("stalled", 7, "BeginQuorumEpoch: FENCED_LEADER_EPOCH")
    work = marks_of(replace(result("working"), clients=(app, one), activities=(stalled,))).work
    assert work.sentence.endswith("node raft-client-3 stalled at BeginQuorumEpoch (FENCED_LEADER_EPOCH)")
    assert not one.is_counted


def test_a_node_that_is_stalled_takes_the_tick_and_is_no_client():
    node = Activity(
        cluster="C", client_id="2", address="10.0.0.2", api="CreateTopics", step="administration", state="stalled",
        since_ns=1, until_ns=None, requests=9, granted=0, late=0, unasked=0, rejected=9, closed=0, given_up=0,
        in_flight=0, unknown=0,
        errors=("INVALID_REPLICATION_FACTOR",), first_ns=1, last_ns=2,
    )  # fmt: skip
    work = marks_of(replace(result("working", "working"), activities=(node,))).work
    sentence = "all 2 clients get their work done · node 2 stalled at CreateTopics (INVALID_REPLICATION_FACTOR)"
    assert (work.mark, work.sentence) == ("anomaly", sentence)
