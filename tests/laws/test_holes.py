"""The law of holes: bytes that were not captured make a text unknown, and break nothing that does not rest on it."""

import gzip
import random
import re
import struct
import warnings
from pathlib import Path

import pytest

from tests.depth import DEEP
from wirecheck import library

EXAMPLES = Path(__file__).parents[2] / "examples"
CAPTURES = ("kraft4-stale-broker", "zk39-inconsistent-id")
SEEDS = range(40 if DEEP else 1)
CASES = [(name, mss) for name in CAPTURES for mss in (8, 64, 1448)]
if not DEEP:
    CASES = [("kraft4-stale-broker", 1448), ("zk39-inconsistent-id", 8), ("zk39-inconsistent-id", 64)]
SHARE = 0.1
"""Of the packets with data, so many have a hole: texts of every kind are hit in one run."""
TEXT = re.compile(rb"[A-Za-z0-9._-]{8,}")
LINK_HEADER = {1: 14, 101: 0, 113: 16, 276: 20}
TCP = 6


def with_holes(data, rng, mss):
    """A capture in which up to 64 bytes inside some packets are missing: each of these is cut in two. All are cut again
    into segments of `mss` bytes at most.
    """
    out, at = bytearray(data[:24]), 24
    link = LINK_HEADER[struct.unpack("<I", data[20:24])[0]]
    while at < len(data):
        head, size = data[at : at + 16], struct.unpack("<I", data[at + 8 : at + 12])[0]
        packet, at = data[at + 16 : at + 16 + size], at + 16 + size
        ip = packet[link:]
        payload = 20 + (ip[32] >> 4) * 4 if len(ip) > 40 and ip[0] == 0x45 and ip[9] == TCP else len(ip)
        if len(ip) - payload > 3 and rng.random() < SHARE:
            begin, end = hole_in(ip, payload, rng)
            kept = [(payload, begin), (end, len(ip))]
        else:
            kept = [(payload, len(ip))]
        cuts = [(at, min(at + mss, end)) for first, end in kept for at in range(first, end, mss)]
        parts = [part_of(ip, payload, *cut) for cut in cuts] or [ip]
        for part in parts:
            whole = packet[:link] + part
            out += head[:8] + struct.pack("<II", len(whole), len(whole)) + whole
    return bytes(out)


def hole_in(ip, payload, rng):
    """Where a packet loses bytes: anywhere, or inside what looks like a text."""
    texts = [found.span() for found in TEXT.finditer(ip, payload + 1)]
    if texts and rng.random() < 0.8:
        first, last = rng.choice(texts)
        begin = rng.randint(first + 1, last - 2)
        return begin, rng.randint(begin + 1, last - 1)
    begin = rng.randint(payload + 1, len(ip) - 2)
    return begin, rng.randint(begin + 1, min(begin + 64, len(ip) - 1))


def part_of(ip, payload, begin, end):
    """A segment with the bytes of another from `begin` to `end`, both counted from the IP header."""
    part = bytearray(ip[:payload] + ip[begin:end])
    part[2:4] = struct.pack(">H", len(part))
    number = struct.unpack(">I", ip[24:28])[0] + begin - payload
    part[24:28], part[10:12], part[36:38] = struct.pack(">I", number & 0xFFFFFFFF), b"\0\0", b"\0\0"
    return bytes(part)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "mss"), CASES)
def test_holes_break_nothing(name, mss, seed, tmp_path):
    whole = gzip.decompress((EXAMPLES / name / "capture.pcap.gz").read_bytes())
    path = tmp_path / "holes.pcap"
    path.write_bytes(with_holes(whole, random.Random(seed), mss))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = library.replay(path)
        for read in (library.changes, library.errors):
            read(path)
        library.why("1", path)
    assert [finding.summary for finding in verdict.findings if finding.code == "VIS006"] == []
    assert [line for line in verdict.coverage.input_errors if "could not be judged" in line] == []
