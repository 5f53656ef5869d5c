"""What members of groups and their coordinators say to each other, one step at a time; commits and ends of partitions.

`why` asks about one group, `groups` about all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wirecheck.decode.api_names import keys
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT, CLOSED_BY_SERVER, PENDING
from wirecheck.decode.show.message_summary import NO_ID, topic_codes
from wirecheck.decode.texts import Lists, Text, id_codes
from wirecheck.decode.wire import REQUEST, RESPONSE
from wirecheck.wording import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirecheck.decode.columns import Table
    from wirecheck.decode.wire import Ints
    from wirecheck.questions.traffic import Call, Chunk, Selection

HEARTBEATS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
"""Groups of KIP-848 and after: a member states its epoch, and the coordinator answers with the group's."""
COMMITS = ("OffsetCommit", "TxnOffsetCommit")
UNANSWERED = frozenset({CLOSED_BY_SERVER, CLOSED_BY_CLIENT, PENDING})
UNKNOWN_MEMBER_ID = 25
GIVEN_ID = ("need to re-join with the given member-id", "rebalance failed due to MemberIdRequiredException")
"""How Java's clients give as the reason that they are new (KIP-394)."""
STATED = {
    "JoinGroup": "",
    "SyncGroup": "generation_id",
    "LeaveGroup": "",
    "Heartbeat": "generation_id",
} | dict.fromkeys(HEARTBEATS, "member_epoch")
"""By API of members the column of the request with its generation or epoch."""
GIVEN = {"JoinGroup": "generation_id"} | dict.fromkeys(HEARTBEATS, "member_epoch")
"""The same of the response."""
INSTANCE = {"JoinGroup": "group_instance_id"} | dict.fromkeys(
    ("ConsumerGroupHeartbeat", "StreamsGroupHeartbeat"), "instance_id"
)
"""By API the column of the request with group.instance.id, which static members have."""
PARTITION = "topics.partitions.partition_index"
ACKNOWLEDGING = ("ShareFetch", "ShareAcknowledge")
ACKNOWLEDGED = "topics.partitions.acknowledgement_batches.acknowledge_types"
GAP, RELEASE = 0, 2
"""Acknowledgement types of KIP-932 that are no progress: there is no record, or it is given back."""
WRITTEN = "responses.partition_responses."
ACKS_ALL = -1
COLUMNS: Selection = (
    ("JoinGroup", "request", ("group_id", "member_id", INSTANCE["JoinGroup"], "reason")),
    ("JoinGroup", "response", ("generation_id", "member_id", "error_code")),
    ("SyncGroup", "request", ("group_id", "member_id", "generation_id")),
    ("SyncGroup", "response", ("error_code",)),
    ("LeaveGroup", "request", ("group_id", "member_id", "members.member_id", "members.reason")),
    ("LeaveGroup", "response", ("error_code",)),
    ("Heartbeat", "request", ("group_id", "member_id", "generation_id")),
    ("Heartbeat", "response", ("error_code",)),
    *((api, "request", ("group_id", "member_id", "member_epoch")) for api in HEARTBEATS),
    *((api, "request", (name,)) for api, name in INSTANCE.items() if api in HEARTBEATS),
    *((api, "request", ("group_id", ACKNOWLEDGED)) for api in ACKNOWLEDGING),
    *((api, "response", ("member_id", "member_epoch", "error_code")) for api in HEARTBEATS),
    *((api, "request", ("group_id", PARTITION, "topics.partitions.committed_offset")) for api in COMMITS),
    *((api, "request", ("topics.topic_id",)) for api in COMMITS[:1]),
    *((api, "response", (PARTITION, "topics.partitions.error_code")) for api in COMMITS),
    ("Fetch", "response", ("responses.partitions.partition_index", "responses.partitions.high_watermark")),
    ("Produce", "request", ("acks",)),
    ("Produce", "response", (WRITTEN + "index", WRITTEN + "base_offset", WRITTEN + "error_code")),
    ("Metadata", "response", ("cluster_id",)),
)  # fmt: skip

Place = tuple[str, int]
"""Topic and partition."""


