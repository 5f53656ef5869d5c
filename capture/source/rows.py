"""The columns that a walk fills, and the Arrow batch that they become.

Columns are reused, so a batch copies what it keeps; payloads are copied out of the windows all at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirecheck.capture import frames
from wirecheck.capture.link import link_type, packet
from wirecheck.capture.link.packet import Headers

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The smallest packet that becomes a row: a record header of 16 bytes, 20 of IP, 20 of TCP.
_SMALLEST_BYTES = 56
BATCH_BYTES = 24 << 20  # of payload; the C library gives more than 32 MB back to the system at once, page by page
MOST_ROWS = 48 << 10


class Rows:
    """What a walk writes: headers of `count` rows, and counts that go on from batch to batch of one source."""

    def __init__(self, batch_bytes: int) -> None:
        """A batch is full with so many bytes of payload, or what a walk adds to fewer."""
        self._batch_bytes = batch_bytes
        self.headers = Headers(min(batch_bytes // _SMALLEST_BYTES, MOST_ROWS) + 1)
        self._windows: list[bytes] = []
        self._kept_rows = 0

    @property
    def count(self) -> int:
        return int(self.headers.rows)

    @property
    def has_space(self) -> bool:
        """For the rows of another walk, as far as their payloads go."""
        return bool(self.headers.payload_bytes < self._batch_bytes)

    @property
    def packets(self) -> int:
        return int(self.headers.packets)

    @property
    def newest_ns(self) -> int:
        """Newest time of any packet so far; 0 before the first that has one."""
        return max(int(self.headers.newest_ns), 0)

    def begin(self) -> None:
        """Forget the rows of the last batch, their payloads and addresses."""
        self._kept_rows = 0
        self._windows = []
        self.headers.begin()

    def skipped_marks(self, source: str, ts_ns: int) -> list[frames.Mark]:
        """One mark per reason for which packets are no frames."""
        counts = zip(link_type.REASONS, self.headers.skipped, strict=True)
        return [frames.Mark(frames.SKIPPED, ts_ns, source, n, reason) for reason, n in counts if n]

    def forget_skipped(self) -> None:
        self.headers.forget_skipped()

    def clock(self) -> NDArray[np.int64]:
        clock: NDArray[np.int64] = self._cells()[packet.CLOCK].copy()
        return clock

    def interfaces(self) -> NDArray[np.int64] | None:
        """The number of each row's interface in its section; None where it is the first of each."""
        numbers = self._cells()[packet.INTERFACE]
        return numbers.copy() if numbers.any() else None

    def stamps(self) -> NDArray[np.int64] | None:
        """The TCP timestamp of each row, negative where it has none; None where no row has one."""
        stamps = self._cells()[packet.STAMP]
        return stamps.copy() if (stamps >= 0).any() else None

    def keep(self, data: bytes) -> None:
        """The rows that a walk over this data added stay, and so does it until the batch is made."""
        if self.count > self._kept_rows:
            self._windows.append(data)
            self.headers.window = len(self._windows)
            self._kept_rows = self.count

    def batch(self, source: str, stamp: frames.Stamp) -> pa.RecordBatch:
        """The rows that were kept, with their payloads."""
        n, cells = self._kept_rows, self._cells()
        addresses = pa.array(self.headers.addresses.texts(), pa.string())
        columns = {
            "kind": pa.array(np.zeros(n, np.int8)),
            "cluster": frames.constant(stamp.cluster, n),
            "agent": frames.constant(stamp.agent, n),
            "file_seq": pa.array(np.zeros(n, np.int32)),
            "source": frames.constant(source, n),
            "frame_no": _wide(cells[packet.FRAME_NO]),
            "ts_ns": _wide(cells[packet.TS_NS]),
            "src_ip": pa.DictionaryArray.from_arrays(_narrow(cells[packet.SRC]), addresses),
            "src_port": _narrow(cells[packet.SRC_PORT]),
            "dst_ip": pa.DictionaryArray.from_arrays(_narrow(cells[packet.DST]), addresses),
            "dst_port": _narrow(cells[packet.DST_PORT]),
            "tcp_seq": _wide(cells[packet.SEQ]),
            "tcp_ack": _wide(cells[packet.ACK]),
            "tcp_flags": _narrow(cells[packet.FLAGS]),
            "tcp_window": _narrow(cells[packet.TCP_WINDOW]),
            "payload": self._payloads(),
            "payload_len": _narrow(cells[packet.LENGTH]),
            "left_out": cut_spans(cells[packet.KEPT], cells[packet.LENGTH]),
            "decrypted": pa.array(np.zeros(n, np.int64)),
            "count": _wide(cells[packet.LENGTH] - cells[packet.KEPT]),
            "reason": pa.nulls(n, frames.CODED),
        }
        schema = frames.FRAMES_CODED
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)

    def _payloads(self) -> pa.BinaryArray:
        """Copies: a view needs its whole window."""
        views = np.ascontiguousarray(self._cells()[packet.VIEW : packet.VIEW + 2].T)
        buffers = [None, pa.py_buffer(views), *map(pa.py_buffer, self._windows)]
        return pa.Array.from_buffers(pa.binary_view(), self._kept_rows, buffers).cast(pa.binary())

    def _cells(self) -> NDArray[np.int64]:
        """By column, of the rows that were kept: they are the next batch's from its beginning on."""
        every: Any = self.headers.cells
        return np.frombuffer(every, np.int64).reshape(-1, packet.CELLS)[: self._kept_rows].T


def _wide(column: NDArray[np.int64]) -> pa.Array:
    return pa.array(column.copy())


def _narrow(column: NDArray[np.int64]) -> pa.Array:
    return pa.array(column.astype(np.int32))


def cut_spans(kept: NDArray[np.int64], length: NDArray[np.int64]) -> pa.ListArray:
    """What the snaplen cut off the end of each payload, as a list of no or one span."""
    cut = kept < length
    ends = np.zeros(kept.size + 1, np.int32)
    np.cumsum(cut, out=ends[1:])
    inner = [_narrow(kept[cut]), _narrow(length[cut] - kept[cut])]
    spans = pa.StructArray.from_arrays(inner, fields=list(frames.SPAN))
    return pa.ListArray.from_arrays(pa.array(ends), spans)
