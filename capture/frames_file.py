"""Reads and validates a file of frames.

Callers get rows that compiled code may index without checks: NULL only where a column may be unknown, numbers in range,
valid UTF-8, payloads whose kept and redacted bytes add up. A file that breaks a rule is rejected as a whole. Parquet
page headers may claim up to 2 GB before anything can be checked. FORMAT grows only where an older release must not read
a file; a nullable column that an older file lacks is read as NULL.
"""

from __future__ import annotations

import errno
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirecheck.capture import frames
from wirecheck.capture.frames import FRAME, NotFramesError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from wirecheck.capture.frames import Stamp

FORMAT = 1
_KEY = "wirecheck.frames.format"
_LONGEST_NUMBER = 20  # digits of an int64, and its sign


class FormatError(NotFramesError):
    """The file is not of this release's format; the message ends with what to do."""


class Span(NamedTuple):
    """From the least to the greatest time of a file's frames, in nanoseconds since 1970."""

    least_ns: int
    greatest_ns: int


class FileMetadata(NamedTuple):
    """The metadata in a frames file's footer."""

    cluster: str
    agent: str
    file_seq: int
    span: Span | None
    """None if it holds no frame."""


def entries(stamp: Stamp, file_seq: int, span: Span | None) -> dict[str, str]:
    """The footer's key-value metadata of a new file."""
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
    """Parses a footer's key-value metadata. Raises NotFramesError, or FormatError for another format."""
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
    """Raises NotFramesError if the metadata and these columns, which were checked before, disagree."""
    for name in ("cluster", "agent", "file_seq"):
        if name in table.column_names and table.num_rows and table[name][0].as_py() != getattr(of_itself, name):
            raise NotFramesError(f"its metadata and its rows differ in {name}")
    if {"kind", "ts_ns"} <= set(table.column_names) and span_of(table) != of_itself.span:
        raise NotFramesError("its metadata and its rows differ in times")


def span_of(table: pa.Table) -> Span | None:
    """From the least to the greatest time of the frames among these rows; None if there are none."""
    ts_ns = table["ts_ns"].to_numpy()[table["kind"].to_numpy() == FRAME]
    return Span(int(ts_ns.min()), int(ts_ns.max())) if len(ts_ns) else None


def both(one: Span | None, other: Span | None) -> Span | None:
    """The least span that covers both."""
    if one is None or other is None:
        return one or other
    return Span(min(one.least_ns, other.least_ns), max(one.greatest_ns, other.greatest_ns))


LARGEST_ROWS = 10_000_000  # an agent's file rolls at 512 MB at most, and a row counts for 64 bytes
FEW_ROWS = 1 << 20  # of a file of the default size; they take 200 MB of memory, however well they compress
LEAST_ROW_BYTES = 4  # a larger file has so many bytes for each row at least; agents write 18 and more
LARGEST_BYTES = 1 << 30  # unpacked
LONGEST_TEXT_BYTES = 1 << 16
MOST_GROUPS = 4096  # an agent begins one every 16 MB
_THRIFT_BYTES = 16 << 20  # of one text, or elements of one list, in Parquet's own headers
RANGES = {c.name: (c.least, c.most) for c in frames.COLUMNS if c.least is not None and c.most is not None}
BY_NAME = {column.name: column for column in frames.COLUMNS}
ONE_IN_A_FILE = ("cluster", "agent", "file_seq")
SPANNED = ("payload", "payload_len", "left_out")


def read(path: Path | str | pa.NativeFile, columns: Sequence[str] | None = None) -> pa.Table:
    """A frames file, or some of its columns, after validation. Strings are dictionary<int32, string>; all other
    columns have the types of `frames.FRAMES`.

    Raises NotFramesError, or OSError if the disk or network fails.
    """
    names = list(columns) if columns is not None else frames.FRAMES.names
    file_bytes = _bytes_of(path)
    try:
        of_itself, table = _read(path, file_bytes, names)
        table = _with_unknown(table, names)
        look(table, names)
        agree(of_itself, table)
    except (NotFramesError, FileNotFoundError):
        raise
    except KeyError as lacking:  # Arrow looks a column up by its name's bytes
        name = lacking.args[0] if lacking.args else "such column"
        text = name.decode(errors="replace") if isinstance(name, bytes) else name
        raise NotFramesError(f"not a file of frames: no {text}") from lacking
    except MemoryError as much:
        raise NotFramesError("expands beyond the available memory") from much
    except Exception as wrong:  # whatever Arrow makes of foreign bytes
        if isinstance(wrong, OSError) and wrong.errno is not None:  # of broken pages it raises one without a number
            raise
        raise NotFramesError(next(iter(str(wrong).splitlines()), type(wrong).__name__)) from wrong
    return table


def of_itself(path: Path | str | pa.NativeFile) -> FileMetadata:
    """The metadata in its footer; its rows are not read. Raises NotFramesError, or OSError."""
    try:
        with _open(path, ()) as file:
            return metadata_of(file.metadata.metadata)
    except pa.ArrowException as wrong:
        raise NotFramesError(next(iter(str(wrong).splitlines()), "no Parquet")) from wrong