class Step(NamedTuple):
    """One request of a member, with its response. Of a LeaveGroup that names several members, one each."""

    asked_ns: int
    exchange: int
    """Its place in what was read: it orders steps of one time."""
    call: Call
    connection: str
    """Name of the connection."""
    answered_ns: int | None
    """None without a response."""
    group: str
    member: str
    """As the response gives it, else as the request states it."""
    stated: int
    """Generation or epoch of the request; -1 if it states none."""
    given: int
    """That of the response; -1 if it gives none."""
    error: int | None
    """None without a response."""
    reason: str
    instance: str = ""
    """group.instance.id, of a static member."""
    is_open: bool = False
    """The capture ended before the response."""

    @property
    def api(self) -> str:
        return self.call.api

    @property
    def leaves(self) -> bool:
        """Whether the member leaves: another broker than the coordinator refuses that, and it stays."""
        says = self.api == "LeaveGroup" or (self.api in HEARTBEATS and self.stated < 0)
        return says and self.error in {None, 0, UNKNOWN_MEMBER_ID}


class Committed(NamedTuple):
    asked_ns: int
    call: Call
    group: str
    place: Place
    offset: int
    topic_id: bytes
    """Empty where the request has the topic's name alone."""


class Watermark(NamedTuple):
    """How far a partition reached at a time."""

    place: Place
    offset: int
    time_ns: int
    topic_id: bytes
    """Empty where the response has the topic's name alone."""
    api: str = "Fetch"
    """Which stated it. Of a Produce that was granted with acks=all the end is this, or beyond."""

    @property
    def is_least(self) -> bool:
        return self.api != "Fetch"


def steps(chunk: Chunk, group: str | None = None) -> list[Step]:
    """In order of time; of one group if it is named."""
    return sorted(
        step for api in STATED for step in of_api(chunk, api, rows_of(chunk.tables(keys()[api], REQUEST)[""], group))
    )


def counted_steps(chunk: Chunk, width_ns: int) -> Iterator[tuple[Step, int]]:
    """All steps, each with how many it stands for: of heartbeats that are alike in a time of this width the first and
    the last.
    """
    for api in STATED:
        header = chunk.tables(keys()[api], REQUEST)[""]
        if api == "Heartbeat" or api in HEARTBEATS:
            rows, counts = alike(chunk, api, width_ns)
            yield from zip(of_api(chunk, api, rows), counts, strict=True)
        else:
            yield from ((step, 1) for step in of_api(chunk, api, rows_of(header, None)))


def alike(chunk: Chunk, api: str, width_ns: int) -> tuple[Ints, list[int]]:
    """The first and the last row of those that are alike, and how many each stands for."""
    header, answers = chunk.tables(keys()[api], REQUEST)[""], chunk.tables(keys()[api], RESPONSE)[""]
    exchange = chunk.exchange_of[header.message]
    if not len(exchange):
        return exchange, []
    exchanges, answer, asked_ns = chunk.exchanges, answers_to(chunk, exchange, answers), chunk.asked_ns[exchange]
    texts = [header[name] for name in ("group_id", "member_id", INSTANCE.get(api)) if name in header.names]
    stated = [answers[name] for name in (GIVEN.get(api), "error_code") if name in answers.names and len(answers)]
    parts = [
        asked_ns // width_ns,
        exchanges.connection[exchanges.first[exchange]],
        chunk.party[exchange],
        exchanges.outcome[exchange],
        header[STATED[api]],
        answer >= 0,
        *(column.codes()[0] for column in texts),
        *(np.where(answer >= 0, column[answer], 0) for column in stated),
    ]
    if "member_id" in answers.names and len(answers):  # a new member is given its ID
        parts.append(np.where(answer >= 0, answers["member_id"].codes()[0][answer], -1))
    order = np.lexsort((asked_ns, *parts))
    new = np.logical_or.reduce([np.diff(part[order]) != 0 for part in parts])
    begins, ends_at = np.r_[0, np.flatnonzero(new) + 1], np.r_[np.flatnonzero(new), len(order) - 1]
    several = ends_at > begins
    rows = np.concatenate([order[begins], order[ends_at[several]]])
    return rows, [*np.where(several, ends_at - begins, 1).tolist(), *([1] * int(several.sum()))]


