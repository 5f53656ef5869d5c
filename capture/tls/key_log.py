"""Key logs: lines of SSLKEYLOGFILE (draft-ietf-tls-keylogfile) and NSS's older ones; also while they are written.

No message about a key log quotes it. What exceeds the bound is evicted, the oldest first, and counted.
"""

from __future__ import annotations

import os
import re
import stat
from collections import OrderedDict
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping, Sequence
    from pathlib import Path

CLIENT_RANDOM = "CLIENT_RANDOM"
EARLY = "CLIENT_EARLY_TRAFFIC_SECRET"
HANDSHAKE = ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET")
TRAFFIC = ("CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0")
UPDATED = ("CLIENT_TRAFFIC_SECRET_N", "SERVER_TRAFFIC_SECRET_N")
"""What OpenSSL calls the secret behind each KeyUpdate, whichever it is: one line each, in their order."""
USED = {CLIENT_RANDOM, EARLY, *HANDSHAKE, *TRAFFIC}
MOST_UPDATED = 64
"""Of one connection and direction, the newest."""
NO_KEY = "its keys are not in the key log"
"""Why a connection stays encrypted, where nothing of it is there."""
MOST_CONNECTIONS = 200_000
"""Whose secrets are kept: some 200 MB of memory at most."""
LONGEST_LINE_BYTES = 1024
INSTALL = "install wirecheck's wheel with [tls]"
READ_BYTES = 1 << 20
_LINE = re.compile(rb"([A-Z0-9_]{3,64}) ([0-9a-fA-F]{64}) ((?:[0-9a-fA-F]{2}){32,128})\s*")
_UNUSED = re.compile(rb"(RSA|PMS_CLIENT_RANDOM) [0-9a-fA-F]{16,64} [0-9a-fA-F]{96,128}\s*")  # NSS: premaster secrets
_SESSION = re.compile(rb"RSA Session-ID:([0-9a-fA-F]{2,64}) Master-Key:([0-9a-fA-F]{96})\s*")


class KeyLogError(Exception):
    """A key log that cannot be read at all; the message is one line, without anything of its content."""


@dataclass
class Secrets:
    """What is known of connections, by the random of their ClientHello, and of TLS 1.2 sessions by their id."""

    by_random: OrderedDict[bytes, dict[str, bytes]] = field(default_factory=OrderedDict, repr=False)
    masters: OrderedDict[bytes, bytes] = field(default_factory=OrderedDict, repr=False)
    in_use: bool = False
    """TLS is to be decrypted, whatever secrets there are."""
    growing: bool = False
    """A key may come later than the handshake it is of."""
    lines: int = 0
    """That hold a secret."""
    strange: int = 0
    """That are no comment, and no line of a key log, or that say something else than an earlier one."""
    forgotten: int = 0

    updated: dict[tuple[bytes, str], list[bytes]] = field(default_factory=dict, repr=False)
    """By the random and the label of TRAFFIC the secrets behind its KeyUpdates, as far as they are logged."""
    claimed: set[bytes] = field(default_factory=set, repr=False)
    """Randoms of connections that were found: no other connection has them."""

    def of(self, client_random: bytes) -> dict[str, bytes]:
        """Of the connection that has this random, and of no other one."""
        found = self.by_random.get(client_random)
        if found is None:
            return {}
        self.claimed.add(client_random)
        return found

    def unclaimed(self, most: int) -> Iterator[tuple[bytes, dict[str, bytes]]]:
        """Of connections of TLS 1.3 that were not found yet, so many, the newest first."""
        return islice(
            (
                (random, found)
                for random, found in reversed(self.by_random.items())
                if random not in self.claimed and TRAFFIC[0] in found
            ),
            most,
        )

    def read_block(self, text: bytes) -> None:
        """A key log within a capture; without cryptography it is of no use."""
        self.in_use = self.in_use or find_spec("cryptography") is not None
        self.read(text)

    def read(self, text: bytes) -> None:
        """Whole lines."""
        for line in text.splitlines():
            self._read_line(line)

    def _read_line(self, line: bytes) -> None:
        if not line or line.startswith(b"#"):
            return
        if found := _LINE.fullmatch(line):
            self.lines += 1
            label = found[1].decode()
            if label in USED:
                random = bytes.fromhex(found[2].decode())
                self._evict_for(self.by_random, random)
                self._keep(self.by_random.setdefault(random, {}), label, found[3])
            elif label in UPDATED:
                random, secret = (bytes.fromhex(found[part].decode()) for part in (2, 3))
                if random in self.by_random:
                    later = self.updated.setdefault((random, TRAFFIC[UPDATED.index(label)]), [])
                    if secret not in later:
                        later.append(secret)
                        del later[:-MOST_UPDATED]
        elif found := _SESSION.fullmatch(line):
            self.lines += 1
            session = bytes.fromhex(found[1].decode().rjust(len(found[1]) + len(found[1]) % 2, "0"))
            self._evict_for(self.masters, session)
            self._keep(self.masters, session, found[2])
        elif not _UNUSED.fullmatch(line):
            self.strange += 1

    def _keep(self, table: MutableMapping[Any, bytes], name: Any, digits: bytes) -> None:
        """The first one stays: no capture can replace the secrets of other captures' connections."""
        secret = bytes.fromhex(digits.decode())
        if table.setdefault(name, secret) != secret:
            self.strange += 1

    def _evict_for(self, table: OrderedDict[bytes, Any], name: bytes) -> None:
        if name not in table and len(table) >= MOST_CONNECTIONS:
            oldest, _ = table.popitem(last=False)
            self.claimed.discard(oldest)
            for label in TRAFFIC:
                self.updated.pop((oldest, label), None)
            self.forgotten += 1


