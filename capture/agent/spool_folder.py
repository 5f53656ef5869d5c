"""The folder an agent writes to: its lock, the names and numbers of files, and when they appear and are removed.

Readers never see half a file: it is written as `.NAME.tmp` (Spark ignores a leading dot), synced and renamed. Numbers
are contiguous per agent and folder, also over restarts and retention; the last one is in the lock file. Only this
agent's files are removed, symbolic links are not followed, and the mode is 0600. While a file is shipped it stays.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from wirecheck.capture.frames_file_name import file_name, hidden_name, shown_name, whose
from wirecheck.capture.refusal import AgentNameError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_EXPIRE_NS = 10_000_000_000


class FolderInUseError(OSError):
    """Another agent of this name is writing to this folder."""


@dataclass(frozen=True)
class Limits:
    """How much an agent may keep in its folder."""

    max_bytes: int | None = None  # in all its files together
    retain_s: float | None = None  # older files are removed
    ships: bool = (
        False  # files leave when they are elsewhere, and are emptied, the oldest first, where there are too many
    )


class Backlog(NamedTuple):
    """What waits in a folder to be shipped."""

    files: int = 0
    oldest_s: float = 0.0
    """When the oldest of them was written, in seconds since 1970; 0 where there is none."""


class Folder:
    """One agent's place in one folder. Close it."""

    def __init__(self, path: Path, agent: str, limits: Limits | None = None) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", agent):
            raise AgentNameError(f"agent name {agent!r}: only letters, digits, '-', '_' and '.' can be a file name")
        self._path, self._agent, self._limits = path, agent, limits or Limits()
        path.mkdir(parents=True, exist_ok=True)
        self._lock: int | None = _lock(path / f".{agent}.lock")
        for left_by_a_crash in self._files(hidden=True):
            left_by_a_crash.unlink()
        files = list(self._files())
        numbers = [number for _, number in filter(None, (whose(file.name) for file in files))]
        self.last = max([int(os.pread(self._lock, 10, 0) or b"0"), *numbers])
        self._bytes = sum(file.stat().st_size for file in files)
        self._guard = threading.Lock()  # of what follows, and of the bytes
        self._waiting = deque(files if self._limits.ships else ())  # to be shipped, oldest first
        self._claimed: Path | None = None
        self._emptied: set[Path] = set()
        self._expired_ns = 0
        self._begun = False
        self._note_last()

    @property
    def bytes(self) -> int:
        """Of all files of this agent."""
        return self._bytes

    @property
    def full(self) -> bool:
        """Whether the agent's files reached their limit."""
        limit = self._limits.max_bytes
        return limit is not None and self._bytes >= limit

    def begin(self) -> Path:
        """Create the next file, hidden. Raises OSError if the disk or the agent's limit is full."""
        self._expire()
        if self.full:
            with self._guard:
                self._bytes = sum(
                    file.stat().st_size for file in self._files()
                )  # files may have been deleted meanwhile
            if self.full:
                limit = self._limits.max_bytes or 0
                raise OSError(errno.EDQUOT, f"the agent's files reached their limit of {limit >> 20} MB")
        hidden, self._begun = self._hidden(), True
        os.close(os.open(hidden, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
        return hidden

    def publish(self) -> Path:
        """Let the file that was begun appear. Raises OSError when it did not."""
        hidden = self._hidden()
        sync(hidden)
        path, size = hidden.with_name(shown_name(hidden.name)), hidden.stat().st_size
        hidden.replace(path)
        self.last += 1
        self._begun = False
        with self._guard:
            self._bytes += size
            if self._limits.ships:
                self._waiting.append(path)
        with contextlib.suppress(OSError):  # readers see the file: it is not lost, whatever happens from here on
            sync(self._path)
            self._note_last()  # after the file: a crash in between must not leave a hole
        return path

    def discard(self) -> None:
        """Forget the file that was begun; the next one has its number."""
        if self._begun:
            self._hidden().unlink(missing_ok=True)
            self._begun = False

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # --- for who ships

    def claim(self) -> Path | None:
        """The oldest file, which is not emptied or removed until it is released; None if none waits."""
        with self._guard:
            self._claimed = self._waiting[0] if self._waiting else None
            return self._claimed

    def release(self) -> None:
        """The claimed one stays for now."""
        with self._guard:
            self._claimed = None

    def shipped(self, file: Path) -> None:
        """The claimed one is elsewhere now: it leaves."""
        size = file.stat().st_size
        file.unlink()
        with self._guard:
            self._bytes -= size
            self._waiting.popleft()
            self._emptied.discard(file)
            self._claimed = None

    def backlog(self) -> Backlog:
        with self._guard:
            files, oldest = len(self._waiting), self._waiting[0] if self._waiting else None
        if oldest is None:
            return Backlog()
        with contextlib.suppress(OSError):  # it may leave meanwhile
            return Backlog(files, oldest.stat().st_mtime)
        return Backlog(files)

    def empty_oldest(self, empty: Callable[[Path, Path], bool]) -> bool:
        """Have the oldest file that is not claimed replaced by what `empty(file, hidden)` writes; False if none is so.

        A file for which `empty` returns False stays as it is and is not tried again. Raises OSError.
        """
        with self._guard:
            file = next((file for file in self._waiting if file != self._claimed and file not in self._emptied), None)
            if file is None:
                return False
            hidden = file.with_name(hidden_name(file.name))
            before = file.stat()
            os.close(os.open(hidden, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
            if empty(file, hidden):
                sync(hidden)
                hidden.replace(file)
                os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # it waits as long as before
            else:
                hidden.unlink()
            self._emptied.add(file)
            self._bytes += file.stat().st_size - before.st_size
            return True

    def number_from(self, last: int) -> None:
        """Numbers go on behind this one, if they are not beyond it already."""
        self.last = max(self.last, last)
        self._note_last()

    def _note_last(self) -> None:
        assert self._lock is not None
        os.pwrite(self._lock, b"%010d" % self.last, 0)

    def _hidden(self) -> Path:
        return self._path / hidden_name(file_name(self._agent, self.last + 1))

    def _files(self, *, hidden: bool = False) -> Iterator[Path]:
        """This agent's own files, oldest first: `a-b-...` is not one of agent `a`."""
        for file in sorted(self._path.iterdir()):
            name = shown_name(file.name)
            found = whose(name) if file.name == (hidden_name(name) if hidden else name) else None
            if found and found[0] == self._agent:
                yield file

    def _expire(self) -> None:
        now_ns = time.time_ns()
        if self._limits.retain_s is None or abs(now_ns - self._expired_ns) < _EXPIRE_NS:
            return
        self._expired_ns = now_ns
        for file in self._files():
            found = file.stat()
            if now_ns - found.st_mtime_ns <= self._limits.retain_s * 1e9:
                return
            file.unlink()
            self._bytes -= found.st_size


def _lock(path: Path) -> int:
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise FolderInUseError(errno.EAGAIN, "another agent of this name is writing here", str(path.parent)) from error
    return handle


def sync(path: Path) -> None:
    """What was written is on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
