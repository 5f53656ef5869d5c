"""Mutated records fields through decode.log.records, decode.log.metadata_log and decode.log.secrets.

Knows: what must hold for any field: nothing but a DecodeError is raised, and by decode.log.metadata_log not even that;
spans of secrets lie inside, in order, and a field in two pieces hides no less.
Rule: sums are mended after three of four mutations, or nothing behind them would ever be reached.
"""

# ruff: noqa: T201 -- a report on the terminal is what it is for

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fuzz.bend import Draws, bend
from fuzz.seeds import fields
from wirecheck.decode.errors import DecodeError
from wirecheck.decode.holes import laid_out
from wirecheck.decode.log.checksum import crc32c
from wirecheck.decode.log.metadata_log import field_entries
from wirecheck.decode.log.records import read_batches
from wirecheck.decode.log.secrets import LogSecrets

if TYPE_CHECKING:
    from fuzz.bound import Bound

LIMIT = 1 << 20


def run(rng: np.random.Generator, bound: Bound) -> int:
    seeds, begin, outcomes = fields(), time.monotonic(), Counter[str]()
    draws = Draws(int(rng.integers(1, 2**62)))
    while not bound.over(outcomes.total()):
        source, other = (seeds[i] for i in rng.integers(0, len(seeds), 2))
        data = np.frombuffer(bytearray(bend(source, other, draws)), np.uint8)
        if rng.random() < 0.75:
            mend(data)
        left_out = [(int(rng.integers(0, len(data) + 1)), int(rng.integers(1, 40)))] if rng.random() < 0.25 else []
        try:
            outcomes[one(data.tobytes(), left_out)] += 1
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is the finding
            print(f"BREACH {error!r}: {data.tobytes().hex()} left out {left_out}")
            return 1
    print(f"records: {outcomes.total()} fields in {time.monotonic() - begin:.0f} s, no breach")
    print("  " + ", ".join(f"{name} {count}" for name, count in outcomes.most_common()))
    return 0


def mend(data: np.ndarray) -> None:
    """Puts the right sum into every batch of v2 that can still be told from the next."""
    for batch in read_batches(laid_out(data)).batches:
        if batch.magic == 2:
            crc = crc32c(data[batch.position + 21 : batch.end].tobytes())
            data[batch.position + 17 : batch.position + 21] = np.frombuffer(crc.to_bytes(4, "big"), np.uint8)


def one(data: bytes, left_out: list[tuple[int, int]]) -> str:
    """What became of a field; raises if anything does not hold."""
    found = read_batches(laid_out(data, left_out))
    outcome = "read" if found.refused is None else type(found.refused).__name__
    for batch in found.batches:
        try:
            if batch.magic == 2:
                assert len(batch.records(LIMIT).field) <= max(LIMIT, len(batch.field))
        except DecodeError as error:
            outcome = type(error).__name__
    whole = field_entries(laid_out(data, left_out))
    assert len(whole.offset) == len(whole.messages)
    spans = LogSecrets().feed(data)
    assert all(at >= 0 and n > 0 and at + n <= len(data) for at, n in spans)
    assert all(a + n <= b for (a, n), (b, _) in pairwise(spans))
    walk, half = LogSecrets(), len(data) // 2
    apart = [*walk.feed(data[:half]), *((half + at, n) for at, n in walk.feed(data[half:]))]
    assert {i for at, n in spans for i in range(at, at + n)} <= {i for at, n in apart for i in range(at, at + n)} | {
        *range(max(half - 4096, 0), half)
    }
    return outcome
