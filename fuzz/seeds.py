"""What is bent: Kafka's own messages and records, as the tests ship them.

Knows: the golden files. Does not know what the messages mean.
Rule: flat arrays, so that mutation is one jitted pass.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from decode.wire import RECORD, REQUEST, RESPONSE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "decode" / "golden"
SIDES = {"request": REQUEST, "response": RESPONSE}
FRAME_BYTES = 3  # of a metadata record: frame version, type, version, each of one byte in the golden file
LONGEST = 1024  # longer ones would only be slower: what they have more of is elements


@dataclass(frozen=True)
class Seeds:
    """Messages that decode, one after the other."""

    data: NDArray[np.uint8]
    at: NDArray[np.int64]
    side: NDArray[np.int8]
    key: NDArray[np.int16]
    version: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.side)


def vectors(pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(GOLDEN.glob(pattern)):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def messages() -> Seeds:
    """Every message and metadata record of the golden files that is not too long."""
    rows = [
        (bytes.fromhex(v["hex"]), SIDES[v["side"]], v["key"], v["version"])
        for v in vectors("kafka-messages.jsonl.gz")
    ]  # fmt: skip
    rows += [
        (bytes.fromhex(v["hex"])[FRAME_BYTES:], RECORD, v["type"], v["version"])
        for v in vectors("metadata-records.jsonl.gz")
    ]
    rows = [row for row in rows if len(row[0]) <= LONGEST]
    payload, side, key, version = zip(*rows, strict=True)
    return Seeds(
        np.frombuffer(b"".join(payload), np.uint8),
        np.cumsum([0, *map(len, payload)]),
        np.array(side, np.int8),
        np.array(key, np.int16),
        np.array(version, np.int16),
    )


def fields() -> list[bytes]:
    """Records fields of every format and codec."""
    return [bytes.fromhex(v["hex"]) for v in vectors("record-batches.jsonl.gz") if v["hex"]]
