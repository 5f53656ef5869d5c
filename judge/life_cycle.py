"""The life of a subject: when it is checked again, when its rows are emitted, and when a connection settles and leaves.

News is checked with the batch that brings it; where only counts and times have changed, once in a slot, and where that
is traffic without an error, once in EVERY_NS. Rows are emitted with the batch that changes them; those that grow with
every message once a minute, and so findings of which only the count, the last time and later evidence have changed. No
check looks at a connection: its rows are emitted within a minute of news, and once in CONNECTION_NS while they only
grow.

Rules: a subject waits for one time, the earliest that it was given; each has its own second of the minute. A row that
was held back is emitted within that time, when its connection settles, and when the capture ends, so that the last
revision of every row is the one it would have been. An account follows from the claims about one connection
and the ranges that servers advertised. A connection that has left the follower settles once every agent that is waited
for has passed its last packet by AFTER_NS: its rows stand as they are emitted then, and what it added loses its name,
and adds up with the others of its kind. One that was silent for longer than any follower waits has left it.
"""

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from wirecheck.decode.connection.limits import Limits
from wirecheck.judge.agents import AgentFrontiers
from wirecheck.judge.checks.evaluate import NEWS, RATE_LIMITED, ROWS, codes_of
from wirecheck.judge.claims.claim import LEAST, Claim, Key, Sighting, Subject
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.failures import SETTLING, Failures, Made
from wirecheck.judge.ledger.connection_sums import ADDED, BROKEN, CONTINUED, CUT, connection_of, nameless, united
from wirecheck.judge.ledger.emitted_rows import EmittedRows, Revision, table_of
from wirecheck.judge.ledger.ledger import Ledger, in_order
from wirecheck.judge.results.result_table import ResultRow
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.releases import Ranges, digest, read
from wirecheck.judge.topology.strangers import IDENTITY, beyond, is_unread, protocol_of

SHARDS, SHARD_NS = 8, 16_000_000_000
CONNECTION = "connection"
EVERY_NS, CONNECTION_NS = 60 * SECOND_NS, 300 * SECOND_NS
NEVER_NS = 1 << 63


class Agenda:
    """When each subject is looked at again though nothing new is stated of it. `stored`: a shard's state by name; None
    where there is none.
    """

    def __init__(self, stored: Callable[[str], Any], agents: AgentFrontiers) -> None:
        self.agents, self.before_ns = agents, agents.watermark_ns
        """`before_ns`: the watermark of the batch before; what has passed since then is looked at now."""
        rows = (row for number in range(SHARDS) for row in stored(f"agenda-{number}") or ())
        self.due: dict[Subject, int] = {tuple(subject): due_ns for subject, due_ns in rows}
        self.changed: set[int] = set()
        """Numbers of shards."""

    def wait(self, subject: Subject, due_ns: int) -> None:
        before = self.due.get(subject)
        if before is None or due_ns < before:
            self.drop(subject)
            self.due[subject] = due_ns
            self.changed.add(shard_at(due_ns))

    def drop(self, subject: Subject) -> None:
        due_ns = self.due.pop(subject, None)
        if due_ns is not None:
            self.changed.add(shard_at(due_ns))

    def due_now(self) -> set[Subject]:
        """The subjects whose time has come: all of them when the capture has ended."""
        if self.agents.over:
            return {*self.due}
        watermark_ns, passed_ns = self.agents.watermark_ns, self.agents.passed_ns
        return {
            one for one, due_ns in self.due.items() if due_ns <= (passed_ns if one[0] == CONNECTION else watermark_ns)
        }

    def repeats(self, subject: Subject, every_ns: int) -> None:
        """Something was stated of it again: its counts and times are looked at so often."""
        if not ROWS[subject[0]] and not codes_of(subject[0]):
            return
        since_ns = self.agents.passed_ns if subject[0] == CONNECTION else self.before_ns
        if self.due.get(subject, NEVER_NS) > since_ns + every_ns:
            self.wait(subject, next_ns(subject, since_ns, every_ns))

    def held_back(self, subject: Subject, known: Iterable[str]) -> str | None:
        """The table whose rows of a subject are emitted another time. `known`: the names of those of before; a new
        client, or an id that was not disputed before, is news.
        """
        table = RATE_LIMITED.get(subject[0])
        if table is None or self.is_turn_of(subject) or all(table_of(name) != table for name in known):
            return None
        self.wait(subject, next_ns(subject, self.agents.watermark_ns, EVERY_NS))
        return table

    def may_wait(self, subject: Subject, before: Revision, row: ResultRow) -> bool:
        """Whether a row that has changed has no news, and is emitted another time. One that was seen last so long ago
        that it may leave with this batch is not held back.
        """
        now_ns, news = self.agents.watermark_ns, NEWS.get(row.table)
        if news is None or not before.open or news(row.body) != news(before.body) or self.is_turn_of(subject):
            return False
        if row.body["last_seen"] < now_ns - EVERY_NS:
            return False
        self.wait(subject, next_ns(subject, now_ns, EVERY_NS))
        return True

    def is_turn_of(self, subject: Subject) -> bool:
        """Whether this batch brings the subject's own second of the minute: then every row is emitted."""
        return self.agents.over or next_ns(subject, self.before_ns, EVERY_NS) <= self.agents.watermark_ns

    def changed_shards(self) -> dict[str, Any]:
        changed: dict[int, list[tuple[Subject, int]]] = {number: [] for number in sorted(self.changed)}
        for subject, due_ns in self.due.items() if changed else ():
            if shard_at(due_ns) in changed:
                changed[shard_at(due_ns)].append((subject, due_ns))
        self.changed.clear()
        return {f"agenda-{number}": rows for number, rows in changed.items()}


