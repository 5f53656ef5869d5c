"""The messages behind findings, decoded: of each exchange the request and the response, as text.

Findings, exchanges and lines are bounded. Of a long list only the elements that the finding is about are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture import frames_file
from wirecheck.capture.frames import NotFramesError
from wirecheck.decode.envelope import ENVELOPE
from wirecheck.decode.peer import Conversation, Peer
from wirecheck.decode.show import message_lines, message_page
from wirecheck.decode.show.message_filter import Filter, layers, texts
from wirecheck.streaming.steps.quarantine import check_name
from wirecheck.wording import ns_of, rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from wirecheck.decode.connection.follower import Exchanges
    from wirecheck.decode.show.learned_names import Places
    from wirecheck.story.verdict import Finding, Side

FINDINGS, EXCHANGES, LINES = 40, 4, 60
"""At most so many findings, exchanges of each, and lines of a message."""
ALIKE = 3
"""Of a list in which nothing is what the finding is about, so many elements are shown."""
Row = dict[str, Any]
Exchange = tuple[str, str, int]
"""Connection, API and correlation id."""


@dataclass
class ExchangeFilter(Filter):
    """The messages of some exchanges; a client may use a correlation id twice, then both are."""

    exchanges: frozenset[Exchange] = frozenset()

    def rows(self, exchanges: Exchanges, _inside: dict[int, Row]) -> list[int]:
        """What an Envelope carries has a correlation id of its own."""
        named = {connection for connection, _, _ in self.exchanges}
        here = np.array([connection.name in named for connection in exchanges.connections], np.bool_)
        numbers = np.array(sorted({number for _, _, number in self.exchanges}), np.int64)
        messages = exchanges.messages
        passing = np.isin(messages.correlation_id, numbers) | (messages.key == ENVELOPE)
        if not len(messages):
            return []
        found: list[int] = np.flatnonzero(passing & here[exchanges.connection]).tolist()
        return found

    def keeps(self, found: Row, _topics: frozenset[str], _places: Places) -> bool:
        return any(exchange in self.exchanges for exchange, _ in exchanges_of(found))


def exchanges_of(line: Row) -> Iterator[tuple[Exchange, Row]]:
    """What a message is of, and what it carries is, each with its own line."""
    ends = (line["src"], line["dst"]) if line["side"] == "request" else (line["dst"], line["src"])
    connection = str(Conversation(*map(Peer.of, ends)))
    for layer in layers(line):
        yield (connection, layer["api"], layer["correlation_id"]), layer


@dataclass
class Pair:
    """What was found of one exchange: lines as `decode` makes them."""

    side: Side
    found: dict[str, Row] = field(default_factory=dict)

    def take(self, line: Row, layer: Row) -> None:
        """The message nearest in time to the side that names it; of an Envelope, what is in it."""
        known = self.found.get(line["side"])
        if known is None or self.distance_ns(line) < self.distance_ns(known):
            self.found[line["side"]] = {"time": line["time"], **layer}

    def distance_ns(self, line: Row) -> int:
        return abs(ns_of(line["time"]) - self.side.time_ns)


def evidence_messages(
    files: Iterable[Path], findings: Iterable[Finding], dialects: Sequence[str] = ()
) -> dict[str, list[Row]]:
    """By finding the exchanges behind it, the earliest first: connection, client ID, request and response as lines."""
    chosen = {finding.id: (finding, pairs_of(finding)) for finding in islice(findings, FINDINGS)}
    by_exchange: dict[Exchange, list[Pair]] = {}
    for _, pairs in chosen.values():
        for exchange, pair in pairs.items():
            by_exchange.setdefault(exchange, []).append(pair)
    if not by_exchange:
        return {}
    asked = ExchangeFilter(exchanges=frozenset(by_exchange))
    for line in message_lines.of(tables(files, by_exchange), asked, message_lines.Reading(dialects)):
        for exchange, layer in exchanges_of(line):
            for pair in by_exchange.get(exchange, ()):
                pair.take(line, layer)
    return {
        name: [shown(pair, about(finding)) for pair in pairs.values()]
        for name, (finding, pairs) in chosen.items()
        if pairs
    }


def pairs_of(finding: Finding) -> dict[Exchange, Pair]:
    """Its first exchanges, each once."""
    found: dict[Exchange, Pair] = {}
    for side in finding.sides:
        exchange = exchange_of(side)
        if exchange is not None and len(found) < EXCHANGES:
            found.setdefault(exchange, Pair(side))
    return found


def exchange_of(side: Side) -> Exchange | None:
    """None of a side that is no message."""
    if side.correlation_id is None or not side.api or side.connection is None:
        return None
    return side.connection, side.api, side.correlation_id


def about(finding: Finding) -> frozenset[str]:
    return frozenset(filter(None, (finding.topic, *finding.topic_ids)))


def tables(files: Iterable[Path], by_exchange: Iterable[Exchange]) -> Iterator[pa.Table]:
    """The frames of these connections, and some others between the same ports; a file without frames is skipped."""
    ports = {end.port for connection, _, _ in by_exchange for end in Conversation.of(connection)}
    numbers = pa.array(sorted(ports), pa.int32())
    for file in files:
        try:
            table = frames_file.read(file)
            check_name(file.name, table)
        except NotFramesError:
            continue
        yield table.filter(pc.and_(pc.is_in(table["src_port"], numbers), pc.is_in(table["dst_port"], numbers)))


def shown(pair: Pair, words: frozenset[str]) -> Row:
    return {
        "time": rfc3339(pair.side.time_ns),
        **{name: getattr(pair.side, name) for name in ("connection", "api", "version", "correlation_id")},
        "client_id": next((one["client_id"] for one in pair.found.values() if one["client_id"]), None),
        **{side: text(pair.found[side], words) if side in pair.found else None for side in ("request", "response")},
    }


def text(line: Row, words: frozenset[str]) -> list[str]:
    """Lines of a message as `decode -V` prints it, with lists cut to elements that contain one of these words."""
    shortened = {**line, "body": excerpt(line["body"], words)} if "body" in line else line
    rows = [f"{line['time']}  {line['size']:,} bytes", *message_page.content(shortened, "")]
    return rows[:LINES] + ([f"... and {len(rows) - LINES} lines more"] if len(rows) > LINES else [])


def excerpt(value: Any, words: frozenset[str]) -> Any:
    """The same with lists of structs cut to the elements that carry one of these words."""
    if isinstance(value, dict):
        return {name: excerpt(inner, words) for name, inner in value.items()}
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    several = len(value) > ALIKE
    kept = [inner for inner in value if several and not words.isdisjoint(texts(inner))] or value[:ALIKE]
    left = len(value) - len(kept)
    return [excerpt(inner, words) for inner in kept] + ([{"(not shown)": f"{left:,} more"}] if left else [])
