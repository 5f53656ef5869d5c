"""What one connection adds to the sums of its endpoint, and what is left of it there once it has settled.

Knows: which facts about a connection count beyond it: that it was joined midway, is encrypted, lacks bytes, was not
seen whole, carried what it should not. Does not know when a connection settles (`settlement.py`), nor what a check
makes of a sum.
Rule: an account follows from the claims about one connection and the ranges that servers advertised, so that it is made
anew whenever one of them changes. Settled, it loses the connection's name and adds up with the others of its kind: what
a check reads of a sum is the same whether a connection in it has settled or not.
"""

from collections.abc import Iterable, Iterator, Mapping

from wirecheck.judge.claims.claim import LEAST, Claim, Sighting
from wirecheck.judge.ledger.connection_sums import CUT
from wirecheck.judge.ledger.ledger import in_order
from wirecheck.judge.topology.host_activity import IDENTITY, beyond, is_unread, protocol_of
from wirecheck.judge.topology.releases import Ranges

BROKEN, CONTINUED = "bytes or messages of a connection are missing", "a connection goes on with a session"
"""Why not all that was said on a connection is known."""
MINUTE_NS = 60_000_000_000
INTERRUPTED = ("unseen_bytes", "cut_bytes", "resynchronised", "skipped_bytes")
Advertised = Mapping[tuple[str, str], Ranges]
"""Ranges by endpoint and digest."""


def account(claims: Iterable[Claim], advertised: Advertised) -> Iterator[Claim]:
    """What a connection adds, from all that is known of it."""
    by_kind: dict[str, list[Claim]] = {}
    for claim in claims:
        by_kind.setdefault(claim.kind, []).append(claim)
    for connection in by_kind.get("connection", ()):
        yield from unseen(connection, by_kind)
        if "stray" in by_kind or "malformed" in by_kind:
            yield from broken(connection, by_kind)
        if "ranges_told" in by_kind:
            yield from outside(by_kind, advertised)
            if str(connection.peak.get("closed_by", [""])[-1]).startswith("server"):
                yield Claim("asked", connection.key, connection.first, peak={f"{LEAST}{connection['client']}": 1})


def unseen(connection: Claim, by_kind: Mapping[str, list[Claim]]) -> Iterator[Claim]:
    """What was not seen of it, or not read."""
    key, protocol = connection.key, protocol_of(connection)
    if not connection.peak.get("from_start") and protocol in {"kafka", "tls"}:
        yield Claim("midway", key, *span(connection))
    if protocol == "tls":
        yield Claim("encrypted", key, *span(connection))
    if is_unread(connection):
        size = connection.peak["payload_bytes"]
        yield Claim("unread", key, connection.first, connection.last, tally={"payload_bytes": size})
    gaps = by_kind.get("gap", ()) if protocol != "other" else ()
    cut = connection.peak.get("cut_bytes", 0)
    if gaps or cut:
        seen = [gap.first for gap in gaps] + [gap.last for gap in gaps] + [*span(connection)] * bool(cut)
        tally = {"bytes": sum(gap["bytes"] for gap in gaps) + cut, "connections": 1} | ({"cut": cut} if cut else {})
        count = len(gaps) + connection.peak.get("cut_segments", 0)
        yield Claim("missing", key, min(seen), max(seen), count=count, tally=tally)
    if not whole(connection):
        yield from partial(connection, BROKEN, by_kind.get("spoken", ()))
    if any(begun.peak["any"] != begun.peak["full"] for begun in by_kind.get("session_begun", ())):
        yield from partial(connection, CONTINUED, by_kind.get("spoken", ()))


def whole(connection: Claim) -> bool:
    """Whether everything that was said on it is in the capture, and was read."""
    facts = connection.peak
    missing = any(facts.get(fact) for fact in (*INTERRUPTED, "limits_hit"))
    unread = any(word.startswith("undecoded_messages") for word in connection.tally)
    return bool(facts.get("from_start")) and not missing and not unread and protocol_of(connection) == "kafka"


def partial(connection: Claim, what: str, spoken: Iterable[Claim]) -> Iterator[Claim]:
    """Whose words are not all known: of those who spoke; of anybody, if nobody was recognised, or not all are kept."""
    whose = {(claim["client_id"], 0) for claim in spoken}
    if not whose or any(CUT in claim.peak for claim in spoken):
        whose.add((None, 1))
    for client_id, anybodys in sorted(whose, key=str):
        yield Claim("partial", (*connection.key, client_id, anybodys, what), *span(connection))


def span(connection: Claim) -> tuple[Sighting, Sighting]:
    """From its beginning to its last whole minute, so that what is merely still so is said again once a minute."""
    last_ns = max(connection.first.ts_ns, connection.last.ts_ns - connection.last.ts_ns % MINUTE_NS)
    return connection.first, connection.last._replace(ts_ns=last_ns)


def broken(connection: Claim, by_kind: Mapping[str, list[Claim]]) -> Iterator[Claim]:
    """Answers that fit no request and messages that cannot be read, where nothing before them is missing: else nobody
    knows where messages begin.
    """
    if connection.peak.get("from_start") and not any(connection.peak.get(fact) for fact in INTERRUPTED):
        for kind, sum_of in (("stray", "unpaired"), ("malformed", "unreadable")):
            for claim in by_kind.get(kind, ()):
                yield Claim(sum_of, claim.key, claim.first, claim.last, count=claim.count)


def outside(by_kind: Mapping[str, list[Claim]], advertised: Advertised) -> Iterator[Claim]:
    """Requests in versions outside everything that was advertised on it."""
    told = [claim for claim in in_order(by_kind["ranges_told"]) if (claim["endpoint"], claim["digest"]) in advertised]
    ranges = [advertised[claim["endpoint"], claim["digest"]] for claim in told]
    for claim in by_kind.get("spoken", ()) if told else ():
        tally = {f"{api}:{version}": count for api, version, count in beyond(claim, ranges)}
        if tally:
            key = (*claim.key[:IDENTITY], claim["client_id"], told[-1]["digest"])
            yield Claim("outside", key, claim.first, claim.last, count=sum(tally.values()), tally=tally)
