"""Stateless, by cell: exchanges in, what they claim out.

One row in, one row out. If our code raises, the cell is halved until the exchange is alone that caused it: that one is
reported as an input error, and all others are claimed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirecheck.capture.frames import INPUT_ERROR
from wirecheck.decode.api_names import name_of
from wirecheck.decode.collector_pause import collector_paused
from wirecheck.decode.connection.exchanges import OUTCOMES, Connection, Exchanges, Gap
from wirecheck.decode.dialect import read_exchanges
from wirecheck.decode.message import Decoded, Messages, Status
from wirecheck.decode.peer import Peer
from wirecheck.judge.agents import MARKS
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.claim import Claim, Sighting, merged, pack, unpack
from wirecheck.judge.claims.extract import unlisted
from wirecheck.judge.claims.extract.extraction import claims
from wirecheck.judge.ledger.failures import described as error_of
from wirecheck.streaming.steps.cells import from_cell, to_cell
from wirecheck.streaming.steps.request_counts import Counts, request_counts
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import CLAIMS, EXCHANGES, Tagged
from wirecheck.streaming.store.change_rows import change_rows
from wirecheck.streaming.store.result_tables import CLAIMS_WITHOUT_TEXT, as_ipc, schema
from wirecheck.streaming.store.window_rows import window_rows

Tables = dict[str, pa.Table]
"""Rows of result tables that are made here: `changes`, and `exchanges` where they are wanted."""
Part = tuple[list[Claim], Tables, Counts]
DECODING = "decoding"
"""The name in place of an agent's in the mark of an exchange that was set aside."""


@dataclass(frozen=True)
class Stated:
    """What exchanges come down to."""

    claims: list[Claim]
    rows: dict[str, bytes] = field(default_factory=dict)
    """Rows of result tables, by table."""
    requests: Counts = field(default_factory=Counts)
    """What requests add to the totals."""


@dataclass(frozen=True)
class Claimed:
    """The same in a cell, with its claims as bytes."""

    claims: bytes
    rows: dict[str, bytes] = field(default_factory=dict)
    requests: Counts = field(default_factory=Counts)

    @classmethod
    def of(cls, stated: Stated) -> "Claimed":
        return cls(pack(stated.claims), stated.rows, stated.requests)

    def stated(self) -> Stated:
        return Stated(unpack(self.claims), self.rows, self.requests)


def decode_row(row: Tagged, settings: Settings) -> Tagged:
    """Exchanges become claims; every other route passes."""
    if row.route != EXCHANGES:
        return row
    exchanges: Exchanges = from_cell(row.cell, Exchanges, Messages, Connection, Gap, Peer)
    return row._replace(route=CLAIMS, cell=to_cell(Claimed.of(stated_by(exchanges, settings))))


@collector_paused()
def stated_by(exchanges: Exchanges, settings: Settings) -> Stated:
    """What exchanges come down to."""
    exchanges = replace(exchanges, messages=exchanges.messages.in_place())
    listed, others = unlisted.apart(exchanges) if unlisted.is_unlisted(exchanges).any() else (exchanges, None)
    parts = [*stated(listed, settings), *([counted(others, settings)] if others is not None else [])]
    claims_made = parts[0][0] if len(parts) == 1 else merged(claim for part, *_ in parts for claim in part)
    names = {name for _, tables, _ in parts for name in tables}
    rows = {
        name: as_ipc(pa.concat_tables([tables[name] for _, tables, _ in parts if name in tables])) for name in names
    }
    requests = sum((part for *_, part in parts), Counts())
    return Stated(claims_made, rows, requests)


def stated(exchanges: Exchanges, settings: Settings) -> Iterator[Part]:
    """What exchanges claim, and their rows if they are wanted: in one part, unless one of them raises."""
    try:
        decoded = read_exchanges(exchanges, settings.dialects)
        batch = Batch(exchanges, decoded, dialects=settings.dialects)
        claims_made = claims(exchanges, decoded, batch)
        changes, not_kept = change_rows(exchanges, settings.dialects, principals=bool(settings.judge.principals))
        tables = exchanges_table(exchanges, decoded, settings) | changes
        tables |= window_rows(exchanges, decoded) if settings.by_minute else {}
        lacking = Counts({(CLAIMS_WITHOUT_TEXT, kind): number for kind, number in batch.sightings.lacking.items()})
        yield claims_made, tables, request_counts(batch) + not_kept + lacking
    except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
        if len(exchanges) < 2:
            yield [set_aside(exchanges, error)], {}, Counts()
            return
        for half in halves(exchanges):
            yield from stated(half, settings)


