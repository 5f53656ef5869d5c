"""A run's batches of one table on any other file system of Arrow's: a file, then the entry in `_commits` that names it.

Knows: what makes a batch visible there in one step, and what each step costs a store: a request. Knows nothing of what
rows say, nor of other tables.
Rule: a file is never written again once it is named: other rows come as another file, and then the entry is replaced.
A batch that has not been written takes two requests, one after the other. Who writes under a lease replaces only the
entry that it has read, and none of a later owner's: a PUT that a machine sent before it slept changes nothing when it
wakes.
"""

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from wirecheck.streaming.store.lease import LeaseLost, opened, taken_over, unanswered, version_of
from wirecheck.streaming.store.storage import at, names, put

if TYPE_CHECKING:
    from obstore import UpdateVersion
    from obstore.store import ObjectStore

PART = "part.parquet"
COMMITS = "_commits"
SPANS = "_spans.json"
FEW_ROWS = 2_000
PATIENCE_S = 60.0
"""An entry waits so long for a store that is away, as its lease does."""
LOOK_S = 1.0


class Entries:
    """Object stores rename no folders: what counts is `_commits/N.json`, one small object per batch, and the file that
    it names.
    """

    def __init__(self, system: fs.FileSystem, folder: str) -> None:
        self.system, self.folder = system, folder

    def numbers(self) -> list[int]:
        entries = names(self.system, f"{self.folder}/{COMMITS}")
        return sorted(int(name.removesuffix(".json")) for name in entries if name.endswith(".json") and name[0] != ".")

    def place(self, batch_id: int) -> str:
        return f"{self.folder}/{COMMITS}/{batch_id}.json"

    def entry(self, batch_id: int) -> dict[str, Any] | None:
        with suppress(FileNotFoundError), self.system.open_input_file(self.place(batch_id)) as file:
            found: dict[str, Any] = json.loads(file.read())
            return found
        return None

    def rows(self, batch_id: int, columns: Iterable[str] | None = None) -> pa.Table | None:
        for _ in range(2):  # the file it named may have been swept away, the entry long pointing to another
            if (said := self.entry(batch_id)) is None:
                return None
            with suppress(FileNotFoundError), self.system.open_input_file(f"{self.folder}/{said['files'][0]}") as file:
                return columns_of(file, columns)
        return None

    def written_s(self, batch_id: int) -> float:
        first = (self.entry(batch_id) or {}).get("written_s")
        return float(first or self.system.get_file_info(self.place(batch_id)).mtime.timestamp())

    def put(self, rows: pa.Table, batch_id: int, written_s: float | None = None) -> None:
        there = names(self.system, f"{self.folder}/batch_id={batch_id}")
        name = next(name for n in range(len(there) + 1) if (name := f"part-{n}.parquet" if n else PART) not in there)
        self.commit(rows, batch_id, name, {"written_s": written_s})

    def put_first(self, rows: pa.Table, batch_id: int, said: Mapping[str, Any]) -> None:
        """Of a batch that has no entry; with what the entry says besides. A file that is there was never named."""
        self.commit(rows, batch_id, PART, {"written_s": None, **said})

    def commit(self, rows: pa.Table, batch_id: int, name: str, said: Mapping[str, Any]) -> None:
        file = f"batch_id={batch_id}/{name}"
        put(self.system, f"{self.folder}/{file}", as_parquet(rows))
        self.enter(batch_id, {"batch_id": batch_id, "files": [file], "rows": rows.num_rows, **said})

    def enter(self, batch_id: int, entry: Mapping[str, Any]) -> None:
        put(self.system, self.place(batch_id), json.dumps(entry).encode())

    def remove(self, batch_id: int) -> None:
        self.system.delete_file(self.place(batch_id))
        self.system.delete_dir(f"{self.folder}/batch_id={batch_id}")

    def sweep(self, batch_ids: list[int]) -> None:
        for number in batch_ids:
            there = names(self.system, f"{self.folder}/batch_id={number}")
            said = self.entry(number) if len(there) > 1 else None
            keep = set(said["files"]) if said else {f"batch_id={number}/{name}" for name in there}
            for name in there:
                if f"batch_id={number}/{name}" not in keep:
                    self.system.delete_file(f"{self.folder}/batch_id={number}/{name}")

    def summary(self) -> bytes | None:
        with suppress(FileNotFoundError), self.system.open_input_file(f"{self.folder}/{SPANS}") as file:
            return bytes(file.read())
        return None

    def keep_summary(self, said: bytes) -> None:
        put(self.system, f"{self.folder}/{SPANS}", said)


class Fenced(Entries):
    """As one writes who holds a lease under `fence`. Raises LeaseLost where an entry is a later owner's."""

    def __init__(self, run: str, fence: int) -> None:
        super().__init__(*at(run))
        self.store: ObjectStore = opened(run)
        self.run, self.fence = run, fence

    def put(self, rows: pa.Table, batch_id: int, written_s: float | None = None) -> None:
        self.commit(rows, batch_id, self.fresh(), {"written_s": written_s, "fence": self.fence})

    def put_first(self, rows: pa.Table, batch_id: int, said: Mapping[str, Any]) -> None:
        self.commit(rows, batch_id, self.fresh(), {"written_s": None, **said})

    @staticmethod
    def fresh() -> str:
        """A name that another owner does not take, whenever its PUT arrives."""
        return f"part-{uuid4().hex}.parquet"

    def enter(self, batch_id: int, entry: Mapping[str, Any]) -> None:
        """First as if nothing were there."""
        from obstore.exceptions import AlreadyExistsError, NotSupportedError, PreconditionError

        content, before = json.dumps(entry).encode(), None
        until_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.store.put(f"{COMMITS}/{batch_id}.json", content, mode=before or "create")
            except (AlreadyExistsError, PreconditionError, FileNotFoundError):
                there, before = self.standing(batch_id)
                if there.get("files") == entry["files"]:  # an earlier try got there without an answer
                    return
                if there.get("fence", 0) > self.fence:
                    raise LeaseLost(taken_over(self.run)) from None
            except (NotSupportedError, NotImplementedError):  # the tables' store is not the lease's
                super().enter(batch_id, entry)
                return
            except unanswered():
                if time.monotonic() > until_s:
                    raise
                time.sleep(LOOK_S)
            else:
                return

    def standing(self, batch_id: int) -> "tuple[dict[str, Any], UpdateVersion | None]":
        """The entry that is there, if any, and what a condition says of it."""
        with suppress(FileNotFoundError):
            found = self.store.get(f"{COMMITS}/{batch_id}.json")
            version = version_of(found.meta)
            return json.loads(bytes(found.bytes())), version
        return {}, None


def columns_of(file: Any, columns: Iterable[str] | None) -> pa.Table:
    whole = pq.ParquetFile(file)
    return whole.read(None if columns is None else [name for name in columns if name in whole.schema_arrow.names])


def as_parquet(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **shape(rows))
    return bytes(sink.getvalue())


def shape(rows: pa.Table) -> dict[str, Any]:
    """How they lie in a file. A batch's few rows are less than what may be said of them: without Arrow's copy of the
    schema (column comments and all; Parquet's own has every type of ours), without statistics and dictionaries a file
    of 100 rows has a third of the size. Nobody skips parts of so small a file; of a large one they do.
    """
    many = rows.num_rows > FEW_ROWS
    return {"compression": "zstd", "store_schema": False, "write_statistics": many, "use_dictionary": many}
