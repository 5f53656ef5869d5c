"""CLU: hosts that are of no cluster here, and behave as nobody who belongs to one does.

Knows how to put into words what a stranger did. Does not know who is one (`judge.topology.strangers`).
Rule: one finding per host, whatever it did and however often; nothing else is said of it.
"""

from collections import defaultdict
from collections.abc import Iterator

from wirecheck.decode.peer import Peer
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import ends
from wirecheck.judge.claims.claim import LEAST, Claim, Subject
from wirecheck.judge.results.finding import Evidence, Side
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.strangers import UNREAD, Deed

HARMLESS = {UNREAD}
"""What health checks and port scanners do all day."""
SHOWN = 3
"""So many APIs and endpoints are named per kind of behaviour."""
MOST_CLIENT_IDS = 16


def unauthenticated_host(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A host is never granted anything but ApiVersions, SASL or an empty Fetch, and no broker list,
    registration or Metadata response names it. All its connections were captured from their SYN. It sends what no
    working client does: versions of no release or outside the range that it just received, malformed bytes, unknown
    topic IDs or cluster IDs, rejected controller requests, or other protocols. Or a server reports the cluster's ID, no
    broker lists it, and it reports other IDs for the cluster's topics.

    Why it matters. Someone probes the brokers, or a client is so broken that it cannot connect. Nothing that the host
    sends counts: no other finding, topic or client rests on it.

    False positives. A host that sends only other protocols (HTTP, SSH, a port scanner) is reported as information,
    because health checks do this all day. A host that is granted something later counts as a client. These faulty peers
    do not count: a host that is only rejected, another cluster's node in a quorum (CLU001), and a client that does not
    negotiate and uses an old version (VER001).

    Source. KIP-35 and KIP-152: who is answered what before it is known; SocketServer of Kafka 3.9.
    """
    host = subject[1]
    if host in context.strangers.servers:
        yield from contradiction(host, group, context)
    elif context.strangers.is_stranger(host):
        deeds = [deed for deed in context.strangers.deeds(host) if context.clusters.group_of(deed.claim) is group]
        if deeds:
            yield odd(host, deeds)


def odd(host: str, deeds: list[Deed]) -> Evidence:
    by_kind: dict[str, list[Deed]] = defaultdict(list)
    for deed in deeds:
        by_kind[deed.what].append(deed)
    grave = set(by_kind) - HARMLESS
    return Evidence(
        (host,),
        tuple(side for deed in deeds for side in sides(deed)),
        client_ids=client_ids(deeds),
        count=sum(deed.times for deed in deeds),
        kind=None if grave else "information",
        words={
            "who": f"Host {host}",
            "why": "no broker lists it, and no request of it was granted",
            "what": "; ".join(in_words(what, found) for what, found in sorted(by_kind.items(), key=graveness)),
        },
    )


def graveness(kind: tuple[str, list[Deed]]) -> tuple[bool, str]:
    """Sorts what many do harmlessly behind the rest."""
    return kind[0] in HARMLESS, kind[0]


def in_words(what: str, deeds: list[Deed]) -> str:
    """One kind of behaviour in words: what, how often, in which APIs."""
    apis = sorted({api for deed in deeds for api in deed.apis})
    more = ", ..." if len(apis) > SHOWN else ""
    count = sum(deed.times for deed in deeds)
    return f"{what} {count} time{'s' if count != 1 else ''}" + (f" ({', '.join(apis[:SHOWN])}{more})" if apis else "")


def sides(deed: Deed) -> tuple[Side, Side]:
    claim = deed.claim
    text = f"{claim['host']} sends {claim['endpoint']} {deed.what}"
    return Side(claim.first, text), Side(claim.last, text)


def client_ids(deeds: list[Deed]) -> tuple[str | None, ...]:
    """The least of the client ids it gave."""
    found = {value for deed in deeds for name, value in deed.claim.peak.items() if name.startswith(LEAST)}
    found |= {deed.claim["client_id"] or "" for deed in deeds if deed.claim.kind == "outside"}
    return tuple(sorted(found)[:MOST_CLIENT_IDS])


def contradiction(host: str, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A server that is none of the cluster's, by what it says of the cluster's topics."""
    found: list[Claim] = [
        claim
        for endpoint in sorted(context.strangers.known.unnamed())
        if Peer.of(endpoint).host == host
        for claim in context.strangers.contradictions(endpoint)
        if context.clusters.group_of(claim) is group
    ]
    if found:
        names = sorted({claim["name"] for claim in found})
        yield Evidence(
            (host,),
            ends(found),
            topic=names[0] if len(names) == 1 else None,
            topic_ids=tuple(sorted({claim["topic_id"] for claim in found})),
            count=sum(claim.count for claim in found),
            words={
                "who": f"Server {found[0].server()}",
                "why": "it reports this cluster's ID, and no broker lists it",
                "what": f"other IDs for {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}",
            },
        )
