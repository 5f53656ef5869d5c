"""The files of Spark's state, looked at before it starts: what RocksDB would fail on, or wait for, minutes later.

Knows: which files a version of the state is made of (a zip of a snapshot with the SST files it names, and the changelog
of every version since), that a zip has sums of its own, and how the blocks of a changelog lie. Knows nothing of what is
stored. What only Spark can tell, it tells (`failure.py`).
Rule: only what the next start needs is looked at; what is merely old or left over is nobody's affair. Layout of Spark
4.x: RocksDBFileManager, StateStoreChangelogWriter, OperatorStateMetadataV2, LZ4BlockOutputStream.
"""

import json
import struct
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pyarrow import fs

from wirecheck.streaming.store import storage

ZIP, CHANGELOG = ".zip", ".changelog"
UNREADABLE = (
    zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, NotImplementedError, struct.error, RuntimeError,
)  # fmt: skip
"""What reading a damaged description or snapshot raises."""
LZ4 = b"LZ4Block"
BLOCK = struct.Struct("<8sBiii")
"""Magic, kind, size as it lies, size as it is, sum; a block of no size is the last."""


def damaged(system: fs.FileSystem, state: str, version: int) -> str | None:
    """The first file that is wrong, by its path below the query's folder, and what is wrong. Raises OSError."""
    operators = sorted(name for name in storage.names(system, state) if name.isdigit())
    if not operators:
        return "state is missing"
    return next((wrong for operator in operators for wrong in of_operator(system, state, operator, version)), None)


def needed(system: fs.FileSystem, state: str, version: int) -> Iterator[str]:
    """Every file of a version of the state, by its path below the query's folder; of what is damaged, what can be
    told. Raises OSError.
    """
    for operator in sorted(name for name in storage.names(system, state) if name.isdigit()):
        with suppress(*UNREADABLE):
            name = described(system, state, operator)
            partitions, schemas = description(system, f"{state}/{name}")
            yield f"state/{name}"
            yield from (f"state/{operator}/_stateSchema/default/{schema}" for schema in schemas)
            for partition in range(partitions):
                yield from (f"state/{file}" for file in of_version(system, state, f"{operator}/{partition}", version))


def of_version(system: fs.FileSystem, state: str, name: str, version: int) -> Iterator[str]:
    """The newest snapshot up to a version, what it names, and the changelogs since."""
    there = storage.names(system, f"{state}/{name}")
    zips, changelogs = versions(there, ZIP), versions(there, CHANGELOG)
    base = max((number for number in zips if number <= version), default=0)
    if base:
        yield f"{name}/{zips[base]}"
        with system.open_input_file(f"{state}/{name}/{zips[base]}") as opened, zipfile.ZipFile(opened) as snapshot:
            yield from (f"{name}/SSTs/{part}" for part in parts_of(snapshot))
    yield from (f"{name}/{changelogs[number]}" for number in range(base + 1, version + 1) if number in changelogs)


def described(system: fs.FileSystem, state: str, operator: str) -> str:
    """The newest description of an operator's state. Raises ValueError where there is none."""
    name = f"{operator}/_metadata/v2"
    return f"{name}/{max(int(number) for number in storage.names(system, f'{state}/{name}') if number.isdigit())}"


def description(system: fs.FileSystem, path: str) -> tuple[int, list[str]]:
    """How many partitions, and the names of the schemas' files. Raises what is in UNREADABLE."""
    stores = json.loads(content(system, path).partition(b"\n")[2])["stateStoreInfo"]
    schemas = [str(path).rpartition("/")[2] for store in stores for path in store["stateSchemaFilePaths"]]
    return max(int(store["numPartitions"]) for store in stores), schemas


