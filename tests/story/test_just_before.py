"""Which of the changes just before a rejection are about it."""

import pytest

from tests.story.values import NOON_NS, hurt
from wirecheck.story.card_context import CardContext
from wirecheck.story.just_before import MOST, WITHIN_NS, just_before, missing, rejected_creation
from wirecheck.story.seen import Cluster

SECOND_NS = 1_000_000_000


def change(action, name, details="", *, object_type="topic", error="NONE", seconds=1.0):
    """Accepted a second before the first rejection, unless it says otherwise."""
    target = {"object_type": object_type, "object": name, "details": details, "error": error}
    time = {"time": NOON_NS - int(seconds * SECOND_NS), "in_envelope": False}
    return {
        "action": action,
        "client_id": "admin",
        "targets": [target],
        "connection": "10.0.0.9:5>10.0.0.1:9092",
        **time,
    }


def acl(name, kind, *, action="CreateAcls"):
    return change(action, name, f"{kind}: DENY User:app WRITE from *", object_type="acl")


def said(one, *changes):
    """As its card has it."""
    context = CardContext({}, NOON_NS, changes=changes)
    return just_before(one, context.changes_before(one.first_ns, None), dated=False)


@pytest.mark.parametrize(("name", "kind", "about"), [
    ("orders", "topic", True),
    ("*", "topic", True),
    ("ord", "prefixed topic", True),
    ("ord", "topic", False),
    ("payments", "topic", False),
    ("pay", "prefixed topic", False),
    ("orders", "group", False),
    ("", "any", True),
])  # fmt: skip
def test_of_acls_only_those_of_the_topic_that_is_denied_are_named(name, kind, about):
    for action in ("CreateAcls", "DeleteAcls"):
        assert bool(said(hurt(), acl(name, kind, action=action))) is about


@pytest.mark.parametrize(("error", "kind"), [
    ("GROUP_AUTHORIZATION_FAILED", "group"),
    ("CLUSTER_AUTHORIZATION_FAILED", "cluster"),
    ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "transactional ID"),
])  # fmt: skip
def test_of_other_rights_only_those_of_the_kind_that_is_denied_are_named(error, kind):
    one = hurt(error=error)
    assert said(one, acl("g", kind), acl("orders", "topic")) == ("CreateAcls of acl g by admin at 11:59:59",)


def test_the_right_one_is_named_among_many_of_the_same_moment():
    others = [acl(f"other-{number}", "topic") for number in range(MOST + 3)]
    assert said(hurt(), *others, acl("orders", "topic")) == ("CreateAcls of acl orders by admin at 11:59:59",)


def test_what_was_rejected_came_later_or_long_before_is_not_named():
    assert not said(hurt(), change("DeleteTopics", "orders", error="TOPIC_AUTHORIZATION_FAILED"))
    assert not said(hurt(), change("DeleteTopics", "orders", seconds=-1))
    assert not said(hurt(), change("DeleteTopics", "orders", seconds=WITHIN_NS / SECOND_NS + 1))
    assert said(hurt(), change("DeleteTopics", "orders"))


def test_a_quota_is_named_where_one_holds_a_client_up():
    quota = change("AlterClientQuotas", "user app", "set producer_byte_rate", object_type="quota")
    assert said(hurt(error="next to nothing granted"), quota) == (
        "AlterClientQuotas of quota user app by admin at 11:59:59",
    )
    assert not said(hurt(), quota)


@pytest.mark.parametrize(("entity", "about"), [
    ("client-id app", True),
    ("client-id (default)", True),
    ("user svc, client-id app", True),
    ("client-id other", False),
    ("user (default), client-id other", False),
])  # fmt: skip
def test_of_quotas_those_of_another_client_id_are_not_named(entity, about):
    quota = change("AlterClientQuotas", entity, "set producer_byte_rate", object_type="quota")
    assert bool(said(hurt(client_id="app", error="next to nothing granted"), quota)) is about


def test_a_broker_that_creates_a_topic_is_a_node():
    created = change("CreateTopics", "orders") | {"client_id": "2"}
    assert said(hurt(error="INVALID_TOPIC_EXCEPTION"), created) == (
        "CreateTopics of topic orders by node 2 at 11:59:59",
    )


def test_a_coordinator_that_is_not_available_lacks_its_own_topic():
    changes = change("CreateTopics", "orders"), change("CreateTopics", "__consumer_offsets")
    one = hurt(api="OffsetCommit", error="COORDINATOR_NOT_AVAILABLE")
    assert said(one, *changes) == ("CreateTopics of topic __consumer_offsets by admin at 11:59:59",)
    assert said(hurt(topic=None, error="TOPIC_ALREADY_EXISTS"), *changes) == ()


