"""The interfaces that a section of a pcapng file declares, and what their clocks' ticks are in nanoseconds.

Knows: units that are powers of ten or of two, and that a time may be damage.
Refuses to know: blocks and their options (pcapng.py).
Rule: what is beyond the latest time is the latest; nothing overflows, whatever was declared.
Source: draft-ietf-opsawg-pcapng-03, if_tsresol and if_tsoffset.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

BINARY: Final = 128  # units of time: 0 to 18 are 10^-n seconds, BINARY + n are 2^-n seconds


def time_ns(ticks: i64, unit: i64, offset_ns: i64, latest_ns: i64) -> i64:
    """Of 63 bits of ticks; what is beyond the latest time is the latest: it is damage, and must not overflow."""
    value = latest_ns
    if unit < BINARY:
        scale: i64 = 1
        for _ in range(unit - 9 if unit > 9 else 9 - unit):
            scale *= 10
        if unit > 9:
            value = ticks // scale
        elif ticks > latest_ns // scale:
            return latest_ns
        else:
            value = ticks * scale
    else:
        shift = unit - BINARY
        seconds = ticks >> shift
        fraction = ticks - (seconds << shift)
        if shift > 33:  # keeps fraction * 1e9 inside int64
            fraction >>= shift - 33
            shift = 33
        if seconds > latest_ns // 1_000_000_000:
            return latest_ns
        value = seconds * 1_000_000_000 + ((fraction * 1_000_000_000) >> shift)
    return max(min(min(value, latest_ns) + offset_ns, latest_ns), 0)


@final
class Interfaces:
    """Those of a section, a column each."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self.link_type: vec[i64] = vec[i64]()
        self.snaplen: vec[i64] = vec[i64]()
        self.unit: vec[i64] = vec[i64]()
        self.offset_ns: vec[i64] = vec[i64]()

    def declare(self, link_type: i64, snaplen: i64, unit: i64, offset_ns: i64) -> None:
        self.link_type = append(self.link_type, link_type)
        self.snaplen = append(self.snaplen, snaplen)
        self.unit = append(self.unit, unit)
        self.offset_ns = append(self.offset_ns, offset_ns)
        self.count += 1
