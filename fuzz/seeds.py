"""What is bent: messages written by every layout there is, and Kafka's own messages and records.

Knows: the golden files, and the tests' writer, which follows the layouts: an API, version or draft added is bent from
then on. Does not know what the messages mean.
Rule: flat arrays; the same messages in every run.
"""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.build import CASES, build
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import Dialect
from wirecheck.decode.wire import RECORD, REQUEST, RESPONSE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "decode" / "golden"
FRAME_BYTES = 3  # of a metadata record: frame version, type, version, each of one byte in the golden file
LONGEST = 1024  # longer ones would only be slower: what they have more of is elements
OF_EACH_LAYOUT = 3


@dataclass(frozen=True)
class Seeds:
    """Messages that decode, one after the other."""

    data: NDArray[np.uint8]
    at: NDArray[np.int64]
    side: NDArray[np.int8]
    key: NDArray[np.int16]
    version: NDArray[np.int16]
    dialect: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.side)


def vectors(pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(GOLDEN.glob(pattern)):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def messages() -> Seeds:
    """Some of every layout, and every message and metadata record of the golden files that is not too long."""
    sides = {"request": REQUEST, "response": RESPONSE}
    rows = [
        (bytes.fromhex(v["hex"]), sides[v["side"]], v["key"], v["version"], Dialect.KAFKA)
        for v in vectors("kafka-messages.jsonl.gz")
    ]
    rows += [
        (bytes.fromhex(v["hex"])[FRAME_BYTES:], RECORD, v["type"], v["version"], Dialect.KAFKA)
        for v in vectors("metadata-records.jsonl.gz")
    ]
    rows = [row for row in rows if len(row[0]) <= LONGEST] + list(written())
    payload, side, key, version, dialect = zip(*rows, strict=True)
    return Seeds(
        np.frombuffer(b"".join(payload), np.uint8),
        np.cumsum([0, *map(len, payload)]),
        np.array(side, np.int8),
        np.array(key, np.int16),
        np.array(version, np.int16),
        np.array(dialect, np.int8),
    )


def written() -> Iterator[tuple[bytes, int, int, int, Dialect]]:
    """Messages of every API, side, version and dialect, records and blobs too."""
    rng = random.Random(1)  # noqa: S311 -- to be repeated
    for dialect, layout, version in CASES:
        found: list[bytes] = []
        while len(found) < OF_EACH_LAYOUT:
            data = build(layout, version, rng).data
            found += [data] if len(data) <= LONGEST else []
        for data in found:
            yield data, SIDES.index(layout.side), layout.key, version, dialect


def fields() -> list[bytes]:
    """Records fields of every format and codec."""
    return [bytes.fromhex(v["hex"]) for v in vectors("record-batches.jsonl.gz") if v["hex"]]
