"""Connections settle: what one adds to the sums of its endpoint, and when it leaves the ledger for good.

Knows: which connections have changed, what they added before, and up to which capture time every agent has shown its
traffic. Does not know what counts (`connection_account.py`), nor what a check makes of a sum.
Rule: a connection that has left the follower settles once every agent that is waited for has passed its last packet by
AFTER_NS: its rows stand as they were emitted last, and what it added loses its name. One that was silent for longer
than any follower waits has left it, said or not. So the ledger holds open connections, whatever came before.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from wirecheck.decode.connection.limits import Limits
from wirecheck.judge.claims.claim import Claim, Key, Subject
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.connection_account import Advertised, account
from wirecheck.judge.failures import SETTLING, Failures, failure
from wirecheck.judge.ledger import busy_times
from wirecheck.judge.ledger.agenda import Agenda
from wirecheck.judge.ledger.connection_sums import ADDED, connection_of, nameless
from wirecheck.judge.ledger.emitted_rows import EmittedRows
from wirecheck.judge.ledger.ledger import Ledger
from wirecheck.judge.topology.releases import Ranges, digest, read

SPACE = "connection"
WIRE: Subject = ("wire",)
AFTER_NS = 60_000_000_000
"""Agents' clocks, and the order in which their files come, are apart by less."""
IDLE_NS = Limits().idle_ns
Added = dict[Key, list[Claim]]
"""What single connections added, by connection."""


class Settlement:
    def __init__(self, ledger: Ledger, failures: Failures, emitted: EmittedRows, due: Agenda) -> None:
        self.ledger, self.failures, self.emitted, self.due = ledger, failures, emitted, due
        self.lacking: set[Subject] = set()
        """Connections on which ranges were told that no answer was heard to hold."""

    def take_account(self, touched: Iterable[Subject], lacking: set[Subject]) -> None:
        """Make anew what changed connections add, and those that lacked what they were told."""
        changed = {subject for subject in touched if subject[0] == SPACE}
        connections = sorted(changed | lacking)
        if not connections:
            return
        self.lacking.clear()
        advertised, known = self.advertised(), dict[Subject, Added]()
        for subject in connections:
            with self.contained(subject):
                self.added_by(subject, advertised, known)
        for link in sorted({link_of(subject) for subject in connections}):
            if any(claim.kind == "unanswered" for claim in self.ledger.claims_of(*link).values()):
                self.ledger.touched.add(link)  # whether one was let down depends on how long others went on
        self.lacking -= lacking  # once more is enough: what is told comes with its answer

    @contextmanager
    def contained(self, about: Subject) -> Iterator[None]:
        """Whatever foreign bytes bring about here is said of its subject, and ends nothing else."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - see above
            self.failures.add(failure(SETTLING, (SETTLING, *about), error))
        else:
            self.failures.judged((SETTLING, *about), ())

    def advertised(self) -> dict[tuple[str, str], Ranges]:
        found = {}
        for claim in self.ledger.claims("advertised", "server"):
            with self.contained(("server", str(claim.key[:1]))):
                found[claim["endpoint"], digest(claim["ranges"])] = read(claim["ranges"])
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
        spans = [(c.first.ts_ns, c.last.ts_ns) for c in claims if c.kind == SPACE and c.peak.get("requests")]
        gaps = [(c.first.ts_ns, c.first.ts_ns) for c in claims if c.kind == "gap"]
        for claim in claims:
            if claim.kind == SPACE and (spans or gaps):
                known = self.ledger.claims_of(*link).get(("busy", (link[1],)))
                if known is None:
                    was_touched = link in self.ledger.touched
                    self.ledger.absorb(Claim("busy", (link[1],), claim.first, peak={"spans": [], "gaps": []}))
                    if not was_touched:
                        self.ledger.touched.discard(link)  # no check looks at it
                    known = self.ledger.claims_of(*link)["busy", (link[1],)]
                known.first, known.last = min(known.first, claim.first), max(known.last, claim.last)
                known.peak["spans"] = busy_times.united(known.peak["spans"], spans)
                known.peak["gaps"] = busy_times.united(known.peak["gaps"], gaps)
                self.ledger.rewrite(link)

    def settled(self, subject: Subject, passed_ns: int) -> bool:
        """Whether a connection is over, and nothing of it comes any more."""
        return (due_ns := self.due_ns(subject)) is not None and due_ns <= passed_ns

    def due_ns(self, subject: Subject) -> int | None:
        """When a connection settles, as far as is known now; None where nothing is known of one."""
        claims = self.ledger.claims_of(*subject).values()
        last_ns = max((claim.last.ts_ns for claim in claims), default=None)
        if last_ns is None:
            return None
        return last_ns + AFTER_NS + (0 if self.over(subject) else IDLE_NS)

    def over(self, subject: Subject) -> bool:
        """Whether a connection has left the follower."""
        return any(claim.kind == SPACE and claim.peak.get("over") for claim in self.ledger.claims_of(*subject).values())

    def over_among(self, subjects: Iterable[Subject]) -> set[Subject]:
        """The connections whose last rows were told when they left the follower."""
        return {subject for subject in subjects if subject[0] == SPACE and self.over(subject)}

    def settle(self, subjects: Iterable[Subject]) -> None:
        """What connections added becomes nameless; they themselves leave once their rows were told (`leave`)."""
        known = dict[Subject, Added]()
        for subject in sorted(subjects):
            with self.contained(subject):
                self.unname(subject, known)

    def unname(self, connection: Subject, known: dict[Subject, Added]) -> None:
        key = connection_key(self.ledger.claims_of(*connection).values())
        for target in (link_of(connection), WIRE):
            mine = self.added_before(target, known).pop(key, [])
            if mine:
                self.ledger.remove(target, mine)
                for claim in mine:
                    self.ledger.absorb(nameless(claim))

    def leave(self, connections: Iterable[Subject]) -> None:
        """Connections that have settled, once their rows were told."""
        for connection in connections:
            self.stand(connection)
            self.due.drop(connection)
            if connection in self.ledger:
                self.ledger.forget(connection)

    def stand(self, connection: Subject) -> None:
        """Its rows stand as they were told, and are not remembered."""
        for name in sorted(self.emitted.rows(connection)):
            self.emitted.forget(connection, name)

    def idle(self, passed_ns: int) -> Iterator[Subject]:
        """The connections that have settled, however they ended: a pass over all that are open."""
        for subject in list(self.ledger.subjects(SPACE)):
            if self.settled(subject, passed_ns):
                yield subject


def link_of(connection: Subject) -> Subject:
    return "link", connection[1]


def connection_key(claims: Iterable[Claim]) -> Key:
    """Endpoint, client and start, as keys have them."""
    return next(((c["endpoint"], c["client"], c["started_ns"]) for c in claims), ())
