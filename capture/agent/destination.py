"""Where an agent's files go: a folder, or whatever `pyarrow.fs` has a URI for (s3, gs, abfss, hdfs, file).

Knows: how a file appears there whole or not at all, which numbers of an agent are there, and how the place is called
where others may read it. Credentials come from where the store's own tools look for them (environment, profile, the
instance); one within a URI works and is never shown.
Refuses to know: when a file goes and what becomes of it here (shipper.py).
Rule: what was there stays. A file that is there in the same size is the same file, sent before somebody could note it;
one of another size is somebody else's, and an error. A store shows an object when all of it is there; on file systems
it is written under a name with a leading dot, which readers pass over, and moved.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyarrow import ArrowException, fs

from wirecheck.capture.agent.spool_folder import sync
from wirecheck.capture.refusal import DestinationError

if TYPE_CHECKING:
    from collections.abc import Iterator

STORES = {"s3", "gcs", "abfs"}
"""Whose objects appear when they are whole, by `pyarrow.fs`'s names."""


class ConflictError(OSError):
    """Another file of that name is there."""


class Destination:
    """A place for one agent's files. Its methods raise OSError while the place cannot be reached."""

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

    def put(self, file: Path) -> int:
        """Send one file; its bytes, or 0 if it was there. Raises ConflictError, or OSError when it did not work."""
        with its_errors_as_oserrors():
            return self._put(file)

    def _put(self, file: Path) -> int:
        target = f"{self._base}/{file.name}"
        there = self._system.get_file_info(target)
        size = file.stat().st_size
        if there.type != fs.FileType.NotFound:
            if there.size == size:
                return 0
            words = (
                f"{self.name}/{file.name} is there with {there.size:,} bytes, not {size:,}:"
                " does another agent of this name ship there?"
            )
            raise ConflictError(words)
        content = file.read_bytes()  # first: a stream that is left half-written would close, and the object appear
        if self._system.type_name == "local":
            into_folder(Path(self._base), file.name, content)
        elif self._system.type_name in STORES:
            self._write(target, content)
        else:
            hidden = f"{self._base}/.{file.name}.tmp"
            self._system.create_dir(self._base)
            self._write(hidden, content)
            self._system.move(hidden, target)
        return size

    def last_number(self, agent: str) -> int:
        """The greatest number of this agent's files there, 0 where there is none."""
        name = re.compile(re.escape(agent) + r"-(\d{10})\.parquet")
        with its_errors_as_oserrors():
            there = self._system.get_file_info(fs.FileSelector(self._base, allow_not_found=True))
        found = (name.fullmatch(info.base_name) for info in there)
        return max((int(match[1]) for match in found if match), default=0)

    def _write(self, path: str, content: bytes) -> None:
        with self._system.open_output_stream(path) as stream:
            stream.write(content)


@contextlib.contextmanager
def its_errors_as_oserrors() -> Iterator[None]:
    """Most errors of a file system are OSErrors anyway."""
    try:
        yield
    except ArrowException as error:
        raise OSError(str(error)) from error


def into_folder(folder: Path, name: str, content: bytes) -> None:
    """As the spool writes: hidden, for its owner alone, on the disk before it appears. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{name}.tmp"
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
