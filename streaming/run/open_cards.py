"""The cards of the findings that stand in a monitor: the headline of each, and what is news about them.

Knows: which rows cards are made of, and when a card opens, gets worse, ends or is withdrawn. Does not know how a card
is made (`story`), who reads it (metrics, log), or what other tables say.
Rule: at most MOST findings have cards, whatever is on the wire; those that came first. Cards are made again only if a
row changed, and at most once in PACE_S.
"""

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from wirecheck.streaming.run.plan import Line
from wirecheck.streaming.store.run_result import Result

MOST = 2_000
PACE_S = 5.0
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


class OpenCards:
    """By label and ID of a finding."""

    def __init__(self, *, principals: bool = True) -> None:
        self.principals = principals
        self.rows: dict[str, dict[str, Row]] = {table: {} for table in TABLES}
        self.changed = False
        self.made_s = -math.inf
        self.headlines: dict[str, str] = {}
        """By label and ID of a finding the headline of the card that it belongs to."""
        self.cards: dict[str, OpenCard] = {}
        """But for blind spots, by the first finding of each."""
        self.reported = self.cards
        """Those that `news` has compared."""

    def forget(self) -> None:
        for rows in self.rows.values():
            rows.clear()
        self.changed = True

    def take(self, told: Mapping[str, pa.Table]) -> None:
        for table in TABLES:
            known = self.rows[table]
            for row in told[table].to_pylist() if table in told else ():
                name = f"{row['label']}|{row['id']}"
                if row.get("others") is not None:
                    continue
                if row.get("withdrawn") or row.get("state") == "withdrawn":
                    self.changed |= known.pop(name, None) is not None
                elif name in known or len(known) < MOST:
                    known[name] = row
                    self.changed = True

    def refresh(self) -> None:
        if not self.changed or time.monotonic() - self.made_s < PACE_S:
            return
        result = Result.of({table: list(rows.values()) for table, rows in self.rows.items()})
        labels = {row["id"]: row["label"] for row in self.rows["findings"].values()}
        entries = result.json(principals=self.principals)["entries"]
        self.headlines, self.cards = {}, {}
        for entry in entries:
            every = [name for one in (entry, *entry["consequences"]) for name in one["findings"]]
            self.headlines |= {f"{labels[name]}|{name}": entry["card"]["headline"] for name in every}
            if {one["kind"] for one in (entry, *entry["consequences"])} != {"visibility"}:
                self.cards[f"{labels[every[0]]}|{every[0]}"] = open_card(entry)
        self.changed, self.made_s = False, time.monotonic()

    def news(self) -> Iterator[Line]:
        """What opened, got worse, ended or was withdrawn since this was asked before."""
        self.refresh()
        before, self.reported = self.reported, self.cards
        for name, card in self.cards.items():
            known = before.get(name)
            if known is None:
                yield line("opened", name, card)
            elif card.worse > known.worse:
                yield line("worse", name, card)
            elif known.goes_on and not card.goes_on:
                yield line("ended", name, card)
        for name in before.keys() - self.cards.keys():
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
