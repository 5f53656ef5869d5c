"""How far a clock was set, by TCP's timestamps (RFC 7323): a host counts on in them at a steady rate, whatever the
clock of the host that captures does.

Rule: a step is what hosts agree on. One whose timestamps go on as the capture's clock does shows that there is none,
and one host alone shows nothing: it writes what it likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

RATES = (1, 2, 10, 100, 250, 300, 1_000, 1_000_000)
"""Of a second: those that systems have."""
NEAR = 0.05
"""A rate is measured to within this part of it."""
LEAST_TICKS = 20
LEAST_NS = 100_000_000
EXACT_NS = 500_000_000
"""As far as a timestamp and the capture's clock may differ, because a segment waited."""
SET_NS = 1_000_000_000
"""By less a clock is not set."""
HOSTS = 2
MASK = (1 << 32) - 1


class Stamped(NamedTuple):
    """Rows of a file one after another, their times, and their timestamps, negative where they have none."""

    rows: pa.RecordBatch
    ts_ns: NDArray[np.int64]
    stamps: NDArray[np.int64]


Sender = tuple[str, int, str, int]
Stamp = tuple[int, int]
"""A time, and the timestamp of the row."""


def step_ns(before: Stamped, behind: Stamped) -> int | None:
    """How much further the clock went between these rows than time did; 0 where it was not set; None: unknown."""
    ended, begun = _ends(before), _ends(behind)
    rates = _rates([*ended.items(), *begun.items()])
    found, hosts = list[int](), set[str]()
    for sender in ended.keys() & begun.keys():
        (then_ns, then), (now_ns, now) = ended[sender][1], begun[sender][0]
        ticks = (now - then) & MASK
        if sender[0] not in rates or ticks > MASK >> 1:
            continue
        by_ns = now_ns - then_ns - ticks * 1_000_000_000 // rates[sender[0]]
        if abs(by_ns) < EXACT_NS:
            return 0
        if abs(by_ns) >= SET_NS:
            found.append(by_ns)
            hosts.add(sender[0])
    if len(hosts) < HOSTS:
        return None
    middle = int(np.median(found))
    return middle if all(abs(by_ns - middle) < EXACT_NS for by_ns in found) else None


def _ends(stamped: Stamped) -> dict[Sender, tuple[Stamp, Stamp]]:
    """By sender its first timestamp and its last one."""
    at = np.flatnonzero(stamped.stamps >= 0)
    if not len(at):
        return {}
    rows = stamped.rows
    columns = [rows.column(name) for name in ("src_ip", "src_port", "dst_ip", "dst_port")]
    codes = [np.asarray(one.indices if index % 2 == 0 else one)[at] for index, one in enumerate(columns)]
    senders = np.stack([code.astype(np.int64) for code in codes])
    _, first = np.unique(senders, axis=1, return_index=True)
    _, last = np.unique(senders[:, ::-1], axis=1, return_index=True)
    found = dict[Sender, tuple[Stamp, Stamp]]()
    for one, other in zip(at[first].tolist(), at[len(at) - 1 - last].tolist(), strict=True):
        src_ip, src_port, dst_ip, dst_port = (column[one].as_py() for column in columns)
        ends = ((int(stamped.ts_ns[row]), int(stamped.stamps[row])) for row in (one, other))
        found[src_ip, src_port, dst_ip, dst_port] = next(ends), next(ends)
    return found


def _rates(ends: list[tuple[Sender, tuple[Stamp, Stamp]]]) -> dict[str, int]:
    """By host how many ticks its timestamps have in a second, by the sender that shows it for longest."""
    longest, found = dict[str, int](), dict[str, int]()
    for sender, ((since_ns, first), (until_ns, last)) in ends:
        span_ns, ticks = until_ns - since_ns, (last - first) & MASK
        if span_ns < max(LEAST_NS, longest.get(sender[0], 0)) or not LEAST_TICKS <= ticks <= MASK >> 1:
            continue
        measured = ticks * 1e9 / span_ns
        near = [rate for rate in RATES if abs(measured - rate) < NEAR * rate]
        if near:
            longest[sender[0]], found[sender[0]] = span_ns, near[0]
    return found
