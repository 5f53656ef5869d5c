"""The cards of the findings that stand in a monitor: the headline of each, and what is news about them.

Knows: which rows cards are made of, and when a card opens, gets worse, ends or is withdrawn. Does not know how a card
is made (`story`), who reads it (metrics, log), or what other tables say.
Rule: at most MOST findings have cards, whatever is on the wire; those that came first. Cards of a label are made again
only if a row of it changed, and at most once in PACE_S. If that raises, its cards stay as they were; that is counted,
and each kind of failure is one line.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from wirecheck.judge.failures import described
from wirecheck.streaming.run.plan import Line
from wirecheck.streaming.store.run_result import Result

MOST = 2_000
PACE_S = 5.0
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


class LabelCards(NamedTuple):
    """The cards of one label, by label and ID of a finding."""

    headlines: dict[str, str]
    """Of the card that each finding belongs to."""
    cards: dict[str, OpenCard]
    """But for blind spots, by the first finding of each."""


class OpenCards:
    """By label and ID of a finding."""

    def __init__(self, *, principals: bool = True) -> None:
        self.principals = principals
        self.rows: dict[str, dict[str, Row]] = {table: {} for table in TABLES}
        self.changed: set[str] = set()
        """Labels with rows that changed."""
        self.made_s = -math.inf
        self.made: dict[str, LabelCards] = {}
        self.failures: Counter[str] = Counter()
        """By label how often its cards could not be made."""
        self.failed: dict[str, Line] = {}
        """By kind of failure."""
        self.unreported: list[Line] = []
        self.reported: dict[str, OpenCard] = {}
        """Those that `news` has compared."""

    @property
    def headlines(self) -> dict[str, str]:
        return {name: text for one in self.made.values() for name, text in one.headlines.items()}

    @property
    def cards(self) -> dict[str, OpenCard]:
        return {name: card for one in self.made.values() for name, card in one.cards.items()}

    def forget(self) -> None:
        for rows in self.rows.values():
            self.changed |= {row["label"] for row in rows.values()}
            rows.clear()

    def take(self, tables: Mapping[str, pa.Table]) -> None:
        for table in TABLES:
            known = self.rows[table]
            for row in tables[table].to_pylist() if table in tables else ():
                name = f"{row['label']}|{row['id']}"
                if row.get("others") is not None:
                    continue
                if row.get("withdrawn") or row.get("state") == "withdrawn":
                    changed = known.pop(name, None) is not None
                elif changed := name in known or len(known) < MOST:
                    known[name] = row
                if changed:
                    self.changed.add(row["label"])

    def refresh(self) -> None:
        if not self.changed or time.monotonic() - self.made_s < PACE_S:
            return
        for label in sorted(self.changed):
            try:
                self.make(label)
            except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
                self.fail(label, described(error))
        self.changed, self.made_s = set(), time.monotonic()

    def make(self, label: str) -> None:
        rows = {table: [row for row in known.values() if row["label"] == label] for table, known in self.rows.items()}
        made = LabelCards({}, {})
        for entry in Result.of(rows).json(principals=self.principals)["entries"]:
            every = [f"{label}|{name}" for one in (entry, *entry["consequences"]) for name in one["findings"]]
            made.headlines.update(dict.fromkeys(every, entry["card"]["headline"]))
            if {one["kind"] for one in (entry, *entry["consequences"])} != {"visibility"}:
                made.cards[every[0]] = open_card(entry)
        self.made[label] = made

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
        before, self.reported = self.reported, self.cards
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


def open_card(entry: Row) -> OpenCard:
    clients = entry["card"]["harm"]["clients"]
    kinds = {one["kind"] for one in (entry, *entry["consequences"])}
    goes_on = any(one["ongoing"] for one in clients)
    worse = 4 * ("violation" in kinds) + 2 * bool(clients) + bool(entry["card"]["harm"]["partitions"])
    return OpenCard(entry["code"], entry["card"]["headline"], worse, goes_on)


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
