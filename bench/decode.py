"""How fast bytes become columns on one core, beside kio 0.6.5 on the same bytes.

Knows two messages that make up most of a cluster's structured traffic: Fetch v13 requests (10 topics x 10 partitions)
and Metadata v12 responses (1000 topics x 12 partitions). We build every column; kio builds its entities.
Rule: both sides are warmed up, and every figure is the CPU time of the fastest round of one second.
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.columns import tables
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import decode
from wirecheck.decode.wire import REQUEST, RESPONSE, Messages, pack

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 1.0  # each side is measured at least that long
FETCH_BAR, METADATA_BAR = 5, 36


def fetch_request(seed: int) -> bytes:
    """Header v2, body v13: 10 topics x 10 partitions, incremental session."""
    ids = np.random.default_rng(seed).bytes(160)
    header = struct.pack(">hhih", 1, 13, seed, 10) + b"consumer-1" + b"\0"
    partition = b"".join(struct.pack(">iiqiqib", i, 7, 1000 * seed + i, -1, -1, 1 << 20, 0) for i in range(10))
    topics = b"".join(ids[16 * i : 16 * i + 16] + b"\x0b" + partition + b"\0" for i in range(10))
    return header + struct.pack(">iiiibii", -1, 500, 1, 52428800, 0, 77, seed) + b"\x0b" + topics + b"\x01\x01\0"


def metadata_response(seed: int) -> bytes:
    """Header v1, body v12: 3 brokers, 1000 topics x 12 partitions."""
    ids = np.random.default_rng(seed).bytes(16000)
    brokers = b"".join(
        struct.pack(">i", i) + b"\x09broker-%d" % i + struct.pack(">i", 9092) + b"\0\0" for i in range(3)
    )
    replicas = b"\x04" + struct.pack(">iii", 0, 1, 2)
    partitions = b"".join(struct.pack(">hiii", 0, i, i % 3, 5) + replicas * 2 + b"\x01\0" for i in range(12))
    topics = b"".join(
        struct.pack(">h", 0) + b"\x0btopic-%04d" % i + ids[16 * i : 16 * i + 16]
        + b"\0\x0d" + partitions + struct.pack(">i", -2147483648) + b"\0"
        for i in range(1000)
    )  # fmt: skip
    cluster = b"\x17" + b"abcdefghijklmnopqrstuv"
    body = struct.pack(">i", 0) + b"\x04" + brokers + cluster + struct.pack(">i", 1)
    return struct.pack(">i", seed) + b"\0" + body + b"\xe9\x07" + topics + b"\0"


def measure() -> list[dict]:
    fetches = [fetch_request(i) for i in range(2000)]
    metadatas = [metadata_response(i) for i in range(20)]
    rows = []
    for name, batch, side, unit, bar in (
        ("Fetch", fetches, REQUEST, "Fetch v13 requests/s", FETCH_BAR),
        ("Metadata", metadatas, RESPONSE, "Metadata v12 responses/s", METADATA_BAR),
    ):
        messages = whole(batch, side)
        ours = len(batch) / best(lambda messages=messages, name=name: to_columns(messages, name))
        theirs = kio_rate(name, batch)
        ratio = ours / theirs if theirs else None
        rows.append(
            {"name": f"decode {name} to columns", "value": ours, "unit": unit, "peer": "kio 0.6.5",
             "peer_value": theirs, "ratio": ratio, "bar": f">= {bar}x", "met": ratio >= bar if ratio else None}
        )  # fmt: skip
    return [*rows, field_rate(fetches)]


def whole(batch: list[bytes], side: int) -> Messages:
    count = len(batch)
    return pack(batch, [side] * count, [1 if side == REQUEST else 3] * count, [13 if side == REQUEST else 12] * count)


def to_columns(messages: Messages, api: str) -> int:
    """Every column of every table, texts and uuids gathered."""
    decoded = decode(messages)
    assert not decoded.status.any()
    cells = 0
    for table in tables(decoded, api, SIDES[messages.side[0]]).values():
        for name in table.names:
            cells += len(table[name])
    return cells


def field_rate(fetches: list[bytes]) -> dict:
    """The interpreter alone: fields on the wire per second."""
    messages = whole(fetches, REQUEST)
    found = tables(decode(messages), "Fetch", "request").values()
    fields = sum(int(table.present(name).sum()) for table in found for name in table.names)
    value = fields / best(lambda: decode(messages))
    return {"name": "interpreter", "value": value, "unit": "fields/s", "peer": None, "peer_value": None,
            "ratio": None, "bar": None, "met": None}  # fmt: skip


def kio_rate(api: str, batch: list[bytes]) -> float | None:
    """Messages per second, header and body, through kio's entity readers; None if kio is not installed."""
    try:
        from kio.serial import entity_reader
    except ImportError:
        return None
    if api == "Fetch":
        from kio.schema.fetch.v13.request import FetchRequest as Body
        from kio.schema.request_header.v2.header import RequestHeader as Header
    else:
        from kio.schema.metadata.v12.response import MetadataResponse as Body
        from kio.schema.response_header.v1.header import ResponseHeader as Header
    read_header, read_body = entity_reader(Header), entity_reader(Body)

    def read_all() -> None:
        for message in batch[:50]:
            _, consumed = read_header(message, 0)
            _, size = read_body(message, consumed)
            assert consumed + size == len(message)

    return min(50, len(batch)) / best(read_all)


def best(work: Callable[[], object]) -> float:
    """Seconds of CPU of the fastest round, after one to warm up."""
    work()
    rounds, begin = [], time.process_time()
    while len(rounds) < 3 or time.process_time() - begin < SECONDS:
        start = time.process_time()
        work()
        rounds.append(time.process_time() - start)
    return min(rounds)
