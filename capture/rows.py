"""From the numbers of a walk to Arrow: the arrays a walk fills, and the batch they become.

Knows: how rows, addresses and kept bytes turn into the columns of frames.FRAMES_CODED.
Refuses to know: where the packets came from.
Rule: the arrays are used again for the next batch, so a batch copies what it keeps; no Python object per packet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from capture import frames, link, packet

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The smallest packet that becomes a row: a record header of 16 bytes, 20 of IP, 20 of TCP.
_SMALLEST_BYTES = 56


class Rows:
    """What a walk writes: rows[:, :count], and counters that go on from batch to batch of one source."""

    def __init__(self, window_bytes: int) -> None:
        self.matrix = np.empty((packet.COLUMN_COUNT, window_bytes // _SMALLEST_BYTES + 1), np.int64)
        self.state = packet.State(
            self.matrix,
            np.zeros(packet.COUNTER_COUNT, np.int64),
            np.zeros(len(link.REASONS), np.int64),
            np.zeros((packet.ADDRESS_CAPACITY + 1, 3), np.int64),
            np.zeros(packet.ADDRESS_SLOTS, np.int64),
        )
        self.state.counters[packet.NEWEST_NS] = packet.OLDEST_NS

    @property
    def count(self) -> int:
        return int(self.state.counters[packet.ROW])

    @property
    def packets(self) -> int:
        return int(self.state.counters[packet.PACKET_NO])

    @property
    def newest_ns(self) -> int:
        """Newest time of any packet so far; 0 before the first."""
        return int(self.state.counters[packet.NEWEST_NS]) if self.packets else 0

    def begin(self) -> None:
        """Forget the rows of the last batch and their addresses."""
        self.state.counters[packet.ROW] = 0
        self.state.known[0, 0] = 0
        self.state.slots[:] = 0

    def skipped_marks(self, source: str, ts_ns: int) -> list[frames.Mark]:
        """One mark per reason for which packets are no frames."""
        counts = zip(link.REASONS, self.state.skipped.tolist(), strict=True)
        return [frames.Mark(frames.SKIPPED, ts_ns, source, n, reason) for reason, n in counts if n]

    def clock(self) -> NDArray[np.int64]:
        return self.matrix[packet.CLOCK, : self.count].copy()

    def batch(self, data: NDArray[np.uint8], source: str, stamp: frames.Stamp) -> pa.RecordBatch:
        n, rows = self.count, self.matrix
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
            "payload": kept_bytes(data, rows[packet.AT, :n], rows[packet.KEPT, :n]),
            "payload_len": self._narrow(packet.LENGTH),
            "left_out": cut_spans(rows[packet.KEPT, :n], rows[packet.LENGTH, :n]),
            "count": pa.array(np.zeros(n, np.int64)),
            "reason": pa.nulls(n, frames.CODED),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=frames.FRAMES_CODED)

    def _wide(self, column: int) -> pa.Array:
        return pa.array(self.matrix[column, : self.count].copy())

    def _narrow(self, column: int) -> pa.Array:
        return pa.array(self.matrix[column, : self.count].astype(np.int32))


def kept_bytes(data: NDArray[np.uint8], at: NDArray[np.int64], size: NDArray[np.int64]) -> pa.BinaryArray:
    ends = np.zeros(size.size + 1, np.int32)
    np.cumsum(size, out=ends[1:])
    out = np.empty(int(ends[-1]), np.uint8)
    packet.gather(data, at, ends, out)
    return pa.BinaryArray.from_buffers(pa.binary(), size.size, [None, pa.py_buffer(ends), pa.py_buffer(out)])


def cut_spans(kept: NDArray[np.int64], length: NDArray[np.int64]) -> pa.ListArray:
    """What the snaplen cut off the end of each payload, as a list of no or one span."""
    cut = kept < length
    ends = np.zeros(kept.size + 1, np.int32)
    np.cumsum(cut, out=ends[1:])
    offset = pa.array(kept[cut].astype(np.int32))
    missing = pa.array((length[cut] - kept[cut]).astype(np.int32))
    spans = pa.StructArray.from_arrays([offset, missing], fields=list(frames.SPAN))
    return pa.ListArray.from_arrays(pa.array(ends), spans)
