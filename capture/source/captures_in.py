"""Captures that one path stands for: those in a folder, and those in a tar archive."""

from __future__ import annotations

import io
import tarfile
from contextlib import suppress
from typing import TYPE_CHECKING

from wirecheck.capture.source import classic, compressed_files, pcapng
from wirecheck.capture.source.archives import UNREADABLE, members

if TYPE_CHECKING:
    from pathlib import Path

_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_MAGIC_BYTES = compressed_files.MAGIC_BYTES


def captures_of(path: Path) -> list[Path]:
    """The captures in a folder or a tar archive, by name; empty if it is neither, or holds none."""
    if path.is_dir():
        return sorted(one for one in path.iterdir() if one.is_file() and _is_capture(one.name, _head(one)))
    if not path.name.lower().endswith(_SUFFIXES) or not path.is_file():
        return []
    found = []
    with suppress(OSError, EOFError, *UNREADABLE), tarfile.open(path) as archive:
        for name, member in members(archive):
            file = archive.extractfile(member)
            if file is not None and _is_capture(name.name, file.read(_MAGIC_BYTES)):
                found.append(path / name)
    return sorted(set(found))


def is_archive(path: Path) -> bool:
    """Whether it is a tar archive, whatever it holds."""
    with suppress(OSError, EOFError, *UNREADABLE):
        return path.name.lower().endswith(_SUFFIXES) and path.is_file() and tarfile.is_tarfile(path)
    return False


def _is_capture(name: str, head: bytes) -> bool:
    """By its first bytes; of a packed file also by its name."""
    if head[:4] in {pcapng.MAGIC, *classic.MAGIC}:
        return True
    is_packed = compressed_files.unpacked(head, io.BytesIO()) is not None  # type: ignore[arg-type] # not read
    return is_packed and ".pcap" in name.lower() and not name.lower().endswith(_SUFFIXES)


def _head(path: Path) -> bytes:
    with suppress(OSError), path.open("rb", buffering=0) as file:
        return file.read(_MAGIC_BYTES) or b""
    return b""