def of_api(chunk: Chunk, api: str, rows: Ints) -> Iterator[Step]:
    """Of these requests, one each."""
    there, answers = chunk.tables(keys()[api], REQUEST), chunk.tables(keys()[api], RESPONSE)[""]
    header = there[""]
    exchange = chunk.exchange_of[header.message[rows]]
    answer = answers_to(chunk, exchange, answers)

    def asked(name: str | None, absent: Any) -> list[Any]:
        return fields(header, rows, name)[0] if name and len(rows) else [absent] * len(rows)

    def answered(name: str | None, absent: Any) -> list[Any]:
        found = [absent] * len(rows)
        seen = np.flatnonzero(answer >= 0) if name else ()
        for place, one in zip(seen, fields(answers, answer[seen], name)[0] if name and len(seen) else (), strict=True):
            found[place] = one
        return found

    given = GIVEN.get(api)
    columns: tuple[Any, ...] = (
        whose(chunk, exchange),
        (chunk.exchanges.outcome[exchange] == PENDING).tolist(),
        asked("group_id", ""),
        asked("member_id", ""),
        answered("member_id" if given else None, ""),
        asked(STATED[api], -1),
        answered(given, -1),
        answered("error_code" if "error_code" in answers.names else None, None),
        asked("reason" if api == "JoinGroup" else None, ""),
        asked(INSTANCE.get(api), ""),
    )
    leaving = leavers(there["members"], rows) if api == "LeaveGroup" else {}
    for row, who, is_open, name, member, new, stated, given_now, error, reason, instance in zip(
        rows.tolist(), *columns, strict=True
    ):
        why = "" if (reason or "").startswith(GIVEN_ID) else reason or ""
        named = name or "", new or member or ""
        asked_ns, index, call, connection, answered_ns = who
        begun = Step(asked_ns, index, call, connection, answered_ns, *named, stated, given_now, error, why)
        step = begun._replace(instance=instance or "", is_open=is_open)
        for leaver, leaves_why in leaving.get(row, ()):
            yield step._replace(member=leaver, reason=leaves_why)
        if row not in leaving:
            yield step


def leavers(members: Table, rows: Ints) -> dict[int, list[tuple[str, str]]]:
    """By row of LeaveGroup requests each member that leaves in it, and why; those before version 3 list none."""
    found: dict[int, list[tuple[str, str]]] = {}
    mine = np.flatnonzero(np.isin(members.parent, rows))
    columns = fields(members, mine, "member_id", "reason") if len(mine) else [[], []]
    for row, member, reason in zip(members.parent[mine].tolist(), *columns, strict=True):
        found.setdefault(row, []).append((member or "", reason or ""))
    return found


Whose = tuple[int, int, "Call", str, int | None]


def whose(chunk: Chunk, exchange: Ints) -> Iterator[Whose]:
    """Of each of these exchanges when it was asked, its place, who asked whom, on which connection, and when it was
    answered.
    """
    exchanges, response = chunk.exchanges, chunk.exchanges.response[exchange]
    answered_ns = np.where(response >= 0, exchanges.ts_ns[response], -1).tolist()
    connection = exchanges.connection[exchanges.first[exchange]]
    parts = chunk.party[exchange], connection, chunk.api[exchange]
    calls: dict[tuple[int, ...], Call] = {}
    for asked_ns, index, answered, *key in zip(
        chunk.asked_ns[exchange].tolist(),
        exchange.tolist(),
        answered_ns,
        *(part.tolist() for part in parts),
        strict=True,
    ):
        call = calls.get(tuple(key)) or calls.setdefault(tuple(key), chunk.call(index))
        yield asked_ns, index, call, exchanges.connections[key[1]].name, None if answered < 0 else answered


