"""Decryption and then redaction, in the place of redaction; also with key logs that still grow.

Plaintext leaves only through Trim, unless --keep-records is set. Secrets stay in this process's memory, and it writes
no core file. Counts only grow, also where Trim started again because a clock went back.
"""

from __future__ import annotations

import resource
from dataclasses import replace
from typing import TYPE_CHECKING

from wirecheck.capture.agent.counts import Counts, TlsCounts
from wirecheck.capture.tls.key_log import NO_KEY, GrowingKeyLogs, Secrets
from wirecheck.capture.trim.trimmer import Trim

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from wirecheck.capture.tls.decryption import Decryption


class TlsTrim:
    """What Trim is to plain rows, with TLS undone in front of it; without a Trim everything is kept."""

    def __init__(self, secrets: Secrets, trim: Trim | None) -> None:
        self._secrets, self._trim = secrets, trim
        self._live = False
        self._undo: Decryption | None = None

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._undo is None and self._secrets.in_use:
            from wirecheck.capture.tls.decryption import Decryption
            from wirecheck.capture.tls.joining import LIVE, OFFLINE, Budget

            self._undo = Decryption(self._secrets, Budget(LIVE if self._live else OFFLINE))
        yield from self._trimmed(self._undo.add(rows) if self._undo is not None else [rows])

    def advance(self, agent: str, now_ns: int) -> Iterator[pa.RecordBatch]:
        if self._undo is not None:
            yield from self._trimmed(self._undo.advance(agent, now_ns))
        if self._trim is not None:
            yield from self._trim.advance(agent, now_ns)

    def drain(self) -> Iterator[pa.RecordBatch]:
        if self._undo is not None:
            yield from self._trimmed(self._undo.drain())
        if self._trim is not None:
            yield from self._trim.drain()

    @property
    def oldest_ns(self) -> int | None:
        """Time of the oldest row that waits; None if none does."""
        waiting = [each.oldest_ns for each in (self._undo, self._trim) if each is not None]
        return min((ns for ns in waiting if ns is not None), default=None)

    @property
    def left_out(self) -> dict[str, int]:
        return self._trim.left_out if self._trim is not None else {}

    @property
    def connections(self) -> int:
        return self._trim.connections if self._trim is not None else 0

    @property
    def decrypted(self) -> int:
        """Connections of which a record was opened."""
        return self._undo.decrypted if self._undo is not None else 0

    @property
    def undecrypted(self) -> dict[str, int]:
        """TLS connections that stay encrypted, by the reason."""
        return dict(self._undo.failures) if self._undo is not None else {}

    def _trimmed(self, every: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in every:
            yield from self._trim.add(rows) if self._trim is not None else [rows]


def trimming(
    key_logs: Sequence[Path],
    counts: Counts,
    say: Callable[[str], None],
    stack: contextlib.ExitStack,
    *,
    keep_records: bool,
) -> Callable[[], Trim | TlsTrim] | None:
    """How what leaves records out begins, or begins anew; None where rows stay as they are. Raises KeyLogError."""
    new_trim = None if keep_records else Trim
    if not key_logs:
        return new_trim
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    counts.tls, secrets = TlsCounts(), Secrets()
    logs = GrowingKeyLogs(key_logs, secrets, say)
    stack.callback(logs.close)
    return lambda: LiveTlsTrim(secrets, new_trim() if new_trim else None, logs, counts)


class LiveTlsTrim(TlsTrim):
    """TlsTrim, with key logs that are still written."""

    def __init__(self, secrets: Secrets, trim: Trim | None, key_logs: GrowingKeyLogs, counts: Counts) -> None:
        super().__init__(secrets, trim)
        self._live = True
        assert counts.tls is not None
        self._key_logs, self._counts, self._before = key_logs, counts, counts.tls

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._key_logs.look()
        yield from super().add(rows)
        self._count()

    def advance(self, agent: str, now_ns: int) -> Iterator[pa.RecordBatch]:
        self._key_logs.look()
        yield from super().advance(agent, now_ns)
        self._count()

    def drain(self) -> Iterator[pa.RecordBatch]:
        yield from super().drain()
        self._count()

    def _count(self) -> None:
        without = self.undecrypted.get(NO_KEY, 0)
        self._counts.tls = replace(
            self._before,
            decrypted=self._before.decrypted + self.decrypted,
            without_keys=self._before.without_keys + without,
            failed=self._before.failed + sum(self.undecrypted.values()) - without,
            secrets=self._secrets.lines,
            strange=self._secrets.strange,
            unreadable=self._key_logs.unreadable,
        )
