"""The agent's third thread: ships complete files, in order, to where the monitor reads them.

A file leaves the spool once it has arrived. While the destination cannot be reached, the wait doubles up to MOST_WAIT_S
with full jitter (AWS Architecture Blog, "Exponential Backoff and Jitter"). The agent never waits for it.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyarrow import ArrowException, fs

from wirecheck.capture.agent.spool import is_emptied
from wirecheck.capture.agent.spool_folder import sync
from wirecheck.capture.frames_file_name import hidden_name, whose
from wirecheck.capture.refusal import DestinationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirecheck.capture.agent.counts import Counts
    from wirecheck.capture.agent.spool_folder import Folder

STORES = {"s3", "gcs", "abfs"}
"""Whose objects appear when they are whole, by `pyarrow.fs`'s names."""


class ConflictError(OSError):
    """Another file of that name is there."""


@contextlib.contextmanager
def its_errors_as_oserrors() -> Iterator[None]:
    """Most errors of a file system are OSErrors anyway."""
    try:
        yield
    except ArrowException as error:
        raise OSError(str(error)) from error


class Destination:
    """A folder, or whatever `pyarrow.fs` has a URI for; credentials come from where the store's own tools have them.

    A file that is there in the same size is the same file; one of another size is another agent's, and an error. On
    file systems it is written under a name with a leading dot, and moved. Methods raise OSError while it is away.
    """

    def __init__(self, uri: str) -> None:
        """Raises DestinationError where no file system is known for it."""
        self.name = shown(uri)
        try:
            system, self._base = fs.FileSystem.from_uri(uri if "://" in uri else str(Path(uri).absolute()))
        except (ArrowException, ValueError, OSError) as error:
            words = str(error).replace(uri, self.name)
            raise DestinationError(
                f"--ship {self.name}: {words.splitlines()[0] if words else 'no such place'}"
            ) from error
        self._system: fs.FileSystem = system

    @its_errors_as_oserrors()
    def put(self, file: Path) -> int:
        """Send one file; its bytes, or 0 if it was there. Raises ConflictError, or OSError when it did not work."""
        target = f"{self._base}/{file.name}"
        there = self._system.get_file_info(target)
        size = file.stat().st_size
        if there.type != fs.FileType.NotFound:
            if there.size == size:
                return 0
            words = (
                f"{self.name}/{file.name} exists already with {there.size:,} bytes, not {size:,}:"
                " does another agent with this name ship there?"
            )
            raise ConflictError(words)
        content = file.read_bytes()  # first: a stream that is left half-written would close, and the object appear
        if self._system.type_name == "local":
            into_folder(Path(self._base), file.name, content)
        elif self._system.type_name in STORES:
            self._write(target, content)
        else:
            hidden = f"{self._base}/{hidden_name(file.name)}"
            self._system.create_dir(self._base)
            self._write(hidden, content)
            self._system.move(hidden, target)
        return size

    @its_errors_as_oserrors()
    def last_number(self, agent: str) -> int:
        """The greatest number of this agent's files there, 0 where there is none."""
        there = self._system.get_file_info(fs.FileSelector(self._base, allow_not_found=True))
        found = filter(None, (whose(info.base_name) for info in there))
        return max((number for theirs, number in found if theirs == agent), default=0)

    def _write(self, path: str, content: bytes) -> None:
        with self._system.open_output_stream(path) as stream:
            stream.write(content)


def into_folder(folder: Path, name: str, content: bytes) -> None:
    """As the spool writes: hidden, for its owner alone, on the disk before it appears. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / hidden_name(name)
    handle = os.open(hidden, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    sync(hidden)
    hidden.replace(folder / name)
    sync(folder)


def shown(uri: str) -> str:
    """A URI without what may be secret in it: a name with a password, and parameters."""
    if "://" not in uri:
        return uri
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


FIRST_WAIT_S, MOST_WAIT_S = 0.5, 60.0
LAST_CHANCE_S = 10.0
"""How long the end waits for files that are still here; the next start sends what is left."""
_LOOK_S = 1.0


class Shipper(threading.Thread):
    """Sends the files of one folder."""

    def __init__(self, folder: Folder, destination: Destination, counts: Counts, say: Callable[[str], None]) -> None:
        super().__init__(name="shipper", daemon=True)
        self._folder, self._destination, self._counts, self._say = folder, destination, counts, say
        self._news = threading.Event()
        self._ending = threading.Event()
        self._failures = 0  # in a row
        self._jitter = random.Random()  # noqa: S311 - no secret; not the module's, which a caller may have seeded
        counts.backlog = folder.backlog

    def wake(self) -> None:
        """A file appeared."""
        self._news.set()

    def run(self) -> None:
        while True:
            self._news.clear()
            file = self._folder.claim()
            if file is not None:
                self._send(file)
            elif self._ending.is_set():
                return
            else:
                self._news.wait(_LOOK_S)

    def finish(self, wait_s: float = LAST_CHANCE_S) -> None:
        """No file comes any more; what cannot be sent stays for the next start, which is logged."""
        self._ending.set()
        self._news.set()
        self.join(wait_s)
        if waiting := self._folder.backlog().files:
            files = f"{waiting:,} file{'' if waiting == 1 else 's'}"
            self._say(
                f"{files} not shipped yet; the next start with the same --out ships {'it' if waiting == 1 else 'them'}"
            )

    def _send(self, file: Path) -> None:
        try:
            sent_bytes = self._destination.put(file)
        except ConflictError as error:
            if not is_emptied(file):  # else it was shipped before it was emptied here, unconfirmed
                self._folder.release()
                self._failed(error)
                return
            sent_bytes = 0
        except OSError as error:
            self._folder.release()
            self._failed(error)
            return
        self._folder.shipped(file)
        self._counts.shipped_files += 1
        self._counts.shipped_bytes += sent_bytes
        if self._failures:
            self._say(f"shipping to {self._destination.name} again; {self._folder.backlog().files:,} files wait")
            self._failures = 0

    def _failed(self, error: OSError) -> None:
        self._counts.ship_failures += 1
        if not self._failures:
            words = str(error.strerror or error).splitlines()[0]
            self._say(f"cannot ship to {self._destination.name}: {words}; files wait in the spool")
        self._failures += 1
        until_s = time.monotonic() + self._jitter.uniform(0, longest_wait_s(self._failures))
        while (left_s := until_s - time.monotonic()) > 0 and not self._ending.is_set():
            self._ending.wait(left_s)
        if self._ending.is_set():
            time.sleep(FIRST_WAIT_S)


def longest_wait_s(failures: int) -> float:
    """After so many failures in a row."""
    return min(MOST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures - 1, 16))
