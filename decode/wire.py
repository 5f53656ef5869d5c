"""A batch of Kafka messages as they were cut from the wire (`Messages`: a struct of arrays), and all request headers
that Kafka's releases ever sent (`known()`).

Plain arrays and int64 indices, so that compiled code reads them without an object per row. Layouts and connections are
not known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.interpret.vectors import bytes_around

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a message is, a place among SIDES; the last two have no header and are values found inside records (metadata log,
# control batches).
REQUEST, RESPONSE, RECORD, DATA = 0, 1, 2, 3
UNKNOWN_VERSION_YET = -1  # version of a response whose request was not seen

NEVER_FLEXIBLE = 1 << 14

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages of one batch, one row each, without their 4-byte sizes."""

    data: NDArray[np.uint8]
    """Kept bytes of all messages, concatenated; other bytes may precede and follow them."""
    at: Ints
    """n+1 offsets into `data`: message i keeps data[at[i]:at[i + 1]]."""
    size: Ints
    """Bytes on the wire: kept and left out."""
    span_at: Ints
    """n+1 offsets into the spans."""
    span_offset: Ints
    """Where a left-out span begins, in the message as it was on the wire; sorted, disjoint within a message."""
    span_length: Ints
    """How many bytes were left out there."""
    side: NDArray[np.int8]
    """REQUEST, RESPONSE, RECORD or DATA."""
    key: NDArray[np.int16]
    """API key; of a response its request's; of a RECORD its type; of DATA its index in decode/schemas/other.txt."""
    version: NDArray[np.int16]
    """API version; of a response its request's, -1 if that was not seen."""
    correlation_id: NDArray[np.int32]
    """Of the header; 0 for RECORD and DATA."""

    def __len__(self) -> int:
        return len(self.key)

    def in_place(self) -> Messages:
        """The same messages; compiled code reads their bytes where they lie, without a copy."""
        data, at = bytes_around(self.data)
        return replace(self, data=np.frombuffer(data, np.uint8), at=self.at + at)

    def take(self, rows: NDArray[Any]) -> Messages:
        """The messages of these rows (indices or mask), in that order."""
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64)
        at = offsets((self.at[rows + 1] - self.at[rows]).tolist())
        span_pick, span_at = _gathered(self.span_at, rows)
        begin, end = self.at[rows].tolist(), self.at[rows + 1].tolist()
        data = memoryview(cast("bytes", self.data))
        parts = [data[first:last] for first, last in zip(begin, end, strict=True)]
        return Messages(
            np.frombuffer(b"".join(parts), np.uint8), at, self.size[rows],
            span_at, self.span_offset[span_pick], self.span_length[span_pick],
            self.side[rows], self.key[rows], self.version[rows], self.correlation_id[rows],
        )  # fmt: skip


def together(parts: Sequence[Messages]) -> Messages:
    """Several batches as one, in the order given."""
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Messages.__slots__}
    columns["data"] = np.concatenate([part.data[part.at[0] : part.at[-1]] for part in parts])
    for name in ("at", "span_at"):
        columns[name] = offsets(np.concatenate([np.diff(getattr(part, name)) for part in parts]))
    return Messages(**columns)


def _gathered(at: Ints, rows: Ints) -> tuple[Ints, Ints]:
    lengths = at[rows + 1] - at[rows]
    new_at = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=new_at[1:])
    return np.arange(new_at[-1], dtype=np.int64) + np.repeat(at[rows] - new_at[:-1], lengths), new_at


def pack(
    payloads: list[bytes],
    sides: list[int],
    keys: list[int],
    versions: list[int],
    spans: list[list[tuple[int, int]]] | None = None,
) -> Messages:
    """Whole messages as a batch. With `spans`, those (offset, length) are cut out of the bytes given."""
    spans = spans or [[] for _ in payloads]
    kept = [_without(payload, cuts) for payload, cuts in zip(payloads, spans, strict=True)]
    flat = [cut for cuts in spans for cut in cuts]
    correlation = [_correlation_id(k, s) for k, s in zip(payloads, sides, strict=True)]
    return Messages(
        np.frombuffer(b"".join(kept), np.uint8),
        offsets([len(k) for k in kept]),
        np.array([len(p) for p in payloads], np.int64),
        offsets([len(cuts) for cuts in spans]),
        np.array([offset for offset, _ in flat], np.int64),
        np.array([length for _, length in flat], np.int64),
        np.array(sides, np.int8),
        np.array(keys, np.int16),
        np.array(versions, np.int16),
        np.array(correlation, np.int32),
    )


