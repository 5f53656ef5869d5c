"""Inside TLS: how fast records are opened and rows become plain, beside tshark with the same keys.

Knows: one connection each, TLS 1.3 with AES-GCM made by OpenSSL (Python's ssl): a consumer's fetches of 256 KiB, whose
answers are records of 16 KiB in MTU-sized segments, and heartbeats, a record and a segment each way.
The records alone, then whole rows in batches as a live agent and a replay feed them.
Refuses to know: capture, trimming and judging, which come before and behind (capture.py, replay.py).
Rule: processor time of one process, the best of three. Bars are of records, and of rows in a replay's batches.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests import traffic
from tests.build import plain
from tests.tls_traffic import TlsTalk, certificate
from wirecheck.capture.source.rows import BATCH_BYTES
from wirecheck.capture.tls.cipher_suites import TLS_1_3
from wirecheck.capture.tls.record_keys import Tls13Key, expand_label
from wirecheck.capture.tls.record_stream import RecordStream

FETCHED_BYTES, FETCHES, HEARTBEATS = 1 << 18, 80, 5_000
RECORD_BYTES = 1 << 14
LARGE_RECORDS, SMALL_RECORDS, SMALL_BYTES = 3_000, 30_000, 100
FED = {"64 KiB": 1 << 16, "1 MiB": 1 << 20}
RATE_BAR = 300  # MB/s
RECORD_BAR = 15  # us
BATCHES = {"64 KB": 1 << 16, "1 MB": 1 << 20, "24 MB": BATCH_BYTES}
_RUN = """
import json, sys, time
from pathlib import Path
import pyarrow as pa
from wirecheck.capture import frames
from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.capture.tls.decryption import Decryption
from wirecheck.capture.tls.key_log import KeyLog, Secrets
path, keys, batch_bytes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
tables = list(read_frames([path], batch_bytes=batch_bytes))
rows = [batch for table in tables for batch in table.to_batches()]
best = 1e9
for _ in range(3):
    secrets = Secrets()
    KeyLog(keys, secrets).read()
    undo = Decryption(secrets)
    begin = time.process_time()
    for batch in rows:
        for found in undo.add(batch):
            pass
    for found in undo.drain():
        pass
    best = min(best, time.process_time() - begin)
    assert undo.decrypted == 1, undo.failures
