"""Captures of every API through the whole path, with the judge and every command that reads captures.

Messages are valid: their IDs, names, node IDs and errors come from small pools, so that checks meet. Then packets are
lost, doubled, swapped, moved in time and cut, and single bits of messages are flipped.
Rule: an input is its number and the run's seed. An exception, a check that raises (VIS006), or a command that ends
otherwise than by its own word is a breach.
"""

from __future__ import annotations

import contextlib
import io
import random
import struct
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from tests import traffic
from tests.build import CASES, HEADERS, Writer
from wirecheck import library
from wirecheck.cli import main
from wirecheck.decode.layouts.program import Dialect

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from tests.build import Field
    from wirecheck.decode.layouts.layout import Layout

SUFFIX = "pcap"
S = 1_000_000_000
BEGIN_NS = 1_700_000_000 * S
IDS = ("QAAAAAAAQACAAAAAAABAAA", "EREREREREREREREREVERAQ", "IiIiIiIiIiIiIiIiIjMzMw", "AAAAAAAAAAAAAAAAAAAAAA")
NAMES = ("orders", "payments", "__consumer_offsets", "__cluster_metadata", "ab", "")
TEXTS = ("10.0.0.9", "10.0.0.8", "app", "worker", "g", "m")
ERRORS = (0, 0, 0, 0, 3, 5, 6, 7, 15, 19, 31, 35, 41, 70, 74, 75, 77, 100, 101, 103, 104, 106, -1, 1001)
NUMBERS = (0, 1, 2, 3, 4, -1, 100)
SERVERS, CLIENTS = ("10.0.0.8", "10.0.0.9"), ("10.0.0.1", "10.0.0.2", "10.0.0.8")
CLIENT_IDS = ("app", "broker-1-fetcher-0", "1", "raft-client-2", "", "x" * 300, "\u202e<b>")
DAMAGES = ("none", "lost", "doubled", "swapped", "moved", "cut")
SHARE = {"lost": 0.03, "doubled": 0.1, "moved": 0.02, "cut": 0.1}
COMMANDS = (
    ("topics",), ("why", "orders"), ("why", "app"), ("changes",), ("errors",), ("clients", "--target", "4.0"),
    ("decode", "-V", "--limit", "100000"), ("replay", "--engine", "local", "-v"),
    ("replay", "--engine", "local", "--format", "sarif"), ("replay", "--engine", "local", "--format", "markdown"),
    ("changes", "--format", "json"), ("topics", "--format", "json"), ("latency", "--all", "--brokers"), ("groups",),
)  # fmt: skip
OWN_ENDS = {0, 1, 2}


class Pooled(Writer):
    """Values that meet: of each kind only a few."""

    def fixed(self, kind: str, given: object) -> object:
        pool: tuple[object, ...] = {
            "uuid": IDS,
            "int16": ERRORS,
            "int32": NUMBERS,
            "int64": NUMBERS,
            "int8": (0, 1, 2),
        }.get(kind, ())
        drawn = self.rng.choice(pool) if given is None and pool and self.rng.random() < 0.85 else given
        return super().fixed(kind, drawn)

    def sized(self, f: Field, compact: bool, given: object, null: bool) -> object:
        if given is None and f.type == "string" and not null and self.rng.random() < 0.9:
            given = self.rng.choice(NAMES if f.name == "name" or "opic" in f.name else TEXTS)
        return super().sized(f, compact, given, null)


@cache
def pairs() -> list[tuple[Layout, Layout, int]]:
    """Request, response and version of everything that both have."""
    by_side: dict[tuple[int, int], dict[str, Layout]] = {}
    for dialect, layout, version in CASES:
        if dialect == Dialect.KAFKA and layout.side in {"request", "response"}:
            by_side.setdefault((layout.key, version), {})[layout.side] = layout
    both = ((sides, version) for (_, version), sides in sorted(by_side.items()) if len(sides) == 2)
    return [(sides["request"], sides["response"], version) for sides, version in both]