def commits(chunk: Chunk, topic_names: Mapping[bytes, str], group: str | None = None) -> Iterator[Committed]:
    """Those that were not answered with an error, and whose response came or may have come."""
    for api in COMMITS:
        there = chunk.tables(keys()[api], REQUEST)
        header, topics, parts = there[""], there["topics"], there["topics.partitions"]
        mine = rows_of(header, group)
        if not len(mine) or not len(parts):
            continue
        refused = refusals(chunk, keys()[api])
        codes, texts = topic_codes(topics, "name", "topic_id", topic_names)
        ids, named = ids_of(topics)
        rows = np.flatnonzero(np.isin(topics.parent[parts.parent], mine))
        numbers = fields(parts, rows, "partition_index", "committed_offset")
        groups = header["group_id"].strings()
        for row, partition, offset in zip(rows.tolist(), *numbers, strict=True):
            topic, index = int(parts.parent[row]), int(chunk.exchange_of[parts.message[row]])
            name = groups[topics.parent[topic]]
            if name is None or (index, partition) in refused:
                continue
            if chunk.exchanges.outcome[index] not in UNANSWERED:
                place = texts[int(codes[topic])], partition
                yield Committed(int(chunk.asked_ns[index]), chunk.call(index), name, place, offset, named[ids[topic]])


def ids_of(topics: Table) -> tuple[Ints, list[bytes]]:
    """Per row the number of its topic ID; and the IDs, empty where a row has none."""
    if "topic_id" not in topics.names or not len(topics):
        return np.zeros(len(topics), np.int64), [b""]
    codes, unique = id_codes(topics["topic_id"])
    return codes.astype(np.int64), [b"" if (raw := one.tobytes()) == NO_ID else raw for one in unique]


def refusals(chunk: Chunk, key: int) -> set[tuple[int, int]]:
    """(exchange, partition) of commits that were answered with an error."""
    parts = chunk.tables(key, RESPONSE)["topics.partitions"]
    rows = np.flatnonzero(parts["error_code"] != 0) if len(parts) else np.zeros(0, np.int64)
    if not len(rows):
        return set()
    return set(
        zip(chunk.exchange_of[parts.message[rows]].tolist(), parts["partition_index"][rows].tolist(), strict=True)
    )


class Ends(NamedTuple):
    """How far partitions reach, as the responses of one API state it, a column each."""

    api: str
    """Fetch: high watermarks. Produce: base offsets and one more, of writes that were granted with acks=all."""
    texts: list[str]
    """Names of topics."""
    named: list[bytes]
    """Topic IDs, and nothing for none."""
    topic: Ints
    """Number in `texts`."""
    topic_id: Ints
    """Number in `named`."""
    partition: Ints
    offset: Ints
    time_ns: Ints
    server: Ints
    """Number of the server in the chunk."""

    def runs(self, *parts: Ints) -> tuple[Ints, Ints]:
        """The first and the last row of those that are alike in all these numbers."""
        order = np.lexsort((self.time_ns, *parts))
        new = np.logical_or.reduce([np.diff(one[order]) != 0 for one in parts])
        return order[np.r_[True, new]], order[np.r_[new, True]]


def ends(chunk: Chunk, topic_names: Mapping[bytes, str]) -> Iterator[Ends]:
    """High watermarks, and what writers were granted: if no reader is answered, that alone shows that a log grows."""
    there = chunk.tables(keys()["Fetch"], RESPONSE)
    topics, parts = there["responses"], there["responses.partitions"]
    rows = np.flatnonzero(parts["high_watermark"] >= 0) if len(parts) else np.zeros(0, np.int64)
    if len(rows):
        place = parts["partition_index"][rows], parts["high_watermark"][rows]
        yield ends_of("Fetch", chunk, (topics, parts, rows), place, ("topic", topic_names))
    there = chunk.tables(keys()["Produce"], RESPONSE)
    topics, parts = there["responses"], there["responses.partition_responses"]
    rows = granted_to_all(chunk, parts) if len(parts) else np.zeros(0, np.int64)
    if len(rows):
        place = parts["index"][rows], parts["base_offset"][rows] + 1
        yield ends_of("Produce", chunk, (topics, parts, rows), place, ("name", topic_names))


def granted_to_all(chunk: Chunk, parts: Table) -> Ints:
    """The rows of writes that all replicas in sync have."""
    header = chunk.tables(keys()["Produce"], REQUEST)[""]
    to_all = np.zeros(len(chunk.exchanges), np.bool_)
    if len(header):
        to_all[chunk.exchange_of[header.message[header["acks"] == ACKS_ALL]]] = True
    granted = (parts["error_code"] == 0) & (parts["base_offset"] >= 0)
    return np.flatnonzero(granted & to_all[chunk.exchange_of[parts.message]])