print(json.dumps([best, sum(table.num_rows for table in tables)]))
"""


def measure() -> list[dict]:
    found = []
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as place:
        folder = Path(place)
        pem = certificate(folder)
        large = conversation(folder / "large.pcap", pem, fetch(), FETCHES)
        size = large.stat().st_size
        for what, fed in FED.items():
            spent = opened(RECORD_BYTES, LARGE_RECORDS, fed)
            rate = LARGE_RECORDS * RECORD_BYTES / spent / 1e6
            found.append(row(f"tls: 16 KiB records, fed by {what}", rate, "MB/s/core", RATE_BAR))
            spent = opened(SMALL_BYTES, SMALL_RECORDS, fed)
            found.append(
                row(f"tls: small records, fed by {what}", spent / SMALL_RECORDS * 1e6, "us/record", RECORD_BAR)
            )
        for what, batch_bytes in BATCHES.items():
            spent, rows = run(large, batch_bytes)
            name = f"tls: 16 KiB records, rows of {what}"
            bar = RATE_BAR if batch_bytes == BATCH_BYTES else None
            found += [
                row(name, size / spent / 1e6, "MB/s/core", bar),
                row(f"{name}, a row", spent / rows * 1e6, "us", None),
            ]
        found.append(beside_tshark(large))
        small = conversation(folder / "small.pcap", pem, heartbeat(), HEARTBEATS)
        for what, batch_bytes in BATCHES.items():
            spent, _ = run(small, batch_bytes)
            found.append(
                row(f"tls: small records, rows of {what}", spent / (2 * HEARTBEATS) * 1e6, "us/record", RECORD_BAR)
            )
    return found


def opened(content_bytes: int, count: int, fed_bytes: int) -> float:
    """Seconds of processor time for so many records, in pieces of so many bytes."""
    suite, secret = TLS_1_3[0x1301], bytes(range(32))
    data = sealed(suite.prf, secret, content_bytes, count)
    best = 1e9
    for _ in range(3):
        stream = RecordStream(0)
        stream.use([Tls13Key(suite, secret)])
        begin = time.process_time()
        for at in range(0, len(data), fed_bytes):
            piece = data[at : at + fed_bytes]
            stream.feed(at, at + len(piece), piece)
            stream.run()
            stream.space.forget(stream.space.decided)
        best = min(best, time.process_time() - begin)
        assert stream.opened == count
    return best


def sealed(prf: str, secret: bytes, content_bytes: int, count: int) -> bytes:
    """Records as RFC 8446 5.2 has them."""
    cipher = AESGCM(expand_label(prf, secret, "key", 16))
    iv = int.from_bytes(expand_label(prf, secret, "iv", 12), "big")
    header = b"\x17\x03\x03" + struct.pack(">H", content_bytes + 17)
    inner = bytes(content_bytes) + b"\x17"
    return b"".join(header + cipher.encrypt((iv ^ n).to_bytes(12, "big"), inner, header) for n in range(count))


def run(path: Path, batch_bytes: int) -> tuple[float, int]:
    """(seconds of processor time, rows)"""
    arguments = [sys.executable, "-c", _RUN, str(path), str(keys_of(path)), str(batch_bytes)]
    spent, rows = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
    return spent, rows


def beside_tshark(path: Path) -> dict:
    """From file to plain rows, by us; to dissected TLS by tshark."""
    spent, keys = {}, keys_of(path)
    ours = [sys.executable, "-m", "wirecheck", "capture", "-r", path, "--keylog", keys, "--out", path.parent / "frames"]
    theirs = [
        "tshark",
        "-r",
        path,
        "-o",
        f"tls.keylog_file:{keys}",
        "-Y",
        "tls.app_data",
        "-T",
        "fields",
        "-e",
        "frame.number",
    ]
    for who, command in (("we", ours), ("tshark", theirs)):
        if shutil.which(str(command[0])) is None:
            continue
        before = os.times()
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
        after = os.times()
        spent[who] = after.children_user + after.children_system - before.children_user - before.children_system
    size = path.stat().st_size / 1e6
    peer = size / spent["tshark"] if "tshark" in spent else None
    value = size / spent["we"]
    return row("tls: pcap to trimmed files", value, "MB/s/core", None) | {
        "peer": "tshark -o tls.keylog_file", "peer_value": peer, "ratio": value / peer if peer else None,
        "bar": 1 if peer else None, "met": value >= peer if peer else None,
    }  # fmt: skip


def row(name: str, value: float, unit: str, bar: float | None) -> dict:
    met = None if bar is None else (value <= bar if unit.startswith("us") else value >= bar)
    return {
        "name": name, "value": value, "unit": unit, "peer": None, "peer_value": None, "ratio": None, "bar": bar,
        "met": met,
    }  # fmt: skip


# --- traffic


def keys_of(path: Path) -> Path:
    return path.with_suffix(".keys")


def fetch() -> tuple[bytes, bytes]:
    """A request and its answer; one batch of records, which nobody opens here."""
    records = base64.b64encode(bytes(12) + bytes(range(256)) * (FETCHED_BYTES // 256)).decode()
    answer = {"responses": [{"topic": "orders", "partitions": [{"records": records}]}]}
    return plain("Fetch", "request", 11, {}, {"clientId": "bench"}), plain("Fetch", "response", 11, answer, {})


def heartbeat() -> tuple[bytes, bytes]:
    asked = {"groupId": "billing", "memberId": "bench-1"}
    return plain("Heartbeat", "request", 4, asked, {"clientId": "bench"}), plain("Heartbeat", "response", 4, {}, {})


def conversation(path: Path, pem: Path, exchange: tuple[bytes, bytes], count: int) -> Path:
    """A capture of one connection that says this so often; its key log beside it."""
    talk = TlsTalk(pem, keys_of(path)).open()
    asked, answered = exchange
    for number in range(count):
        correlation = struct.pack(">i", number)
        talk.request(asked[:8] + correlation + asked[12:]).response(answered[:4] + correlation + answered[8:])
    talk.close()
    path.write_bytes(traffic.pcap([traffic.Packet(s.ts_ns, traffic.ethernet(traffic.ip(s))) for s in talk.segments]))
    return path
