"""Bounds by number: what leaves the ledger when it has too much, however recent it is.

What leaves by age is in `ageing.py`. What is over the bounds is counted in one row `others` per table, and per check of
findings. The bounds apply at the end of a batch, before it is judged, per cluster label. Each bound is a setting;
SECURITY.md lists them, and what leaves first.
Rule: subjects that were never answered without error never make an answered one leave, and have a bound of their own,
under which one that is used for seconds stays before those that were named once. A space is looked through only
once it is over its bound by one part in SLACK, so that the cost is spread. The rows of an evicted topic or client are
withdrawn, because `others` counts it from then on. Rows that rest on single evicted claims remain as they were emitted
last. What leaves in the batch in which it came is never judged. An open finding is never evicted; a new one that has no
place is counted. Findings about subjects that were never answered without error take at most half of the bound of a
check. What was counted stays counted for the run.
"""

import hashlib
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.judge.checks.filed import neighbours
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.kinds import UNANSWERED
from wirecheck.judge.ledger.connection_sums import CUT
from wirecheck.judge.ledger.emitted_rows import FINDINGS, NEVER, EmittedRow, EmittedRows, Revision, table_of, withdrawn
from wirecheck.judge.ledger.ledger import Ledger
from wirecheck.judge.ledger.shard import Claims
from wirecheck.judge.results.judged_tables import JUDGED
from wirecheck.judge.results.result_table import REVISION, Body, ResultRow
from wirecheck.judge.thresholds import SECOND_NS, Settings

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


class OverflowKey(NamedTuple):
    table: str
    code: str = ""
    kind: str = ""


class OverflowCount:
    def __init__(self, revision: int = 0, first_ns: int = 1 << 62, last_ns: int = 0, least: Any = None) -> None:
        self.revision, self.first_ns, self.last_ns, self.sketch = revision, first_ns, last_ns, Distinct(least)


def columns(about: OverflowKey, count: int, settings: Settings) -> Body:
    """The columns of the row `others` of a table; the columns of an ordinary row are empty."""
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
CLIENT_IDS = 16
"""Kept of one connection; a client has one, a proxy may have many."""
FOLLOWERS = 4_096
"""A cluster has some hundred brokers."""
MOST_OF_KIND = {"connection_requests": CLIENT_IDS, "fetch_versions": FOLLOWERS}
"""How many claims about one subject are kept, by kind; a setting has the number for all other kinds."""
ASKED_ONLY = {"absence", "denies", "fenced", "ordered", "stopped", "id_refused", "id_asked"}
ASKED_ONLY |= {"partition_use", "follows", "offset_gone", "replica_answer"}
ASKED_ONLY |= {"unknown_topic", "stated", "changed", "election_asked"}
"""Claims about topics that a request, or an error answer, makes alone; and orders whose answer was not seen."""


class Rank(NamedTuple):
    """What decides which subjects are evicted."""

    answered: bool
    first_ns: int
    last_ns: int


def with_slack(most: int) -> int:
    """So many may there be until there are too many."""
    return most + most // SLACK


def excess(space: str, most: int, ledger: Ledger, rank: Callable[[Subject], Any]) -> list[Subject]:
    """The subjects with the lowest rank, which leave; empty while there are not too many."""
    count = ledger.count(space)
    return sorted(ledger.subjects(space), key=rank)[: count - most] if count > with_slack(most) else []


def too_many(ranked: list[Subject], most: int) -> list[Subject]:
    """The first of them, which leave; empty while there are not too many."""
    return ranked[: len(ranked) - most] if len(ranked) > with_slack(most) else []


def rank_of(subject: Subject, ledger: Ledger) -> Rank:
    answered, first_ns, last_ns = False, 1 << 63, 0
    for kind, succeeded, peak, begin_ns, end_ns in ledger.glance(subject):
        answered = answered or shows_answer(subject[0], kind, peak, succeeded=succeeded)
        first_ns, last_ns = min(first_ns, begin_ns), max(last_ns, end_ns)
    return Rank(answered, first_ns, last_ns)


def is_answered(subject: Subject, ledger: Ledger) -> bool:
    return any(shows_answer(subject[0], kind, peak, succeeded=done) for kind, done, peak, *_ in ledger.glance(subject))


def shows_answer(space: str, kind: str, peak: dict[str, object], *, succeeded: bool) -> bool:
    """Whether a claim shows an answer without error about its subject."""
    if space == "client":
        return bool(peak.get("answered"))
    if kind in {"use", "refused"}:
        return succeeded
    return kind not in ASKED_ONLY and not kind.startswith(UNANSWERED)


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


def surplus(claims: Claims, most_claims: int) -> list[Claim]:
    """The claims of one subject that are too many: of each kind the later ones. What is kept of a connection's client
    IDs is marked.
    """
    if len(claims) <= min(CLIENT_IDS, most_claims):
        return []
    by_kind: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims.values():
        by_kind[claim.kind].append(claim)
    gone = []
    for kind, of_kind in by_kind.items():
        most = MOST_OF_KIND.get(kind, most_claims)
        if len(of_kind) > with_slack(most):
            of_kind.sort(key=lambda claim: (claim.first, repr(claim.key)))
            gone += of_kind[most:]
            if kind == "connection_requests":
                of_kind[0].peak[CUT] = 1
    return gone


