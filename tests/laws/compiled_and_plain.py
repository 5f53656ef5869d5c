"""What compiled code and its plain source must both say: `python -m tests.laws.compiled_and_plain` prints it.

A case gives one result for each of its inputs, in an order that never changes. Results are compared by their text, so
numbers of numpy are turned into Python's. Seeds are fixed: two processes bend the same bytes.
"""

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

from tests.decode.connection.conversations import API_VERSIONS, produce, request, response, segments
from tests.traffic import Talk
from wirecheck.capture.tls.cipher_suites import TLS_1_3
from wirecheck.capture.tls.record_keys import Tls13Key
from wirecheck.capture.tls.records import PlainPieces, RecordStream
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.errors import DecodeError
from wirecheck.decode.holes import laid_out
from wirecheck.decode.log.checksum import crc32c
from wirecheck.decode.log.metadata_log import field_entries, frames
from wirecheck.decode.log.records import read_batches
from wirecheck.decode.log.secrets import LogSecrets

GOLDEN = Path(__file__).parents[1] / "decode/golden"


def golden(name: str) -> list[bytes]:
    with gzip.open(GOLDEN / name, "rt") as lines:
        return [bytes.fromhex(json.loads(line)["hex"]) for line in lines]


def bent(data: bytes, chance: random.Random) -> bytes:
    """With one to four bytes changed, or a stretch of them doubled or left out."""
    out = bytearray(data or b"\0")
    for _ in range(chance.randint(1, 4)):
        out[chance.randrange(len(out))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    begin, length = chance.randrange(len(out)), chance.randint(0, 9)
    match chance.randrange(4):
        case 0:
            del out[begin : begin + length]
        case 1:
            out[begin:begin] = out[begin : begin + length]
    return bytes(out)


def with_holes(data: bytes, chance: random.Random) -> tuple[bytes, list[tuple[int, int]]]:
    """Without up to three spans (offset, length), and those."""
    kept, spans, at = b"", [], 0
    for _ in range(chance.randint(1, 3)):
        begin = min(at + chance.randint(0, len(data) // 2), len(data))
        length = min(chance.randint(1, 30), len(data) - begin)
        kept, at = kept + data[at:begin], begin + length
        spans += [(begin, length)] if length else []
    return kept + data[at:], spans


def checksums() -> Iterator[Any]:
    data = random.Random(1).randbytes(3_000)
    for begin in range(17):
        for end in (begin, begin + 1, begin + 7, begin + 8, begin + 9, begin + 100, 3_000):
            yield crc32c(data[begin:end])


def fields() -> Iterator[tuple[bytes, list[tuple[int, int]]]]:
    """Records fields as they are, bent, and with holes."""
    chance = random.Random(2)
    for data in golden("record-batches.jsonl.gz"):
        yield data, []
        for _ in range(4):
            some = bent(data, chance)
            yield some, []
            yield with_holes(some, chance)


def read(data: bytes, left_out: list[tuple[int, int]]) -> list[Any]:
    """The records of every batch, the frames in them, and why one is refused."""
    out: list[Any] = []
    for batch in read_batches(laid_out(data, left_out)).batches:
        if batch.magic < 2:
            continue
        try:
            records = batch.records(1 << 20)
            rows = (records.table.tolist(), records.unseen)
            out.append([*rows, *(frames(records, control=control).tolist() for control in (False, True))])
        except DecodeError as error:
            out.append((type(error).__name__, error.at))
    return out


def records() -> Iterator[Any]:
    for data, left_out in fields():
        yield read(data, left_out)


def log_entries() -> Iterator[Any]:
    for data, left_out in fields():
        found = field_entries(laid_out(data, left_out))
        yield found.offset.tolist(), found.messages.key.tolist(), found.refused, found.unseen


def secrets() -> Iterator[Any]:
    for data, _ in fields():
        walk, half = LogSecrets(), len(data) // 2
        yield walk.feed(data[:half]), walk.feed(data[half:]), walk.carried


def followed() -> Iterator[Any]:
    """Exchanges and facts of talks that lost, moved and repeated frames, in calls of any length, stored between."""
    chance = random.Random(3)
    for number in range(30):
        talk = Talk(mss=chance.choice((7, 100, 1448))).open()
        talk.request(request(API_VERSIONS, 3, 0)).response(response(0, bytes(20)))
        for asked in range(1, chance.randint(2, 30)):
            talk.request(produce(asked, size=chance.randint(0, 900))).response(response(asked, bytes(asked)))
        frames = talk.close().segments[chance.choice((0, 0, 9)) :]
        for _ in range(chance.randint(0, 12)):
            frame = frames.pop(chance.randrange(len(frames)))
            if chance.random() < 0.7:
                frames.insert(min(chance.randrange(len(frames) + 1), len(frames)), frame)
        follower, at = Follower(early=number % 4 == 0), 0
        while at < len(frames):
            end = at + chance.randint(1, len(frames))
            found = follower.receive(segments(frames[at:end]))
            yield found.messages.data.tolist(), found.stream_offset.tolist(), found.outcome.tolist(), found.connections
            follower, at = Follower.restore(follower.snapshot()), end
        found = follower.drain()
        yield found.messages.data.tolist(), found.outcome.tolist(), found.connections


def sealed(key: Tls13Key, number: int, content: bytes) -> bytes:
    """A record as RFC 8446 5.2 has it."""
    inner = content + b"\x17"
    header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
    nonce = (key._iv ^ number).to_bytes(12, "big")
    return header + key._aead.encrypt(nonce, inner, header)


def tls_records() -> Iterator[Any]:
    """Where plain bytes stand, of records bent, cut and lost."""
    chance = random.Random(4)
    for _ in range(75):
        key = Tls13Key(TLS_1_3[0x1301], bytes(32))
        data = b"".join(sealed(key, n, chance.randbytes(chance.randint(0, 300))) for n in range(chance.randint(2, 15)))
        data = bent(data, chance) if chance.random() < 0.5 else data
        stream, at = RecordStream(0), 0
        stream.use([key])
        while at < len(data):
            end = min(at + chance.randint(1, 400), len(data))
            stream.feed(at, end, None if chance.random() < 0.1 else data[at:end])
            stream.run()
            yield stream.space.decided, stream.opened, stream.failed
            at = end
        stream.give_up(at)
        pieces = PlainPieces()
        stream.space.collect(0, at, pieces)
        yield [*pieces.place], [*pieces.size], pieces.data, [stream.space.place(i) for i in range(0, at, 7)]


CASES: dict[str, Callable[[], Iterator[Any]]] = {
    "checksums": checksums,
    "records": records,
    "log_entries": log_entries,
    "secrets": secrets,
    "followed": followed,
    "tls_records": tls_records,
}

if __name__ == "__main__":
    for name, case in CASES.items():
        for number, result in enumerate(case()):
            print(name, number, f"{crc32(repr(result).encode()):08x}")
