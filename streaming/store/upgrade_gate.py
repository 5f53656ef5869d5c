"""Clients that a given release rejects: the gate before an upgrade.

Counted are versions that the release dropped, and APIs that it does not have, except those that clients do without. A
client uses the highest version that both sides know, so only versions below the release's range count. Requests between
brokers and controllers go with their own upgrade.
"""

from wirecheck.client_ids import TO_BROKERS
from wirecheck.decode import releases, schemas
from wirecheck.decode.api_names import BETWEEN_BROKERS, keys
from wirecheck.story.seen import Client


def lines() -> list[str]:
    """The release lines that are known, oldest first."""
    return list(dict.fromkeys(release.rpartition(".")[0] for release in schemas.releases()))


def lowest(target: str) -> dict[int, int]:
    """Per API key the lowest version that some release of the line serves. Raises LookupError for an unknown line."""
    versions = releases.lowest(target)
    if not versions:
        raise LookupError(f"unknown release {target}; known releases: {', '.join(lines())}")
    return versions


def between_brokers(client: Client) -> bool:
    """Whether a client is a broker or a controller: by its client ID, or because it uses an API that only these use."""
    used = {keys().get(api) for api in client.apis}
    return bool(TO_BROKERS.fullmatch(client.client_id or "") or used & BETWEEN_BROKERS)


def rejected(client: Client, target: str) -> tuple[tuple[str, int], ...]:
    """(api, version) of what a client sent and the release does not serve any more."""
    serves = lowest(target)
    if between_brokers(client):
        return ()
    return tuple(
        (api, version)
        for api, versions in sorted(client.apis.items())
        for version in versions
        if (key := keys().get(api)) in serves and key not in BETWEEN_BROKERS and version < serves[key]
    )


DISPENSABLE = frozenset({60, 71, 72, 75})
"""APIs that clients use where a broker has them, and replace or leave out elsewhere: DescribeCluster,
GetTelemetrySubscriptions, PushTelemetry, DescribeTopicPartitions."""


def not_served(client: Client, target: str) -> tuple[tuple[str, int], ...]:
    """(api, lowest version) of what a client uses and the release does not have at all."""
    serves = lowest(target)
    if between_brokers(client):
        return ()
    return tuple(
        (api, min(versions))
        for api, versions in sorted(client.apis.items())
        if versions
        and (key := keys().get(api)) is not None
        and key not in serves
        and key not in BETWEEN_BROKERS | DISPENSABLE
    )