def need_cryptography(path: Path) -> None:
    """Raises KeyLogError."""
    if find_spec("cryptography") is None:
        raise KeyLogError(f"{path}: decrypting TLS needs the package cryptography, which is not installed: {INSTALL}")


class Lines:
    """Of a file that comes in pieces, the last of which may end within a line."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._rest = b""  # a line that is not written to its end

    def take(self, data: bytes) -> None:
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        if newline:
            self._secrets.read(whole)
        self._rest = rest
        if len(rest) > LONGEST_LINE_BYTES:  # no secret is that long
            self._rest = b"?"

    def end(self) -> None:
        """Nothing more is written to the line at hand."""
        self._secrets.read(self._rest)
        self._rest = b""


class KeyLog:
    """One file, read as far as it is written."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        self.path, self._secrets = path, secrets
        self.fault = ""
        """What is wrong with what was read of it, in one line."""

    def read(self) -> None:
        """All there is. Raises KeyLogError where it cannot be read."""
        need_cryptography(self.path)
        self._secrets.in_use = True
        lines = Lines(self._secrets)
        before = self._secrets.lines, self._secrets.strange, self._secrets.forgotten
        try:
            with self.path.open("rb") as file:
                while data := file.read(READ_BYTES):
                    lines.take(data)
        except OSError as error:
            raise KeyLogError(f"{self.path}: {(error.strerror or str(error)).lower()}") from error
        lines.end()
        now = self._secrets.lines, self._secrets.strange, self._secrets.forgotten
        self.fault = _fault(*(after - earlier for after, earlier in zip(now, before, strict=True)))


def _fault(lines: int, strange: int, forgotten: int) -> str:
    if not lines:
        return "no line has the format of a key log" if strange else "holds no secret"
    faults = []
    if strange:
        faults.append(
            f"{strange} of its lines are truncated, not in the format of a key log, or contradict an earlier line"
        )
    if forgotten:
        faults.append(f"secrets of {forgotten} connections exceed the limit; the oldest were dropped")
    return "; ".join(faults)


MOST_BYTES = 8 * READ_BYTES
"""Of one file at one look: the rows that wait for the next must not wait long."""
TAIL_BYTES = 256
"""The last bytes read of a file; if they change although it is not shorter, the file was rewritten."""


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
            self._reopen()
        self._read_on()

    def _open(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):  # opening a pipe could block
            raise OSError("is not a regular file")
        self._file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._same = (found.st_dev, found.st_ino)
        self._reopen()

    def _reopen(self) -> None:
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
        """Raises KeyLogError if TLS cannot be decrypted at all."""
        self._logs = [GrowingKeyLog(path, secrets) for path in paths]
        self._say = say
        secrets.in_use = secrets.growing = True
        for path in paths:
            need_cryptography(path)

    def look(self) -> None:
        for log in self._logs:
            before = log.fault
            log.look()
            if log.fault and log.fault != before:
                self._say(f"{log.path}: {log.fault}; trying again, its connections stay encrypted until then")
            elif before and not log.fault:
                self._say(f"{log.path}: is readable again")

    @property
    def unreadable(self) -> int:
        return sum(bool(log.fault) for log in self._logs)

    def close(self) -> None:
        for log in self._logs:
            log.close()