def test_a_coordinator_that_is_another_one_may_have_lost_its_own_topic():
    changes = change("DeleteTopics", "orders"), change("DeleteTopics", "__consumer_offsets")
    one = hurt(api="OffsetCommit", error="NOT_COORDINATOR")
    assert said(one, *changes) == ("DeleteTopics of topic __consumer_offsets by admin at 11:59:59",)


def uncreated(one, tries):
    """As its card has it."""
    return rejected_creation(one, CardContext({}, NOON_NS, changes=tries).creations_of(missing(one), None))


MISSES = {"api": "Metadata", "error": "UNKNOWN_TOPIC_OR_PARTITION", "topic": "st-store-changelog"}


def creation(error, *, name="st-store-changelog", seconds=-10.0, **more):
    return change("CreateTopics", name, error=error, seconds=seconds) | more


def test_a_missing_topic_that_others_try_in_vain_to_create_is_their_fault():
    tries = [
        creation("POLICY_VIOLATION"),
        *(creation("INVALID_REPLICATION_FACTOR", seconds=-20 * n) for n in (1, 2, 3)),
    ]
    forwarded = [one | {"in_envelope": True} for one in tries]
    words = uncreated(hurt(**MISSES), [*tries, *forwarded])
    assert (words["creator"], words["tries"]) == ("admin", "4 times")
    assert words["creation_error"] == "INVALID_REPLICATION_FACTOR"
    assert words["creation_means"].startswith("there are fewer brokers")
    assert words["creation_action"]


@pytest.mark.parametrize("tries", [
    [],
    [creation("INVALID_REPLICATION_FACTOR", name="another")],
    [creation("INVALID_REPLICATION_FACTOR", seconds=3600)],
    [creation("INVALID_REPLICATION_FACTOR", seconds=-36000)],
    [creation("INVALID_REPLICATION_FACTOR"), creation("NONE")],
    [creation("INVALID_REPLICATION_FACTOR"), creation("TOPIC_ALREADY_EXISTS")],
    [creation(None)],
])  # fmt: skip
def test_a_creation_of_another_topic_or_time_or_that_was_granted_says_nothing(tries):
    assert uncreated(hurt(**MISSES), tries) == {}


def test_who_lacks_a_right_does_not_lack_the_topic():
    assert uncreated(hurt(**MISSES | {"error": "TOPIC_AUTHORIZATION_FAILED"}), [creation("NONE")]) == {}


def test_changes_of_another_cluster_are_none_of_this_one():
    mine, others = (
        Cluster("lab", cluster_id, (end,), (1,), NOON_NS, NOON_NS)
        for cluster_id, end in (("A", "10.0.0.1:9092"), ("B", "10.0.1.1:9092"))
    )
    made = [
        creation("NONE"),
        creation("NONE", connection="10.0.0.9:5>10.0.1.1:9092"),
        creation("NONE", connection="a:1>b:2"),
    ]
    context = CardContext({}, NOON_NS + 10 * SECOND_NS, changes=made, clusters=(mine, others))
    for cluster, known in (("A", [made[0], made[2]]), ("B", made[1:]), (None, made)):
        assert context.changes_before(NOON_NS + 10 * SECOND_NS, cluster) == known
        found = [one.connection for one in context.creations_of(["st-store-changelog"], cluster)]
        assert found == [one["connection"] for one in known]


def test_a_coordinator_whose_topic_a_broker_cannot_create_lacks_that():
    tries = [creation("INVALID_REPLICATION_FACTOR", name="__consumer_offsets", client_id="2")]
    granted = [creation("NONE", name="__transaction_state", client_id="2")]
    one = hurt(api="FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", topic=None)
    words = uncreated(one, [*tries, *granted])
    assert (words["missing"], words["creator"], words["tries"]) == ("__consumer_offsets", "node 2", "1 time")
    assert uncreated(one, granted) == {}


def test_a_request_for_two_topics_is_one_attempt_for_each():
    (both,) = tries = [creation("INVALID_REPLICATION_FACTOR", name="__consumer_offsets")]
    both["targets"].append(both["targets"][0] | {"object": "__transaction_state"})
    one = hurt(api="FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", topic=None)
    assert uncreated(one, tries)["tries"] == "1 time"
