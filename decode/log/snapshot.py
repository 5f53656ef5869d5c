"""Metadata snapshots from FetchSnapshot responses: chunks in the order of their positions, put together.

A batch is read once all of it is there; until then at most MOST_WAITING_BYTES wait. A snapshot that needs more, whose
chunks contradict its size, or of which a chunk is missing, is given up (`lost`). The caller puts chunks in order.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field, replace

import numpy as np

from wirecheck.decode.holes import Field, laid_out
from wirecheck.decode.log.metadata_log import Entries, field_entries
from wirecheck.decode.log.records import OVERHEAD_BYTES

STATE_VERSION = 1
MOST_WAITING_BYTES = 64 << 20
MOST_WAITING_CHUNKS = 4096  # raft asks for 8 MiB at a time, later releases for 1 MiB


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one FetchSnapshot answer carries of a snapshot."""

    position: int  # of its first byte in the snapshot
    size: int  # of the whole snapshot, as the response states it
    kept: bytes
    left_out: tuple[tuple[int, int], ...] = ()  # (offset, length) in the chunk as it was on the wire

    @property
    def end(self) -> int:
        return self.position + len(self.kept) + sum(length for _, length in self.left_out)


@dataclass(slots=True)
class Snapshot:
    """One snapshot, known by its end offset and epoch."""

    end_offset: int
    epoch: int
    size: int = -1  # -1 before the first chunk
    read_to: int = 0  # every batch that ends at or before this position has been handed out
    needed: int = 1  # nothing more can be read before the bytes up to here are there
    lost: bool = False  # it will never be whole
    waiting: list[Chunk] = field(default_factory=list)  # by position, each reaching further; what is not behind read_to

    @property
    def end(self) -> int:
        """The position up to which its bytes were received."""
        return self.waiting[-1].end if self.waiting else self.read_to

    @property
    def complete(self) -> bool:
        """Whether all of it has been handed out: then what is not in it is not in the log below its end offset."""
        return self.read_to == self.size and not self.lost

    def receive(self, chunk: Chunk) -> Entries:
        """The entries that became whole by this chunk, all at (end_offset - 1, epoch): a snapshot is one moment. A
        chunk may overlap those before it, or repeat them.
        """
        if self.size not in {-1, chunk.size} or not 0 <= chunk.position <= self.end or chunk.end > chunk.size:
            self._give_up()
        if self.lost:
            return self._placed(field_entries(_NOTHING))
        self.size = chunk.size
        if chunk.end > self.end:
            self.waiting.append(chunk)
        found = self._read()
        kept = sum(len(c.kept) for c in self.waiting)
        if kept > MOST_WAITING_BYTES or len(self.waiting) > MOST_WAITING_CHUNKS:
            self._give_up()
        return found

    def _read(self) -> Entries:
        """The entries of the batches that are whole behind read_to, which moves on."""
        end = self.end
        if end < self.needed and end != self.size:
            return self._placed(field_entries(_NOTHING))
        begins = [self.read_to, *(chunk.end for chunk in self.waiting)]
        whole = _concatenated([_cut(chunk, begin) for chunk, begin in zip(self.waiting, begins, strict=False)])
        found = field_entries(whole)
        if found.read_to + found.left_over != len(whole) or (end == self.size and found.left_over):
            self._give_up()
            return self._placed(found)
        self.needed = self.read_to + found.read_to + _next_batch_bytes(whole, found.read_to)
        self.read_to += found.read_to
        self.waiting = [chunk for chunk in self.waiting if chunk.end > self.read_to]
        return self._placed(found)

    def _placed(self, found: Entries) -> Entries:
        n = len(found)
        return replace(
            found,
            offset=np.full(n, self.end_offset - 1, np.int64),
            epoch=np.full(n, self.epoch, np.int64),
        )

    def _give_up(self) -> None:
        self.lost = True
        self.waiting = []

    def snapshot(self) -> bytes:
        waiting = [(c.position, c.size, base64.b64encode(c.kept).decode(), c.left_out) for c in self.waiting]
        place = [self.end_offset, self.epoch, self.size, self.read_to, self.needed, self.lost]
        return json.dumps({"version": STATE_VERSION, "place": place, "waiting": waiting}).encode()

    @classmethod
    def restore(cls, blob: bytes) -> Snapshot:
        state = json.loads(blob)
        if state["version"] != STATE_VERSION:
            raise ValueError(f"state of version {state['version']}, this program reads {STATE_VERSION}")
        waiting = [
            Chunk(position, size, base64.b64decode(kept), tuple((a, b) for a, b in left_out))
            for position, size, kept, left_out in state["waiting"]
        ]
        end_offset, epoch, size, read_to, needed, lost = state["place"]
        return cls(end_offset, epoch, size, read_to, needed, lost, waiting)


_NOTHING = laid_out(b"")


def _cut(chunk: Chunk, begin: int) -> Field:
    """The chunk from a position of the snapshot on."""
    whole, at = laid_out(chunk.kept, chunk.left_out), begin - chunk.position
    holes = np.maximum(whole.holes - at, 0)
    return Field(whole.data[at:], holes[holes[:, 1] > 0])


def _concatenated(pieces: list[Field]) -> Field:
    ends = np.cumsum([0, *(len(p) for p in pieces)])
    holes = [p.holes + end for p, end in zip(pieces, ends[:-1], strict=True)]
    return Field(np.concatenate([_NOTHING.data, *(p.data for p in pieces)]), np.concatenate([_NOTHING.holes, *holes]))


def _next_batch_bytes(whole: Field, at: int) -> int:
    """How long the batch at the end is by its own word, so that it is not tried again with every chunk."""
    if len(whole) - at < OVERHEAD_BYTES or not whole.known(at, at + OVERHEAD_BYTES):
        return 1
    return OVERHEAD_BYTES + max(whole.integer(at + 8, 4), 0)
