"""A payload is copied at most 7 times from a capture file to its decoded message (docs/how-it-works.md).

An instrument counts, not a reader: `count_copies.c` is preloaded into the replay and into all that it starts.
"""

import os
import platform
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from bench.kafka_bytes import Topic, metadata
from tests.traffic import Talk, packets, pcap

SOURCE = Path(__file__).with_name("count_copies.c")
MARKER = "wirecheck-copies-marker"
MESSAGES = 300
MOST_COPIES = 7


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None or platform.machine() != "x86_64":
        pytest.skip("needs a C compiler, on x86-64")
    made = tmp_path_factory.mktemp("copies") / "count_copies.so"
    subprocess.run([compiler, "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", made, SOURCE], check=True)
    return made


def capture(path):
    """Responses of 1,100 bytes with the marker once each, every one in a segment of its own."""
    talk = Talk().open()
    topics = [
        Topic(MARKER, bytes(range(16))),
        *(Topic(f"orders-{number}", bytes([number] * 16)) for number in range(1, 9)),
    ]
    for correlation in range(MESSAGES):
        asked, answered = metadata("app", topics, 1)
        head = bytearray(asked.data.replace(MARKER.encode(), b"x" * len(MARKER)))
        body = bytearray(answered.data)
        for message in (head, body):
            at = asked.correlation_at if message is head else answered.correlation_at
            message[at : at + 4] = struct.pack(">i", correlation)
        talk.request(bytes(head)).response(bytes(body))
    assert 512 < len(answered.data) < talk.mss
    path.write_bytes(pcap(packets(talk.close().segments)))


def copies(preloaded, folder):
    """In memory and by the kernel, of one replay."""
    counters = folder / "counters"
    counters.write_bytes(bytes(4096))
    environment = {**os.environ, "LD_PRELOAD": str(preloaded), "COPIES": str(counters)}
    command = [
        sys.executable,
        "-m",
        "wirecheck",
        "replay",
        str(folder / "c.pcap"),
        "--engine",
        "local",
        "--fail-on",
        "never",
    ]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=100)
    assert f"{2 * MESSAGES:,} messages, all decoded" in ran.stdout
    in_memory, by_kernel = struct.unpack("<2q", counters.read_bytes()[:16])
    assert by_kernel >= MESSAGES, "the instrument sees at least that the file is read"
    return in_memory, by_kernel


def test_a_payload_is_copied_at_most_seven_times(preloaded, tmp_path):
    """Or in one of two more: an allocator that cannot grow a buffer where it lies copies all of it once more."""
    capture(tmp_path / "c.pcap")
    found = []
    while len(found) < 3 and not (found and sum(found[-1]) / MESSAGES <= MOST_COPIES):
        found.append(copies(preloaded, tmp_path))
    assert sum(found[-1]) / MESSAGES <= MOST_COPIES, f"in memory, and by the kernel: {found}"
