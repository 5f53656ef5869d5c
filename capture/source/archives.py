"""Files in tar archives.

Each has a path of its own, `captures.tar/broker-1.pcap`. It is read as a stream from the archive; nothing is unpacked
to a disk, because what is captured may be secret. A compressed archive is unpacked from its beginning for each of them.
"""

from __future__ import annotations

import io
import lzma
import tarfile
import zlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Member = tuple[PurePosixPath, tarfile.TarInfo]

_PIECE_BYTES = 1 << 13  # where an archive is cut, so many bytes before are lost: the library drops them
UNREADABLE = (tarfile.TarError, zlib.error, lzma.LZMAError)


def members(archive: tarfile.TarFile) -> Iterator[Member]:
    """Files with names that stay below the archive."""
    for member in archive:
        name = PurePosixPath(*(part for part in PurePosixPath(member.name).parts if part not in {"/", "."}))
        if member.isreg() and name.parts and ".." not in name.parts:
            yield name, member


def opened(path: Path) -> io.RawIOBase:
    """The capture in an archive that this path stands for. Raises OSError where there is none."""
    archive = next((parent for parent in path.parents if parent.is_file()), None)
    if archive is None:
        raise FileNotFoundError(2, "no such file", str(path))
    try:
        return _Member(archive, PurePosixPath(path.relative_to(archive)))
    except UNREADABLE as error:
        raise OSError(5, f"archive that cannot be read ({error})") from error


class _Member(io.RawIOBase):
    def __init__(self, path: Path, name: PurePosixPath) -> None:
        self._archive = tarfile.open(path)  # noqa: SIM115 - `close` closes it
        found = next((member for known, member in members(self._archive) if known == name), None)
        file = None if found is None else self._archive.extractfile(found)
        if file is None:
            self._archive.close()
            raise FileNotFoundError(2, "no such file", str(path / name))
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override] # callers here pass a memoryview
        """Raises ValueError where the archive is damaged, EOFError where it is cut."""
        try:
            data = self._file.read(min(len(target), _PIECE_BYTES))
        except UNREADABLE as error:
            raise ValueError(f"damaged archive ({error})") from error
        target[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._archive.close()
        super().close()
