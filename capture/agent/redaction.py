"""Decryption and then redaction, in one place for the agents; also with key logs that still grow.

Plaintext leaves only through Trim, unless --keep-records is set. Secrets stay in this process's memory, and it writes
no core file.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from wirecheck.capture.agent.counts import NO_MESSAGE, Counts, TlsCounts
from wirecheck.capture.tls.key_log import NO_KEY, GrowingKeyLogs, Secrets
from wirecheck.capture.translation import Translation
from wirecheck.capture.trim.trimmer import Trim

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from wirecheck.capture.tls.decryption import Decryption


class Redaction:
    """Rows in, rows out: plaintext where keys are known, without records and secrets unless these are kept."""

    def __init__(
        self,
        secrets: Secrets,
        key_logs: GrowingKeyLogs | None = None,
        *,
        keep_records: bool = False,
        in_turn: bool = False,
        batch_headers: bool = False,
        on_rows: Callable[[pa.RecordBatch], None] = lambda _: None,
    ) -> None:
        """`in_turn`: rows come one interface after the other (`Translation`). `on_rows` gets the rows before anything
        of them is redacted; they must not leave this process.
        """
        self._on_rows = on_rows
        self._secrets, self._key_logs = secrets, key_logs
        self._trim = None if keep_records else Trim(batch_headers=batch_headers)
        self._decryption: Decryption | None = None
        self._translation = Translation(in_turn=in_turn)
        self._wire_bytes = self._kept_bytes = self._no_message_bytes = 0

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._read_key_logs()
        if self._decryption is None and self._secrets.in_use:
            from wirecheck.capture.tls.decryption import Decryption
            from wirecheck.capture.tls.joining import LIVE, OFFLINE, Budget

            self._decryption = Decryption(self._secrets, Budget(LIVE if self._key_logs is not None else OFFLINE))
        for part in self._translation.add(rows):
            yield from self._decrypted(part)

    def advance(self, agent: str, now_ns: int) -> Iterator[pa.RecordBatch]:
        self._read_key_logs()
        for part in self._translation.advance(now_ns):
            yield from self._decrypted(part)
        if self._decryption is not None:
            yield from self._trimmed(self._decryption.advance(agent, now_ns))
        if self._trim is not None:
            yield from self._counted(self._trim.advance(agent, now_ns))

    def drain(self) -> Iterator[pa.RecordBatch]:
        for part in self._translation.drain():
            yield from self._decrypted(part)
        if self._decryption is not None:
            yield from self._trimmed(self._decryption.drain())
        if self._trim is not None:
            yield from self._counted(self._trim.drain())

    @property
    def oldest_ns(self) -> int | None:
        """Time of the oldest row that waits; None if none does."""
        waiting = [each.oldest_ns for each in (self._translation, self._decryption, self._trim) if each is not None]
        return min((ns for ns in waiting if ns is not None), default=None)

    @property
    def left_out(self) -> dict[str, int]:
        """Bytes of payload that were redacted, by reason; none of them ever falls."""
        if self._trim is None:
            return {}
        reasons = self._trim.left_out
        rest = self._wire_bytes - self._kept_bytes - sum(reasons.values())
        self._no_message_bytes = max(self._no_message_bytes, rest)
        return reasons | {NO_MESSAGE: self._no_message_bytes}

    @property
    def copies(self) -> int:
        """Rows that were removed because they are there under other addresses, too."""
        return self._translation.copies

    @property
    def connections(self) -> int:
        return self._trim.connections if self._trim is not None else 0

    def tls_counts(self, before: TlsCounts) -> TlsCounts:
        """What became of TLS, with what was counted before this began."""
        failures = self._decryption.failures if self._decryption is not None else {}
        without_keys = failures.get(NO_KEY, 0)
        return TlsCounts(
            decrypted=before.decrypted + (self._decryption.decrypted if self._decryption is not None else 0),
            without_keys=before.without_keys + without_keys,
            failed=before.failed + sum(failures.values()) - without_keys,
            secrets=self._secrets.lines,
            strange=self._secrets.strange,
            unreadable=self._key_logs.unreadable if self._key_logs is not None else 0,
        )

    def _read_key_logs(self) -> None:
        if self._key_logs is not None:
            self._key_logs.look()

    def _decrypted(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield from self._trimmed(self._decryption.add(rows) if self._decryption is not None else [rows])

    def _trimmed(self, parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in parts:
            self._on_rows(rows)
            yield from [rows] if self._trim is None else self._counted(self._trim.add(rows))

    def _counted(self, parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in parts:
            self._wire_bytes += pc.sum(rows.column("payload_len")).as_py() or 0
            self._kept_bytes += pc.sum(pc.binary_length(rows.column("payload"))).as_py() or 0
            yield rows


def redacting(
    key_logs: Sequence[Path],
    counts: Counts,
    say: Callable[[str], None],
    stack: contextlib.ExitStack,
    *,
    keep_records: bool,
    in_turn: bool,
) -> Callable[[], Redaction]:
    """How the live agent's redaction begins, or begins again. Raises KeyLogError."""
    secrets, logs = Secrets(), None
    if key_logs:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        counts.tls, logs = TlsCounts(), GrowingKeyLogs(key_logs, secrets, say)
        stack.callback(logs.close)
    return lambda: Redaction(secrets, logs, keep_records=keep_records, in_turn=in_turn)
