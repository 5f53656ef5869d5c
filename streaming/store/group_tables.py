"""What members of groups and their coordinators say to each other, and offsets, as rows by the minute; and read back as
what `groups` and `why` show.

Rule: what groups are, who is in them and the records by which they are behind come out as of the capture. How the lag
grows and since when records wait come of two points a minute of each partition.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.decode.nested import id_text
from wirecheck.judge.results.result_table import rows_of
from wirecheck.questions.group_messages import (
    ACKNOWLEDGING,
    HEARTBEATS,
    Committed,
    Ends,
    Step,
    Watermark,
    acknowledged,
    commits,
    counted_steps,
    ends,
)
from wirecheck.questions.traffic import Call, Chunk
from wirecheck.questions.traffic_windows import MINUTE_NS
from wirecheck.streaming.store import result_folder
from wirecheck.streaming.store.result_tables import GROUPS_BY_MINUTE, OFFSETS_BY_MINUTE, schema
from wirecheck.wording import NS_PER_S

Row = dict[str, Any]
GROUPS, OFFSETS = GROUPS_BY_MINUTE.name, OFFSETS_BY_MINUTE.name
JOINING = ("JoinGroup", *HEARTBEATS)
SLOT_NS = 10 * NS_PER_S
ALL_OF = 8
"""The last minutes of a partition of which all rows are read back; of those before, ever fewer."""


def group_rows(chunk: Chunk) -> list[Row]:
    """Of `groups_by_minute`: what is alike in a minute is one row."""
    found: dict[tuple[Any, ...], Row] = {}
    for one, count in counted_steps(chunk, MINUTE_NS):
        more = {"error_code": one.error, "reason": one.reason, "waits": one.is_open}
        generations = {"stated": one.stated, "given": one.given}
        row = {"member_id": one.member, "group_instance_id": one.instance, **generations, **more}
        times = one.asked_ns, one.answered_ns
        add_row(found, count, one.call, times, group_id=one.group, connection=one.connection, **row)
    for name, call, time_ns in acknowledged(chunk):
        row = {"connection": "", "member_id": "", "group_instance_id": "", "stated": -1, "given": -1}
        add_row(found, 1, call, (time_ns, None), group_id=name, error_code=None, reason="", waits=False, **row)
    return [*found.values()]


def add_row(
    found: dict[tuple[Any, ...], Row], count: int, call: Call, times: tuple[int, int | None], **row: Any
) -> None:
    """`times`: asked and answered."""
    asked_ns, answered_ns = times
    key = asked_ns // MINUTE_NS, *call, *row.values()
    begun = {"time": key[0] * MINUTE_NS, **call._asdict(), **row, "count": 0, "first_seen": asked_ns}
    one = found.setdefault(key, begun)
    one["count"] += count
    one["first_seen"] = min(one["first_seen"], asked_ns)
    one["last_seen"] = max(one.get("last_seen", 0), asked_ns)
    one["answered"] = max(filter(None, (one.get("answered"), answered_ns)), default=None)


def offset_rows(chunk: Chunk, topic_names: Mapping[bytes, str]) -> list[Row]:
    """Of `offsets_by_minute`: commits, then ends of partitions."""
    found: dict[tuple[Any, ...], Row] = {}
    for one in sorted(commits(chunk, topic_names), key=lambda one: one.asked_ns):
        call, (topic, partition) = one.call, one.place
        where = {"client_id": call.client_id, "host": call.host, "server": call.server, "group_id": one.group}
        where["api"] = call.api
        what = {"topic": topic, "topic_id": id_text(one.topic_id) or None, "partition": partition}
        add_offset(found, one.asked_ns, one.offset, **where, **what)
    for there in ends(chunk, topic_names):
        for time_ns, offset, what in points_of(chunk, there):
            add_offset(found, time_ns, offset, client_id=None, host=None, group_id=None, api=there.api, **what)
    return [*found.values()]


def points_of(chunk: Chunk, found: Ends) -> Iterator[tuple[int, int, Row]]:
    """Of each partition the first and the last end of every ten seconds, in order of time."""
    first, last = found.runs(found.time_ns // SLOT_NS, found.topic_id, found.partition, found.topic, found.server)
    rows = np.union1d(first, last)
    rows = rows[np.argsort(found.time_ns[rows], kind="stable")]
    ids = [id_text(raw) or None for raw in found.named]
    parts = found.topic, found.topic_id, found.server, found.partition, found.offset, found.time_ns
    columns = (column[rows].tolist() for column in parts)
    for topic, topic_id, server, partition, offset, time_ns in zip(*columns, strict=True):
        place = {"topic": found.texts[topic], "topic_id": ids[topic_id], "partition": partition}
        yield time_ns, offset, {"server": chunk.servers[server], **place}


def add_offset(found: dict[tuple[Any, ...], Row], time_ns: int, offset: int, **row: Any) -> None:
    """In order of time."""
    minute = time_ns // MINUTE_NS
    begun = {"time": minute * MINUTE_NS, **row, "first_seen": time_ns, "offsets": []}
    one = found.setdefault((minute, *row.values()), begun)
    points = one["offsets"]
    if len(points) > 1 and points[-1]["time"] // SLOT_NS == time_ns // SLOT_NS:
        points.pop()
    points.append({"time": time_ns, "offset": offset})
    one["last_seen"], one["last_offset"] = time_ns, offset


# --- and back


class Kept(NamedTuple):
    """What a folder keeps of groups, in the order of time."""

    steps: list[Step]
    acknowledged: list[tuple[str, Call, int]]
    commits: list[Committed]
    ends: list[tuple[str, Watermark]]
    """Each with the server that stated it."""


Named = Callable[[Iterable[str]], Mapping[str, str]]
"""Names by topic ID, of topics of which some may be IDs."""
Counted = Callable[[str, str], bool]
"""Whether requests of a host to a server count; what a proxy sends on does not."""


def groups_in(out: Path, run: str, named: Named, counts: Counted, group: str | None = None) -> Kept:
    """`group`: of this one alone, and the ends of what it commits."""
    table = whole(out, GROUPS, run)
    offsets = whole(out, OFFSETS, run)
    if group is not None:
        table = table.filter(pc.equal(table["group_id"], group))
        mine = pc.fill_null(pc.equal(offsets["group_id"], group), pc.is_null(offsets["group_id"]))
        offsets = offsets.filter(mine)
    rows = [row for row in alike(table) if counts(row["host"], row["server"])]
    found = Kept([], [], [], [])
    for row in rows:
        call = Call(row["client_id"], row["host"], row["server"], row["api"])
        if row["api"] in ACKNOWLEDGING:
            found.acknowledged.append((row["group_id"], call, row["last_seen"]))
        else:
            found.steps.extend(steps_of(row, call))
    found.steps.sort(key=lambda step: step.asked_ns)
    topics = named(pc.unique(offsets["topic"]).to_pylist())
    is_end = pc.is_null(offsets["group_id"])
    committed = offsets.filter(pc.invert(is_end))
    for row in newest(committed, ("group_id", "topic", "partition")):
        if counts(row["host"], row["server"]):
            call = Call(row["client_id"], row["host"], row["server"], row["api"])
            found.commits.extend(
                Committed(time_ns, call, row["group_id"], place, offset, topic_id)
                for place, offset, time_ns, topic_id in points(row, topics)
            )
    read = pc.is_in(offsets["topic"], value_set=names_of(committed["topic"], topics))
    for row in newest(offsets.filter(pc.and_(is_end, read)), ("topic", "partition", "api")):
        found.ends.extend((row["server"], Watermark(*point, row["api"])) for point in points(row, topics))
    found.commits.sort(key=lambda one: one.asked_ns)
    found.ends.sort(key=lambda one: one[1].time_ns)
    return found


def memberships(out: Path, run: str, client_id: str, counts: Callable[[str], bool]) -> set[str]:
    """Groups that a client of this name is a member of, at servers that count."""
    table = whole(out, GROUPS, run)
    joins = pc.and_(pc.equal(table["client_id"], client_id), pc.is_in(table["api"], value_set=pa.array(JOINING)))
    mine = table.filter(joins).select(["group_id", "server"]).group_by(["group_id", "server"]).aggregate([]).to_pylist()
    return {row["group_id"] for row in mine if counts(row["server"])} - {""}


def names_of(named: pa.ChunkedArray, topics: Mapping[str, str]) -> pa.Array:
    """All that the topics of this column are called, by name and by ID."""
    there = {topics.get(text, text) for text in pc.unique(named).to_pylist()}
    return pa.array([*there, *(topic_id for topic_id, name in topics.items() if name in there)], pa.string())


def whole(out: Path, table: str, run: str) -> pa.Table:
    """All rows of a run; each is of its own revision, as cells add rows and change none."""
    kinds = schema(table)
    parts = [part.select([name for name in kinds.names if name in part.column_names])
             for part in result_folder.read(out, table, run)]  # fmt: skip
    return pa.concat_tables([kinds.empty_table(), *parts], promote_options="default")


SUMMED = [("count", "sum"), ("first_seen", "min"), ("last_seen", "max"), ("answered", "max")]


def alike(table: pa.Table) -> list[Row]:
    """Rows that differ in their minute alone, as one."""
    keys = [name for name in table.column_names if name not in {"id", "revision", "label", "time", *dict(SUMMED)}]
    found = table.group_by(keys, use_threads=False).aggregate(SUMMED)
    return rows_of(found.rename_columns([*keys, *dict(SUMMED)]))


def newest(table: pa.Table, keys: Iterable[str]) -> list[Row]:
    """Of rows that are alike in these columns the last, and of those before it ever fewer; the first, too."""
    if not len(table):
        return []
    codes = [pc.rank(table[key], tiebreaker="dense").to_numpy() for key in keys]
    order = np.lexsort((table["last_seen"].cast(pa.int64()).to_numpy(), *codes))
    new = np.logical_or.reduce([np.diff(code[order]) != 0 for code in codes])
    begins = np.r_[0, np.flatnonzero(new) + 1]
    left = np.repeat(np.r_[begins[1:], len(order)], np.diff(np.r_[begins, len(order)])) - np.arange(len(order))
    kept = (left <= ALL_OF) | (left & (left - 1) == 0)
    kept[begins] = True
    return rows_of(table.take(pa.array(order[kept])))


def steps_of(row: Row, call: Call) -> Iterator[Step]:
    """The first and the last of those that are alike."""
    times = {row["first_seen"]: row["first_seen"] if row["answered"] else None}
    times[row["last_seen"]] = row["answered"]
    for asked_ns, answered_ns in times.items():
        yield Step(
            asked_ns,
            0,
            call,
            row["connection"],
            answered_ns,
            row["group_id"],
            row["member_id"],
            row["stated"],
            row["given"],
            row["error_code"],
            row["reason"],
            row["group_instance_id"],
            row["waits"],
        )


def points(row: Row, topics: Mapping[str, str]) -> Iterator[tuple[tuple[str, int], int, int, bytes]]:
    """The place, an offset of it, when it had that, and its topic ID."""
    place, topic_id = (topics.get(row["topic"], row["topic"]), row["partition"]), (row["topic_id"] or "").encode()
    for one in row["offsets"]:
        yield place, one["offset"], one["time"], topic_id
