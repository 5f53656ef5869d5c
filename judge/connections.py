"""Connections: what each adds to the sums of its endpoint, and when it settles and leaves the ledger.

Rules: what a connection adds (its account) follows from the claims about it and the ranges that servers advertised; it
carries the connection's name, so that it is replaced when more is known of the connection. A connection that has left
the follower settles once every agent that is waited for has passed its last packet by AFTER_NS: what it added loses
the name and adds up with the others of its kind. One that was silent for longer than any follower waits has left it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from wirecheck.decode.api_names import key_of
from wirecheck.decode.connection.connection import FIRST_GAPS
from wirecheck.decode.connection.limits import Limits
from wirecheck.decode.releases import Ranges, digest, read, removed_in_4
from wirecheck.judge.claims.claim import AT, LEAST, Claim, Key, Sighting, Subject
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.claims.seconds import at_second, second_of
from wirecheck.judge.ledger.connection_sums import (
    ADDED,
    ANSWERS,
    BROKEN,
    CONTINUED,
    CUT,
    LASTED,
    MIDWAY,
    MOMENT_NS,
    MUCH,
    MUCH_ONE_IN,
    NOT_YET_NS,
    SIZE,
    UNTIMED,
    connection_of,
    nameless,
    united,
)
from wirecheck.judge.ledger.failures import SETTLING, Failures
from wirecheck.judge.ledger.ledger import Ledger, in_order
from wirecheck.judge.thresholds import SECOND_NS

IDENTITY = 4
"""Of a connection's key: host, endpoint, client, start."""
EXEMPT = {"ApiVersions"}
"""Asked in the client's newest version and answered in the broker's: no range applies (KIP-511)."""
PRODUCE = "Produce"
AT_ONCE_NS = 1_000_000_000
"""A broker closes within milliseconds of a write with acks=0 that it rejects."""
MOST_IN_FLIGHT = 5
"""So many writes a client sends before it notices (max.in.flight.requests.per.connection)."""
BRIEF_NS = 5_000_000_000
"""librdkafka sends more with acks=0, as it waits for nothing. A connection that a busy broker closes lasts so long."""
WITHOUT_RESPONSE = ("response_unseen", "closed_by_server", "closed_by_client", "pending")
MINUTE_NS = 60_000_000_000
INTERRUPTED = ("unseen_bytes", "cut_bytes", "resynchronised", "skipped_bytes")
BY_GAPS = frozenset({"undecoded_messages:left_out", "undecoded_messages:no_request"})
"""What is not decoded because bytes before it, or of it, are missing."""
Advertised = Mapping[str, Mapping[str, Ranges]]
"""Ranges by endpoint, then by digest."""


def account(claims: Iterable[Claim], advertised: Advertised) -> Iterator[Claim]:
    """What a connection adds, from all that is known of it."""
    by_kind: dict[str, list[Claim]] = {}
    for claim in claims:
        by_kind.setdefault(claim.kind, []).append(claim)
    for connection in by_kind.get("connection", ()):
        yield from unseen(connection, by_kind)
        yield from closed_after(connection, by_kind.get("connection_requests", ()))
        if "stray" in by_kind or "malformed" in by_kind:
            yield from broken(connection, by_kind)
        if "connection_ranges" in by_kind:
            yield from outside(by_kind, advertised)
            yield from ranges_hold(connection, by_kind)
            if str(connection.peak.get("closed_by", [""])[-1]).startswith("server"):
                yield Claim("asked", connection.key, connection.first, peak={f"{LEAST}{connection['client']}": 1})
        else:
            yield from outside_of_others(connection, by_kind.get("connection_requests", ()), advertised)


def closed_after(connection: Claim, requests: Iterable[Claim]) -> Iterator[Claim]:
    """How the connection ended after its last request, where that was a write for which no response came. With acks=0
    none is due: a broker's only answer to an error is to close. Of versions that Kafka 4.0 removed, also where the
    capture joined the connection midway: a broker closes it after the first such write.
    """
    facts, midway = connection.peak, not connection.peak.get("from_start")
    if not facts.get("close_ns") or facts.get("requests", 0) <= facts.get("responses", 0) or not understood(connection):
        return
    last = max(requests, key=lambda claim: claim.last, default=None)
    if last is None or last.last.api != PRODUCE:
        return
    removed = removed_in_4(key_of(PRODUCE), last.last.version)
    if not removed and (midway or not asks_for_no_response(connection)):
        return
    by_server, late_ns = str(facts["closed_by"][-1]).startswith("server"), facts["close_ns"] - last.last.ts_ns
    key = (*connection.key, last["client_id"], PRODUCE, last.last.version)
    peak = {"soonest": -late_ns, "latest": late_ns, "by_client": int(not by_server)}
    writes = sum(count for word, count in last.tally.items() if word.startswith(f"{PRODUCE}:"))
    is_brief = facts["close_ns"] - connection.first.ts_ns <= BRIEF_NS
    tally = {"at_once": int(by_server and (is_brief or (late_ns <= AT_ONCE_NS and writes <= MOST_IN_FLIGHT)))}
    yield Claim("closed_after", key, last.last, peak=peak, tally=tally)


