"""What a file of frames says of itself, in the key-value metadata of its Parquet footer: whoever lists files need not
open their columns.

Knows: the keys, which format this release reads, and that the metadata must agree with the rows.
Refuses to know: how rows are read (frames_file.py) or written (agent/spool.py).
Rule: FORMAT grows only where an older release must not read a file; an added column does not change it. A file without
these keys, or whose rows disagree with them, is not a file of frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirecheck.capture.frames import FRAME, NotFramesError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from wirecheck.capture.frames import Stamp

FORMAT = 1
_KEY = "wirecheck.frames.format"
_LONGEST_NUMBER = 20  # digits of an int64, and its sign


class FormatError(NotFramesError):
    """The file is not of this release's format; the message says how to go on."""


class Span(NamedTuple):
    """From the least to the greatest time of a file's frames, in nanoseconds since 1970."""

    least_ns: int
    greatest_ns: int


class FileMetadata(NamedTuple):
    """What a file says of itself."""

    cluster: str
    agent: str
    file_seq: int
    span: Span | None
    """None where it holds no frame."""


def entries(stamp: Stamp, file_seq: int, span: Span | None) -> dict[str, str]:
    """The metadata of a file that is written."""
    times = {"wirecheck.least_ts_ns": span.least_ns, "wirecheck.greatest_ts_ns": span.greatest_ns} if span else {}
    found = {
        _KEY: FORMAT,
        "wirecheck.cluster": stamp.cluster,
        "wirecheck.agent": stamp.agent,
        "wirecheck.file_seq": file_seq,
        **times,
    }
    return {name: str(value) for name, value in found.items()}


def metadata_of(metadata: Mapping[bytes, bytes] | None) -> FileMetadata:
    """What this file says of itself. Raises NotFramesError."""
    found = metadata or {}
    if _KEY.encode() not in found:
        raise FormatError(f"not a file of frames of format {FORMAT}: its metadata has no {_KEY}; capture again")
    if (written := _number(found, "frames.format")) != FORMAT:
        raise FormatError(f"frames of format {written}; this release reads format {FORMAT}: upgrade wirecheck here")
    timed = b"wirecheck.least_ts_ns" in found
    span = Span(_number(found, "least_ts_ns"), _number(found, "greatest_ts_ns")) if timed else None
    return FileMetadata(_text(found, "cluster"), _text(found, "agent"), _number(found, "file_seq"), span)


def _text(found: Mapping[bytes, bytes], name: str) -> str:
    try:
        return found[f"wirecheck.{name}".encode()].decode()
    except (KeyError, UnicodeDecodeError) as wrong:
        raise NotFramesError(f"its metadata has no {name}") from wrong


def _number(found: Mapping[bytes, bytes], name: str) -> int:
    text = _text(found, name)
    if len(text) > _LONGEST_NUMBER or not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise NotFramesError(f"its metadata has no {name}")
    return int(text)


def agree(of_itself: FileMetadata, table: pa.Table) -> None:
    """Whether these columns say the same, each one looked at before. Raises NotFramesError."""
    for name in ("cluster", "agent", "file_seq"):
        if name in table.column_names and table.num_rows and table[name][0].as_py() != getattr(of_itself, name):
            raise NotFramesError(f"its metadata and its rows have another {name}")
    if {"kind", "ts_ns"} <= set(table.column_names) and span_of(table) != of_itself.span:
        raise NotFramesError("its metadata and its rows have other times")


def span_of(table: pa.Table) -> Span | None:
    """Of the frames among these rows."""
    ts_ns = table["ts_ns"].to_numpy()[table["kind"].to_numpy() == FRAME]
    return Span(int(ts_ns.min()), int(ts_ns.max())) if len(ts_ns) else None


def both(one: Span | None, other: Span | None) -> Span | None:
    """From the least to the greatest time of the two."""
    if one is None or other is None:
        return one or other
    return Span(min(one.least_ns, other.least_ns), max(one.greatest_ns, other.greatest_ns))
