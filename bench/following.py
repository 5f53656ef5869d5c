"""Following at size: what a connection costs in memory and time, and that neither grows with what there is or was.

Knows: many open connections, many short ones one after the other, one huge message, and the attacks of hostile.py.
Refuses to know: how following works; memory is what a stored follower takes, and what the process takes.
Rule: a cost is the median over blocks of equal size; where it should be flat, the row gives the ratio of the costliest
to the cheapest size, and the bar is on that. There is no peer that follows without dissecting.
"""

from __future__ import annotations

import resource
import struct
import sys
import time
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from bench.hostile import ANSWERED, ASKED, ATTACKS, START_NS, Frames, opened, ordinary, request, response
from wirecheck.decode.connection.follower import Follower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirecheck.decode.connection.segments import Segments

OPEN = (100, 1_000, 10_000, 100_000)
KEPT = (100, 10_000)
SHORT = 1_000_000
SHORT_A_CALL = 5_000
HUGE = 100 << 20
FLAT = 2.0
BLOCKS = 12
MTU = 1448
STALL_NS_A_BYTE, STALL_US_A_FRAME = 300, 300
"""The costliest attack, messages of 8 to 12 bytes each of which is told, takes 20 s for 64 MB: long, and no stall."""


def measure() -> list[dict]:
    warmed = Follower()
    warmed.receive(Frames(ordinary(1, 0, 50)).segments(START_NS))
    warmed.drain()
    return [*open_connections(), *kept_connections(), *short_connections(), *huge_messages(), *attacks()]


def row(name: str, value: float, unit: str, bar: float | None = None, *, least: bool = False) -> dict:
    met = None if bar is None else (value >= bar if least else value <= bar)
    said = {"name": f"following, {name}", "value": value, "unit": unit, "peer": None, "peer_value": None}
    print(f"{name}: {value:.4g} {unit}", file=sys.stderr)
    return said | {"ratio": None, "bar": bar, "met": met}


def timed(follower: Follower, part: Segments) -> float:
    """Processor seconds a frame."""
    return spent_on(lambda: follower.receive(part)) / len(part)


