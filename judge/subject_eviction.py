"""Bounds by number: what leaves the ledger when there is too much in it, however young it is.

What leaves by age is in `ageing.py`. What is beyond the bounds is counted, and stated in one row `others` per table,
and per check of findings. The bounds apply at the end of a batch and before it is judged, per cluster label; each
is a setting. docs/bounds.md has them, and what leaves first.
Rule: however many subjects were never answered without error, none of them makes one leave that was. Looked through is
only what is over its bound by a part in SLACK, so that the cost of looking is spread over what came. The rows of a
topic or client that leaves are withdrawn, as `others` counts it from then on; what rests on single claims that leave
stands as it was emitted last. What leaves in the batch it came in is never judged. A finding that stands makes no room;
one that comes when there is none is counted. Findings about what was never answered without error take at most half of
the room of a check. What was counted stays counted for the run.
"""

import hashlib
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from wirecheck.judge.checks import evaluate
from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.kinds import UNANSWERED
from wirecheck.judge.ledger.connection_sums import CUT
from wirecheck.judge.ledger.emitted_rows import FINDINGS, NEVER, EmittedRows, Revision, table_of, withdrawn
from wirecheck.judge.ledger.ledger import Ledger
from wirecheck.judge.ledger.shard import Claims
from wirecheck.judge.results.judged_tables import JUDGED
from wirecheck.judge.results.result_table import REVISION, Body, ResultRow
from wirecheck.judge.thresholds import Settings

K = 512
"""The standard error is 1 / sqrt(K - 2): 4.4 %."""
SPACE = 1 << 64


class Distinct:
    """How many different things there were, without keeping them: the K least hashes of what was counted (Bar-Yossef et
    al., "Counting Distinct Elements in a Data Stream", 2002). Exact below K; a function of the set, whatever its order.
    """

    def __init__(self, least: list[int] | None = None) -> None:
        self.least = least or []
        """The least hashes, ascending."""

    def add(self, thing: str) -> bool:
        """Whether the sketch has changed."""
        number = int.from_bytes(hashlib.blake2b(thing.encode(errors="surrogatepass"), digest_size=8).digest())
        if len(self.least) == K and number >= self.least[-1]:
            return False
        at = bisect_left(self.least, number)
        if at < len(self.least) and self.least[at] == number:
            return False
        insort(self.least, number)
        del self.least[K:]
        return True

    def __len__(self) -> int:
        return len(self.least) if len(self.least) < K else (K - 1) * SPACE // self.least[-1]


OTHERS = "others"
TOPICS, CLIENTS = "topics", "clients"
Stored = dict[str, Any]


class OverflowKey(NamedTuple):
    table: str
    code: str = ""
    kind: str = ""


class OverflowCount:
    def __init__(self, revision: int = 0, first_ns: int = 1 << 62, last_ns: int = 0, least: Any = None) -> None:
        self.revision, self.first_ns, self.last_ns, self.sketch = revision, first_ns, last_ns, Distinct(least)


