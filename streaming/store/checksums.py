"""Sums of files, in one file beside them: what each held when it was known to be good.

Knows: size and CRC-32 of files below a folder, and that the file of sums has a sum itself. Refuses to know which files
are worth a sum, and when a file is whole (`manifest.py`).
Rule: only a file that nobody will write again gets a sum, and it keeps the first one. A file without a sum is nobody's
affair here, nor is one that is gone: so a crash in between, or a sum too few, never makes a good folder a bad one.
"""

import json
import zlib
from collections.abc import Iterable
from contextlib import suppress

from pyarrow import fs

from wirecheck.streaming.store import storage

NAME = "checksums.json"
PIECE_BYTES = 1 << 20

Sums = dict[str, list[int]]
"""By path below the folder: size and CRC-32."""


class SumsDamagedError(ValueError):
    """The file of sums does not fit its own."""


def read(system: fs.FileSystem, folder: str) -> Sums:
    """None there: none. Raises OSError and SumsDamagedError."""
    with suppress(FileNotFoundError), system.open_input_file(f"{folder}/{NAME}") as file:
        try:
            said = json.loads(file.read())
            found = {str(name): [int(size), int(crc)] for name, (size, crc) in said["files"].items()}
            whole = said["crc32"] == crc_of(found)
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise SumsDamagedError(NAME) from wrong
        if not whole:
            raise SumsDamagedError(NAME)
        return found
    return {}


def keep(system: fs.FileSystem, folder: str, names: Iterable[str]) -> None:
    """The sums of these files and of no others; only files that had none are read. Raises OSError."""
    try:
        before = read(system, folder)
    except SumsDamagedError:  # since the start, when it was looked at: the files are summed anew
        before = {}
    now: Sums = {}
    for name in sorted(set(names)):
        with suppress(FileNotFoundError):
            now[name] = before.get(name) or of_file(system, f"{folder}/{name}")
    if now != before:
        content = json.dumps({"crc32": crc_of(now), "files": now}, indent=0) + "\n"
        storage.put(system, f"{folder}/{NAME}", content.encode())


def forget(system: fs.FileSystem, folder: str, name: str) -> None:
    """Before a file is written again."""
    before = read(system, folder)
    if name in before:
        keep(system, folder, before.keys() - {name})


def of_file(system: fs.FileSystem, path: str) -> list[int]:
    size, crc = 0, 0
    with system.open_input_stream(path, compression=None) as file:
        while piece := file.read(PIECE_BYTES):
            size, crc = size + len(piece), zlib.crc32(piece, crc)
    return [size, crc]


def crc_of(sums: Sums) -> int:
    return zlib.crc32(json.dumps(sums, sort_keys=True).encode())
