"""From the numbers of a walk to Arrow: the arrays a walk fills, and the batch they become.

Knows: how rows, addresses and kept bytes turn into the columns of frames.FRAMES_CODED, and when a batch is full: what
a batch costs whatever is in it should weigh little, and what it touches should still fit into the processor's cache.
Refuses to know: where the packets came from.
Rule: the arrays are used again for the next batch, so a batch copies what it keeps; payloads are copied right after the
walk over their packets, while those are in the cache. No Python object per packet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from wirecheck.capture import frames
from wirecheck.capture.link import link_type, packet

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The smallest packet that becomes a row: a record header of 16 bytes, 20 of IP, 20 of TCP.
_SMALLEST_BYTES = 56
BATCH_BYTES = 24 << 20  # of payload; the C library gives more than 32 MB back to the system at once, page by page
MOST_ROWS = 48 << 10
_ROOM_BYTES = 1 << 20


class Rows:
    """What a walk writes: rows[:, :count], and counters that go on from batch to batch of one source."""

    def __init__(self, batch_bytes: int) -> None:
        """A batch is full with so many bytes of payload, or what a walk adds to fewer."""
        self._batch_bytes = batch_bytes
        capacity = min(batch_bytes // _SMALLEST_BYTES, MOST_ROWS) + 1
        self.matrix = np.empty((packet.COLUMN_COUNT, capacity), np.int64)
        self._ends = np.zeros(capacity + 1, np.int32)  # of the payloads that are kept
        self._payload = np.empty(0, np.uint8)
        self._kept_rows = self._last_bytes = 0
        self.state = packet.State(
            self.matrix,
            np.zeros(packet.COUNTER_COUNT, np.int64),
            np.zeros(len(link_type.REASONS), np.int64),
            np.zeros((packet.ADDRESS_CAPACITY + 1, 3), np.int64),
            np.zeros(packet.ADDRESS_SLOTS, np.int64),
        )
        self.state.counters[packet.NEWEST_NS] = packet.OLDEST_NS

    @property
    def count(self) -> int:
        return int(self.state.counters[packet.ROW])

    @property
    def has_room(self) -> bool:
        """For the rows of another walk, as far as their payloads go."""
        return int(self._ends[self._kept_rows]) < self._batch_bytes

    @property
    def packets(self) -> int:
        return int(self.state.counters[packet.PACKET_NO])

    @property
    def newest_ns(self) -> int:
        """Newest time of any packet so far; 0 before the first that has one."""
        return max(int(self.state.counters[packet.NEWEST_NS]), 0)

    def begin(self) -> None:
        """Forget the rows of the last batch, their payloads and addresses."""
        self._kept_rows = 0
        self.state.counters[packet.ROW] = 0
        self.state.known[0, 0] = 0
        self.state.slots[:] = 0

    def skipped_marks(self, source: str, ts_ns: int) -> list[frames.Mark]:
        """One mark per reason for which packets are no frames."""
        counts = zip(link_type.REASONS, self.state.skipped.tolist(), strict=True)
        return [frames.Mark(frames.SKIPPED, ts_ns, source, n, reason) for reason, n in counts if n]

    def clock(self) -> NDArray[np.int64]:
        return self.matrix[packet.CLOCK, : self.count].copy()

    def keep(self, data: NDArray[np.uint8]) -> None:
        """Copy the payloads of the rows that a walk over this data added: it may change from here on."""
        new = slice(self._kept_rows, self.count)
        used = int(self._ends[new.start])
        wanted = used + int(self.matrix[packet.KEPT, new].sum())
        if wanted > len(self._payload):
            larger = np.empty(max(wanted, 2 * used, self._last_bytes) + _ROOM_BYTES, np.uint8)
            larger[:used] = self._payload[:used]
            self._payload = larger
        ends = self._ends[new.start : new.stop + 1]
        packet.gather(data, self.matrix[packet.AT, new], self.matrix[packet.KEPT, new], ends, self._payload)
        self._kept_rows = new.stop

    def batch(self, source: str, stamp: frames.Stamp) -> pa.RecordBatch:
        """The rows that were kept, with their payloads."""
        n, rows = self._kept_rows, self.matrix
        addresses = pa.array(packet.address_texts(self.state.known), pa.string())
        columns = {
            "kind": pa.array(np.zeros(n, np.int8)),
            "cluster": frames.constant(stamp.cluster, n),
            "agent": frames.constant(stamp.agent, n),
            "file_seq": pa.array(np.zeros(n, np.int32)),
            "source": frames.constant(source, n),
            "frame_no": self._wide(packet.FRAME_NO),
            "ts_ns": self._wide(packet.TS_NS),
            "src_ip": pa.DictionaryArray.from_arrays(self._narrow(packet.SRC), addresses),
            "src_port": self._narrow(packet.SRC_PORT),
            "dst_ip": pa.DictionaryArray.from_arrays(self._narrow(packet.DST), addresses),
            "dst_port": self._narrow(packet.DST_PORT),
            "tcp_seq": self._wide(packet.SEQ),
            "tcp_ack": self._wide(packet.ACK),
            "tcp_flags": self._narrow(packet.FLAGS),
            "payload": self._payloads(),
            "payload_len": self._narrow(packet.LENGTH),
            "left_out": cut_spans(rows[packet.KEPT, :n], rows[packet.LENGTH, :n]),
            "count": pa.array(np.zeros(n, np.int64)),
            "reason": pa.nulls(n, frames.CODED),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=frames.FRAMES_CODED)

    def _payloads(self) -> pa.BinaryArray:
        """They are the batch's own from here on."""
        ends = self._ends[: self._kept_rows + 1].copy()
        self._last_bytes = int(ends[-1])
        data, self._payload = self._payload[: self._last_bytes], np.empty(0, np.uint8)
        return pa.BinaryArray.from_buffers(pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])

    def _wide(self, column: int) -> pa.Array:
        return pa.array(self.matrix[column, : self.count].copy())

    def _narrow(self, column: int) -> pa.Array:
        return pa.array(self.matrix[column, : self.count].astype(np.int32))


def cut_spans(kept: NDArray[np.int64], length: NDArray[np.int64]) -> pa.ListArray:
    """What the snaplen cut off the end of each payload, as a list of no or one span."""
    cut = kept < length
    ends = np.zeros(kept.size + 1, np.int32)
    np.cumsum(cut, out=ends[1:])
    offset = pa.array(kept[cut].astype(np.int32))
    missing = pa.array((length[cut] - kept[cut]).astype(np.int32))
    spans = pa.StructArray.from_arrays([offset, missing], fields=list(frames.SPAN))
    return pa.ListArray.from_arrays(pa.array(ends), spans)
