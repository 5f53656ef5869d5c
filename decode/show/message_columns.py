"""Messages as columns: a row for each request and response, for programs that count rather than read.

    for table in of(tables, Filter(apis=("Fetch",))): print(table.num_rows)      # each with the schema SCHEMA

The messages, their order and their values are those of the lines of message_lines.py. Columns are filled many messages
at once; a value is built for one message only where a filter needs it (a topic may be anywhere in a body).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirecheck.decode.api_names import names as api_names
from wirecheck.decode.columns import kinds
from wirecheck.decode.columns import tables as tables_of
from wirecheck.decode.kafka_error import KafkaError
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import Status
from wirecheck.decode.show.message_filter import wrong
from wirecheck.decode.show.message_head import Heads, clients_of_messages
from wirecheck.decode.show.message_lines import WAIT_NS, Details, Noticed, Reading, batches, forwarded_for, verdict
from wirecheck.decode.show.message_summary import FEW, columns, first_errors, first_topics, rank_of
from wirecheck.decode.wire import REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from wirecheck.decode.columns import Table
    from wirecheck.decode.message import Decoded
    from wirecheck.decode.show.message_filter import Filter
    from wirecheck.decode.show.message_lines import DecodedBatch, Line
    from wirecheck.decode.show.message_summary import Columns
    from wirecheck.decode.wire import Ints

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", "UTC")),
        ("src", pa.string()),
        ("dst", pa.string()),
        ("side", pa.string()),
        ("api", pa.string()),
        ("key", pa.int16()),
        ("version", pa.int16()),
        ("correlation_id", pa.int32()),
        ("client_id", pa.string()),
        ("size", pa.int64()),
        ("topics", pa.list_(pa.string())),
        ("errors", pa.list_(pa.string())),
        ("latency_ms", pa.float64()),
        ("undecoded", pa.string()),
        ("malformed", pa.string()),
        ("source", pa.string()),
        ("frame_first", pa.int64()),
        ("frame_last", pa.int64()),
    ]
)
MOST_WAITING = 1 << 18
"""Rows that wait for earlier ones, at some 200 bytes each."""
NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NO_ROWS = np.zeros(0, np.int64)


def of(tables: Iterable[pa.Table], selected: Filter, reading: Reading) -> Iterator[pa.Table]:
    """Messages of frames tables in order of time, but for those that become known after WAIT_NS."""
    waiting, times = SCHEMA.empty_table(), np.zeros(0, np.int64)
    newest_ns = 0
    noticed = Noticed()
    for batch in batches(tables, selected, reading, noticed):
        ts_ns = batch.exchanges.ts_ns
        if not len(ts_ns):
            continue
        rows = rows_of(batch, selected, reading, noticed)
        times = np.concatenate([times, ts_ns[rows]])
        order = np.argsort(times, kind="stable")
        times = times[order]
        waiting = pa.concat_tables([waiting, table_of(batch, rows)]).take(order)
        newest_ns = max(newest_ns, int(ts_ns.max()))
        due = max(int(np.searchsorted(times, newest_ns - WAIT_NS)), len(times) - MOST_WAITING)
        if due > 0:
            yield waiting.slice(0, due)
            waiting, times = waiting.slice(due), times[due:]
    if len(times):
        yield waiting


def rows_of(batch: DecodedBatch, selected: Filter, reading: Reading, noticed: Noticed) -> Ints:
    """The messages that pass."""
    inside = batch.enveloped(reading)
    rows = np.array(selected.rows(batch.exchanges, inside), np.int64)
    if selected.client is not None:
        codes, texts = clients_of_messages(batch.exchanges)
        named = np.array([selected.names(text, None) for text in [*texts, None]], np.bool_)[codes]
        for i, carried in inside.items():
            named[i] |= selected.names(None, carried)
        rows = rows[named[rows]]
    if selected.topic is not None or selected.frames:
        return np.array([*kept(batch, rows, inside, selected, noticed)], np.int64)
    if selected.error:
        failed = batch.decoded.malformed.copy()
        for there, where in kinds_of(batch.decoded):
            failed[first_errors(there, where)[0]] = True
        for i, carried in inside.items():
            failed[i] |= wrong(carried)
        rows = rows[failed[rows]]
    return rows


def kept(batch: DecodedBatch, rows: Ints, inside: dict[int, Line], selected: Filter, noticed: Noticed) -> Iterator[int]:
    """Those that pass by their values, which are built for it."""
    head = Heads(batch.exchanges)
    details_of = Details(batch.decoded, Reading(summary=True), batch.topic_names)
    for i in rows.tolist():
        found = head(i, None) | details_of(i)
        if i in inside:
            found["enveloped"] = inside[i] | forwarded_for(found.get("body", {}))
        if selected.keeps(found, batch.names.texts, noticed.frames):
            yield i


def kinds_of(decoded: Decoded) -> Iterator[tuple[dict[str, Table], Columns]]:
    """Of each kind of message that was decoded, its tables and where topics and errors are in them."""
    for key, side in kinds(decoded):
        yield tables_of(decoded, key, SIDES[side]), columns(key, side)


def table_of(batch: DecodedBatch, rows: Ints) -> pa.Table:
    """One row for each of these messages."""
    exchanges, messages = batch.exchanges, batch.exchanges.messages
    clients, client_texts = clients_of_messages(batch.exchanges)
    ends = [str(each) for c in exchanges.connections for each in (c.client, c.server)]
    from_server = (messages.side[rows] != REQUEST).astype(np.int64)
    src = 2 * exchanges.connection[rows] + from_server
    keys, api = np.unique(messages.key[rows], return_inverse=True)
    asked = batch.answered[rows]
    latency = (exchanges.ts_ns[rows] - exchanges.ts_ns[asked]) / NS_PER_MS
    topics, errors = lists_of(batch)
    undecoded, malformed = reasons(batch, rows)
    found = [
        pa.array(exchanges.ts_ns[rows] // NS_PER_US, pa.timestamp("us", "UTC")),
        taken(ends, src),
        taken(ends, src ^ 1),
        taken(SIDES, messages.side[rows]),
        taken([api_names().get(key) for key in keys.tolist()], api),
        pa.array(messages.key[rows], mask=messages.key[rows] < 0),
        pa.array(messages.version[rows], mask=messages.version[rows] < 0),
        pa.array(messages.correlation_id[rows]),
        taken(client_texts, clients[rows]),
        pa.array(messages.size[rows]),
        topics.take(pa.array(rows)),
        errors.take(pa.array(rows)),
        pa.array(latency, mask=asked < 0),
        undecoded,
        malformed,
        taken(exchanges.names, exchanges.source[rows]),
        pa.array(exchanges.frame_first[rows]),
        pa.array(exchanges.frame_last[rows]),
    ]
    return pa.Table.from_arrays(found, schema=SCHEMA)


def taken(texts: Sequence[str | None], codes: NDArray[Any]) -> pa.Array:
    """The text of each number; null below zero."""
    there = pa.array(codes, mask=codes < 0) if len(codes) else pa.array([], pa.int64())
    return pa.array(texts, pa.string()).take(there)


def lists_of(batch: DecodedBatch) -> tuple[pa.ListArray, pa.ListArray]:
    """By message its first topics, and the names of its errors."""
    topics, topic_texts, errors, codes = [NO_ROWS], [pa.array([], pa.string())], [NO_ROWS], [NO_ROWS]
    for there, where in kinds_of(batch.decoded):
        message, code, texts = first_topics(there, where, batch.topic_names)
        few = rank_of(message) < FEW
        topics.append(message[few])
        topic_texts.append(taken(texts, code[few]))
        message, code = first_errors(there, where)
        errors.append(message)
        codes.append(code)
    every = np.concatenate(codes)
    unique, at = np.unique(every, return_inverse=True)
    count = len(batch.exchanges.messages)
    return (
        listed(count, np.concatenate(topics), pa.concat_arrays(topic_texts)),
        listed(count, np.concatenate(errors), taken([KafkaError(code).name for code in unique.tolist()], at)),
    )


def listed(count: int, message: Ints, values: pa.Array) -> pa.ListArray:
    """By message its values, in the order given."""
    order = np.argsort(message, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(message, minlength=count))])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.take(pa.array(order)))


def reasons(batch: DecodedBatch, rows: Ints) -> tuple[pa.Array, pa.Array]:
    """Why messages were not decoded, and why they are malformed; null for all others."""
    failed = np.flatnonzero((batch.decoded.status[rows] != Status.OK) | batch.decoded.malformed[rows])
    place = np.full(len(rows), -1, np.int64)
    place[failed] = np.arange(len(failed))
    found = [verdict(batch.decoded, row, contents=False, body=False) for row in rows[failed].tolist()]
    undecoded, malformed = (taken([one.get(name) for one in found], place) for name in ("undecoded", "malformed"))
    return undecoded, malformed
