"""Traffic that means harm, or behaves as if: streams for following, as segments, at any length.

Knows: the attacks (random bytes, lengths nobody means, tiny segments, conflicting overlaps, floods of requests and of
connections, a peer that never acknowledges, jumps in sequence), and how an ordinary connection looks beside them.
Refuses to know: what a follower does about it. Same arguments, same bytes.
Rule: every attack is endless: a block of it can be asked for at any place, and it goes on where the last one stopped.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from wirecheck.decode.connection.segments import Segments

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
START_NS, STEP_NS = 1_700_000_000_000_000_000, 50_000
SERVER = ("10.9.0.1", 9092)


@dataclass
class Frames:
    """Rows of segments while they are put together: (client, from client, seq, ack, flags, payload)."""

    rows: list[tuple[int, bool, int, int, int, bytes]]

    def segments(self, ts_ns: int, step_ns: int = STEP_NS) -> Segments:
        clients = list(dict.fromkeys(row[0] for row in self.rows))
        index = {client: i + 1 for i, client in enumerate(clients)}
        ends = (SERVER, *((f"10.{c >> 40 & 63}.{c >> 32 & 255}.{c >> 16 & 255}", c & 0xFFFF) for c in clients))
        n, columns = len(self.rows), list(zip(*self.rows, strict=True))
        client = np.array([index[c] for c in columns[0]], np.int32)
        forth = np.array(columns[1], np.bool_)
        lengths = np.array([len(payload) for payload in columns[5]], np.int64)
        zeros = np.zeros(n, np.int32)
        numbers: list[Any] = [np.array(columns[i], np.int64) for i in (2, 3)]
        return Segments(
            "hostile", ("agent", "source"), ends, zeros, zeros + 1, np.arange(1, n + 1), ts_ns + step_ns * np.arange(n),
            np.where(forth, client, 0).astype(np.int32), np.where(forth, 0, client).astype(np.int32),
            numbers[0] & 0xFFFFFFFF, numbers[1] & 0xFFFFFFFF, np.array(columns[4], np.int32),
            np.where(np.array(columns[2], np.int64) & 3, 65535, 0).astype(np.int32), lengths,
            np.zeros(n, np.int64), np.zeros(n, np.bool_),
            np.frombuffer(b"".join(columns[5]), np.uint8), np.concatenate([[0], np.cumsum(lengths)]),
            np.zeros(n + 1, np.int64), *np.zeros((2, 0), np.int64),
        )  # fmt: skip


def request(key: int, version: int, correlation: int, body: bytes, client: bytes = b"client") -> bytes:
    head = struct.pack(">hhih", key, version, correlation & 0x7FFFFFFF, len(client)) + client + b"\0"
    return struct.pack(">i", len(head) + len(body)) + head + body


def response(correlation: int, body: bytes) -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation & 0x7FFFFFFF) + body


OPENING = request(18, 3, 0, b"\x05java\x013\0")


def opened(client: int) -> list[tuple[int, bool, int, int, int, bytes]]:
    """Handshake and first exchange; both sides' next sequence numbers are 1 + what was said."""
    first = response(0, bytes(20))
    return [
        (client, True, 0, 0, SYN, b""),
        (client, False, 0, 1, SYN | ACK, b""),
        (client, True, 1, 1, ACK | PSH, OPENING),
        (client, False, 1, 1 + len(OPENING), ACK | PSH, first),
    ]


ASKED, ANSWERED = 1 + len(OPENING), 1 + 28


def ordinary(client: int, block: int, count: int) -> list[tuple[int, bool, int, int, int, bytes]]:
    """Small exchanges of a connection that behaves, `count` of them."""
    rows = opened(client) if block == 0 else []
    ask, answer = request(3, 12, 0, bytes(30)), response(0, bytes(60))
    for number in range(block * count, (block + 1) * count):
        seq, ack = ASKED + number * len(ask), ANSWERED + number * len(answer)
        rows.append((client, True, seq, ack, ACK | PSH, request(3, 12, number + 1, bytes(30))))
        rows.append((client, False, ack, seq + len(ask), ACK | PSH, response(number + 1, bytes(60))))
    return rows


Block = "Callable[[int, int], list[tuple[int, bool, int, int, int, bytes]]]"


def _noise(seed: int, count: int) -> bytes:
    return np.random.default_rng(seed).bytes(count)


def random_bytes(block: int, count: int) -> list[Any]:
    noise = _noise(block, 1448 * count)
    rows = opened(1) if block == 0 else []
    at = ASKED + block * count * 1448
    return rows + [(1, True, at + i * 1448, ANSWERED, ACK, noise[i * 1448 : (i + 1) * 1448]) for i in range(count)]


def random_mid_stream(block: int, count: int) -> list[Any]:
    noise = _noise(block, 1448 * count)
    at = 1000 + block * count * 1448
    return [(2, i % 2 == 0, at + i * 1448, 0, ACK, noise[i * 1448 : (i + 1) * 1448]) for i in range(count)]