def wire_offset(messages: Messages, message: Ints, place: Ints) -> Ints:
    """Where in messages, as on the wire, lies the content whose first kept byte is at these places in the data.

    Content that begins in a left-out span begins where the span does, not behind it.
    """
    offset: Ints = place - messages.at[message]
    if len(messages.span_offset):
        begin, end = messages.span_at[message], messages.span_at[message + 1]
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(messages.span_length)])
        passed = np.clip(np.searchsorted(_span_places(messages, before), place), begin, end)
        offset += before[passed] - before[begin]
    return offset


def _span_places(messages: Messages, before: Ints) -> Ints:
    """Where in the data each span is missing, ascending. `before`: bytes of the spans before each."""
    message = np.repeat(np.arange(len(messages)), np.diff(messages.span_at))
    kept = messages.span_offset - (before[:-1] - before[messages.span_at[message]])
    places: Ints = np.minimum(messages.at[message] + kept, messages.at[message + 1])
    return places


def client_id(messages: Messages, row: int) -> str | None:
    """Of a request, read or not: every header but `short_header` begins alike. None if null, or not whole."""
    begin, spans = int(messages.at[row]), slice(messages.span_at[row], messages.span_at[row + 1])
    end = int(min([messages.at[row + 1] - begin, *messages.span_offset[spans][:1]]))
    kept = messages.data[begin : begin + end].tobytes()
    length = int.from_bytes(kept[8:10], "big", signed=True)
    if (
        len(kept) < 10
        or length < 0
        or len(kept) < 10 + length
        or short_header(int(messages.key[row]), int(messages.version[row]))
    ):
        return None
    return kept[10 : 10 + length].decode(errors="replace")


def _without(payload: bytes, cuts: list[tuple[int, int]]) -> bytes:
    kept, at = [], 0
    for offset, length in cuts:
        kept.append(payload[at:offset])
        at = offset + length
    return b"".join([*kept, payload[at:]])


def offsets(lengths: list[int] | Ints) -> Ints:
    """n+1 places, each behind the lengths before it."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(lengths, np.int64))])


def _correlation_id(payload: bytes, side: int) -> int:
    at = {REQUEST: 4, RESPONSE: 0}.get(side)
    return 0 if at is None else int.from_bytes(payload[at : at + 4], "big", signed=True)


@cache
def known() -> NDArray[np.int16]:
    """One row per API key: lowest version, highest version, first flexible version (16384: never), and the version that
    the drafts of KIP-516 change, whose header has no tag section in their inline form; -1: no layout, no such version.

    Made for loops: `row = known[key]; row[0] <= version <= row[1]`. A request header then is
    `api_key i16, api_version i16, correlation_id i32`, a nullable client id with an i16 length (not in
    `short_header`), and, from the first flexible version on, a tag section.
    """
    heading = re.compile(r"^(\d+) \w+ request v(\d+)(?:-(\d+))? flexible (?:v(\d+)\+|none)", re.MULTILINE)
    shipped, drafted = ((Path(__file__).parent / "schemas" / f"{name}.txt").read_text() for name in KNOWN_FROM)
    rows = [[int(group) if group else None for group in found.groups()] for found in heading.finditer(shipped)]
    table = np.full((max(row[0] or 0 for row in rows) + 1, 4), -1, np.int16)
    for key, low, high, flexible in rows:
        first = NEVER_FLEXIBLE if flexible is None else flexible
        table[key, :3] = [low or 0, (low if high is None else high) or 0, first]
    for found in heading.finditer(drafted):
        table[int(found[1]), 3] = int(found[2])
    return table


KNOWN_FROM = ("kafka", "kip516_draft")


def short_header(key: int, version: int) -> bool:
    """ControlledShutdown v0 alone has request header v0: no client id (ApiMessageTypeGenerator, gone in 4.0)."""
    return key == 7 and version == 0
