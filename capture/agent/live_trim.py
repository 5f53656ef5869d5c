"""What a live agent leaves out, with TLS undone in front of it where key logs are given: they grow while it listens.

Knows: key logs are looked at before rows are, and what becomes of TLS connections is counted.
Refuses to know: how rows are trimmed (trimmer.py), how TLS is undone (plain_trim.py, tls/).
Rule: secrets are in this process's memory and nowhere else: no core file is written of it. What is counted only grows,
also where a clock that went back made trim begin anew.
"""

from __future__ import annotations

import resource
from dataclasses import replace
from typing import TYPE_CHECKING

from wirecheck.capture.agent.counts import Counts, TlsCounts
from wirecheck.capture.agent.plain_trim import TlsTrim
from wirecheck.capture.tls.key_log import NO_KEY, GrowingKeyLogs, Secrets
from wirecheck.capture.trim.trimmer import Trim

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa


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
