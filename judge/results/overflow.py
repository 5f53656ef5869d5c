"""What is beyond the bounds: counted, and said in one row `others` per table, and per check of findings.

Knows: how many findings of each check stand, for which there is room, and how many different topics, clients and
findings were not kept. Does not know why something was not kept (`subject_eviction.py`).
Rule: a finding that stands makes no room; one that comes when there is none is counted. Findings about what was never
answered without error take at most half of the room of a check. What was counted stays counted for the run.
"""

import hashlib
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.ledger.emitted_rows import FINDINGS
from wirecheck.judge.results.judged_tables import JUDGED
from wirecheck.judge.results.result_table import REVISION, Body
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


class Uncounted(NamedTuple):
    """What one `others` row stands for."""

    table: str
    code: str = ""
    kind: str = ""


class Beyond:
    """How many there are of it, and when they were seen."""

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
        self.beyond = {Uncounted(*about): Beyond(*counts) for about, counts in known["beyond"]}
        self.moved: set[Uncounted] = set()
        self.left: Counter[str] = Counter()
        """What this batch made leave, by space of the ledger."""

    def count(self, about: Uncounted, thing: str, first_ns: int, last_ns: int) -> None:
        beyond = self.beyond.setdefault(about, Beyond())
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
        about = Uncounted(FINDINGS, body["code"], body["kind"])
        self.count(about, name, body["first_seen"], body["last_seen"])

    def leaves(self, subject: Subject, first_ns: int, last_ns: int) -> None:
        """A topic or client that is not kept."""
        self.left[subject[0]] += 1
        table = CLIENTS if subject[0] == "client" else TOPICS
        self.count(Uncounted(table), "|".join(subject), first_ns, last_ns)

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


def columns(about: Uncounted, count: int, settings: Settings) -> Body:
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
