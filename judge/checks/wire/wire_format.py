"""WIR: bytes that are not as Kafka writes them, or that this release cannot read; answers that fit no request.

Rule: what follows a gap, or comes before synchronisation is certain, is never malformed: it is unseen.
"""

from collections.abc import Iterator

from wirecheck.decode.api_names import key_of, newest
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import apis_of, clients_of, gathered, of_link, resting_on
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.ledger.connection_sums import summed
from wirecheck.judge.results.finding import Evidence
from wirecheck.judge.topology.clusters import Group

TOLERATED = {
    "metadata-int32-null": "3 extra bytes (a null list of topics as before version 9)",
    "api-versions-empty-array": "4 extra bytes (an empty list of keys, as in the draft of KIP-35)",
    "list-groups-second-tags": "1 extra byte (a second, empty section of tagged fields)",
}
"""Named tolerances in words."""


def malformed_message(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. The bytes of a message do not match the layout of its API and version: a length beyond the end, invalid
    UTF-8, or remaining bytes.

    Why it matters. Brokers misunderstand or reject what this client or proxy sends. Or it uses a version number for a
    layout of its own.

    False positives. None known. After a gap, and on connections that were joined late, nothing counts as malformed.
    Known deviations of real clients are tolerated (WIR006).

    Source. Kafka's message definitions since 0.9; KIP-482.
    """
    certain = summed(context.claims("unreadable", group, *subject))
    for key, claims in gathered(certain, lambda claim: claim.key[:5]):
        words = dict(zip(("api", "version", "side", "reason"), key, strict=False))
        yield resting_on(claims, *key, client_ids=(key[-1],), words=words)


def api_unknown(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. Messages have an API key that no layout exists for.

    Why it matters. They were not decoded. What they contain about topics is missing from the result.

    False positives. A vendor's private API, or a Kafka newer than this release of wirecheck.

    Source. The keys of every Kafka release since 0.9.
    """
    unknown = [claim for claim in context.claims("unknown", group, *subject) if claim["reason"] == "api"]
    for (key, endpoint), claims in gathered(unknown, "key endpoint"):
        yield resting_on(claims, key, endpoint, words={"key": key, "server": endpoint})


def version_unknown(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. Messages of a known API have a version that no layout exists for.

    Why it matters. They were not decoded. What they contain about topics is missing from the result.

    False positives. A Kafka newer than this release of wirecheck, or a client that probes for versions.

    Source. The versions of every Kafka release since 0.9.
    """
    unknown = [claim for claim in context.claims("unknown", group, *subject) if claim["reason"] == "version"]
    for (api, version), claims in gathered(unknown, "key version"):
        words = {"api": api, "version": version, "newest": newest(key_of(api))}
        yield resting_on(claims, api, version, words=words)


def trailing_bytes_tolerated(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A message deviates from its layout in a way that is known of real clients and that brokers accept.

    Why it matters. It was decoded nevertheless. A stricter server or proxy may reject it.

    False positives. Known clients do this. librdkafka 2.x requests all topics with three extra bytes (its issue 5049).
    Up to 1.x it requests ApiVersions v0 with an empty array, four extra bytes. Its 2.0 ends ListGroups v4 with one
    extra byte.

    Source. Captures of librdkafka 0.11 to 2.16 against Kafka 0.10 to 4.4, public captures of librdkafka 0.9 to 1.x;
    Kafka's brokers never look for bytes left over.
    """
    tolerated = context.claims("tolerated", group, *subject)
    for (tolerance, who), claims in gathered(tolerated, lambda c: (c["tolerance"], software(c, group, context))):
        words = {
            "software": who,
            "apis": apis_of(claims),
            "tolerance": TOLERATED.get(tolerance, tolerance.replace("-", " ")),
        }
        yield resting_on(claims, tolerance, who, client_ids=clients_of(claims), words=words)


def software(claim: Claim, group: Group, context: CheckContext) -> str:
    context.watch()
    said = context.claims("software", group, "client", claim["client_id"] or "", claim["host"])
    return str(said[-1]["name"]) if said else "unnamed software"


def response_without_request(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A response has a correlation ID that matches no request, on a connection that was captured from its
    beginning and has no gap in its requests.

    Why it matters. Client and broker are out of step. A proxy may have mixed two clients.

    False positives. None. Connections with missing requests do not count.

    Source. Kafka protocol guide, "Network".
    """
    yield from strays("response without request", subject, group, context)


def correlation_id_out_of_order(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A response answers another request than the oldest open one.

    Why it matters. Brokers answer requests in order. A client that relies on the order takes one response for another.

    False positives. None on one connection. IDs need not increase: SASL repeats them at every re-authentication.

    Source. Kafka protocol guide, "Network"; KIP-368.
    """
    yield from strays("response out of order", subject, group, context)


def strays(what: str, subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    claims = (claim for claim in context.claims("unpaired", group, *subject) if claim["what"] == what)
    yield from map(of_link, summed(claims))
