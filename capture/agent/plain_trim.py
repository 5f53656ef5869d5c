"""TLS removed, and what trim keeps of the plaintext: as one, in the place of trim.

Knows: the order of the two. Refuses to know what any of them does.
Rule: plain bytes leave here only through trim, unless everything is asked for (--keep-records). Who has no keys does
not load what undoes TLS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from wirecheck.capture.tls.decryption import Decryption
    from wirecheck.capture.tls.key_log import Secrets
    from wirecheck.capture.trim.trimmer import Trim


class TlsTrim:
    """What Trim is to plain rows, with TLS undone in front of it; without a Trim everything is kept."""

    def __init__(self, secrets: Secrets, trim: Trim | None) -> None:
        self._secrets, self._trim = secrets, trim
        self._live = False
        self._undo: Decryption | None = None

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._undo is None and self._secrets.wanted:
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
