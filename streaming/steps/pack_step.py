"""Frames files in, one row per file and bucket out; or, within one process, what such a row holds.

Every bucket gets a row of every file, empty or not: its marks tell each bucket how far the agent has come.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture import frames, frames_file
from wirecheck.capture.frames import NotFramesError
from wirecheck.capture.frames_file_name import FOREIGN_NUMBER, base_name, whose
from wirecheck.decode.connection.segments import Segments, segments
from wirecheck.judge.ledger.failures import described
from wirecheck.streaming.steps import quarantine
from wirecheck.streaming.steps.cells import from_cell, named, to_cell
from wirecheck.streaming.steps.tagged import FRAMES, Tagged
from wirecheck.streaming.store.storage import at, is_local, local

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from wirecheck.streaming.steps.settings import Settings

ARRAYS = tuple(f.name for f in fields(Segments) if f.name not in {"label", "names", "endpoints"})


@dataclass(frozen=True)
class FrameFile:
    """What one bucket sees of one frames file."""

    agent: str
    file_seq: int
    marks: tuple[frames.Mark, ...]
    """The agent's own rows, in file order: the last is its progress."""
    segments: Segments | None
    """The frames of this bucket's connections; None where the file has none."""


def file_cell(file: FrameFile) -> bytes:
    """What a bucket sees of a file, under agent and number: these are read before the file's turn comes."""
    return to_cell(file, f"{file.file_seq} {file.agent}".encode())


def file_of(cell: bytes | FrameFile) -> tuple[str, int]:
    """Agent and number; the frames stay packed."""
    if isinstance(cell, FrameFile):
        return cell.agent, cell.file_seq
    seq, _, agent = named(cell)[0].decode().partition(" ")
    return agent, int(seq)


def read_file(cell: bytes | FrameFile) -> FrameFile:
    if isinstance(cell, FrameFile):
        return cell
    file: FrameFile = from_cell(named(cell)[1], FrameFile, frames.Mark, Segments)
    return file


@dataclass(frozen=True)
class Dealt:
    """What one bucket gets of one file."""

    label: str
    bucket: int
    file: FrameFile


def pack_files(paths: Iterable[str], settings: Settings) -> Iterator[Iterable[Tagged]]:
    """The rows of one file after the other, made as they are taken: a worker holds one file, and one row of it."""
    return (map(as_row, every) for every in deal_files(paths, settings))


def as_row(dealt: Dealt) -> Tagged:
    return Tagged(dealt.label, dealt.bucket, FRAMES, file_cell(dealt.file))


def deal_files(paths: Iterable[str], settings: Settings) -> Iterator[Iterable[Dealt]]:
    """What the buckets get of one file after the other."""
    for path in paths:
        try:
            table = read(path)
            check_owner(path, table, settings)
            yield packed(path, table, settings)
        except NotFramesError as wrong:
            yield set_aside(path, str(wrong), settings)


def check_owner(path: str, table: pa.Table, settings: Settings) -> None:
    """Whether the file is its agent's: by its name, and where all files are known, by its label. Raises NotFramesError.

    A number under another label would be awaited under the agent's own until the end.
    """
    quarantine.check_name(path, table)
    known = settings.agents.get(table["agent"][0].as_py())
    label = table["cluster"][0].as_py()
    if known and known.last and known.label not in {"", label}:
        raise NotFramesError(f"its cluster is {label!r}, and that of its agent's first file is {known.label!r}")


def packed(path: str, table: pa.Table, settings: Settings) -> Iterator[Dealt]:
    """What the buckets get of a file; those that are still to come get the reason, where making one raises."""
    made = 0
    try:
        for dealt in pack(table, settings):
            yield dealt
            made += 1
    except Exception as error:  # noqa: BLE001 - whatever a file can bring about
        yield from set_aside(path, f"its frames could not be distributed: {described(error)}", settings)[made:]


def read(path: str) -> pa.Table:
    """One file of frames, its strings as codes. Raises NotFramesError, or OSError where the disk or network fails."""
    try:
        return frames_file.read(whole(path))
    except FileNotFoundError as gone:
        raise NotFramesError("it was gone before it was read") from gone
    except (NotFramesError, OSError):
        raise
    except Exception as wrong:
        raise NotFramesError(f"not a file of frames: {described(wrong)}") from wrong


