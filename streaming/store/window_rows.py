"""Traffic by the minute as rows of result tables, and read back as what `errors` and `latency` list.

Each cell of exchanges adds rows of its own: minutes and clients are divided between cells, and put together when the
tables are read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import starmap
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from wirecheck.decode.connection.exchanges import Exchanges
from wirecheck.decode.message import Decoded
from wirecheck.decode.peer import Peer
from wirecheck.questions.error_rows import CONNECT, REFUSED
from wirecheck.questions.traffic import Asked, Call, Calls, Count, Refused, Rejection, Traffic, Use
from wirecheck.questions.traffic_windows import MINUTE_NS, Minute, Windows, add_minute
from wirecheck.streaming.store.change_rows import know_clusters, ways_of
from wirecheck.streaming.store.group_tables import GROUPS, OFFSETS, group_rows, offset_rows
from wirecheck.streaming.store.result_folder import latest_run
from wirecheck.streaming.store.result_tables import BROKER_AT, table_of
from wirecheck.streaming.store.run_result import Result, last, names_of_ids, revisions

Row = dict[str, Any]
REQUESTS, ERRORS, USES = "requests_by_minute", "errors_by_minute", "uses_by_minute"
EVER = 0, 1 << 62
BUCKETS = {"latencies": "latencies", "broker_latencies": "in_broker", "network_latencies": "in_network"}
"""Columns, and what they are called where they are counted."""


def window_rows(exchanges: Exchanges, decoded: Decoded, *, of_others: bool = False) -> dict[str, pa.Table]:
    """The tables that have rows. `of_others`: of a cell's connections that have no rows of their own, which are not
    looked through for refused ones again.
    """
    windows = Windows()
    chunk = windows.count_cell(exchanges, decoded)
    rows: dict[str, list[Row]] = {REQUESTS: [], ERRORS: [], USES: []}
    for number, minute in sorted(windows.minutes().items()):
        rows[REQUESTS] += requests(minute, number)
        rows[ERRORS] += errors(minute, number)
        rows[USES] += uses(minute, number)
    if not of_others:
        rows[ERRORS] += starmap(refused, windows.refused_connections().items())
    if chunk is not None:
        rows |= {GROUPS: group_rows(chunk), OFFSETS: offset_rows(chunk, windows.topic_names)}
    part = "others|" if of_others else ""
    return {name: table_of(name, named(every, exchanges, part)) for name, every in rows.items() if every}


def named(rows: list[Row], exchanges: Exchanges, part: str) -> Iterator[Row]:
    """With their identity: that of the cell, by its first message, and their place in it."""
    begin_ns = int(exchanges.ts_ns.min()) if len(exchanges) else 0
    cell = f"{exchanges.connections[0].name}|{begin_ns}" if exchanges.connections else str(begin_ns)
    for place, row in enumerate(rows):
        yield {"id": f"{exchanges.label}|{part}{cell}|{place}", "revision": 1, "label": exchanges.label, **row}


def of_minute(number: int, key: Any, one: Count) -> Row:
    span = {"first_seen": one.first_ns, "last_seen": one.last_ns}
    return {"time": number * MINUTE_NS, "client_id": key.client_id, "host": key.host, "api": key.api, **span}


def requests(minute: Minute, number: int) -> Iterator[Row]:
    for call, calls in minute.calls.items():
        begun_ns = minute.whole_fetch_ns.get((call.client_id, call.host, call.server), 0) if call.api == "Fetch" else 0
        buckets = {column: pairs(getattr(calls, part)) for column, part in BUCKETS.items()}
        yield {
            **of_minute(number, call, calls),
            "server": call.server,
            "count": calls.count,
            "request_bytes": calls.request_bytes,
            "response_bytes": calls.response_bytes,
            "versions": sorted(calls.versions),
            "granted": calls.clean_ns or None,
            "fetch_begun": begun_ns or None,
            **buckets,
        }


def pairs(counts: Mapping[Any, int], name: str = "bucket") -> list[Row]:
    return [{name: one, "count": count} for one, count in sorted(counts.items())]


def errors(minute: Minute, number: int) -> Iterator[Row]:
    for failure, count in minute.failures:
        yield {
            **of_minute(number, failure, count),
            "topic": failure.topic,
            "error": failure.error,
            "follower": failure.replica,
            "count": count.count,
            "servers": pairs(count.servers, "server"),
            "throttle_time_ms": count.sum_ms,
            "throttle_time_max_ms": count.worst_ms,
        }


def refused(key: tuple[int, str, str], one: Count) -> Row:
    """Connections that a server refused."""
    minute, host, server = key
    times = {"time": minute * MINUTE_NS, "first_seen": one.first_ns, "last_seen": one.last_ns}
    where = {"client_id": None, "host": host, "api": CONNECT, "topic": "", "error": REFUSED, "follower": -1}
    return {**times, **where, "count": one.count, "servers": [{"server": server, "count": one.count}]}


def uses(minute: Minute, number: int) -> Iterator[Row]:
    fetched = dict(minute.fetched)
    for use, count in minute.uses.items():
        asked = Asked()
        if use.api == "Fetch" and use.replica < 0:
            asked = fetched.pop((use.client_id, use.host, use.topic), asked)
        yield use_row(number, use, count, asked)
    for (client_id, host, topic), asked in fetched.items():
        time_ns = max(asked.asked_ns, asked.forgotten_ns)
        yield use_row(number, Use(client_id, host, "Fetch", topic, -1), Count(0, time_ns, time_ns), asked)


def use_row(number: int, use: Use, count: Count, asked: Asked) -> Row:
    times = {"named": asked.asked_ns or None, "forgotten": asked.forgotten_ns or None}
    more = {"topic": use.topic, "follower": use.replica, "count": count.count}
    return {**of_minute(number, use, count), **more, "servers": pairs(count.servers, "server"), **times}


# --- and back


def traffic_in(
    out: Path, result: Result, span_ns: tuple[int, int] = EVER, counts: Callable[[str], bool] = lambda _: True
) -> Traffic:
    """What a folder of result tables keeps, of the minutes between two times and of the servers that count."""
    found, run = Traffic(), latest_run(out)
    since_ns, until_ns = span_ns
    ways = {(way.host, way.server) for way in ways_of(result)}
    found.brokers.update(
        {row["detail"]: row["count"] - 1 for row in result.totals()
         if row["measure"] == BROKER_AT and counts(row["detail"])}
    )  # fmt: skip
    know_clusters(found.brokers, result)
    found.software.update(software_of(result.rows["clients"]))

    def chosen(table: str) -> list[Row]:
        every = [row for row in last(revisions(out, table, run)) if since_ns - MINUTE_NS < row["time"] <= until_ns]
        topics = names_of_ids(result, {row["topic"] for row in every} if table != REQUESTS else ())
        for row in every if topics else ():
            row["topic"] = topics.get(row["topic"], row["topic"])
        return sorted(every, key=lambda row: (row["time"], row["first_seen"]))

    spans: dict[tuple[Any, ...], tuple[int, int]] = {}
    for row in chosen(REQUESTS):
        if counts(row["server"]):
            spans[*minute_of(row), row["server"]] = row["first_seen"], row["last_seen"]
            if (row["host"], row["server"]) not in ways:
                add_minute(found, of_requests(row))
    for row in chosen(USES):
        if (own := of_servers(row, counts, spans)) is not None:
            add_minute(found, of_uses(own))
    found.refused = {}
    for row in chosen(ERRORS):
        if (own := of_servers(row, counts, spans)) is None:
            continue
        servers = {one["server"]: one["count"] for one in own["servers"]}
        if own["error"] == REFUSED:
            add_refused(found.refused, own)
        elif not servers or any((own["host"], server) not in ways for server in servers):
            add_minute(found, of_errors(own, servers))
    know_connections(found, result.rows["coverage"])
    found.first_ns = min((calls.first_ns for calls in found.calls.values()), default=0)
    found.last_ns = max((calls.last_ns for calls in found.calls.values()), default=0)
    found.last_ns = max([found.last_ns, *(count.last_ns for count in found.failures.values())])
    return found


def software_of(clients: Iterable[Row]) -> dict[tuple[str | None, str], str]:
    """By client ID and address what they last said that they are."""
    found = {}
    for row in sorted(clients, key=itemgetter("last_seen")):
        software = " ".join(filter(None, (row["software_name"], row["software_version"])))
        if software:
            found[row["client_id"], row["address"]] = software
    return found


def minute_of(row: Row) -> tuple[Any, ...]:
    return row["time"], row["client_id"], row["host"], row["api"]


def of_servers(row: Row, counts: Callable[[str], bool], spans: Mapping[tuple[Any, ...], tuple[int, int]]) -> Row | None:
    """What of a row concerns servers that count: without others, and None if none does. Its times are within those of
    the requests to them. What names no server counts for all.
    """
    servers = row.get("servers") or []
    own = [one for one in servers if counts(one["server"])]
    if len(own) == len(servers):
        return row
    if not own:
        return None
    left = sum(one["count"] for one in servers) - sum(one["count"] for one in own)
    asked = [spans[key] for one in own if (key := (*minute_of(row), one["server"])) in spans]
    first_ns = max(row["first_seen"], min((first_ns for first_ns, _ in asked), default=0))
    last_ns = min(row["last_seen"], max((last_ns for _, last_ns in asked), default=row["last_seen"]))
    return {**row, "servers": own, "count": row["count"] - left, "first_seen": first_ns, "last_seen": last_ns}


def add_refused(refused: dict[tuple[str, str], Refused], row: Row) -> None:
    for one in row["servers"]:
        refused.setdefault((row["host"], one["server"]), Refused()).count.seen(*span(row))


def know_connections(traffic: Traffic, coverage: list[Row]) -> None:
    """How many connections there were where some were refused, and when one was answered."""
    refused = traffic.refused or {}
    for row in coverage if refused else ():
        if row["measure"] == "connections" and row["connection"] is not None:
            client, _, server = row["connection"].partition(">")
            if one := refused.get((Peer.of(client).host, server)):
                one.connections += row["count"]
    for one in refused.values():
        one.connections = max(one.connections, one.count.count)  # not all have rows of their own
    for call, calls in traffic.calls.items():
        if calls.latencies and (one := refused.get((call.host, call.server))):
            one.answered_ns = max(one.answered_ns, calls.last_ns)


def span(row: Row) -> tuple[int, int, int]:
    return row["count"], row["first_seen"], row["last_seen"]


def of_requests(row: Row) -> Minute:
    call = Call(row["client_id"], row["host"], row["server"], row["api"])
    calls = Calls(*span(row), request_bytes=row["request_bytes"], response_bytes=row["response_bytes"])
    for column, part in BUCKETS.items():
        getattr(calls, part).update({one["bucket"]: one["count"] for one in row[column] or ()})
    calls.versions.update(row["versions"])
    calls.clean_ns = row["granted"] or 0
    begun = {(call.client_id, call.host, call.server): row["fetch_begun"]} if row["fetch_begun"] else {}
    return Minute(calls={call: calls}, whole_fetch_ns=begun)


def of_uses(row: Row) -> Minute:
    use = Use(row["client_id"], row["host"], row["api"], row["topic"], row["follower"])
    asked = Asked(row["named"] or 0, row["forgotten"] or 0)
    reads = {(use.client_id, use.host, use.topic): asked} if asked.asked_ns or asked.forgotten_ns else {}
    return Minute(uses={use: Count(*span(row))} if row["count"] else {}, fetched=reads)


def of_errors(row: Row, servers: dict[str, int]) -> Minute:
    failure = Rejection(row["error"], row["client_id"], row["host"], row["api"], row["topic"], row["follower"])
    times = {"sum_ms": row["throttle_time_ms"] or 0, "worst_ms": row["throttle_time_max_ms"] or 0}
    return Minute(failures=[(failure, Count(*span(row), servers, **times))])