def spent_on(work: Callable[[], object]) -> float:
    """Processor seconds."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def open_connections() -> Iterator[dict]:
    """A hundred connections talk, 20 000 frames a call, while ever more others are open; each goes on where it was."""
    costs, stored = {}, {}
    for count in OPEN:
        turns: Counter[int] = Counter()
        follower, now = Follower(), START_NS
        for first in range(0, count, 5_000):
            part = Frames([r for c in range(first, min(first + 5_000, count)) for r in opened(c)]).segments(now)
            follower.receive(part)
            now = int(part.ts_ns[-1]) + 1
        stored[count] = len(follower.snapshot())
        spent = []
        for block in range(1, BLOCKS):
            talking = [(block * 97 + i) % count for i in range(100)]
            talk = [r for c in talking for r in ordinary(c, turns[c], 100)[0 if turns[c] else 4 :]]
            turns.update(talking)
            spent.append(timed(follower, Frames(talk).segments(now)))
        costs[count] = median(spent[1:])
        yield row(f"a frame among {count} open connections", 1e6 * costs[count], "us")
    yield row("costliest to cheapest number of open connections", max(costs.values()) / min(costs.values()), "x", FLAT)
    yield row("an idle connection, stored", stored[OPEN[-1]] / OPEN[-1], "bytes", 4096)


def kept_connections() -> Iterator[dict]:
    """What a bucket of the query does with a batch: it restores its follower, follows, and stores it again. A batch of
    4,000 frames is of 100 connections, however many others are open.
    """
    batches = {}
    for count in KEPT:
        follower, now = Follower(), START_NS
        for first in range(0, count, 5_000):
            part = Frames([r for c in range(first, min(first + 5_000, count)) for r in opened(c)]).segments(now)
            follower.receive(part)
            now = int(part.ts_ns[-1]) + 1
        stored: list[bytes] = []
        first_ms = 1e3 * spent_on(lambda follower=follower, stored=stored: stored.append(follower.snapshot()))
        restored_ms = 1e3 * median(spent_on(lambda stored=stored: Follower.restore(stored[-1])) for _ in range(BLOCKS))
        spent = []
        for block in range(BLOCKS):
            talk = [r for c in range(100) for r in ordinary(c, block, 20)[0 if block else 4 :]]
            part = Frames(talk).segments(now)
            now = int(part.ts_ns[-1]) + 1

            def batch(part: Segments = part, stored: list[bytes] = stored) -> None:
                kept = Follower.restore(stored[-1])
                kept.receive(part)
                stored.append(kept.snapshot())

            spent.append(1e3 * spent_on(batch))
        batches[count] = median(spent[1:])
        yield row(f"the first snapshot of {count} open connections", first_ms, "ms")
        yield row(f"a snapshot of {count} open connections", len(stored[0]) / 1e3, "kB")
        yield row(f"restoring {count} open connections", restored_ms, "ms")
        yield row(f"a stored batch of {len(part)} frames of 100 among {count}", batches[count], "ms")
    yield row(f"a stored batch among {KEPT[-1]} to among {KEPT[0]}", batches[KEPT[-1]] / batches[KEPT[0]], "x", FLAT)


def short_connections() -> Iterator[dict]:
    """A million connections that open, ask once and close, one after the other."""
    follower, now, spent, stored = Follower(), START_NS, [], []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for first in range(0, SHORT, SHORT_A_CALL):
        rows = []
        for client in range(first, first + SHORT_A_CALL):
            rows += opened(client << 8)
            ends = rows[-1][3], rows[-1][2] + len(rows[-1][5])
            rows += [(client << 8, True, *ends, 17, b""), (client << 8, False, ends[1], ends[0] + 1, 17, b"")]
            rows += [(client << 8, True, ends[0] + 1, ends[1] + 1, 16, b"")]
        part = Frames(rows).segments(now, 100_000)
        now = int(part.ts_ns[-1]) + 1
        spent.append(timed(follower, part))
        follower.advance("agent", now)
        stored.append(len(follower.snapshot()) if first % (20 * SHORT_A_CALL) == 0 else 0)
    tenth = len(spent) // 10
    yield row("a frame of a short connection", 1e6 * median(spent), "us")
    yield row("the last tenth of a million to the first", median(spent[-tenth:]) / median(spent[:tenth]), "x", FLAT)
    yield row("stored after a million connections", max(stored[len(stored) // 2 :]) / 1e6, "MB")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    yield row("process grown by a million connections", grown / 1e3, "MB", 500)


def huge_messages() -> Iterator[dict]:
    """One request of 5 to 100 MB in MTU-sized segments, every tenth of them late; every size is carried over calls."""
    sizes = (HUGE // 20, HUGE // 5, HUGE)
    follow_request(sizes[0])  # warm
    costs = {size: min(follow_request(size) for _ in range(3)) for size in sizes}
    for size, cost in costs.items():
        yield row(f"a request of {size >> 20} MB in reordered segments", 1e-6 / cost, "MB/s")
    yield row("costliest to cheapest size of a request, by byte", max(costs.values()) / min(costs.values()), "x", 3)


def follow_request(size: int) -> float:
    """Seconds a byte."""
    head = struct.pack(">i", size) + request(0, 2, 1, struct.pack(">hii", 1, 30_000, 1))[4:]
    body = head + bytes(size + 4 - len(head))
    cut = [(1, True, ASKED + at, ANSWERED, 16, body[at : at + MTU]) for at in range(0, len(body), MTU)]
    dice = np.random.default_rng(1)
    late = np.arange(len(cut)) + np.where(dice.random(len(cut)) < 0.1, dice.integers(1, 6, len(cut)) + 0.5, 0)
    rows = [*opened(1), *(cut[i] for i in np.argsort(late, kind="stable"))]
    rows.append((1, False, ANSWERED, ASKED + len(body), 24, response(1, bytes(20))))
    parts = [Frames(rows[i : i + 1000]).segments(START_NS + 10_000 * i, 10_000) for i in range(0, len(rows), 1000)]
    follower = Follower()
    begin = time.perf_counter()
    answered = sum(len(follower.receive(part)) for part in parts)
    spent = time.perf_counter() - begin
    if answered != 2:
        print(f"a request of {size >> 20} MB was not told", file=sys.stderr)
        return float("inf")
    return spent / size


def attacks() -> Iterator[dict]:
    for name, attack in ATTACKS.items():
        follower, spent, bytes_a_frame, stored = Follower(), [], 1.0, 0
        for block in range(BLOCKS):
            part = Frames(attack(block, 20 if name.startswith("65 k") else 4000)).segments(START_NS + block * 10**9)
            spent.append(timed(follower, part))
            bytes_a_frame = max(float(part.payload_len.mean()), 1)
            stored = max(stored, len(follower.snapshot()))
        bar = STALL_US_A_FRAME + bytes_a_frame * STALL_NS_A_BYTE / 1e3
        yield row(f"a frame of {name}", 1e6 * median(spent), "us", round(bar))
        yield row(f"stored under {name}", stored / 1e6, "MB", 640)