def message(layout: Layout, version: int, correlation: int, client_id: str, rng: random.Random) -> bytes:
    writer = Pooled(rng)
    head = HEADERS["RequestHeader" if layout.side == "request" else "ResponseHeader"]
    number = layout.header_version(version)
    given = {"requestApiKey": layout.key, "requestApiVersion": version, "correlationId": correlation}
    writer.struct(head.fields, number, number in head.flexible, {**given, "clientId": client_id})
    writer.struct(layout.fields, version, version in layout.flexible, {})
    data = bytearray(traffic.size_prefixed(bytes(writer.out)))
    if rng.random() < 0.05:
        data[rng.randrange(4, len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def conversation(number: int, rng: random.Random) -> list[traffic.Segment]:
    ends = {"client": (rng.choice(CLIENTS), 40000 + number), "server": (rng.choice(SERVERS), rng.choice([9092, 9093]))}
    talk = traffic.Talk(**ends, ts_ns=BEGIN_NS + rng.randint(0, 60) * S, mss=rng.choice([8, 64, 536, 1448]))
    if rng.random() < 0.9:
        talk.open()
    client_id, kinds, same = rng.choice(CLIENT_IDS), pairs(), rng.random() < 0.5
    kind = rng.choice(kinds)
    for correlation in range(rng.randint(1, 30)):
        ask, answer, version = kind = kind if same else rng.choice(kinds)
        talk.ts_ns += rng.choice([S // 1000, S // 10, 2 * S, 11 * S])
        talk.request(message(ask, version, correlation, client_id, rng))
        talk.ts_ns += 31 * S if rng.random() < 0.02 else 0
        if rng.random() < 0.93:
            talk.response(message(answer, version, correlation, client_id, rng))
    if rng.random() < 0.7:
        talk.close()
    elif rng.random() < 0.5:
        talk.reset(by_client=rng.random() < 0.5)
    return talk.segments


def make(draws: np.random.Generator) -> bytes:
    """A classic capture of IP packets."""
    rng = random.Random(int(draws.integers(1 << 62)))  # noqa: S311 -- an input has to be made again
    segments = [one for number in range(rng.randint(1, 8)) for one in conversation(number, rng)]
    segments.sort(key=lambda segment: segment.ts_ns)
    damage = rng.choice(DAMAGES)
    out = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101))
    if damage == "swapped":
        for i in rng.sample(range(len(segments)), len(segments) // 10):
            segments[i : i + 2] = segments[i : i + 2][::-1]
    for segment in segments:
        hit = rng.random() < SHARE.get(damage, 0)
        packet, ts_ns = traffic.ip(segment), segment.ts_ns
        ts_ns += rng.randint(-1000 * S, 1000 * S) if hit and damage == "moved" else 0
        kept = packet[: rng.randint(20, len(packet))] if hit and damage == "cut" else packet
        record = struct.pack("<IIII", ts_ns // S, ts_ns % S // 1000, len(kept), len(packet)) + kept
        out += record * (0 if hit and damage == "lost" else 2 if hit and damage == "doubled" else 1)
    return bytes(out)


def read(path: Path, draws: np.random.Generator) -> str:
    """What has become of it. Raises whatever a command or the library raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                verdict = library.replay(path)
        except library.InputError:
            return "nothing to judge"
        raised = [finding.summary for finding in verdict.findings if finding.code == "VIS006"]
        if raised or "Traceback" in said.getvalue():  # a check may raise, and not again when it is asked once more
            raise AssertionError((said.getvalue() or raised[0])[:200])
        run(COMMANDS[int(draws.integers(len(COMMANDS)))], path)
    return "findings" if verdict.findings else "no findings"


def run(words: tuple[str, ...], path: Path) -> None:
    """One command in this process. Raises its exception, or AssertionError for a status that is not its own."""
    result: Any = CliRunner().invoke(main, [*words, str(path)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code not in OWN_ENDS or "Traceback" in result.output:
        raise AssertionError(f"{words[0]} ended with {result.exit_code}: {result.output[-200:]}")
