"""The cards of a monitor's open findings: headline and role of each, and what is new about them.

At most MOST findings have cards. Cards of a label are made again only if one of its rows changed, in at most one part
in PACE of the time, while other threads read the former ones. If that raises, they stay; the failure is counted.
"""

import math
import time
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

import pyarrow as pa

from wirecheck.judge.ledger.failures import described
from wirecheck.judge.results.result_table import rows_of
from wirecheck.story import severity
from wirecheck.story.expectations import Expectation, with_expected
from wirecheck.story.unexplained import CODE as UNEXPLAINED
from wirecheck.story.verdict import CardEntry
from wirecheck.story.worst_findings import EXPECTED, role_of
from wirecheck.streaming.run.plan import Line
from wirecheck.streaming.store.run_result import Result, is_withdrawn

MOST = 2_000
PACE = 10
MOST_FAILURES = 16
"""So many kinds of failures have a line."""
TABLES = ("findings", "harms")
Row = dict[str, Any]


class OpenCard(NamedTuple):
    """What of a card is news."""

    code: str
    headline: str
    worse: int
    """How bad it is: of kind and harm."""
    goes_on: bool
    """Whether a client is still refused."""


class FindingCard(NamedTuple):
    """What a finding has of its card and of the others."""

    role: str
    follow: list[str]
    """What follows from it, by label and ID."""
    sentence: str = ""
    """Of the card that it belongs to: who cannot do what; without harm its headline."""
    clients: str = ""
    """Those that are hurt; only of the first finding of a card."""
    affected: int = 0
    """How many clients are hurt by what that card is about."""


class LabelCards(NamedTuple):
    """The cards of one label, by label and ID of a finding."""

    findings: dict[str, FindingCard]
    cards: dict[str, OpenCard]
    """But for blind spots and what is expected, by the first finding of each."""
    affected: dict[str, int]
    """How many clients are hurt now, by severity."""
    unexplained: dict[str, Row]
    """The rows of findings that are made with the cards, and are in no table (`story/unexplained.py`)."""