def fake_lengths(block: int, count: int) -> list[Any]:
    """Every connection says that 200 MB or 2 GB follow, and lets them follow for ever."""
    rows: list[Any] = []
    for number in range(8):
        client = 3 << 16 | number
        rows += opened(client) if block == 0 else []
        size = 200 << 20 if number % 2 else 0x7FFFFFFF
        head = struct.pack(">i", size) + request(1, 12, 1, b"")[4:]
        each = count // 8
        at = ASKED + block * each * 1448
        for i in range(each):
            body = head.ljust(1448, b"\0") if (block, i) == (0, 0) else bytes(1448)
            rows.append((client, True, at + i * 1448, ANSWERED, ACK, body))
    return rows


def tiny_segments(block: int, count: int) -> list[Any]:
    """One byte each, every other one not yet: nothing is ever in order."""
    rows = opened(4) if block == 0 else []
    at = ASKED + 1 + block * count * 2
    return rows + [(4, True, at + 2 * i, ANSWERED, ACK, b"\0") for i in range(count)]


def tiny_backwards(block: int, count: int) -> list[Any]:
    """One byte each, the last one first: each belongs before all that is held."""
    rows = opened(5) if block == 0 else []
    at = ASKED + 10 + (block + 1) * count * 2
    return rows + [(5, True, at - 2 * i, ANSWERED, ACK, b"\0") for i in range(count)]


def tiny_search(block: int, count: int) -> list[Any]:
    """One byte each of a stream whose boundaries nobody knows, with bytes that look like sizes and ids."""
    pattern = struct.pack(">ii", 4, 4)
    rows: list[Any] = []
    at = 1000 + block * count
    for i in range(count):
        rows.append((6, False, at + i, 0, ACK, pattern[(at + i) % 8 : (at + i) % 8 + 1]))
        if i % 16 == 0:
            asked = request(3, 12, 4, bytes(20))
            rows.append((6, True, 5000 + (block * count + i) // 16 * len(asked), 0, ACK, asked))
    return rows


def conflicts(block: int, count: int) -> list[Any]:
    """The same stretch again and again with other bytes, behind a hole that is never filled."""
    rows = opened(7) if block == 0 else []
    noise = _noise(block, 1448 * 4)
    return rows + [
        (7, True, ASKED + 1 + (i * 700) % 60_000, ANSWERED, ACK, noise[i % 1448 : i % 1448 + 1448])
        for i in range(count)
    ]


def pipelined(block: int, count: int) -> list[Any]:
    """Requests without end that nobody answers, 5000 in a segment; then answers that nobody asked for."""
    rows = opened(8) if block == 0 else []
    one = request(3, 12, 0, b"", b"c")
    each = 65_000 // len(one)
    ids = np.arange(block * count * each, (block + 1) * count * each)
    data = np.frombuffer(one * len(ids), np.uint8).reshape(len(ids), len(one)).copy()
    data[:, 8:12] = (ids % 0x7FFFFFFF).astype(">i4").view(np.uint8).reshape(-1, 4)
    sent, strays = data.reshape(count, -1), struct.pack(">ii", 4, 0x70000000) * 8000
    for i in range(count):
        at = ASKED + (block * count + i) * sent.shape[1]
        rows.append((8, True, at, ANSWERED, ACK, sent[i].tobytes()))
        rows.append((8, False, ANSWERED + (block * count + i) * len(strays), at, ACK, strays))
    return rows


def never_confirmed(block: int, count: int) -> list[Any]:
    """A new connection with every frame: SYN only, or noise in the middle."""
    noise = _noise(block, 1448)
    rows = []
    for i in range(count):
        client = 9 << 40 | (block * count + i) << 8
        rows.append((client, True, 0, 0, SYN, b"") if i % 2 else (client, True, 77, 5, ACK, noise))
    return rows


def never_acknowledged(block: int, count: int) -> list[Any]:
    """Holes that nobody acknowledges, and the sender goes on."""
    rows = opened(10) if block == 0 else []
    at = ASKED + block * count * 2000
    return rows + [(10, True, at + i * 2000, 0, PSH, bytes(1448)) for i in range(count)]


def sequence_jumps(block: int, count: int) -> list[Any]:
    rows = opened(11) if block == 0 else []
    dice = np.random.default_rng(block)
    return rows + [(11, True, int(seq), int(seq), ACK, bytes(1448)) for seq in dice.integers(0, 2**32, count)]


def half_message_each(block: int, count: int) -> list[Any]:
    """Connections that begin a request of 900 kB and leave it there."""
    rows: list[Any] = []
    for i in range(count // 50):
        client = 12 << 40 | (block * count + i) << 8
        rows += opened(client)
        head = struct.pack(">i", 900_000) + request(1, 12, 1, b"")[4:]
        for k in range(46):
            body = head.ljust(16_000, b"\0") if k == 0 else bytes(16_000)
            rows.append((client, True, ASKED + k * 16_000, ANSWERED, ACK, body))
    return rows


ATTACKS = {
    "random bytes": random_bytes,
    "random bytes, mid-stream": random_mid_stream,
    "lengths of 200 MB and 2 GB": fake_lengths,
    "one-byte segments with holes": tiny_segments,
    "one-byte segments, last first": tiny_backwards,
    "one-byte segments, no boundary": tiny_search,
    "conflicting overlaps": conflicts,
    "65 k pipelined requests": pipelined,
    "connections never confirmed": never_confirmed,
    "a peer that never acknowledges": never_acknowledged,
    "jumps in sequence": sequence_jumps,
    "900 kB begun on every connection": half_message_each,
}
