"""The offline agent: captures in, a folder of frames out.

What could not be read is reported twice: as a mark among the rows, and in the Summary.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture import frames
from wirecheck.capture.agent.redaction import Redaction
from wirecheck.capture.source.merge import inputs_in_order, merged
from wirecheck.capture.source.pcap import CaptureFile, InputError
from wirecheck.capture.source.rows import BATCH_BYTES
from wirecheck.capture.tls.key_log import GrowingKeyLogs, KeyLog, Secrets
from wirecheck.capture.translation import TRANSLATED
from wirecheck.decode.collector_pause import collector_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from wirecheck.capture.source.merge import Input


IDLE_S = 11.0
"""So long after its last packet a closed connection is over (`linger_ns`), and what is written is in the file."""
OFFLINE = "replay"
"""Default name of the agent that reads files."""


class NothingReadableError(InputError):
    """None of the inputs could be read. Its text is one line per input."""

    def __init__(self, errors: Sequence[InputError]) -> None:
        super().__init__(errors[0].path, errors[0].offset, errors[0].reason)
        self.errors = tuple(errors)
        self.args = ("\n".join(str(error) for error in errors),)


@dataclass
class Summary:
    """What a command can say about a capture it read."""

    frames: int = 0
    payload_bytes: int = 0  # on the wire
    bytes: int = 0  # of the input files
    dropped: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    input_errors: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)  # bytes of payload by reason

    def add(self, rows: pa.RecordBatch) -> None:
        kinds = rows.column("kind").to_numpy()
        self.frames += int((kinds == frames.FRAME).sum())
        self.payload_bytes += int(rows.column("payload_len").to_numpy().sum())
        for i in np.flatnonzero(kinds != frames.FRAME):
            self._add_mark(rows.slice(i, 1).to_pylist()[0])

    def _add_mark(self, mark: dict[str, object]) -> None:
        count, reason = int(str(mark["count"])), str(mark["reason"])
        if mark["kind"] == frames.SKIPPED:
            self.skipped[reason] = self.skipped.get(reason, 0) + count
        elif mark["kind"] == frames.DROPPED:
            self.dropped += count
        elif mark["kind"] == frames.INPUT_ERROR:
            self.input_errors.append(f"{mark['source']}: {reason}")


class _Capture:
    """All inputs of one command, as one capture."""

    def __init__(self, inputs: Sequence[Path], stamp: frames.Stamp, batch_bytes: int, key_logs: Sequence[Path]) -> None:
        if not inputs:
            raise ValueError("no input")
        self.secrets = Secrets()
        self._key_logs = [KeyLog(path, self.secrets) for path in key_logs]
        for key_log in self._key_logs:
            key_log.read()
        self._inputs, self._errors = inputs_in_order(inputs)
        if not self._inputs:
            raise NothingReadableError(self._errors)
        self._stamp, self._batch_bytes = stamp, batch_bytes
        self.summary = Summary(bytes=sum(_size(source) for source in self._inputs))

    def rows(self, on_progress: Callable[[int, int], None] | None) -> Iterator[pa.RecordBatch]:
        """Every row from STARTED to ENDED; PROGRESS rows belong to files and are the spool's."""
        newest_ns = self._inputs[0].first_ns
        marks = [
            frames.Mark(frames.STARTED, newest_ns),
            *(frames.Mark(frames.INPUT_ERROR, newest_ns, str(e.path), reason=e.reason) for e in self._errors),
            *(
                frames.Mark(frames.INPUT_ERROR, newest_ns, str(k.path), reason=k.fault)
                for k in self._key_logs
                if k.fault
            ),
        ]
        yield self._counted(frames.mark_rows(marks, self._stamp))

        def on_read(read_bytes: int) -> None:
            if on_progress is not None:
                on_progress(read_bytes, self.summary.bytes)

        for rows in merged(self._inputs, self._stamp, on_read, self._batch_bytes, self.secrets.read_block):
            newest_ns = max(newest_ns, int(np.max(rows.column("ts_ns").to_numpy())))
            yield self._counted(rows)
        yield self._counted(frames.mark_rows([frames.Mark(frames.ENDED, newest_ns)], self._stamp))

    def _counted(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        self.summary.add(rows)
        return rows


@collector_paused()
def write_frames(
    inputs: Sequence[Path],
    out: Path,
    cluster: str,
    agent: str = OFFLINE,
    *,
    roll_bytes: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_rows: Callable[[pa.RecordBatch], None] = lambda _: None,
    batch_bytes: int = BATCH_BYTES,
    keep_records: bool = False,
    batch_headers: bool = False,
    key_logs: Sequence[Path] = (),
) -> Summary:
    """Capture files into a folder of frames. on_progress gets (bytes of the inputs read, bytes in all), on_rows
    the rows in memory, as `read_frames` gives them.

    Records, secrets and all that is not known to be Kafka are redacted unless keep_records; headers of record batches
    stay with batch_headers. TLS is decrypted with the
    secrets of `key_logs`, and those that the captures hold.

    Raises NothingReadableError, KeyLogError, or OSError when it cannot write (FolderInUseError is one).
    """
    from wirecheck.capture.agent.spool import ROLL_BYTES, Spool  # looking at a capture does not need it

    stamp = frames.Stamp(cluster, agent)
    capture = _Capture(inputs, stamp, batch_bytes, key_logs)
    spool = Spool(out, stamp, roll_bytes or ROLL_BYTES)
    redaction = Redaction(capture.secrets, keep_records=keep_records, batch_headers=batch_headers, on_rows=on_rows)
    try:
        for rows in _all_of(capture.rows(on_progress), redaction):
            spool.append(rows)
        spool.close()
    finally:
        spool.abandon()
    capture.summary.files, capture.summary.left_out = spool.files, redaction.left_out
    if redaction.copies:
        capture.summary.frames -= redaction.copies
        capture.summary.skipped[TRANSLATED] = redaction.copies
    return capture.summary


def _all_of(every: Iterator[pa.RecordBatch], redaction: Redaction) -> Iterator[pa.RecordBatch]:
    for rows in every:
        yield from redaction.add(rows)
    yield from redaction.drain()


def read_frames(
    inputs: Sequence[Path],
    cluster: str = "",
    agent: str = "decode",
    batch_bytes: int = BATCH_BYTES,
    *,
    key_logs: Sequence[Path] = (),
    on_progress: Callable[[int, int], None] | None = None,
) -> Iterator[pa.Table]:
    """The same rows without files, in memory as they were captured: from STARTED to ENDED, no PROGRESS, file_seq 0.

    Raises NothingReadableError, KeyLogError.
    """
    capture = _Capture(inputs, frames.Stamp(cluster, agent), batch_bytes, key_logs)
    for rows in _all_of(capture.rows(on_progress), Redaction(capture.secrets, keep_records=True)):
        yield pa.Table.from_batches([rows])


def read_growing(
    path: Path,
    wait: Callable[[], None],
    key_logs: Sequence[Path] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[pa.Table]:
    """Frames of a capture as it is written; `wait` is called where nothing new is there. No ENDED mark follows. Where
    nothing came for IDLE_S seconds, a PROGRESS mark says how far time went on.

    TLS is decrypted with key logs that may grow meanwhile; `say` gets a line when one cannot be read, or can again.
    Raises InputError where it cannot be read, or KeyLogError.
    """
    stamp, secrets = frames.Stamp("", "decode"), Secrets()
    logs = GrowingKeyLogs(key_logs, secrets, say) if key_logs else None
    file = CaptureFile(path, BATCH_BYTES, grows=True)
    newest_ns, came_s = 0, time.monotonic()
    try:
        for rows in _growing(file, stamp, secrets, Redaction(secrets, logs, keep_records=True)):
            if rows is not None:
                newest_ns, came_s = max(newest_ns, int(np.max(rows.column("ts_ns").to_numpy()))), time.monotonic()
                yield pa.Table.from_batches([rows])
                continue
            wait()
            if newest_ns and (idle_s := time.monotonic() - came_s) >= IDLE_S:
                newest_ns, came_s = newest_ns + int(idle_s * 1_000_000_000), time.monotonic()
                yield pa.Table.from_batches([frames.mark_rows([frames.Mark(frames.PROGRESS, newest_ns)], stamp)])
        if marks := file.marks():
            yield pa.Table.from_batches([frames.mark_rows(marks, stamp)])
    finally:
        file.close()
        if logs is not None:
            logs.close()


def _growing(
    file: CaptureFile, stamp: frames.Stamp, secrets: Secrets, redaction: Redaction
) -> Iterator[pa.RecordBatch | None]:
    """Rows of a capture as it is written; None where nothing new is there."""
    file.on_keys, newest_ns = secrets.read_block, 0
    for batch in file.growing(stamp):
        if batch is None:
            yield from redaction.advance(stamp.agent, newest_ns)
            yield None
        else:
            newest_ns = max(newest_ns, int(np.max(batch.rows.column("ts_ns").to_numpy())))
            yield from redaction.add(batch.rows)
    yield from redaction.drain()


def write_growing(path: Path, out: Path, key_logs: Sequence[Path] = ()) -> Iterator[list[Path]]:
    """A capture into files of frames as it is written: those that became whole, none where nothing new is there.

    As `write_frames` does, it redacts. Raises InputError where the capture cannot be read, or KeyLogError.
    """
    from wirecheck.capture.agent.spool import Spool

    stamp, secrets = frames.Stamp("default", OFFLINE), Secrets()
    for key_log in (KeyLog(each, secrets) for each in key_logs):
        key_log.read()
    file = CaptureFile(path, BATCH_BYTES, grows=True)
    spool, started = Spool(out, stamp), False
    try:
        for rows in _growing(file, stamp, secrets, Redaction(secrets)):
            if rows is not None:
                if not started:
                    first_ns = int(np.min(rows.column("ts_ns").to_numpy()))
                    spool.append(frames.mark_rows([frames.Mark(frames.STARTED, first_ns)], stamp))
                    started = True
                spool.append(rows)
            if rows is None or spool.files:
                spool.roll()
                made, spool.files = spool.files, []
                yield made
                if rows is None and made:
                    yield []
        spool.roll()
        yield spool.files
    finally:
        file.close()
        spool.abandon()


def read_encrypted(inputs: Sequence[Path]) -> Iterator[pa.Table]:
    """The frames alone as they are in the files, whatever keys these hold. Raises InputError."""
    capture = _Capture(inputs, frames.Stamp("", OFFLINE), BATCH_BYTES, ())
    for rows in capture.rows(None):
        table = pa.Table.from_batches([rows])
        yield table.filter(pc.equal(table["kind"], pa.scalar(frames.FRAME, pa.int8())))


def _size(source: Input) -> int:
    try:
        return source.size
    except OSError:  # removed meanwhile: the merge reports it
        return 0