class SubjectEvictor:
    def __init__(self, ledger: Ledger, emitted: EmittedRows, settings: Settings, stored: Any = None) -> None:
        self.ledger, self.emitted, self.settings = ledger, emitted, settings
        kept = stored or {"open": {}, "counts": [], "looked": {}}
        self.open: dict[str, list[int]] = kept["open"]
        """Per check the open findings; and of these, those about what was never answered without error."""
        self.counts = {OverflowKey(*about): OverflowCount(*counts) for about, counts in kept["counts"]}
        self.looked: dict[str, int] = kept.get("looked", {})
        """Per space, how many subjects were left when it was last looked through for what one host can invent."""
        self.changed: set[OverflowKey] = set()
        self.evicted: Counter[str] = Counter()
        """Since `left` was asked for it."""

    def left(self) -> Counter[str]:
        """How many were evicted since this was asked last, by space of the ledger."""
        evicted, self.evicted = self.evicted, Counter()
        return evicted

    def state(self) -> dict[str, Any]:
        counts = [[about, [c.revision, c.first_ns, c.last_ns, c.sketch.least]] for about, c in self.counts.items()]
        return {"sizes": self.ledger.sizes, "open": self.open, "counts": counts, "looked": self.looked}

    # -- subjects and claims ------------------------------------------------------------------------------------------

    def evict_subjects(self) -> list[Subject]:
        """The topics and clients that are evicted, and brokers that fetch, on which nothing rests but CTL011."""
        ledger, settings, evicted = self.ledger, self.settings, list[Subject]()
        for subject in excess("follower", FOLLOWERS, ledger, lambda one: (-rank_of(one, ledger).first_ns, one)):
            self.evicted[subject[0]] += 1
            ledger.forget(subject)
        bounds = {"name": settings.most_topics, "id": settings.most_topics, "client": settings.most_clients}
        for space, most in bounds.items():
            subjects = excess(space, most, ledger, self.order)
            subjects += self.invented(space, {*subjects})
            near = {neighbour for subject in subjects for neighbour in neighbours(subject, ledger)}
            for subject in subjects:
                self.evict(subject)
            ledger.touched |= {subject for subject in near if subject in ledger}
            evicted += subjects
        return evicted

    def may_come(self, claims: Iterable[Claim], waiting: AbstractSet[Subject]) -> bool:
        """Whether these claims can come before the subjects that wait are judged: nothing leaves that a row may rest
        on, and no finding has no place.
        """
        coming = Counter(chain.from_iterable(map(Claim.subjects, claims)))
        new: dict[str, list[Subject]] = defaultdict(list)
        for subject in coming:
            if subject not in self.ledger:
                new[subject[0]].append(subject)
        most_waiting = max(Counter(space for space, *_ in waiting | coming.keys()).values(), default=0)
        return not (
            any(self.may_leave(space, subjects) for space, subjects in new.items())
            or any(self.may_lose_claims(subject, count) for subject, count in coming.items())
            or self.may_count(most_waiting)
        )

    def may_leave(self, space: str, coming: list[Subject]) -> bool:
        """Whether subjects may leave, as in `evict_subjects`, when these new ones have come."""
        settings, known = self.settings, self.ledger.subjects
        bounds = {"name": settings.most_topics, "id": settings.most_topics, "client": settings.most_clients}
        most, count = (bounds | {"follower": FOLLOWERS}).get(space), self.ledger.count(space) + len(coming)
        if most is None or count > with_slack(most):
            return most is not None
        least = min(settings.most_unanswered, settings.most_ids_of_host)
        if space not in bounds or count <= with_slack(max(self.looked.get(space, 0), least)):
            return False
        unanswered = sum(not is_answered(one, self.ledger) for one in known(space)) + len(coming)
        of_host = Counter(one[2] for one in (*known(space), *coming)) if space == "client" else Counter[str]()
        most_of_host = max(of_host.values(), default=0)
        return unanswered > with_slack(settings.most_unanswered) or most_of_host > with_slack(settings.most_ids_of_host)

    def may_lose_claims(self, subject: Subject, coming: int) -> bool:
        """The same of a subject's claims; the rows of a connection do not rest on those that it may lose."""
        if subject[0] == "connection":
            return False
        known = self.ledger.claims_of(*subject)
        if len(known) + coming <= min(FOLLOWERS, self.settings.most_claims):
            return False
        of_kind = Counter(claim.kind for claim in known.values()) or Counter({"": 0})
        return any(
            count + coming > with_slack(MOST_OF_KIND.get(kind, self.settings.most_claims))
            for kind, count in of_kind.items()
        )

    def may_count(self, judged: int) -> bool:
        """Whether a check may have a finding that has no place when so many subjects of one space are judged."""
        most, settings = self.settings.most_findings, self.settings
        unanswered = min(judged, with_slack(settings.most_unanswered))
        return any(
            is_open[0] + judged > most or is_open[1] + unanswered > most // 2
            for is_open in ([0, 0], *self.open.values())
        )

    def invented(self, space: str, leaving: set[Subject]) -> list[Subject]:
        """What leaves of that which a single host can make any number of: what was never answered without an error, and
        client IDs at one address.
        """
        settings, count = self.settings, self.ledger.count(space)
        before = max(self.looked.get(space, 0), min(settings.most_unanswered, settings.most_ids_of_host))
        self.looked[space] = min(count, self.looked.get(space, 0))
        if count <= with_slack(before):
            return []
        ranked = sorted((self.order(one), one) for one in self.ledger.subjects(space) if one not in leaving)
        gone = too_many([one for (answered, *_), one in ranked if not answered], settings.most_unanswered)
        if space == "client":
            of_host = defaultdict(list)
            for _, one in ranked[len(gone) :]:
                of_host[one[2]].append(one)
            gone += [one for ids in of_host.values() for one in too_many(ids, settings.most_ids_of_host)]
        self.looked[space] = count - len(gone)
        return gone

    def order(self, subject: Subject) -> tuple[Any, ...]:
        """The order of eviction: first what was never answered, that which was used for the fewest seconds and the most
        recent of it first; then what no finding is about, the oldest first.
        """
        answered, first_ns, last_ns = rank_of(subject, self.ledger)
        if answered:
            return True, self.emitted.blamed(subject), last_ns, subject
        return False, (last_ns - first_ns) // SECOND_NS, -first_ns, subject

    def evict(self, subject: Subject) -> None:
        if subject[0] != "id" or not any(kind == "binding" for kind, *_ in self.ledger.glance(subject)):
            _, first_ns, last_ns = rank_of(subject, self.ledger)  # an ID that has a name is counted by it
            self.evicted[subject[0]] += 1
            table = CLIENTS if subject[0] == "client" else TOPICS
            self.count(OverflowKey(table), "|".join(subject), first_ns, last_ns)
        self.ledger.forget(subject)

    def withdraw(self, subject: Subject) -> Iterator[EmittedRow]:
        """The last revisions of the rows of a subject that was evicted; nothing of it is remembered."""
        for name, row in sorted(self.emitted.rows(subject).items()):
            if row.open:
                self.closes(name, row)
                if table_of(name) == FINDINGS:
                    self.count_finding(name, row.body)
                yield self.emitted.emit(subject, name, row, withdrawn(row.body), is_open=False)
            self.emitted.forget(subject, name)

    def evict_claims(self) -> set[Subject]:
        """The subjects of which there were too many claims; these have left."""
        subjects = set()
        for subject in sorted(self.ledger.touched):
            gone = surplus(self.ledger.claims_of(*subject), self.settings.most_claims)
            if gone:
                self.ledger.remove(subject, gone)
                self.evicted[subject[0]] += len(gone)
                subjects.add(subject)
        return subjects

    # -- findings -----------------------------------------------------------------------------------------------------

    def admit(self, subject: Subject, emitted: Mapping[str, Revision], rows: dict[str, ResultRow]) -> bool:
        """Take new findings that are too many out of a subject's rows; whether the others are about what was never
        answered without error.
        """
        new = sorted(name for name in rows if table_of(name) == FINDINGS and not emitted.get(name, NEVER).open)
        if not new:
            return False
        unanswered = subject[0] in {"name", "id", "client"} and not is_answered(subject, self.ledger)
        most = self.settings.most_findings
        for name in new:
            is_open = self.open.setdefault(rows[name].body["code"], [0, 0])
            if is_open[0] >= most or (unanswered and is_open[1] >= most // 2):
                self.count_finding(name, rows.pop(name).body)
                continue
            is_open[0] += 1
            is_open[1] += unanswered
        return unanswered

    def closes(self, name: str, row: Revision) -> None:
        if row.open and table_of(name) == FINDINGS:
            is_open = self.open[row.body["code"]]
            is_open[0] -= 1
            is_open[1] -= row.unanswered

    # -- what is counted alone ----------------------------------------------------------------------------------------

    def count_finding(self, name: str, body: Body) -> None:
        self.count(OverflowKey(FINDINGS, body["code"], body["kind"]), name, body["first_seen"], body["last_seen"])

    def count(self, about: OverflowKey, thing: str, first_ns: int, last_ns: int) -> None:
        counted = self.counts.setdefault(about, OverflowCount())
        if counted.sketch.add(thing):
            self.changed.add(about)
        counted.first_ns, counted.last_ns = min(first_ns, counted.first_ns), max(last_ns, counted.last_ns)

    def rows(self, source: str, cluster: str | None) -> Iterator[EmittedRow]:
        """The `others` rows that have changed."""
        for about in sorted(self.changed):
            counted = self.counts[about]
            counted.revision += 1
            key = "|".join((source, OTHERS, *(part for part in about if part)))
            body = {"cluster": cluster, "first_seen": counted.first_ns, "last_seen": counted.last_ns}
            body = {**columns(about, len(counted.sketch), self.settings), **body}
            yield EmittedRow(about.table, key, counted.revision, body)
        self.changed.clear()