def asks_for_no_response(connection: Claim) -> bool:
    """Whether a request on it had none due, and each of the others got one."""
    tally = connection.tally
    others = sum(tally.get(f"exchanges:{outcome}", 0) for outcome in WITHOUT_RESPONSE)
    return bool(tally.get("exchanges:no_response_due")) and not others


def unseen(connection: Claim, by_kind: Mapping[str, list[Claim]]) -> Iterator[Claim]:
    """What was not captured of a connection, or not decoded."""
    key, protocol = connection.key, protocol_of(connection)
    if not connection.peak.get("from_start") and protocol in {"kafka", "tls"}:
        yield Claim("midway", key, *span(connection), peak={"soonest": -connection.first.ts_ns})
    if is_encrypted(connection):
        yield Claim("encrypted", key, *span(connection))
    if is_unread(connection):
        size = connection.peak.get("payload_bytes", 0)
        yield Claim("unread", key, connection.first, connection.last, tally={"payload_bytes": size})
    gaps = by_kind.get("gap", ()) if protocol != "other" else ()
    cut = connection.peak.get("cut_bytes", 0)
    if gaps or cut:
        seen = [gap.first for gap in gaps] + [gap.last for gap in gaps] + [*span(connection)] * bool(cut)
        tally = {"bytes": sum(gap["bytes"] for gap in gaps) + cut, "connections": 1} | ({"cut": cut} if cut else {})
        count = len(gaps) + connection.peak.get("cut_segments", 0)
        yield Claim("missing", key, min(seen), max(seen), count=count, tally=tally)
    if not whole(connection) and not is_empty(connection):
        requests, alone = by_kind.get("connection_requests", ()), unasked_times(by_kind.get("request_unseen", ()))
        for what, side in ((BROKEN, "request"), (ANSWERS, "response")):
            yield from partial(connection, what, requests, alone | unseen_times(connection, gaps, side))
    if any(begun.peak["any"] != begun.peak["full"] for begun in by_kind.get("session_begun", ())):
        yield from partial(connection, CONTINUED, by_kind.get("connection_requests", ()))


def whole(connection: Claim) -> bool:
    """Whether the connection was captured completely and decoded."""
    return bool(connection.peak.get("from_start")) and understood(connection)


def is_empty(connection: Claim) -> bool:
    """Whether nothing was sent on a connection: one that was refused, only tried, or is kept in reserve. It was seen
    from its start; its end, or an acknowledgement, would show that bytes were missing.
    """
    facts = connection.peak
    over = facts.get("over") and facts.get("close_ns")
    begun = bool(facts.get("from_start")) and (over or protocol_of(connection) == "undecided")
    return bool(begun) and not any(facts.get(fact) for fact in (*INTERRUPTED, "limits_hit", "payload_bytes"))


def understood(connection: Claim) -> bool:
    """Whether all of the connection from the first packet that was seen was captured and decoded."""
    missing = any(connection.peak.get(fact) for fact in (*INTERRUPTED, "limits_hit"))
    unread = any(word.startswith("undecoded_messages") for word in connection.tally)
    return not missing and not unread and protocol_of(connection) == "kafka"


def unasked_times(answers: Iterable[Claim]) -> dict[str, int]:
    """The seconds in which a response came whose request is missing, and until when, in ns."""
    every = [name for claim in answers for name in claim.peak if name.startswith(AT)]
    return {name: (at_second(name) + 1) * SECOND_NS for name in every}