def ends_of(
    api: str,
    chunk: Chunk,
    found: tuple[Table, Table, Ints],
    numbers: tuple[Ints, Ints],
    named: tuple[str, Mapping[bytes, str]],
) -> Ends:
    """`found`: topics, their partitions, and which rows of these; `numbers`: partition and offset of each; `named`: the
    column of names, and the names of IDs.
    """
    (topics, parts, rows), (name, topic_names) = found, named
    codes, texts = topic_codes(topics, name, "topic_id", topic_names)
    ids, raw = ids_of(topics)
    row_of_topic, message = parts.parent[rows], parts.message[rows]
    times = chunk.exchanges.ts_ns[message], chunk.server[chunk.exchange_of[message]]
    return Ends(api, texts, raw, codes[row_of_topic], ids[row_of_topic], *numbers, *times)


def watermarks(chunk: Chunk, topic_names: Mapping[bytes, str]) -> list[Watermark]:
    """Of each partition and API the last one of each second, in order of time."""
    seen: list[Watermark] = []
    for found in ends(chunk, topic_names):
        _, last = found.runs(found.time_ns // NS_PER_S, found.topic_id, found.partition, found.topic)
        columns = found.topic, found.partition, found.offset, found.time_ns, found.topic_id
        for code, number, offset, ns, of in zip(*(column[last].tolist() for column in columns), strict=True):
            seen.append(Watermark((found.texts[code], number), offset, ns, found.named[of], found.api))
    return sorted(seen, key=lambda one: one.time_ns)


def acknowledged(chunk: Chunk) -> Iterator[tuple[str, Call, int]]:
    """(share group, who asked whom, time in nanoseconds) of requests that accept, reject or renew records."""
    for api in ACKNOWLEDGING:
        there = chunk.tables(keys()[api], REQUEST)
        header, batches = there[""], there["topics.partitions.acknowledgement_batches"]
        if not len(batches):
            continue
        types, offsets = batches["acknowledge_types"].flat()
        work = np.isin(types, (GAP, RELEASE), invert=True)
        counts = np.diff(np.concatenate([[0], np.cumsum(work)])[offsets])
        messages = np.unique(batches.message[counts > 0])
        rows = np.flatnonzero(np.isin(header.message, messages))
        names = fields(header, rows, "group_id")[0] if len(rows) else []
        for name, index in zip(names, chunk.exchange_of[header.message[rows]].tolist(), strict=True):
            if name and chunk.exchanges.outcome[index] not in UNANSWERED:
                yield name, chunk.call(index), int(chunk.asked_ns[index])


def cluster_ids(chunk: Chunk) -> set[str]:
    """Cluster IDs that brokers named."""
    header = chunk.tables(keys()["Metadata"], RESPONSE)[""]
    return {text for text in header["cluster_id"].strings() if text} if len(header) else set()


def rows_of(header: Table, group: str | None) -> Ints:
    """Requests about this group, or about any."""
    return np.arange(len(header)) if group is None else equal(header["group_id"], group)


def equal(column: Text, name: str) -> Ints:
    """Rows with this text."""
    codes, texts = column.codes()
    return np.flatnonzero(codes == texts.index(name)) if name in texts else np.zeros(0, np.int64)


def fields(table: Table, rows: Ints, *names: str) -> list[list[Any]]:
    """Cells of these rows, by column."""
    found: list[list[Any]] = []
    for name in names:
        column = table[name]
        assert not isinstance(column, Lists)
        if isinstance(column, Text):
            column = Text(column.data, column.at[rows], column.length[rows])
        found.append(column.strings() if isinstance(column, Text) else column[rows].tolist())
    return found


def answers_to(chunk: Chunk, exchange: Ints, answers: Table) -> Ints:
    """Rows of the responses of exchanges; -1 where none was seen and decoded."""
    response = chunk.exchanges.response[exchange]
    rows = np.searchsorted(answers.message, response)
    found = np.zeros(len(exchange), np.bool_)
    inside = rows < len(answers)
    found[inside] = answers.message[rows[inside]] == response[inside]
    return np.where(found & (response >= 0), rows, -1)


def answer_to(chunk: Chunk, exchange: int, answers: Table) -> int | None:
    row = int(answers_to(chunk, np.array([exchange]), answers)[0])
    return None if row < 0 else row