class OpenCards:
    """By label and ID of a finding."""

    def __init__(self, *, principals: bool = True, expect: Sequence[Expectation] = ()) -> None:
        self.principals, self.expect = principals, expect
        self.rows: dict[str, dict[str, Row]] = {table: {} for table in TABLES}
        self.changed: set[str] = set()
        """Labels with rows that changed."""
        self.due_s = -math.inf
        """When cards may be made again."""
        self.lock = Lock()
        """Of rows and changes."""
        self.making = Lock()
        self.made: dict[str, LabelCards] = {}
        self.failures: Counter[str] = Counter()
        """By label how often its cards could not be made."""
        self.failed: dict[str, Line] = {}
        """By kind of failure."""
        self.unreported: list[Line] = []
        self.reported: dict[str, OpenCard] = {}
        """Those that `news` has compared."""

    @property
    def findings(self) -> Mapping[str, FindingCard]:
        return ChainMap(*(one.findings for one in self.made.values()))

    @property
    def affected(self) -> dict[tuple[str, ...], float]:
        """How many clients are hurt now, by label and severity."""
        return {(label, loud): float(n) for label, one in self.made.items() for loud, n in one.affected.items()}

    @property
    def unexplained(self) -> Mapping[str, Row]:
        return ChainMap(*(one.unexplained for one in self.made.values()))

    def forget(self) -> None:
        with self.lock:
            for rows in self.rows.values():
                self.changed |= {row["label"] for row in rows.values()}
                rows.clear()

    def take(self, tables: Mapping[str, pa.Table]) -> None:
        with self.lock:
            for table in TABLES:
                rows_by_name = self.rows[table]
                for row in rows_of(tables[table]) if table in tables else ():
                    name = f"{row['label']}|{row['id']}"
                    if row.get("others") is not None:
                        continue
                    if is_withdrawn(row):
                        changed = rows_by_name.pop(name, None) is not None
                    elif changed := name in rows_by_name or len(rows_by_name) < MOST:
                        rows_by_name[name] = row
                    if changed:
                        self.changed.add(row["label"])

    def refresh(self) -> None:
        """Make the cards that changed, unless another thread does."""
        began_s = time.monotonic()
        if not self.changed or began_s < self.due_s or not self.making.acquire(blocking=False):
            return
        try:
            self.make_changed()
            self.due_s = began_s + PACE * (time.monotonic() - began_s)
        finally:
            self.making.release()

    def make_changed(self) -> None:
        with self.lock:
            changed, self.changed = sorted(self.changed), set()
            rows = {table: list(known.values()) for table, known in self.rows.items()}
        for label in changed:
            try:
                self.make(
                    label, {table: [row for row in some if row["label"] == label] for table, some in rows.items()}
                )
            except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
                self.fail(label, described(error))

    def make(self, label: str, rows: dict[str, list[Row]]) -> None:
        whole = Result.of(rows)
        result = with_expected(whole.verdict(principals=self.principals), self.expect)
        unexplained = (row for row in whole.rows["findings"] if row["code"] == UNEXPLAINED)
        by_name = result.by_id
        affected = {loud: len(hurt) for loud, hurt in severity.affected(result.entries, by_name).items()}
        made = LabelCards({}, {}, affected, {f"{label}|{row['id']}": row for row in unexplained})
        kinds = {finding.id: finding.kind for finding in result.findings}
        for finding in result.findings:
            follow = [f"{label}|{other}" for other in finding.consequences]
            role = role_of(finding, kinds.get(finding.cause or ""))
            made.findings[f"{label}|{finding.id}"] = FindingCard(role, follow)
        for entry in result.entries:
            expected = bool(entry.expected)
            every = [f"{label}|{name}" for name in entry.finding_ids]
            sentence, hurt = severity.label(entry), 0 if expected else len(hurt_clients(entry))
            for name in every:
                card = made.findings[name]
                role, clients = EXPECTED if expected else card.role, severity.names(entry) if name == every[0] else ""
                made.findings[name] = card._replace(role=role, sentence=sentence, clients=clients, affected=hurt)
            if not expected and {one.kind for one in entry.with_consequences} != {"visibility"}:
                made.cards[every[0]] = open_card(entry)
        self.made = {**self.made, label: made}  # others read it meanwhile

    def fail(self, label: str, error: str) -> None:
        self.failures[label] += 1
        if error not in self.failed and len(self.failed) < MOST_FAILURES:
            text = f"the findings of [{label}] have no new sentences: {error}; please report this defect"
            self.failed[error] = Line.of(text, {"event": "cards failed", "cluster": label, "error": error})
            self.unreported.append(self.failed[error])

    def news(self) -> Iterator[Line]:
        """What opened, got worse, ended or was withdrawn since this was asked before."""
        self.refresh()
        yield from self.unreported
        self.unreported = []
        before = self.reported
        self.reported = {name: card for one in self.made.values() for name, card in one.cards.items()}
        for name, card in self.reported.items():
            known = before.get(name)
            if known is None:
                yield line("opened", name, card)
            elif card.worse > known.worse:
                yield line("worse", name, card)
            elif known.goes_on and not card.goes_on:
                yield line("ended", name, card)
        for name in before.keys() - self.reported.keys():
            yield line("withdrawn", name, before[name])


def open_card(entry: CardEntry) -> OpenCard:
    harm, kinds = entry.card.harm, {one.kind for one in entry.with_consequences}
    worse = 4 * ("violation" in kinds) + 2 * bool(harm.clients) + bool(harm.partitions)
    return OpenCard(entry.code, entry.card.headline, worse, any(one.ongoing for one in harm.clients))


def hurt_clients(entry: CardEntry) -> set[tuple[str | None, str | None]]:
    return {one.client for one in entry.card.harm.clients}


def line(event: str, name: str, card: OpenCard) -> Line:
    cluster, _, finding = name.partition("|")
    return Line.of(
        f"{event}: [{cluster}] {card.headline} ({card.code} {finding})",
        {
            "event": f"finding {event}",
            "cluster": cluster,
            "code": card.code,
            "finding": finding,
            "headline": card.headline,
        },
    )