class Overflow:
    def __init__(self, settings: Settings, stored: Stored | None) -> None:
        known = stored or {"sizes": {}, "standing": {}, "beyond": []}
        self.settings = settings
        self.sizes: dict[str, int] = known["sizes"]
        """Subjects per shard of the ledger, so that they are counted without being loaded."""
        self.standing: dict[str, list[int]] = known["standing"]
        """Per check the findings that stand; and of these, those about what was never answered without error."""
        self.beyond = {OverflowKey(*about): OverflowCount(*counts) for about, counts in known["beyond"]}
        self.moved: set[OverflowKey] = set()
        self.left: Counter[str] = Counter()
        """What this batch made leave, by space of the ledger."""

    def count(self, about: OverflowKey, thing: str, first_ns: int, last_ns: int) -> None:
        beyond = self.beyond.setdefault(about, OverflowCount())
        if beyond.sketch.add(thing):
            self.moved.add(about)
        beyond.first_ns, beyond.last_ns = min(first_ns, beyond.first_ns), max(last_ns, beyond.last_ns)

    def opens(self, name: str, body: Body, *, stranger: bool) -> bool:
        """Whether there is room for a finding that is new."""
        standing = self.standing.setdefault(body["code"], [0, 0])
        most = self.settings.most_findings
        if standing[0] >= most or (stranger and standing[1] >= most // 2):
            self.missed(name, body)
            return False
        standing[0] += 1
        standing[1] += stranger
        return True

    def closes(self, body: Body, *, stranger: bool) -> None:
        standing = self.standing[body["code"]]
        standing[0] -= 1
        standing[1] -= stranger

    def missed(self, name: str, body: Body) -> None:
        about = OverflowKey(FINDINGS, body["code"], body["kind"])
        self.count(about, name, body["first_seen"], body["last_seen"])

    def leaves(self, subject: Subject, first_ns: int, last_ns: int) -> None:
        self.left[subject[0]] += 1
        table = CLIENTS if subject[0] == "client" else TOPICS
        self.count(OverflowKey(table), "|".join(subject), first_ns, last_ns)

    def rows(self, source: str, cluster: str | None) -> Iterator[tuple[str, str, int, Body]]:
        """The `others` rows that have changed: table, id, revision, body."""
        for about in sorted(self.moved):
            beyond = self.beyond[about]
            beyond.revision += 1
            key = "|".join((source, OTHERS, *(part for part in about if part)))
            body = {"cluster": cluster, "first_seen": beyond.first_ns, "last_seen": beyond.last_ns}
            yield about.table, key, beyond.revision, {**columns(about, len(beyond.sketch), self.settings), **body}
        self.moved.clear()

    def state(self) -> Stored:
        beyond = [[about, [b.revision, b.first_ns, b.last_ns, b.sketch.least]] for about, b in self.beyond.items()]
        return {"sizes": self.sizes, "standing": self.standing, "beyond": beyond}


def columns(about: OverflowKey, count: int, settings: Settings) -> Body:
    """Of the row of a table that stands for what is not kept; what a kept row would say is empty."""
    (table,) = (table for table in JUDGED if table.name == about.table)
    empty: Body = {c.name: [] if pa.types.is_list(c.type) else None for c in table.columns if c not in REVISION}
    if about.table == TOPICS:
        return {**empty, "withdrawn": False, "state": OTHERS, OTHERS: count}
    if about.table == CLIENTS:
        return {**empty, "withdrawn": False, "requests": 0, OTHERS: count}
    summary = f"{count:,} more findings of this check are not kept: the bound is {settings.most_findings:,}."
    check = {"code": about.code, "name": CHECKS[about.code].name, "kind": about.kind, "summary": summary}
    return {**empty, "state": "open", **check, "count": count, OTHERS: count}


SLACK = 10
FOLLOWER, VERSIONS = "follower", "fetch_versions"
CLIENT_IDS = 16
"""Kept of one connection; a client has one, a proxy may have many."""
FOLLOWERS = 4_096
"""A cluster has some hundred brokers."""
ASKED_ONLY = {"absence", "denies", "ordered", "stopped", "id_refused", "id_asked"}
ASKED_ONLY |= {"partition_use", "follows", "offset_gone", "replica_answer"}
"""Claims about topics that a request, or an error answer, makes alone; and orders whose answer was not seen."""


class Standing(NamedTuple):
    """By what a subject stays or leaves."""

    answered: bool
    first_ns: int
    last_ns: int


def excess(space: str, most: int, ledger: Ledger, rank: Callable[[Subject], Any]) -> list[Subject]:
    """The subjects of the least rank that leave; none while there are not too many."""
    count = ledger.count(space)
    return sorted(ledger.subjects(space), key=rank)[: count - most] if count > most + most // SLACK else []


def rank(subject: Subject, ledger: Ledger, emitted: EmittedRows) -> tuple[Any, ...]:
    """What was never answered leaves first, the youngest of it; else what no finding blames, the oldest first."""
    answered, first_ns, last_ns = standing(subject, ledger)
    return (True, emitted.blamed(subject), last_ns, subject) if answered else (False, -first_ns, subject)


def too_many_followers(ledger: Ledger) -> list[Subject]:
    """Nothing rests on what they say but that a replica is never fetched (CTL011)."""
    return excess(FOLLOWER, FOLLOWERS, ledger, lambda one: (-standing(one, ledger).first_ns, one))


def standing(subject: Subject, ledger: Ledger) -> Standing:
    answered, first_ns, last_ns = False, 1 << 63, 0
    for kind, succeeded, peak, begin_ns, end_ns in ledger.glance(subject):
        answered = answered or shows_answer(subject[0], kind, peak, succeeded=succeeded)
        first_ns, last_ns = min(first_ns, begin_ns), max(last_ns, end_ns)
    return Standing(answered, first_ns, last_ns)


def shows_answer(space: str, kind: str, peak: dict[str, object], *, succeeded: bool) -> bool:
    """Whether a claim shows that somebody was answered without error about its subject."""
    if space == "client":
        return bool(peak.get("answered"))
    if kind in {"use", "refused"}:
        return succeeded
    return kind not in ASKED_ONLY and not kind.startswith(UNANSWERED)


def never_answered(subject: Subject, ledger: Ledger) -> bool:
    return subject[0] in {"name", "id", "client"} and not standing(subject, ledger).answered


def surplus(claims: Claims, settings: Settings) -> list[Claim]:
    """The claims of one subject that are too many. What is kept of a connection's client ids is marked."""
    if len(claims) <= min(CLIENT_IDS, settings.most_claims):
        return []
    by_kind: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims.values():
        by_kind[claim.kind].append(claim)
    gone = [*spoken(by_kind["spoken"])]
    for kind, found in by_kind.items():
        most = FOLLOWERS if kind == VERSIONS else settings.most_claims
        if len(found) > most + most // SLACK:
            found.sort(key=lambda claim: (claim.first, repr(claim.key)))
            gone += found[most:]
    return gone


def spoken(claims: list[Claim]) -> Iterator[Claim]:
    if len(claims) > CLIENT_IDS:  # they are filed by connection
        found = sorted(claims, key=lambda claim: (claim.first, repr(claim.key)))
        found[0].peak[CUT] = 1
        yield from found[CLIENT_IDS:]


def too_many_connections(ledger: Ledger, most: int) -> list[Subject]:
    """The connections that settle early."""

    def order(subject: Subject) -> tuple[object, ...]:
        answered, closed, last_ns = False, False, 0
        for kind, _, peak, _, end_ns in ledger.glance(subject):
            last_ns = max(last_ns, end_ns)
            if kind == "connection":
                answered, closed = peak.get("responses", 0) > 0, bool(peak.get("closed_by", [""])[-1])
        return answered, not closed, last_ns, subject

    return excess("connection", most, ledger, order)


class SubjectEvictor:
    def __init__(self, ledger: Ledger, emitted: EmittedRows, overflow: Overflow) -> None:
        self.ledger, self.emitted, self.overflow = ledger, emitted, overflow
        self.settings = overflow.settings

    def evict_subjects(self) -> list[Subject]:
        found: list[Subject] = []
        for subject in too_many_followers(self.ledger):
            self.overflow.left[subject[0]] += 1
            self.ledger.forget(subject)
        topics, clients = self.settings.most_topics, self.settings.most_clients
        for space, most in (("name", topics), ("id", topics), ("client", clients)):
            gone = excess(space, most, self.ledger, lambda one: rank(one, self.ledger, self.emitted))
            near = {subject for lost in gone for subject in evaluate.neighbours(lost, self.ledger)}
            for subject in gone:
                self.leaves(subject)
            self.ledger.touched |= {subject for subject in near if subject in self.ledger}
            found += gone
        return found

    def leaves(self, subject: Subject) -> None:
        first_ns, last_ns = standing(subject, self.ledger)[1:]
        if subject[0] != "id" or not any(kind == "binding" for kind, *_ in self.ledger.glance(subject)):
            self.overflow.leaves(subject, first_ns, last_ns)  # an id that has a name is counted by it
        self.ledger.forget(subject)

    def withdraw(self, subject: Subject) -> Iterator[tuple[str, int, Body]]:
        """The last revisions of the rows of a subject that has left; nothing of it is remembered."""
        for name, row in sorted(self.emitted.rows(subject).items()):
            if row.open:
                self.closes(name, row)
                if table_of(name) == FINDINGS:
                    self.overflow.missed(name, row.body)
                body = withdrawn(row.body)
                yield name, self.emitted.emit(subject, name, row, body, is_open=False), body
            self.emitted.forget(subject, name)

    def evict_claims(self) -> set[Subject]:
        """The subjects of which there were too many claims; these have left."""
        found = set()
        for subject in sorted(self.ledger.touched):
            gone = surplus(self.ledger.claims_of(*subject), self.settings)
            if gone:
                self.ledger.remove(subject, gone)
                self.overflow.left[subject[0]] += len(gone)
                found.add(subject)
        return found

    def admitted(self, subject: Subject, known: Mapping[str, Revision], now: dict[str, ResultRow]) -> bool:
        """Take new findings that are too many out of a subject's rows; whether the others are a stranger's."""
        new = sorted(name for name in now if table_of(name) == FINDINGS and not known.get(name, NEVER).open)
        stranger = bool(new) and never_answered(subject, self.ledger)
        for name in new:
            if not self.overflow.opens(name, now[name].body, stranger=stranger):
                del now[name]
        return stranger

    def closes(self, name: str, row: Revision) -> None:
        if row.open and table_of(name) == FINDINGS:
            self.overflow.closes(row.body, stranger=row.stranger)