def whole(path: str) -> Any:
    """What Parquet is read from: of another file system all bytes, so that its failures are none of the file's."""
    if is_local(path):
        return str(local(path))
    system, inside = at(path)
    with system.open_input_file(inside) as file:
        try:
            return pa.BufferReader(file.read_buffer())
        except OSError as failed:
            raise OSError(failed.errno or errno.EIO, str(failed), path) from failed


def set_aside(path: str, reason: str, settings: Settings) -> list[Dealt]:
    """What stands for a file that cannot be read, one per bucket: its number, and marks in place of its frames."""
    agent, seq = whose(path) or (base_name(path), FOREIGN_NUMBER)
    known = settings.agents.get(agent)
    label = (known.label if known else "") or quarantine.label_of(path)
    file = FrameFile(agent, seq, quarantine.marks(path, reason), None)
    return [Dealt(label, bucket, file) for bucket in range(settings.buckets)]


def pack(table: pa.Table, settings: Settings) -> Iterator[Dealt]:
    is_frame = pc.equal(table["kind"], frames.FRAME)
    marks = table.filter(pc.invert(is_frame))
    table = chosen(table, is_frame)
    label, agent, file_seq = (marks[name][0].as_py() for name in ("cluster", "agent", "file_seq"))
    file_marks = marks_of(marks)
    whole = segments(table)
    del table  # the same data as `whole`
    for bucket, part in enumerate(deal(whole, settings.buckets)):
        yield Dealt(label, bucket, FrameFile(agent, file_seq, file_marks, part))


def marks_of(rows: pa.Table) -> tuple[frames.Mark, ...]:
    """Rows that are no frames."""
    columns = [field.name for field in fields(frames.Mark)]
    return tuple(frames.Mark(**row) for row in rows.select(columns).to_pylist())


def chosen(table: pa.Table, is_frame: pa.ChunkedArray) -> pa.Table:
    """The frames; they are not copied where marks come before and after them only, as in most files."""
    rows = np.flatnonzero(is_frame.to_numpy())
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return table.slice(rows[0], len(rows))
    return table.filter(is_frame)


def deal(whole: Segments, buckets: int) -> Iterator[Segments | None]:
    """The rows of each bucket, in their order, with the endpoints they need; None where it has none."""
    if buckets == 1:
        yield own_endpoints(whole) if len(whole) else None
        return
    bucket = whole.buckets(buckets)
    order = np.argsort(bucket, kind="stable")
    edges = np.searchsorted(bucket[order], np.arange(buckets + 1))
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        yield own_endpoints(whole.take(order[start:end])) if start < end else None


def own_endpoints(part: Segments) -> Segments:
    used = np.zeros(len(part.endpoints), np.bool_)
    used[part.src] = used[part.dst] = True
    new = (np.cumsum(used) - 1).astype(np.int32)
    endpoints = tuple(part.endpoints[i] for i in np.flatnonzero(used).tolist())
    return replace(part, endpoints=endpoints, src=new[part.src], dst=new[part.dst])


def together(parts: list[Segments]) -> Segments:
    """Several files' rows of one bucket as one, in the order given."""
    if len(parts) == 1:
        return parts[0]
    names: dict[str, int] = {}
    endpoints: dict[tuple[str, int], int] = {}
    columns: dict[str, list[NDArray[Any]]] = {}
    for part in parts:
        name = np.array([names.setdefault(text, len(names)) for text in part.names], np.int32)
        endpoint = np.array([endpoints.setdefault(pair, len(endpoints)) for pair in part.endpoints], np.int32)
        indices = {
            "agent": name[part.agent],
            "source": name[part.source],
            "src": endpoint[part.src],
            "dst": endpoint[part.dst],
        }
        lengths = {"payload_at": np.diff(part.payload_at), "left_at": np.diff(part.left_at)}
        for column in ARRAYS:
            columns.setdefault(column, []).append({**indices, **lengths}.get(column, getattr(part, column)))
    payload = np.frombuffer(
        b"".join(piece.data for piece in columns.pop("payload")), np.uint8
    )  # as the follower reads it without a copy
    joined = {column: np.concatenate(pieces) for column, pieces in columns.items()} | {"payload": payload}
    for column in ("payload_at", "left_at"):
        joined[column] = np.concatenate([[0], np.cumsum(joined[column])])
    return Segments(label=parts[0].label, names=tuple(names), endpoints=tuple(endpoints), **joined)
