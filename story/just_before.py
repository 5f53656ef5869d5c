"""What was changed just before a client's requests were first rejected: reported as that, and never as the cause.

Rule: a change counts if it was granted, at most WITHIN_NS before the first rejection, and is about the topic, user or
kind of right that the rejection is about. At most MOST are named, the latest first.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wirecheck.story.verdict import HurtClient
from wirecheck.wording import NS_PER_S, clock

WITHIN_NS = 60 * NS_PER_S
MOST = 2
ACCEPTED = "NONE"
LOGIN = frozenset({"SaslHandshake", "SaslAuthenticate"})
OF_LOGINS = frozenset({"AlterUserScramCredentials", "RenewDelegationToken", "ExpireDelegationToken"})
OF_RIGHTS = frozenset({"CreateAcls", "DeleteAcls"})
OF_FEATURES = frozenset({"UpdateFeatures"})
Row = Mapping[str, Any]


def just_before(hurt: Sequence[HurtClient], changes: Iterable[Row], *, dated: bool) -> tuple[str, ...]:
    """`AlterUserScramCredentials of user svc-orders by lab-admin at 08:05:45`, for the worst of the hurt clients."""
    if not hurt:
        return ()
    worst = hurt[0]
    near = [one for one in changes if worst.first_ns - WITHIN_NS <= one["time"] <= worst.first_ns]
    found: dict[str, int] = {}
    for one in near:
        for target in one["targets"] or ():
            if target["error"] == ACCEPTED and is_about(worst, one["action"], target):
                sentence = f"{one['action']} of {target['object_type']} {target['object']} by {one['client_id']}"
                found[f"{sentence} at {clock(one['time'], dated=dated)}"] = one["time"]
    return tuple(sorted(found, key=lambda sentence: -found[sentence])[:MOST])


def is_about(hurt: HurtClient, action: str, target: Row) -> bool:
    if action in OF_LOGINS:
        return hurt.api in LOGIN
    if action in OF_RIGHTS:
        return "AUTHORIZATION" in hurt.error
    if action in OF_FEATURES:
        return "UNSUPPORTED" in hurt.error
    return hurt.topic is not None and target["object_type"] == "topic" and target["object"] == hurt.topic