def _bytes_of(path: Path | str | pa.NativeFile) -> int:
    """The size of a regular file. Opening a FIFO would wait until another process writes to it.

    Raises NotFramesError, or OSError.
    """
    if isinstance(path, pa.NativeFile):
        return int(path.size())
    try:
        status = Path(path).stat()
    except OSError as wrong:
        if wrong.errno not in {errno.ENOENT, errno.ELOOP} or not Path(path).is_symlink():
            raise
        raise NotFramesError("a link to a file that does not exist") from wrong
    if not stat.S_ISREG(status.st_mode):
        raise NotFramesError("not a regular file")
    return status.st_size


def _read(path: Path | str | pa.NativeFile, file_bytes: int, names: list[str]) -> tuple[FileMetadata, pa.Table]:
    with _open(path, frames.STRINGS) as file:  # read_table would take folders for columns
        of_itself = metadata_of(file.metadata.metadata)
        _probe(file)
        _fits(file.metadata, file_bytes)
        if "payload" not in names or not _repeats(file.metadata):
            return of_itself, file.read(names)
    with _open(path, [*frames.STRINGS, "payload"]) as file:
        return of_itself, _written_out(file.read(names))


def _with_unknown(table: pa.Table, names: list[str]) -> pa.Table:
    """The table with each column that may be unknown and that an older release did not write."""
    for at, name in enumerate(names):
        if BY_NAME[name].nullable and name not in table.column_names:
            kind = BY_NAME[name].type
            table = table.add_column(min(at, table.num_columns), pa.field(name, kind), pa.nulls(table.num_rows, kind))
    return table


def _open(path: Path | str | pa.NativeFile, coded: Iterable[str]) -> pq.ParquetFile:
    limits = {"thrift_string_size_limit": _THRIFT_BYTES, "thrift_container_size_limit": _THRIFT_BYTES}
    return pq.ParquetFile(path, read_dictionary=list(coded), **limits)


def _probe(file: pq.ParquetFile) -> None:
    """Read a row of every group: this raises for an invalid header. Asking for its metadata first aborts the process

    (`RowGroupMetaData.column` of a header whose histogram of levels has a wrong size: std::terminate in pyarrow).
    """
    if file.metadata.num_row_groups > MOST_GROUPS:
        raise NotFramesError(f"more than {MOST_GROUPS} row groups")
    for group in range(file.metadata.num_row_groups):
        next(file.iter_batches(1, row_groups=[group]), None)


