"""What was changed just before a client's requests were first rejected: reported as that, and never as the cause. And
who tries in vain to create a topic that a client lacks, which is the cause.

Rule: a change counts if it was granted, at most WITHIN_NS before the first rejection, and is about the topic, user,
right or quota that the rejection is about. At most MOST are named, the latest first.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from wirecheck.client_ids import broker_of
from wirecheck.judge.checks.error_meanings import meaning_of
from wirecheck.story.verdict import HurtClient
from wirecheck.wording import NS_PER_S, clock, in_a_sentence, plural

WITHIN_NS = 60 * NS_PER_S
MOST = 2
ACCEPTED = "NONE"
LOGIN = frozenset({"SaslHandshake", "SaslAuthenticate"})
OF_LOGINS = frozenset({"AlterUserScramCredentials", "RenewDelegationToken", "ExpireDelegationToken"})
OF_RIGHTS = frozenset({"CreateAcls", "DeleteAcls"})
DENIED = {
    "TOPIC_AUTHORIZATION_FAILED": "topic",
    "GROUP_AUTHORIZATION_FAILED": "group",
    "CLUSTER_AUTHORIZATION_FAILED": "cluster",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "transactional ID",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": "delegation token",
}
"""The kind of resource that an error is about, as details of an ACL name it."""
COORDINATOR, MOVED = "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"
OF_COORDINATORS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""What a coordinator writes to before it answers: that is what it lacks, and not the client's topic."""
EVERY = "*"
"""The name of all resources of a kind (ResourcePattern.WILDCARD_RESOURCE)."""
OF_FEATURES = frozenset({"UpdateFeatures"})
OF_QUOTAS, HELD_UP = frozenset({"AlterClientQuotas"}), "next to nothing granted"
OF_CLIENT, DEFAULT = "client-id ", "(default)"
"""How the entity of a quota names a client ID, and all that have no quota of their own."""
Row = Mapping[str, Any]


def time_of(change: Row) -> int:
    time_ns: int = change["time"]
    return time_ns


def just_before(hurt: HurtClient, changes: Iterable[Row], *, dated: bool) -> tuple[str, ...]:
    """`AlterUserScramCredentials of user svc-orders by lab-admin at 08:05:45`, of the changes just before."""
    found: dict[str, int] = {}
    for one in changes:
        for target in one["targets"] or ():
            if target["error"] == ACCEPTED and is_about(hurt, one["action"], target):
                sentence = f"{one['action']} of {target['object_type']} {target['object']} by {sender(one)}"
                found[f"{sentence} at {clock(one['time'], dated=dated)}"] = one["time"]
    return tuple(sorted(found, key=lambda sentence: -found[sentence])[:MOST])


def sender(change: Row) -> str:
    """A broker asks for topics itself, as for offsets and transactions."""
    node = broker_of(change["client_id"])
    return str(change["client_id"]) if node is None else f"node {node}"


def is_about(hurt: HurtClient, action: str, target: Row) -> bool:
    if action in OF_LOGINS:
        return hurt.api in LOGIN
    if action in OF_RIGHTS:
        return any(takes(hurt, kind, target) for error, kind in DENIED.items() if error in hurt.error)
    if action in OF_QUOTAS:
        return hurt.error == HELD_UP and limits(target["object"], hurt.client_id)
    if action in OF_FEATURES:
        return "UNSUPPORTED" in hurt.error
    about = OF_COORDINATORS if COORDINATOR in hurt.error or MOVED in hurt.error else {hurt.topic}
    return target["object_type"] == "topic" and target["object"] in about


def limits(entity: str, client_id: str | None) -> bool:
    """Whether a quota may be about a client: not if it is of another client ID. Which user it has is not known here."""
    named = [part.removeprefix(OF_CLIENT) for part in entity.split(", ") if part.startswith(OF_CLIENT)]
    return not named or named[0] in {DEFAULT, client_id}


def takes(hurt: HurtClient, kind: str, target: Row) -> bool:
    """Whether an ACL is about a resource of this kind, and, of topics, about the client's. Which group or transaction a
    client was denied is not known here.
    """
    words = target["details"].partition(":")[0]
    name = target["object"] or EVERY
    if not words.endswith((kind, "any")):
        return False
    if kind != "topic" or hurt.topic is None or name in {EVERY, hurt.topic}:
        return True
    return words.startswith(("prefixed", "match", "any")) and hurt.topic.startswith(name)


MISSING = "UNKNOWN_TOPIC_OR_PARTITION"
CREATION, THERE = "CreateTopics", "TOPIC_ALREADY_EXISTS"


def missing(hurt: HurtClient) -> Collection[str]:
    """The topics of which one may be what a client does not find, or its coordinator lacks."""
    if COORDINATOR in hurt.error:
        return OF_COORDINATORS
    return {hurt.topic} if MISSING in hurt.error and hurt.topic is not None else ()


class Creation(NamedTuple):
    """One attempt to create a topic. A broker's Envelope shows the client's again."""

    in_envelope: bool
    time_ns: int
    topic: str
    creator: str
    error: str
    connection: str


def creations_in(changes: Iterable[Row]) -> Iterator[Creation]:
    """Those that were answered."""
    for one in changes:
        for target in (one["targets"] or ()) if one["action"] == CREATION else ():
            if target["error"] is not None:
                what = target["object"], sender(one), target["error"]
                yield Creation(bool(one["in_envelope"]), one["time"], *what, one["connection"])


def rejected_creation(hurt: HurtClient, creations: Iterable[Creation]) -> dict[str, str]:
    """Words about the attempts to create a topic that is missing, as by the admin client of a Streams application, or
    of Connect, or, of a coordinator's, by a broker; empty where none was rejected, or one was granted.
    """
    tries = [one for one in creations if hurt.first_ns - WITHIN_NS <= one.time_ns <= hurt.last_ns]
    there = {one.topic for one in tries if one.error in {ACCEPTED, THERE}}
    rejected = [one for one in tries if one.topic not in there]
    if not rejected:
        return {}
    last = max(rejected)
    seen_in = Counter(one.in_envelope for one in rejected if one.topic == last.topic)
    meaning = meaning_of(last.error, CREATION)
    return {
        "missing": last.topic,
        "creator": last.creator,
        "tries": plural(max(seen_in.values()), "time"),
        "creation_error": last.error,
        "creation_means": in_a_sentence(meaning.means) if meaning else "",
        "creation_action": meaning.action if meaning else "",
    }