def halves(exchanges: Exchanges) -> list[Exchanges]:
    """Of two or more exchanges: what needs each other stays together until it alone is left."""
    units = exchanges.units()
    parts = units if len(units) > 1 else [np.array([number]) for number in range(len(exchanges))]
    middle = len(parts) // 2
    return exchanges.divided([np.sort(np.concatenate(half)) for half in (parts[:middle], parts[middle:])])


def counted(exchanges: Exchanges, settings: Settings) -> Part:
    """What is counted of connections that have no rows of their own."""
    try:
        decoded = read_exchanges(exchanges, settings.dialects)
        tables = exchanges_table(exchanges, decoded, settings)
        tables |= window_rows(exchanges, decoded, of_others=True) if settings.by_minute else {}
        return [*unlisted.claims(exchanges, decoded)], tables, Counts()
    except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
        return [set_aside(exchanges, error)], {}, Counts()


def set_aside(exchanges: Exchanges, error: Exception) -> Claim:
    """The exchange that raised, as the mark that names it: what it was, between whom, and what was raised where."""
    named = error_of(error)
    if not len(exchanges.messages):
        seen = Sighting(max((c.last_ns for c in exchanges.connections), default=0), "", "", -1, -1, "", 0, 0)
        return mark("", named, seen)
    connection = exchanges.connections[int(exchanges.connection[0])]
    messages = exchanges.messages
    api, version = name_of(int(messages.key[0])), int(messages.version[0])
    frames_of = int(exchanges.frame_first[0]), int(exchanges.frame_last[0])
    source = exchanges.names[int(exchanges.source[0])]
    exchange = (connection.name, api, version, int(messages.correlation_id[0]), source, *frames_of)
    why = f"{api} v{version} of {connection.client.host} to {connection.server} could not be judged: {named}"
    return mark(source, why, Sighting(int(exchanges.ts_ns[0]), *exchange))


def mark(source: str, why: str, seen: Sighting) -> Claim:
    return Claim("mark", (DECODING, MARKS[INPUT_ERROR], source or None, why), seen, tally={"count": 1})


Ints = NDArray[np.integer[Any]]


def exchanges_table(exchanges: Exchanges, decoded: Decoded, settings: Settings) -> Tables:
    return {"exchanges": exchange_rows(exchanges, decoded)} if settings.exchanges else {}


def exchange_rows(exchanges: Exchanges, decoded: Decoded) -> pa.Table:
    messages, request, response = exchanges.messages, exchanges.request, exchanges.response
    one = np.where(request >= 0, request, response)
    both = (request >= 0) & (response >= 0)
    latency_ns = exchanges.ts_ns[response] - exchanges.ts_last_ns[request]
    columns = {
        "label": pa.repeat(exchanges.label, len(exchanges)),
        "connection": chosen((connection.name for connection in exchanges.connections), exchanges.connection[one]),
        "time": exchanges.ts_ns[one] // 1000,
        "api": named(name_of, messages.key[one]),
        "version": messages.version[one],
        "correlation_id": messages.correlation_id[one],
        "outcome": chosen(OUTCOMES, exchanges.outcome),
        "request_bytes": where(request >= 0, messages.size[request]),
        "response_bytes": where(response >= 0, messages.size[response]),
        "latency_us": where(both, latency_ns // 1000),
        "request_status": named(status_name, decoded.status[request], request >= 0),
        "response_status": named(status_name, decoded.status[response], response >= 0),
    }
    kinds = schema("exchanges")
    return pa.table([as_kind(columns[name], kinds.field(name).type) for name in kinds.names], schema=kinds)


def as_kind(column: pa.Array | Ints, kind: pa.DataType) -> pa.Array:
    return (column if isinstance(column, pa.Array) else pa.array(column)).cast(kind)


def where(seen: NDArray[np.bool_], values: Ints) -> pa.Array:
    return pa.array(values, mask=~seen)


def chosen(words: Iterable[str], numbers: Ints, seen: NDArray[np.bool_] | None = None) -> pa.Array:
    return pc.take(pa.array(words, pa.string()), pa.array(numbers, mask=None if seen is None else ~seen))


def named(name: Callable[[int], str], values: Ints, seen: NDArray[np.bool_] | None = None) -> pa.Array:
    different, index = np.unique(values, return_inverse=True)
    return chosen(map(name, different.tolist()), index, seen)


def status_name(status: int) -> str:
    return Status(status).name.lower()