def unseen_times(connection: Claim, gaps: Iterable[Claim], side: str) -> dict[str, int]:
    """Since which seconds a side of a connection misses bytes, its beginning among them, and until when, in ns; and
    from when on that is not known, as a negative number: of many gaps the first ones are kept.
    """
    unread = any(word.startswith("undecoded_messages") and word not in BY_GAPS for word in connection.tally)
    facts = connection.peak
    if unread or protocol_of(connection) != "kafka" or facts.get("cut_bytes") or facts.get("limits_hit"):
        return {UNTIMED: 0}
    every = [*gaps]
    spans = [(-gap.peak["since"], gap.peak.get("until", NOT_YET_NS)) for gap in every if gap["side"] == side]
    more = len(every) >= FIRST_GAPS or sum(gap["bytes"] for gap in every) < facts.get("unseen_bytes", 0)
    times = {UNTIMED: -max([since_ns for since_ns, _ in spans], default=0)} if more else {}
    if not facts.get("from_start"):
        spans.append((connection.first.ts_ns, connection.first.ts_ns + SECOND_NS))
        times[MIDWAY] = 1
    elif not every:
        return {UNTIMED: 0}
    for since_ns, until_ns in spans:
        second = second_of(since_ns // SECOND_NS)
        times[second] = max(until_ns, times.get(second, 0))
    return times


def partial(
    connection: Claim, what: str, requests: Iterable[Claim], times: Mapping[str, int] | None = None
) -> Iterator[Claim]:
    """The clients of which traffic is missing: those known on the connection. If none is known, or not all were kept,
    any client.
    """
    whose = {(claim["client_id"], 0) for claim in requests}
    if not whose or any(CUT in claim.peak for claim in requests):
        whose.add((None, 1))
    facts = connection.peak
    over = facts.get("over") and facts.get("close_ns")
    seen = (connection.first, connection.last) if over else span(connection)
    missing = facts.get("unseen_bytes", 0) + facts.get("cut_bytes", 0)
    sent = missing + facts.get("payload_bytes", 0)
    peak = {**(times or {}), **({} if over else {"open": 1})}
    if connection.last.ts_ns - connection.first.ts_ns > MOMENT_NS:
        peak[LASTED] = 1
    if missing * MUCH_ONE_IN > sent:
        peak[MUCH] = 1
    for client_id, anybodys in sorted(whose, key=str):
        size = {SIZE: sent if anybodys else missing}
        yield Claim("partial", (*connection.key, client_id, anybodys, what), *seen, peak=peak | size)


def span(connection: Claim) -> tuple[Sighting, Sighting]:
    """From its beginning to its last whole minute, so that a state that lasts is stated again once per minute."""
    last_ns = max(connection.first.ts_ns, connection.last.ts_ns - connection.last.ts_ns % MINUTE_NS)
    return connection.first, connection.last._replace(ts_ns=last_ns)


def broken(connection: Claim, by_kind: Mapping[str, list[Claim]]) -> Iterator[Claim]:
    """Responses without a request and messages that cannot be decoded, if nothing before them is missing. Otherwise it
    is unknown where messages begin.
    """
    if connection.peak.get("from_start") and not any(connection.peak.get(fact) for fact in INTERRUPTED):
        for kind, sum_of in (("stray", "unpaired"), ("malformed", "unreadable")):
            for claim in by_kind.get(kind, ()):
                tally = dict(claim.tally)
                yield Claim(sum_of, claim.key, claim.first, claim.last, count=claim.count, tally=tally)


def outside(by_kind: Mapping[str, list[Claim]], advertised: Advertised) -> Iterator[Claim]:
    """Requests in versions outside everything that was advertised on it."""
    valid = [
        claim
        for claim in in_order(by_kind["connection_ranges"])
        if claim["digest"] in advertised.get(claim["endpoint"], ())
    ]
    ranges = [advertised[claim["endpoint"]][claim["digest"]] for claim in valid]
    for claim in by_kind.get("connection_requests", ()) if valid else ():
        tally = {f"{api}:{version}": count for api, version, count in outside_ranges(claim, ranges)}
        if tally:
            key = (*claim.key[:IDENTITY], claim["client_id"], valid[-1]["digest"])
            yield Claim("outside", key, claim.first, claim.last, count=sum(tally.values()), tally=tally)


def ranges_hold(connection: Claim, by_kind: Mapping[str, list[Claim]]) -> Iterator[Claim]:
    """Until when a server surely was the process that advertised these ranges: the last request on the connection, as
    none outlives its process. To the whole minute below, so that it is stated again once per minute.
    """
    last_ns = max((claim.last.ts_ns for claim in by_kind.get("connection_requests", ())), default=0)
    for claim in by_kind["connection_ranges"]:
        ts_ns = max(claim.first.ts_ns, last_ns - last_ns % MINUTE_NS)
        key = (*connection.key, claim["digest"])
        yield Claim("ranges_hold", key, claim.first, claim.first, peak={"until": ts_ns})


def outside_of_others(connection: Claim, requests: Iterable[Claim], advertised: Advertised) -> Iterator[Claim]:
    """Requests on a connection without an ApiVersions response, in versions outside of everything that its server
    advertised on other connections so far. Controllers and followers of ZooKeeper clusters never ask for it.
    """
    ranges = [*advertised.get(connection["endpoint"], {}).values()]
    for claim in requests if ranges else ():
        tally = {f"{api}:{version}": count for api, version, count in outside_ranges(claim, ranges)}
        if tally:
            key, count = (*claim.key[:IDENTITY], claim["client_id"]), sum(tally.values())
            peak = {"began": -connection.first.ts_ns}
            yield Claim("outside_of_others", key, claim.first, claim.last, count=count, tally=tally, peak=peak)


def is_unread(connection: Claim) -> bool:
    """Whether the bytes of a connection are not Kafka's: it never was Kafka, or ended before that was known. If a snap
    length cut bytes, this is unknown.
    """
    ended = connection.peak.get("closed_by", [""])[-1] and connection.peak.get("from_start")
    protocol = protocol_of(connection)
    return (
        bool(connection.peak.get("payload_bytes"))
        and not connection.peak.get("cut_bytes")
        and (protocol == "other" or (protocol == "undecided" and bool(ended)))
    )


def is_encrypted(connection: Claim) -> bool:
    """Whether it carries content that TLS hides: not one whose handshake was given up."""
    return protocol_of(connection) == "tls" and not connection.peak.get("tls_unfinished")


def protocol_of(connection: Claim) -> str:
    """The protocol of a connection, as far as it is known by now."""
    return str(connection.peak.get("protocol", ["undecided"])[-1])


def outside_ranges(requests: Claim, ranges: list[Ranges]) -> Iterator[tuple[str, int, int]]:
    """API, version and count of what was asked outside of everything its server advertised on the connection."""
    for word, count in requests.tally.items() if ranges else ():
        api, _, version = word.rpartition(":")
        if api not in EXEMPT and not any(inside(one, key_of(api), int(version)) for one in ranges):
            yield api, int(version), count


def inside(ranges: Ranges, key: int, version: int) -> bool:
    low, high = ranges.get(key, (0, -1))
    return low <= version <= high


WIRE: Subject = ("wire",)
AFTER_NS = 60_000_000_000
"""Agents' clocks, and the order in which their files come, are apart by less."""
IDLE_NS = Limits().idle_ns


def ranges_in(advertised: Claim) -> Ranges:
    return read(advertised["ranges"])


class Connections:
    """The connections of a ledger, in one batch."""

    def __init__(self, ledger: Ledger, failures: Failures) -> None:
        self.ledger, self.failures = ledger, failures
        self.added: dict[Subject, dict[Key, list[Claim]]] = {}
        """By subject of sums what single connections added to it; looked through once per batch."""
        self.busy: dict[Subject, list[Claim]] = {}
        """By link when its connections were busy, until that is united: once per batch."""

    def add_up(self, connections: Iterable[Subject]) -> None:
        """Replace what these connections added by what is known of them now."""
        connections = sorted(connections)
        advertised = self.advertised() if connections else {}
        for subject in connections:
            self.failures.retry(SETTLING, subject, self.account_of, subject, advertised)
        for link, busy in sorted(self.busy.items()):
            self.failures.retry(SETTLING, link, self.add_busy, link, busy)
        self.busy.clear()
        for link in sorted({link_of(subject) for subject in connections}):
            if any(claim.kind == "unanswered" for claim in self.ledger.claims_of(*link).values()):
                self.ledger.touched.add(link)  # whether one was let down depends on how long others went on

    def forget_added(self) -> None:
        """Behind a batch: claims leave without a word to this."""
        self.added.clear()

    def advertised(self) -> dict[str, dict[str, Ranges]]:
        found: dict[str, dict[str, Ranges]] = {}
        for claim in self.ledger.claims("advertised", "server"):
            ranges = self.failures.retry(SETTLING, ("server", str(claim.key[:1])), ranges_in, claim)
            if ranges is not None:
                found.setdefault(claim["endpoint"], {})[digest(claim["ranges"])] = ranges
        return found

    def account_of(self, connection: Subject, advertised: Advertised) -> None:
        claims, link = list(self.ledger.claims_of(*connection).values()), link_of(connection)
        added: dict[Subject, list[Claim]] = {link: [], WIRE: []}
        for claim in account(claims, advertised):
            added[WIRE if claim.kind == "unreadable" else link].append(claim)
        for target, now in added.items():
            before = self.added_to(target).get(connection_key(claims), [])
            if [claim.state() for claim in before] != [claim.state() for claim in now]:
                if before:
                    self.ledger.remove(target, before)
                for claim in now:
                    self.ledger.absorb(claim)
                self.ledger.touched.add(target)
                self.added_to(target)[connection_key(claims)] = now
        self.busy.setdefault(link, []).extend(busy_of(link, claims))

    def added_to(self, target: Subject) -> dict[Key, list[Claim]]:
        if target not in self.added:
            found: dict[Key, list[Claim]] = defaultdict(list)
            for claim in self.ledger.claims_of(*target).values():
                whole = claim.kind in ADDED and len(claim.key) == len(KINDS[claim.kind].fields)
                if whole and (key := connection_of(claim)):
                    found[key].append(claim)
            self.added[target] = found
        return self.added[target]

    def add_busy(self, link: Subject, busy: list[Claim]) -> None:
        """When its connections carried requests, and when they lacked bytes: all of them at once, as each is put in
        order with all that are known.
        """
        if not busy:
            return
        if busy[0].identity not in self.ledger.claims_of(*link):
            self.ledger.absorb(Claim("busy", busy[0].key, busy[0].first, peak={"spans": [], "gaps": []}))
        known = self.ledger.claims_of(*link)[busy[0].identity]
        known.first = min(known.first, *(one.first for one in busy))
        known.last = max(known.last, *(one.last for one in busy))
        for what in ("spans", "gaps"):
            known.peak[what] = united(known.peak[what], (span for one in busy for span in one.peak[what]))
        self.ledger.rewrite(link)

    def settles_ns(self, connection: Subject) -> int | None:
        """When a connection settles, as far as is known now; None where nothing is known of one."""
        claims = self.ledger.claims_of(*connection).values()
        last_ns = max((claim.last.ts_ns for claim in claims), default=None)
        if last_ns is None:
            return None
        over = any(claim.kind == "connection" and claim.peak.get("over") for claim in claims)  # it left the follower
        return last_ns + AFTER_NS + (0 if over else IDLE_NS)

    def is_open(self, connection: Subject) -> bool:
        """Whether more may be stated of it, as far as is known."""
        claims = self.ledger.claims_of(*connection).values()
        return not any(claim.kind == "connection" and claim.peak.get("close_ns") for claim in claims)

    def settle(self, connections: Iterable[Subject]) -> None:
        for subject in sorted(connections):
            self.failures.retry(SETTLING, subject, self.remove_name, subject)

    def remove_name(self, connection: Subject) -> None:
        """Keep what it added to the sums, without its name."""
        key = connection_key(self.ledger.claims_of(*connection).values())
        for target in (link_of(connection), WIRE):
            added = self.added_to(target).pop(key, [])
            if added:
                self.ledger.remove(target, added)
                for claim in added:
                    self.ledger.absorb(nameless(claim))


def busy_of(link: Subject, claims: Iterable[Claim]) -> Iterator[Claim]:
    """When one connection carried requests, and when it lacked bytes."""
    known = [claim for claim in claims if claim.kind == "connection"]
    spans = [(claim.first.ts_ns, claim.last.ts_ns) for claim in known if claim.peak.get("requests")]
    lacking = [claim for claim in claims if claim.kind == "gap"]
    gaps = [(-claim.peak["since"], claim.peak.get("until", claim.first.ts_ns)) for claim in lacking]
    if known and (spans or gaps):
        first, last = min(claim.first for claim in known), max(claim.last for claim in known)
        yield Claim("busy", (link[1],), first, last, peak={"spans": spans, "gaps": gaps})


def link_of(connection: Subject) -> Subject:
    return "link", connection[1]


def connection_key(claims: Iterable[Claim]) -> Key:
    """Endpoint, client and start, as keys have them."""
    return next(((c["endpoint"], c["client"], c["started_ns"]) for c in claims), ())
