"""Whether a record that was searched for stands where it opened: what follows it says so.

Knows: the bytes behind it, as far as they are at hand, and the number each record there would have.
Refuses to know: what to do about it (record_stream.py).
Rule: a tag proves number and content, not the place. A packet may carry a copy of another one's bytes, by a bent
capture or an attacker's hand; at its own place alone a record is followed by the next numbers. So the farthest record
behind it whose place its header and those in between say must open under its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from wirecheck.capture.tls.record_header import CHANGE_CIPHER, HEADER_BYTES, is_header, size_of

if TYPE_CHECKING:
    from wirecheck.capture.tls.plain_space import Runs
    from wirecheck.capture.tls.record_numbers import RecordNumbers

LIKELY_HEADER: Final = b"\x17\x03\x03\0\0"  # the rest of one whose first bytes are there
MOST_RECORDS: Final = 16
"""Behind the one in question."""
NOT_YET: Final = 0
PROVEN: Final = 1
REFUTED: Final = 2
NEVER: Final = 3
"""A gap hides where the next record begins."""


def proof(runs: Runs, numbers: RecordNumbers, begin: i64, end: i64) -> i64:
    """Of the record that ends at `begin`, behind which `numbers` goes on; what was fed ends at `end`."""
    at, ahead = begin, i64(0)
    farthest, farthest_ahead = i64(-1), i64(0)
    verdict: i64 = NEVER
    while ahead < MOST_RECORDS:
        seen = min(end - at, HEADER_BYTES)
        head = runs.joined(at, at + seen)
        if i64(len(head)) < seen:
            break
        if not is_header(head + LIKELY_HEADER[seen:], 0):
            return REFUTED
        behind = at + HEADER_BYTES + (size_of(head, 0) if seen == HEADER_BYTES else 0)
        if behind > end or seen < HEADER_BYTES:
            verdict = NOT_YET
            break
        if i64(head[0]) != CHANGE_CIPHER:
            if runs.has(at, behind):
                farthest, farthest_ahead = at, ahead
            ahead += 1
        at = behind
    if farthest < 0:
        return verdict
    body = farthest + HEADER_BYTES
    head = runs.joined(farthest, body)
    return PROVEN if numbers.opens(farthest_ahead, head, runs.joined(body, body + size_of(head, 0))) else REFUTED
