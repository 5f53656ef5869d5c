"""The frames table: the columns that captures become and that checking reads.

A change here changes the contract with every file on disk. There is no uint16 and no timestamp[ns]: Spark reads the
first as negative numbers and refuses the second. Ports are int32, times int64 nanoseconds since 1970. Agents are not
upgraded at one moment, so a new column is nullable: null, and the column's absence in an older file, mean unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

FRAME = 0  # one captured TCP segment
STARTED = 1  # first row of a capture; its time is the first packet's
ENDED = 2  # stands just before the last PROGRESS of a capture that ended in order
DROPPED = 3  # `count` packets were lost during capture, `reason` names the source of the count
PROGRESS = 4  # last row of every file: nothing older than its time is still to come from this agent
SKIPPED = 5  # `count` packets of `source` were no TCP segments we can read, for one `reason`
INPUT_ERROR = 6  # `source` could not be read to its end; `reason` has the error and the byte
UNDECRYPTED = 7  # `count` TLS connections stayed encrypted although keys were given, for one `reason`
CLOCK = 8  # the clock of `source` was set, or was wrong for single packets, `count` times; `reason` says how
JOINED = 9  # `count` TLS connections that began before the capture were opened behind KeyUpdates; `reason` has how many
QUARANTINED = 10  # `source` is a file of frames that could not be read; written by the checking job, in no file
LATE = 11  # `count` frames came when their connection had settled, for one `reason`; written by the checking job only
AWAY = 12  # its agent captured nothing for `count` seconds; `reason` says when; written by the checking job only

LATEST_NS = 1 << 62  # the year 2116: later times saturate, so that the difference of two is an int64
EARLIEST_NS = -1  # what an agent promises that has shown nothing, and whose oldest row is of 1970
MOST_COUNT = 1 << 48  # packets that a mark can count: so many saturate, and a thousand files' still add up
MOST_PAYLOAD_BYTES = 1 << 20  # of a segment; offloading joins segments up to 512 KiB (Linux, BIG TCP)

SPAN = pa.struct([pa.field("offset", pa.int32(), nullable=False), pa.field("length", pa.int32(), nullable=False)])


class Column(NamedTuple):
    """A column of the frames table; nothing else about it is declared anywhere."""

    name: str
    type: pa.DataType
    meaning: str
    """One sentence."""
    least: int | None = None
    most: int | None = None
    """Which numbers a reader believes; None for what is no number."""
    null_in_marks: bool = False
    """Whether a mark may lack it."""
    nullable: bool = False
    """Whether it may be unknown: null in any row, or absent from a file that an older release wrote."""


COLUMNS = (
    Column("kind", pa.int8(), "0 for a frame, else the kind of mark.", FRAME, JOINED),
    Column("cluster", pa.string(), "Label of the cluster, as given to the agent."),
    Column("agent", pa.string(), "Name of the agent that wrote the row."),
    Column("file_seq", pa.int32(), "Number of the file: 1-based, contiguous per agent and folder.", 1, (1 << 31) - 1),
    Column("source", pa.string(), "Capture file as given on the command line, or interface.", null_in_marks=True),
    Column(
        "frame_no", pa.int64(), "1-based number of the packet in its source: the number Wireshark shows.", 0, 1 << 53
    ),
    Column("ts_ns", pa.int64(), "Capture time in nanoseconds since 1970, UTC.", EARLIEST_NS, LATEST_NS),
    Column("src_ip", pa.string(), "Source address.", null_in_marks=True),
    Column("src_port", pa.int32(), "Source port.", 0, 65535),
    Column("dst_ip", pa.string(), "Destination address.", null_in_marks=True),
    Column("dst_port", pa.int32(), "Destination port.", 0, 65535),
    Column("tcp_seq", pa.int64(), "TCP sequence number as on the wire.", 0, (1 << 32) - 1),
    Column("tcp_ack", pa.int64(), "TCP acknowledgement number as on the wire.", 0, (1 << 32) - 1),
    Column(
        "tcp_flags",
        pa.int32(),
        "TCP flags, nine bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE, CWR, NS.",
        0,
        511,
    ),
    Column(
        "tcp_window",
        pa.int32(),
        "Receive window as on the wire, before scaling: 0 if the sender of the segment can take no more data. Null: "
        "unknown.",
        0,
        65535,
        nullable=True,
    ),
    Column("payload", pa.binary(), "The kept bytes of the segment, concatenated."),
    Column("payload_len", pa.int32(), "Length of the segment's payload on the wire.", 0, MOST_PAYLOAD_BYTES),
    Column(
        "left_out", pa.list_(SPAN), "Spans of the payload as on the wire that are not kept, a snaplen cut included."
    ),
    Column(
        "decrypted",
        pa.int64(),
        "0, or the run of decryption: the time of the first row that an agent decrypted of the connection since it "
        "started. Payload, lengths, sequence and acknowledgement numbers are then those of the plaintext, and a gap in "
        "these numbers has no known length. Numbers of different runs have nothing in common.",
        0,
        LATEST_NS,
    ),
    Column(
        "count",
        pa.int64(),
        "Of a mark: how many packets were dropped or skipped. Of a frame: how many bytes at the end of its payload the "
        "capture's snap length cut off.",
        0,
        MOST_COUNT,
    ),
    Column("reason", pa.string(), "Of a mark: why."),
)
TIME = Column(
    "time",
    pa.timestamp("us", tz="UTC"),
    "`ts_ns` as a timestamp, for other tools; nothing of wirecheck's reads it.",
)
FRAMES = pa.schema([pa.field(column.name, column.type) for column in COLUMNS])
STRINGS = tuple(column.name for column in COLUMNS if column.type == pa.string())
CODED = pa.dictionary(pa.int32(), pa.string())
# The same rows in memory: strings as codes, which is how they are written and how a reader should ask for them.
FRAMES_CODED = pa.schema([pa.field(c.name, CODED if c.name in STRINGS else c.type) for c in COLUMNS])


@dataclass(frozen=True)
class Mark:
    """A row that is not a frame."""

    kind: int
    ts_ns: int
    source: str | None = None
    count: int = 0
    reason: str | None = None


@dataclass(frozen=True)
class Stamp:
    """Whose rows these are: the two labels every row carries."""

    cluster: str
    agent: str


def mark_rows(marks: Sequence[Mark], stamp: Stamp) -> pa.RecordBatch:
    n = len(marks)
    columns = {name: pa.nulls(n, kind) for name, kind in zip(FRAMES_CODED.names, FRAMES_CODED.types, strict=True)}
    for column in COLUMNS:
        if pa.types.is_integer(column.type) and not column.nullable:
            columns[column.name] = pa.array(np.zeros(n, np.int64)).cast(column.type)
    columns["kind"] = pa.array([mark.kind for mark in marks], pa.int8())
    columns["cluster"] = constant(stamp.cluster, n)
    columns["agent"] = constant(stamp.agent, n)
    columns["source"] = pa.array([mark.source for mark in marks], pa.string()).dictionary_encode().cast(CODED)
    columns["ts_ns"] = pa.array([mark.ts_ns for mark in marks], pa.int64())
    columns["payload"] = pa.array([b""] * n, pa.binary())
    columns["left_out"] = pa.array([[]] * n, pa.list_(SPAN))
    columns["count"] = pa.array([mark.count for mark in marks], pa.int64())
    columns["reason"] = pa.array([mark.reason for mark in marks], pa.string()).dictionary_encode().cast(CODED)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=FRAMES_CODED)


def constant(text: str, n: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), pa.array([text], pa.string()))


def times(ts_ns: pa.ChunkedArray) -> pa.Array:
    """TIME of these rows."""
    return pa.array(ts_ns.to_numpy() // 1000).view(TIME.type)


def leaves(name: str) -> list[str]:
    """What Parquet calls the columns that hold the values of this one."""
    kind = FRAMES.field(name).type if name != TIME.name else TIME.type
    if not pa.types.is_list(kind):
        return [name]
    return [f"{name}.list.element.{field.name}" for field in kind.value_type]


def with_file_seq(table: pa.Table, file_seq: int) -> pa.Table:
    column = pa.array(np.full(table.num_rows, file_seq, np.int32))
    return table.set_column(table.schema.get_field_index("file_seq"), "file_seq", column)


class NotFramesError(ValueError):
    """A file among the frames is none; the message is why, in one line."""
