"""Key logs that are written while we listen: what is new in them, whenever somebody looks.

Knows: that such a file may not be there yet, may not be ours to read, is cut in the middle of a line, truncated and
written anew, or replaced by another of its name (rotation), and that it may be no file at all.
Refuses to know: what a secret opens, and how long a connection waits for one (decryption.py).
Rule: looking never waits and reads a bounded number of bytes; a change in what is wrong with a file is one line, which
names the file and quotes nothing of it.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from wirecheck.capture.tls.key_log import READ_BYTES, Lines, need_cryptography

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from wirecheck.capture.tls.key_log import Secrets

MOST_BYTES = 8 * READ_BYTES
"""Of one file at one look: the rows that wait for the next must not wait long."""
TAIL_BYTES = 256
"""By the last bytes that were read it is told whether a file that did not become shorter was written anew."""


class GrowingKeyLog:
    """One file, read on from where it was read last."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        self.path, self._secrets = path, secrets
        self.fault = ""
        """Why it cannot be read now."""
        self._file = -1
        self._same: tuple[int, int] | None = None  # device and inode of the open file
        self._at, self._tail = 0, b""
        self._lines = Lines(secrets)

    def look(self) -> None:
        """Whatever is new, up to MOST_BYTES."""
        try:
            self._look()
            self.fault = ""
        except OSError as error:
            self.fault = (error.strerror or str(error)).lower()

    def _look(self) -> None:
        try:
            found = self.path.stat()
        except OSError:
            if self._file >= 0:  # moved away; who writes may not know yet
                self._read_on()
            raise
        if self._file >= 0 and self._same != (found.st_dev, found.st_ino):
            self._read_on()  # what came before it was replaced
            self.close()
        if self._file < 0:
            self._open(found)
        if os.fstat(self._file).st_size < self._at or not self._is_as_it_was():
            self._begin_anew()
        self._read_on()

    def _open(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):  # opening a pipe could wait for ever
            raise OSError("is no regular file")
        self._file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._same = (found.st_dev, found.st_ino)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._at, self._tail, self._lines = 0, b"", Lines(self._secrets)

    def _is_as_it_was(self) -> bool:
        return os.pread(self._file, len(self._tail), self._at - len(self._tail)) == self._tail

    def _read_on(self) -> None:
        upto = self._at + MOST_BYTES
        while self._at < upto and (data := os.pread(self._file, READ_BYTES, self._at)):
            self._at += len(data)
            self._tail = (self._tail + data)[-TAIL_BYTES:]
            self._lines.take(data)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file, self._same = -1, None


class GrowingKeyLogs:
    """All of one agent. `say` gets a line when one becomes unreadable, or readable again."""

    def __init__(self, paths: Sequence[Path], secrets: Secrets, say: Callable[[str], None]) -> None:
        """Raises KeyLogError where TLS cannot be undone at all."""
        self._logs = [GrowingKeyLog(path, secrets) for path in paths]
        self._say = say
        secrets.wanted = secrets.growing = True
        for path in paths:
            need_cryptography(path)

    def look(self) -> None:
        for log in self._logs:
            before = log.fault
            log.look()
            if log.fault and log.fault != before:
                self._say(f"{log.path}: {log.fault}; looking again, its connections stay encrypted meanwhile")
            elif before and not log.fault:
                self._say(f"{log.path}: can be read now")

    @property
    def unreadable(self) -> int:
        return sum(bool(log.fault) for log in self._logs)

    def close(self) -> None:
        for log in self._logs:
            log.close()
