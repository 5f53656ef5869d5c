"""Kafka conversations for following: bytes by struct, frames by tests.traffic, and exchanges as plain values.

Knows: how a request and a response look, and how to compare what a follower gives, with or without packet numbers.
Refuses to know: anything inside the follower.
"""

import struct
from dataclasses import replace

import numpy as np

from tests.traffic import Segment, Talk
from wirecheck.decode.connection.exchanges import OUTCOMES, Exchanges
from wirecheck.decode.connection.follower import Follower, Limits
from wirecheck.decode.connection.segments import Segments

USUAL = Limits()
PRODUCE, FETCH, METADATA, HANDSHAKE, API_VERSIONS, AUTHENTICATE = 0, 1, 3, 17, 18, 36
FLEXIBLE_FROM = {PRODUCE: 9, FETCH: 12, METADATA: 9, API_VERSIONS: 3, AUTHENTICATE: 2}


def sized(message: bytes) -> bytes:
    return struct.pack(">i", len(message)) + message


def request(key: int, version: int, correlation_id: int, body: bytes = b"", client: str | None = "client-1") -> bytes:
    text = b"\xff\xff" if client is None else struct.pack(">h", len(client)) + client.encode()
    tags = b"\0" if version >= FLEXIBLE_FROM.get(key, 99) else b""
    return sized(struct.pack(">hhi", key, version, correlation_id) + text + tags + body)


def response(correlation_id: int, body: bytes = b"") -> bytes:
    return sized(struct.pack(">i", correlation_id) + body)


def produce(correlation_id: int, acks: int = -1, size: int = 40, version: int = 9) -> bytes:
    body = struct.pack(">hi", acks, 30_000) + (b"\x02\x02t" if version >= 9 else b"\0\0\0\1\0\1t") + bytes(size)
    transaction = b"" if version < 3 else (b"\0" if version >= 9 else b"\xff\xff")
    return request(PRODUCE, version, correlation_id, transaction + body)


def segments(frames: list[Segment], agent: str = "a", left_out=None, numbers=None, run=0) -> Segments:
    """`left_out`: frame index -> [(offset, length)] of its payload."""
    left_out = left_out or {}
    kept = [_without(frame.payload, left_out.get(i, ())) for i, frame in enumerate(frames)]
    ends = list(dict.fromkeys(end for frame in frames for end in (frame.src, frame.dst)))
    spans = [left_out.get(i, ()) for i in range(len(frames))]
    flat = [span for group in spans for span in group]
    n = len(frames)
    return Segments(
        "test", (agent, "capture"), tuple(ends), np.zeros(n, np.int32), np.ones(n, np.int32),
        np.array(numbers or range(1, n + 1), np.int64), np.array([frame.ts_ns for frame in frames], np.int64),
        np.array([ends.index(frame.src) for frame in frames], np.int32),
        np.array([ends.index(frame.dst) for frame in frames], np.int32),
        np.array([frame.seq for frame in frames], np.int64), np.array([frame.ack for frame in frames], np.int64),
        np.array([frame.flags for frame in frames], np.int32),
        np.array([frame.window for frame in frames], np.int32), np.array([len(f.payload) for f in frames], np.int64),
        np.zeros(n, np.int64), np.full(n, run),
        np.frombuffer(b"".join(kept), np.uint8), _offsets(map(len, kept)), _offsets(map(len, spans)),
        *(np.array([span[i] for span in flat], np.int64) for i in range(2)),
    )  # fmt: skip


def _without(payload: bytes, spans) -> bytes:
    gone = {place for offset, length, *_ in spans for place in range(offset, offset + length)}
    return bytes(byte for place, byte in enumerate(payload) if place not in gone) if gone else payload


def _offsets(lengths) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(list(lengths), np.int64))])


def message(exchanges: Exchanges, row: int, *, packets: bool = True):
    if row < 0:
        return None
    m = exchanges.messages
    spans = slice(m.span_at[row], m.span_at[row + 1])
    said = (
        int(m.side[row]), int(m.key[row]), int(m.version[row]), int(m.correlation_id[row]), int(m.size[row]),
        m.data[m.at[row] : m.at[row + 1]].tobytes(),
        tuple(zip(m.span_offset[spans].tolist(), m.span_length[spans].tolist(), strict=True)),
        exchanges.connections[exchanges.connection[row]].name,
    )  # fmt: skip
    columns = ("ts_ns", "ts_last_ns", "frame_first", "frame_last", "stream_offset", "gap_bytes")
    return (*said, *(int(getattr(exchanges, name)[row]) for name in columns)) if packets else said


def exchange_rows(results: list[Exchanges], *, packets: bool = True) -> list[tuple]:
    """Every exchange as values, by correlation id."""
    rows = [
        (
            OUTCOMES[e.outcome[i]], bool(e.out_of_order[i]),
            message(e, e.request[i], packets=packets), message(e, e.response[i], packets=packets),
        )
        for e in results
        for i in range(len(e))
    ]  # fmt: skip
    return sorted(rows, key=lambda row: ((row[2] or row[3])[3], repr(row)))


def facts(results: list[Exchanges]) -> dict:
    """The last facts about every connection."""
    return {(c.name, c.started_ns): c for e in results for c in e.connections}


def answered(results: list[Exchanges]) -> list[int]:
    return [row[2][3] for row in exchange_rows(results) if row[0] == "answered"]


def moved(talk: Talk, number: int) -> Talk:
    """The same talk from another client."""
    return replace(talk, client=(f"10.0.0.{number + 2}", 40000 + number))


def together(rows: list[tuple[str, Segment]], left_out=None) -> Segments:
    """One call's frames of several agents, each with the agent that shows it."""
    agents = list(dict.fromkeys(agent for agent, _ in rows))
    made = segments([frame for _, frame in rows], left_out=left_out)
    shown_by = np.array([agents.index(agent) for agent, _ in rows], np.int32)
    source = np.full(len(rows), len(agents), np.int32)
    return replace(made, names=(*agents, "capture"), agent=shown_by, source=source)


def opened(**options) -> Talk:
    """A connection whose ApiVersions was asked and answered."""
    return Talk(**options).open().request(request(API_VERSIONS, 3, 0)).response(response(0))


def follow(frames: list[Segment], limits: Limits = USUAL, left_out=None) -> list:
    """Results of one call with all frames, and of the end."""
    follower = Follower(limits)
    return [follower.receive(segments(frames, left_out=left_out)), follower.drain()]


def stepwise(frames: list[Segment], limits: Limits = USUAL) -> list:
    """The same, one frame a call."""
    follower = Follower(limits)
    return [*(follower.receive(segments([frame])) for frame in frames), follower.drain()]


def only(results):
    """The facts of the one connection there is."""
    (connection,) = facts(results).values()
    return connection
