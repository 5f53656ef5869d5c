"""WIR: bytes that are not as Kafka writes them, or that this release cannot read; answers that fit no request.

Knows why a message was not read, and what the order of answers proves. Does not know what messages say.
Rule: what follows a gap, or comes before synchronisation is certain, is never malformed: it is unseen.
"""

from collections.abc import Iterator

from wirecheck.decode.api_names import key_of, newest
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import clients_of, gathered, resting_on
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.ledger.connection_sums import summed
from wirecheck.judge.results.finding import Evidence
from wirecheck.judge.topology.clusters import Group

TOLERATED = {
    "metadata-int32-null": "3 bytes too many (a null list of topics written as before version 9)",
    "api-versions-empty-array": "4 bytes too many (an empty list of keys, as KIP-35 was drafted)",
    "list-groups-second-tags": "1 byte too many (a second, empty section of tagged fields)",
}
"""Named tolerances in words."""


def malformed_message(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Finds. A message of a known API and version whose bytes do not follow its layout: a length beyond the end, text
    that is not UTF-8, bytes left over.

    Why it matters. A client or a proxy that writes such bytes will be misunderstood by brokers, or refused; or it
    speaks a dialect under a number that is not its own.

    When it is innocent. After a gap or in the middle of a connection nothing is called malformed. What real clients are
    known to send too much is tolerated by name (WIR006).

    Source. Kafka's message definitions since 0.9; KIP-482.
    """
    certain = summed(context.claims("unreadable", group, *subject))
    for key, claims in gathered(certain, "api version side reason client_id"):
        words = dict(zip(("api", "version", "side", "reason"), key, strict=False))
        yield resting_on(claims, *key, client_ids=(key[-1],), words=words)


def api_unknown(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Finds. Messages with an API key that no layout exists for.

    Why it matters. They were not read; what they say about topics is missing from the verdict.

    When it is innocent. A vendor's private API, or a Kafka newer than this release.

    Source. The keys of every Kafka release since 0.9.
    """
    unknown = [claim for claim in context.claims("unknown", group, *subject) if claim["reason"] == "api"]
    for (key, endpoint), claims in gathered(unknown, "key endpoint"):
        yield resting_on(claims, key, endpoint, words={"key": key, "server": endpoint})


def version_unknown(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Finds. Messages of a known API in a version that no layout exists for.

    Why it matters. They were not read; what they say about topics is missing from the verdict.

    When it is innocent. A Kafka newer than this release; a client that probes for versions.

    Source. The versions of every Kafka release since 0.9.
    """
    unknown = [claim for claim in context.claims("unknown", group, *subject) if claim["reason"] == "version"]
    for (api, version), claims in gathered(unknown, "key version"):
        words = {"api": api, "version": version, "newest": newest(key_of(api))}
        yield resting_on(claims, api, version, words=words)


def trailing_bytes_tolerated(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Finds. A message that deviates from its layout in a way real clients are known for, and that brokers let pass.

    Why it matters. It was read all the same; but a stricter server or proxy may refuse it.

    When it is innocent. librdkafka 2.x asks for all topics with three bytes too many; its issue 5049 is open. Up to 1.x
    it asks for ApiVersions v0 with an empty array, four bytes that the version has not. Its 2.0 ends ListGroups v4 with
    one byte too many.

    Source. Captures of librdkafka 0.11 to 2.16 against Kafka 0.10 to 4.4, public captures of librdkafka 0.9 to 1.x;
    Kafka's brokers never look for bytes left over.
    """
    tolerated = context.claims("tolerated", group, *subject)
    if tolerated:
        context.watch()
    named = {id(claim): software(claim, group, context) for claim in tolerated}
    for (tolerance, who), claims in gathered(tolerated, lambda claim: (claim["tolerance"], named[id(claim)])):
        words = {
            "software": who,
            "apis": ", ".join(sorted({claim["api"] for claim in claims})),
            "tolerance": TOLERATED.get(tolerance, tolerance.replace("-", " ")),
        }
        yield resting_on(claims, tolerance, who, client_ids=clients_of(claims), words=words)


def software(claim: Claim, group: Group, context: CheckContext) -> str:
    said = context.claims("software", group, "client", claim["client_id"] or "", claim["host"])
    return str(said[-1]["name"]) if said else "unnamed software"


def response_without_request(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Finds. A response whose correlation id matches no request, on a connection seen from its beginning and without a
    gap on the request's side.

    Why it matters. Client and broker have lost count of each other; a proxy may have mixed two clients up.

    When it is innocent. Never then: what was not seen is excluded.

    Source. Kafka protocol guide, "Network".
    """
    yield from strays("response without request", subject, group, context)


def correlation_id_out_of_order(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Finds. A response that answers another request than the oldest open one.

    Why it matters. Brokers answer in the order of the requests; a client that relies on it takes one answer for
    another.

    When it is innocent. Never on one connection. Ids need not grow: SASL repeats them at every re-authentication.

    Source. Kafka protocol guide, "Network"; KIP-368.
    """
    yield from strays("response out of order", subject, group, context)


def strays(what: str, subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for claim in summed(c for c in context.claims("unpaired", group, *subject) if c["what"] == what):
        host, endpoint = claim["host"], claim["endpoint"]
        yield resting_on([claim], host, endpoint, words={"host": host, "server": endpoint})