def _fits(metadata: pq.FileMetaData, file_bytes: int) -> None:
    """Refuse what would unpack to more than an agent's file of this size does. Raises NotFramesError."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    values = [sum(group.column(k).num_values for group in groups) for k in range(metadata.num_columns)]
    rows = max(metadata.num_rows, *values, 0)
    if rows > LARGEST_ROWS or min(metadata.num_rows, *values, 0) < 0:
        raise NotFramesError(f"expands beyond {LARGEST_ROWS} rows")
    if rows > max(FEW_ROWS, file_bytes // LEAST_ROW_BYTES):
        raise NotFramesError(f"expands to {rows} rows, too many for a file of {file_bytes} bytes")
    if sum(group.total_byte_size for group in groups) > LARGEST_BYTES:
        raise NotFramesError(f"expands beyond {LARGEST_BYTES >> 20} MB")


def _repeats(metadata: pq.FileMetaData) -> bool:
    """Whether the payload is dictionary-encoded: a few bytes could then expand to any number of long payloads."""
    return any(
        column.path_in_schema == "payload" and any("DICTIONARY" in encoding for encoding in column.encodings)
        for group in map(metadata.row_group, range(metadata.num_row_groups))
        for column in map(group.column, range(group.num_columns))
    )


def _written_out(table: pa.Table) -> pa.Table:
    coded = table["payload"]
    for chunk in coded.chunks:
        _codes_lie_inside("payload", chunk)
    lengths = [np.diff(_offsets(chunk.dictionary))[chunk.indices.drop_null().to_numpy()] for chunk in coded.chunks]
    if sum(int(length.sum(dtype=np.int64)) for length in lengths) > LARGEST_BYTES:
        raise NotFramesError(f"expands beyond {LARGEST_BYTES >> 20} MB")
    return table.set_column(table.schema.get_field_index("payload"), "payload", coded.cast(pa.binary()))


def look(table: pa.Table, names: Iterable[str]) -> None:
    """Raises NotFramesError if these columns do not hold what an agent writes."""
    for name in names:
        _is_there(table, name)
    is_mark = pc.not_equal(table["kind"], frames.FRAME) if "kind" in table.column_names else None
    for name in names:
        _has_no_null(name, table[name], is_mark)
        if name in RANGES:
            _in_range(name, table[name])
        elif name in frames.STRINGS:
            _are_texts(name, table[name])
    if set(SPANNED) <= set(names):
        _add_up(table)
    if is_mark is not None:
        _ends_with_progress(table["kind"])
    for name in (name for name in names if name in ONE_IN_A_FILE):
        _is_one(name, table[name])


def _is_there(table: pa.Table, name: str) -> None:
    if table.column_names.count(name) != 1:
        raise NotFramesError(f"not a file of frames: no {name}")
    found, kind = table[name].type, frames.FRAMES.field(name).type
    found = found.value_type if pa.types.is_dictionary(found) else found
    if found != kind:
        raise NotFramesError(f"not a file of frames: {name} is {found}, not {kind}")


def _ends_with_progress(kind: pa.ChunkedArray) -> None:
    if not len(kind) or kind[-1].as_py() != frames.PROGRESS:
        raise NotFramesError("not a file of frames: no progress row")
    if pc.sum(pc.equal(kind, frames.PROGRESS)).as_py() != 1:
        raise NotFramesError("progress before its last row")


def _has_no_null(name: str, column: pa.ChunkedArray, is_mark: pa.ChunkedArray | None) -> None:
    if name == "reason" or BY_NAME[name].nullable or not column.null_count:
        return
    lacking = pc.is_null(column).to_numpy()
    if BY_NAME[name].null_in_marks:
        lacking &= ~is_mark.to_numpy() if is_mark is not None else False
    if lacking.any():
        raise NotFramesError(f"no {name} in row {int(np.argmax(lacking)) + 1}")


def _in_range(name: str, column: pa.ChunkedArray) -> None:
    least, most = RANGES[name]
    found = pc.min_max(column).as_py()
    for value in (found["min"], found["max"]):
        if value is not None and not least <= value <= most:
            raise NotFramesError(f"{name} is {value}, not {least} to {most}")


def _are_texts(name: str, column: pa.ChunkedArray) -> None:
    """Checks each distinct text once, as texts are dictionary-encoded. Parquet does not guarantee UTF-8."""
    for chunk in column.chunks:
        texts = chunk.dictionary
        texts.validate(full=True)
        _codes_lie_inside(name, chunk)
        if len(texts) and int(np.diff(_offsets(texts)).max()) > LONGEST_TEXT_BYTES:
            raise NotFramesError(f"{name} is longer than {LONGEST_TEXT_BYTES} bytes")
        if name.endswith("_ip"):
            strange = next((text for text in texts.to_pylist() if not _is_address(text)), None)
            if strange is not None:
                raise NotFramesError(f"{name} is {strange[:50]!r}, not an address")


def _codes_lie_inside(name: str, chunk: pa.DictionaryArray) -> None:
    codes = pc.min_max(chunk.indices).as_py()
    if codes["min"] is not None and not 0 <= codes["min"] <= codes["max"] < len(chunk.dictionary):
        raise NotFramesError(f"{name} has a code without a value")


def _is_address(text: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError):  # ValueError: a zero byte in it
        return False
    return True


def _is_one(name: str, column: pa.ChunkedArray) -> None:
    """Cluster, agent and file number are the same in all rows, and not empty. Raises NotFramesError."""
    found = {text for chunk in column.chunks for text in pc.unique(chunk).to_pylist()}
    if len(found) > 1:
        raise NotFramesError(f"more than one {name}")
    if "" in found:
        raise NotFramesError(f"no {name}")


def _add_up(table: pa.Table) -> None:
    """Kept bytes and left-out spans are the payload; spans are in order and lie inside."""
    kept = np.concatenate([np.zeros(0, np.int64), *(np.diff(_offsets(chunk)) for chunk in table["payload"].chunks)])
    size = table["payload_len"].to_numpy().astype(np.int64)
    spans = pc.list_value_length(table["left_out"]).to_numpy().astype(np.int64)
    inside = pc.list_flatten(table["left_out"])
    row, begin, length = np.repeat(np.arange(len(spans)), spans), _part(inside, "offset"), _part(inside, "length")
    left = np.bincount(row, length, len(size)).astype(np.int64)
    if not (kept + left == size).all():
        wrong = int(np.argmax(kept + left != size))
        raise NotFramesError(
            f"payload of row {wrong + 1}: {kept[wrong]} bytes kept and {left[wrong]} redacted are not {size[wrong]}"
        )
    if len(begin):
        _in_order(begin, length, size[row], np.flatnonzero(np.diff(row, prepend=-1)))


def _in_order(
    begin: NDArray[np.int64], length: NDArray[np.int64], size: NDArray[np.int64], first: NDArray[np.int64]
) -> None:
    """`first`: which spans are the first of their rows."""
    end = begin + length
    before = np.concatenate([[0], end[:-1]])
    before[first] = 0
    wrong = (length < 1) | (begin < before) | (end > size)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise NotFramesError(f"redacted span of {length[i]} bytes at {begin[i]} of {size[i]}, out of order or outside")


def _part(spans: pa.ChunkedArray, name: str) -> NDArray[np.int64]:
    column = pc.struct_field(spans, name)
    if column.null_count or spans.null_count:
        raise NotFramesError(f"no {name} of a redacted span")
    values: NDArray[np.int64] = column.to_numpy().astype(np.int64)
    return values


def _offsets(array: Any) -> NDArray[np.int64]:
    """The n+1 offsets of its texts or byte strings in their buffer."""
    if not len(array):
        return np.zeros(1, np.int64)
    found = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    return found.astype(np.int64)
