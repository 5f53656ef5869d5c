"""What hosts did at one endpoint that only their connections tell.

Knows: what each connection turned out to speak, which ranges were advertised on it, what was asked outside of them.
Does not know who its host is.
Rule: made from the subject of one endpoint, once, however many hosts are asked for.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from wirecheck.decode.api_names import key_of
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.ledger.ledger import in_order
from wirecheck.judge.topology.releases import Ranges

IDENTITY = 4
"""Of a connection's key: host, endpoint, client, start."""
EXEMPT = {"ApiVersions"}
"""Asked in the client's newest version and answered in the broker's: no range applies (KIP-511)."""


@dataclass
class Link:
    """What hosts did at one endpoint that only their connections tell, by host."""

    unread: dict[str, list[Claim]] = field(default_factory=lambda: defaultdict(list))
    """Connections with bytes that nobody reads as Kafka's."""
    encrypted: dict[str, list[Claim]] = field(default_factory=lambda: defaultdict(list))
    outside: dict[str, list[Claim]] = field(default_factory=lambda: defaultdict(list))
    """What was asked outside of the ranges that were advertised on the connection."""
    asked: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Clients, with their ports, that asked for ranges before their server closed on them: the least of them."""


def link_of(claims: Collection[Claim]) -> Link:
    """From the claims about one endpoint's connections."""
    found = Link()
    of_kind = {"unread": found.unread, "encrypted": found.encrypted, "outside": found.outside}
    for claim in in_order(claim for claim in claims if claim.kind in of_kind):
        of_kind[claim.kind][claim["host"]].append(claim)
    for claim in claims:
        if claim.kind == "asked":
            found.asked[claim["host"]].update(claim.peak)
    return found


def is_unread(connection: Claim) -> bool:
    """Whether bytes of a connection were nobody's Kafka: it never was one, or ended before anybody could tell. Of bytes
    that a snap length cut nobody can tell.
    """
    ended = connection.peak.get("closed_by", [""])[-1] and connection.peak.get("from_start")
    protocol = protocol_of(connection)
    return (
        bool(connection.peak.get("payload_bytes"))
        and not connection.peak.get("cut_bytes")
        and (protocol == "other" or (protocol == "undecided" and bool(ended)))
    )


def protocol_of(connection: Claim) -> str:
    """What a connection turned out to speak, by the latest word on it."""
    return str(connection.peak.get("protocol", ["undecided"])[-1])


def beyond(spoken: Claim, ranges: list[Ranges]) -> Iterator[tuple[str, int, int]]:
    """API, version and count of what was asked outside of everything its server advertised on the connection."""
    for word, count in spoken.tally.items() if ranges else ():
        api, _, version = word.rpartition(":")
        if api not in EXEMPT and not any(inside(one, key_of(api), int(version)) for one in ranges):
            yield api, int(version), count


def inside(ranges: Ranges, key: int, version: int) -> bool:
    low, high = ranges.get(key, (0, -1))
    return low <= version <= high