def moved(system: fs.FileSystem, state: str, now: str) -> Iterator[tuple[str, bytes]]:
    """The descriptions that name a folder which is no longer theirs, by path below the query's folder, and what they
    are to say. `now`: where the state is, as Spark writes it. Raises OSError, and what is in UNREADABLE.
    """
    for operator in sorted(name for name in storage.names(system, state) if name.isdigit()):
        for number in sorted(storage.names(system, f"{state}/{operator}/_metadata/v2")):
            if not number.isdigit():
                continue
            name = f"{operator}/_metadata/v2/{number}"
            version, _, text = content(system, f"{state}/{name}").partition(b"\n")
            said = json.loads(text)
            for store in said["stateStoreInfo"]:
                schemas = [str(path).rpartition("/")[2] for path in store["stateSchemaFilePaths"]]
                store["stateSchemaFilePaths"] = [
                    f"{now}/{operator}/_stateSchema/default/{schema}" for schema in schemas
                ]
            if said != json.loads(text):
                yield f"state/{name}", version + b"\n" + json.dumps(said, separators=(",", ":")).encode()


def parts_of(snapshot: zipfile.ZipFile) -> dict[str, int]:
    """The SST files that a snapshot names, and their sizes."""
    said: dict[str, Any] = json.loads(snapshot.read("metadata").partition(b"\n")[2])
    return {str(part["dfsSstFileName"]): int(part["sizeBytes"]) for part in said["sstFiles"]}


def of_operator(system: fs.FileSystem, state: str, operator: str, version: int) -> Iterator[str]:
    try:
        name = described(system, state, operator)
    except ValueError:
        yield f"state/{operator}/_metadata/v2 is missing"
        return
    try:
        partitions, schemas = description(system, f"{state}/{name}")
    except UNREADABLE:
        yield f"state/{name} is damaged"
        return
    there = {info.base_name: info.size for info in listing(system, f"{state}/{operator}/_stateSchema/default")}
    for schema in schemas:
        if not there.get(schema):
            yield f"state/{operator}/_stateSchema/default/{schema} is {'missing' if schema not in there else 'damaged'}"
    for partition in range(partitions):
        yield from of_partition(system, state, f"{operator}/{partition}", version)


def of_partition(system: fs.FileSystem, state: str, name: str, version: int) -> Iterator[str]:
    there = storage.names(system, f"{state}/{name}")
    zips, changelogs = versions(there, ZIP), versions(there, CHANGELOG)
    base = max((number for number in zips if number <= version), default=0)
    if base:
        yield from of_snapshot(system, state, name, zips[base])
    for number in range(base + 1, version + 1):
        if number not in changelogs:
            yield f"state/{name}/{number}{CHANGELOG} is missing"
        elif not whole(content(system, f"{state}/{name}/{changelogs[number]}")):
            yield f"state/{name}/{changelogs[number]} is damaged"


def versions(there: set[str], kind: str) -> dict[int, str]:
    """The files of one kind by the version they are of: N.zip, or N_ID.zip."""
    found = {name: name.removesuffix(kind).partition("_")[0] for name in there if name.endswith(kind)}
    return {int(number): name for name, number in found.items() if number.isdigit()}


def of_snapshot(system: fs.FileSystem, state: str, name: str, file: str) -> Iterator[str]:
    try:
        with system.open_input_file(f"{state}/{name}/{file}") as opened, zipfile.ZipFile(opened) as snapshot:
            wrong = snapshot.testzip()
            parts = parts_of(snapshot)
    except UNREADABLE:
        wrong, parts = file, {}
    if wrong:
        yield f"state/{name}/{file} is damaged"
    there = {info.base_name: info.size for info in listing(system, f"{state}/{name}/SSTs")} if parts else {}
    for part, size in parts.items():
        if there.get(part) != size:
            yield f"state/{name}/SSTs/{part} is {'missing' if part not in there else 'damaged'}"


def whole(changelog: bytes) -> bool:
    """Whether its blocks reach to its end; of another codec, whether there is anything."""
    if not changelog.startswith(LZ4):
        return len(changelog) > len(LZ4) and not changelog.startswith(LZ4[:4])
    at = 0
    while at + BLOCK.size <= len(changelog):
        magic, _, size, _, _ = BLOCK.unpack_from(changelog, at)
        at += BLOCK.size + max(0, size)
        if magic != LZ4:
            return False
        if not size:
            return bool(at == len(changelog))
    return False


def content(system: fs.FileSystem, path: str) -> bytes:
    with system.open_input_file(path) as file:
        return bytes(file.read())


def listing(system: fs.FileSystem, folder: str) -> list[fs.FileInfo]:
    return system.get_file_info(fs.FileSelector(folder, allow_not_found=True))  # type: ignore[no-any-return]