def shard_at(due_ns: int) -> int:
    return due_ns // SHARD_NS % SHARDS


def next_ns(subject: Subject, now_ns: int, every_ns: int) -> int:
    """The next time that is this subject's own of so many."""
    phase_ns = zlib.crc32("\0".join(subject).encode(errors="surrogatepass")) % (every_ns // SECOND_NS) * SECOND_NS
    return now_ns - (now_ns - phase_ns) % every_ns + every_ns


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


WIRE: Subject = ("wire",)
AFTER_NS = 60_000_000_000
"""Agents' clocks, and the order in which their files come, are apart by less."""
IDLE_NS = Limits().idle_ns
Added = dict[Key, list[Claim]]
"""What single connections added, by connection."""


class Settlement:
    def __init__(self, ledger: Ledger, failures: Failures, emitted: EmittedRows, agenda: Agenda) -> None:
        self.ledger, self.failures, self.emitted, self.agenda = ledger, failures, emitted, agenda
        self.lacking: set[Subject] = set()
        """Connections on which ranges were told that no answer was heard to hold."""

    def take_account(self, touched: Iterable[Subject], lacking: set[Subject]) -> None:
        """Make anew what changed connections add, and those that lacked what they were told."""
        changed = {subject for subject in touched if subject[0] == CONNECTION}
        connections = sorted(changed | lacking)
        if not connections:
            return
        self.lacking.clear()
        advertised, known = self.advertised(), dict[Subject, Added]()
        for subject in connections:
            self.attempt(subject, self.added_by, subject, advertised, known)
        for link in sorted({link_of(subject) for subject in connections}):
            if any(claim.kind == "unanswered" for claim in self.ledger.claims_of(*link).values()):
                self.ledger.touched.add(link)  # whether one was let down depends on how long others went on
        self.lacking -= lacking  # once more is enough: what is told comes with its answer

    def attempt(self, about: Subject, make: Callable[..., Made], *arguments: Any) -> Made | None:
        """Tried again: what was said of it before is over."""
        self.failures.judged((SETTLING, *about), ())
        return self.failures.attempt(SETTLING, about, make, *arguments)

    def advertised(self) -> dict[tuple[str, str], Ranges]:
        found = {}
        for claim in self.ledger.claims("advertised", "server"):
            ranges = self.attempt(("server", str(claim.key[:1])), read, claim["ranges"])
            if ranges is not None:
                found[claim["endpoint"], digest(claim["ranges"])] = ranges
        return found

    def added_by(self, subject: Subject, advertised: Advertised, known: dict[Subject, Added]) -> None:
        claims = list(self.ledger.claims_of(*subject).values())
        key, now = connection_key(claims), dict[Subject, list[Claim]]()
        for claim in account(claims, advertised):
            now.setdefault(WIRE if claim.kind == "unreadable" else link_of(subject), []).append(claim)
        for target in (link_of(subject), WIRE):
            before = self.added_before(target, known).pop(key, [])
            self.replace(target, before, now.get(target, []))
        self.busy(link_of(subject), claims)
        if any(c.kind == "ranges_told" and (c["endpoint"], c["digest"]) not in advertised for c in claims):
            self.lacking.add(subject)

    def added_before(self, target: Subject, known: dict[Subject, Added]) -> Added:
        """Looked through once per batch."""
        if target not in known:
            found: Added = defaultdict(list)
            for claim in self.ledger.claims_of(*target).values():
                if (
                    claim.kind in ADDED
                    and len(claim.key) == len(KINDS[claim.kind].fields)
                    and (key := connection_of(claim))
                ):
                    found[key].append(claim)
            known[target] = found
        return known[target]

    def replace(self, target: Subject, before: list[Claim], now: list[Claim]) -> None:
        if [claim.state() for claim in before] != [claim.state() for claim in now]:
            if before:
                self.ledger.remove(target, before)
            for claim in now:
                self.ledger.absorb(claim)
            self.ledger.touched.add(target)

    def busy(self, link: Subject, claims: Iterable[Claim]) -> None:
        """When it carried requests, and when it lacked bytes."""
        spans = [(c.first.ts_ns, c.last.ts_ns) for c in claims if c.kind == CONNECTION and c.peak.get("requests")]
        gaps = [(c.first.ts_ns, c.first.ts_ns) for c in claims if c.kind == "gap"]
        for claim in claims:
            if claim.kind == CONNECTION and (spans or gaps):
                known = self.ledger.claims_of(*link).get(("busy", (link[1],)))
                if known is None:
                    was_touched = link in self.ledger.touched
                    self.ledger.absorb(Claim("busy", (link[1],), claim.first, peak={"spans": [], "gaps": []}))
                    if not was_touched:
                        self.ledger.touched.discard(link)  # no check looks at it
                    known = self.ledger.claims_of(*link)["busy", (link[1],)]
                known.first, known.last = min(known.first, claim.first), max(known.last, claim.last)
                known.peak["spans"] = united(known.peak["spans"], spans)
                known.peak["gaps"] = united(known.peak["gaps"], gaps)
                self.ledger.rewrite(link)

    def schedule(self, connections: Iterable[Subject]) -> None:
        """Connections that go on are looked at when they may settle; those that lack ranges, with the next batch."""
        for subject in connections:
            if (due_ns := self.due_ns(subject)) is not None:
                self.agenda.wait(subject, 0 if subject in self.lacking else due_ns)

    def settled(self, subject: Subject, passed_ns: int) -> bool:
        return (due_ns := self.due_ns(subject)) is not None and due_ns <= passed_ns

    def due_ns(self, subject: Subject) -> int | None:
        """When a connection settles, as far as is known now; None where nothing is known of one."""
        claims = self.ledger.claims_of(*subject).values()
        last_ns = max((claim.last.ts_ns for claim in claims), default=None)
        if last_ns is None:
            return None
        over = any(claim.kind == CONNECTION and claim.peak.get("over") for claim in claims)  # it left the follower
        return last_ns + AFTER_NS + (0 if over else IDLE_NS)

    def settle(self, subjects: Iterable[Subject]) -> None:
        """What connections added becomes nameless; they themselves leave once their rows were told (`leave`)."""
        known = dict[Subject, Added]()
        for subject in sorted(subjects):
            self.attempt(subject, self.unname, subject, known)

    def unname(self, connection: Subject, known: dict[Subject, Added]) -> None:
        key = connection_key(self.ledger.claims_of(*connection).values())
        for target in (link_of(connection), WIRE):
            mine = self.added_before(target, known).pop(key, [])
            if mine:
                self.ledger.remove(target, mine)
                for claim in mine:
                    self.ledger.absorb(nameless(claim))

    def leave(self, connections: Iterable[Subject]) -> None:
        """Connections that have settled: their rows stand as they were emitted, and are not remembered."""
        for connection in connections:
            for name in sorted(self.emitted.rows(connection)):
                self.emitted.forget(connection, name)
            self.agenda.drop(connection)
            if connection in self.ledger:
                self.ledger.forget(connection)


def link_of(connection: Subject) -> Subject:
    return "link", connection[1]


def connection_key(claims: Iterable[Claim]) -> Key:
    """Endpoint, client and start, as keys have them."""
    return next(((c["endpoint"], c["client"], c["started_ns"]) for c in claims), ())
