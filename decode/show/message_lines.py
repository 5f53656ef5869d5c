"""Messages as lines: what `wirecheck decode` prints.

    for found in of(tables, Filter(apis=("Fetch",))): print(json.dumps(found))

The outer names are snake case; the body has Kafka's own names and form, so that it can be compared with a broker's
request log. What an Envelope carries is beside its body, as `enveloped`. A message that was not decoded has a reason in
place of the body. Lines that wait for earlier ones are bounded; the oldest is printed when there are too many, so an
older one may still follow.
"""

from __future__ import annotations

import base64
import heapq
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.segments import FRAME, segments
from wirecheck.decode.dialect import read
from wirecheck.decode.envelope import CARRIED, DEEPEST, ENVELOPE, FORWARDED_FOR, client_host, principal, unwrapped
from wirecheck.decode.errors import Truncated
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import programs
from wirecheck.decode.message import REASONS, Dialect, Status
from wirecheck.decode.nested import nested
from wirecheck.decode.principals import is_principal
from wirecheck.decode.show.learned_names import Brokers, Names, TopicNames, noting
from wirecheck.decode.show.message_head import Heads, clients_of_messages, facts
from wirecheck.decode.show.message_summary import NOTHING, summaries
from wirecheck.decode.wire import REQUEST, client_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from wirecheck.decode.connection.follower import Exchanges
    from wirecheck.decode.message import Decoded
    from wirecheck.decode.show.learned_names import Places
    from wirecheck.decode.show.message_filter import Filter
    from wirecheck.decode.wire import Ints, Messages

Line = dict[str, Any]
IDS_BYTES = 4  # a request begins with its API key and version
WAIT_NS = 10_000_000_000  # a line waits this long (capture time) for an earlier one: a long poll's request comes late


LONGEST_NS = 600_000_000_000  # what begins in time is answered within this: max.poll.interval.ms, twice


@dataclass(frozen=True)
class Reading:
    """How messages are read and shown."""

    dialects: Sequence[str] = ()
    """Names of decode.dialect.DIALECTS."""
    contents: bool = False
    """Show records and secrets, not only their lengths."""
    bodies: bool = True
    """Lines have a `body`, the whole value of the message."""
    summary: bool = False
    """Lines have a `summary` of the message, responses also `latency_ns` since the request, and the ID of the
    `broker`, if known."""
    at_once: bool = False
    """Lines come with the frames that make them known, and do not wait for what may be older."""


PLAIN = Reading()


@dataclass
class Noticed:
    """What else was learned of a capture on the way."""

    encrypted: set[str] = field(default_factory=set)
    """Names of encrypted connections without keys."""
    frames: Places = field(default_factory=dict)
    """Of the frames that were asked for: which way they went, and how many bytes they carried."""
    last_frame: int = 0
    """The highest number of a frame, if frames were asked for."""


def of(
    tables: Iterable[pa.Table], selected: Filter, reading: Reading = PLAIN, noticed: Noticed | None = None
) -> Iterator[Line]:
    """Lines of all messages in frames tables, in order of time.

    But for those that become known after WAIT_NS, or when more is to be held than WAITING_ROWS.
    """
    waiting, newest_ns = Waiting(), 0
    for ts_ns, rows, found in timed_lines(tables, selected, reading, noticed or Noticed()):
        newest_ns = max(newest_ns, ts_ns)
        if found is not None:
            waiting.add(ts_ns, rows, found)
        yield from waiting.due(newest_ns - WAIT_NS)
    yield from waiting.due(newest_ns + 1)


def timed_lines(
    tables: Iterable[pa.Table], selected: Filter, reading: Reading, noticed: Noticed
) -> Iterator[tuple[int, int, Line | None]]:
    """(time, rows of tables, line) of messages as they become known; None for a message that is not selected."""
    newest_ns = 0
    for batch in batches(tables, selected, reading, noticed):
        exchanges, decoded = batch.exchanges, batch.decoded
        inside, (codes, texts) = batch.enveloped(reading), clients_of_messages(exchanges)
        clients = [texts[code] if code >= 0 else None for code in codes.tolist()]
        details_of, head = Details(decoded, reading, batch.topic_names), Heads(exchanges)
        times, sizes, asked = (column.tolist() for column in (exchanges.ts_ns, rows_of(decoded), batch.answered))
        for i in sorted(selected.rows(exchanges, inside), key=times.__getitem__):
            if not selected.names(clients[i], inside.get(i)):
                continue
            found = head(i, clients[i]) | details_of(i)
            if reading.summary:
                found["latency_ns"] = times[i] - times[asked[i]] if asked[i] >= 0 else None
                found["broker"] = batch.brokers.get(found["dst" if found["side"] == SIDES[REQUEST] else "src"])
            if i in inside:
                found["enveloped"] = inside[i] | forwarded_for(found.get("body", {}))
            kept = selected.keeps(found, batch.names.texts, noticed.frames)
            yield times[i], sizes[i], found if kept else None
        if len(exchanges.messages) and reading.at_once:
            newest_ns = max(newest_ns, int(exchanges.ts_ns.max()))
            yield newest_ns + WAIT_NS + 1, 0, None


@dataclass(frozen=True)
class DecodedBatch:
    """Messages that became known together, decoded, and what was learned of names by then."""

    exchanges: Exchanges
    decoded: Decoded
    names: Names
    topic_names: TopicNames
    brokers: Brokers

    @cached_property
    def answered(self) -> Ints:
        """By message, the one it answers; -1 if none."""
        return self.exchanges.request_of

    def enveloped(self, reading: Reading) -> dict[int, Line]:
        return enveloped(self.decoded, self.answered, reading, self.topic_names)


def batches(tables: Iterable[pa.Table], selected: Filter, reading: Reading, noticed: Noticed) -> Iterator[DecodedBatch]:
    """Messages of frames tables, as they become known."""
    names = Names(selected.topics)
    topic_names, brokers = TopicNames(), Brokers()
    every = noting(within(counted(tables, selected, noticed), selected), selected.frames, noticed.frames)
    for exchanges in followed(every, selected.ports, at_once=reading.at_once):
        noticed.encrypted.update(each.name for each in exchanges.connections if each.protocol == "tls")
        decoded = read(exchanges.messages, reading.dialects)
        names.learn(decoded)
        if reading.summary:
            topic_names.learn(decoded)
            brokers.learn(exchanges, decoded)
        yield DecodedBatch(exchanges, decoded, names, topic_names, brokers)


def counted(tables: Iterable[pa.Table], selected: Filter, noticed: Noticed) -> Iterator[pa.Table]:
    """The same tables; the highest number of a frame is noted if frames are asked for."""
    for table in tables:
        if selected.frames and len(table):
            noticed.last_frame = max(noticed.last_frame, int(table["frame_no"].to_numpy().max()))
        yield table


def within(tables: Iterable[pa.Table], selected: Filter) -> Iterator[pa.Table]:
    """The same tables, up to those that begin when nothing selected can become known any more."""
    begun = False
    for table in tables:
        ts_ns = table["ts_ns"].to_numpy()[table["kind"].to_numpy() == FRAME]
        if len(ts_ns) and not begun:
            selected.settle(int(ts_ns.min()))
            begun = True
        if selected.until is not None and len(ts_ns) and int(ts_ns.min()) > selected.until.last_ns + LONGEST_NS:
            return
        yield table


def rows_of(decoded: Decoded) -> Ints:
    """By message, how many tokens and rows of runs its value is made of."""
    more = np.where(decoded.field >= len(programs().slots), decoded.length, 0)
    upto = np.concatenate([[0], np.cumsum(1 + more.astype(np.int64))])
    sizes: Ints = 1 + upto[decoded.token_at[1:]] - upto[decoded.token_at[:-1]]
    return sizes


def followed(tables: Iterable[pa.Table], ports: Iterable[int] = (), *, at_once: bool = False) -> Iterator[Exchanges]:
    """Exchanges, in the end what is still open. `at_once`: also a request without a response once its connection is
    over, by the time that the tables have come to.
    """
    follower = Follower(ports=frozenset(ports))
    for table in tables:
        here = segments(table)
        if len(here):
            yield follower.receive(here)
        for agent, newest_ns in newest(table) if at_once else ():
            yield follower.advance(agent, newest_ns)
    yield follower.drain()


def newest(table: pa.Table) -> Iterator[tuple[str, int]]:
    """How far each agent has come in this table of frames and marks."""
    found = table.select(["agent", "ts_ns"]).group_by("agent").aggregate([("ts_ns", "max")])
    yield from zip(found["agent"].to_pylist(), found["ts_ns_max"].to_pylist(), strict=True)


class Accumulator:
    """What sums up exchanges, as a follower gives them."""

    def add(self, exchanges: Exchanges) -> object:
        raise NotImplementedError

    def read(self, tables: Iterable[pa.Table], ports: Iterable[int] = ()) -> Self:
        """Add all of frames tables; of connections with one of these ports, if some are given."""
        for exchanges in followed(tables, ports):
            self.add(exchanges)
        return self


class Details:
    """What a line has besides the facts of its message: body, summary, or why there is none."""

    def __init__(self, decoded: Decoded, reading: Reading, topic_names: Mapping[bytes, str]) -> None:
        self._decoded, self._reading = decoded, reading
        self._summaries = summaries(decoded, topic_names) if reading.summary else {}

    def __call__(self, i: int, wrong: Line | None = None) -> Line:
        found = wrong or verdict(self._decoded, i, contents=self._reading.contents, body=self._reading.bodies)
        return found | {"summary": self._summaries.get(i, NOTHING)} if self._reading.summary else found


def enveloped(
    decoded: Decoded, request_of: Ints, reading: Reading, topic_names: Mapping[bytes, str] = {}, steps: int = DEEPEST
) -> dict[int, Line]:
    """By Envelope, what it carries: a line without time, place and frame; what that carries stands in it likewise."""
    if not (decoded.messages.key == ENVELOPE).any():
        return {}
    messages, outer, answered = unwrapped(decoded, request_of)
    inner = read(messages, reading.dialects)
    deeper = enveloped(inner, answered, reading, topic_names, steps - 1) if steps > 1 else {}
    details_of = Details(inner, reading, topic_names)
    found = {}
    for i, envelope in enumerate(outer.tolist()):
        request = i if messages.side[i] == REQUEST else int(answered[i])
        named = {
            **facts(messages, i),
            "client_id": client_id(messages, request) if request >= 0 else None,
            "size": int(messages.size[i]),
        }
        wrong = {"undecoded": "too-deep"} if steps == 1 and messages.key[i] == ENVELOPE else without_ids(messages, i)
        details = details_of(i, wrong)
        found[envelope] = named | details | ({"enveloped": deeper[i]} if i in deeper else {})
    return found


def forwarded_for(envelope: Line) -> Line:
    """Principal and address of the client whose request an Envelope carries, as far as the Envelope states them."""
    data, address = (envelope.get(name) for name in FORWARDED_FOR)
    found = {
        "principal": principal(base64.b64decode(data)) if isinstance(data, str) else None,
        "client_host": client_host(base64.b64decode(address)) if isinstance(address, str) else None,
    }
    return {name: text for name, text in found.items() if text is not None}


def without_principals(line: Line) -> Line:
    """The same line without principals and their addresses."""
    found = {name: value for name, value in line.items() if name not in {"principal", "client_host"}}
    if isinstance(body := line.get("body"), dict):
        found["body"] = _nameless(body | carried(body, FORWARDED_FOR), "")
    return found | ({"enveloped": without_principals(line["enveloped"])} if "enveloped" in line else {})


def _nameless(value: Any, label: str) -> Any:
    """The same with a length in place of each principal; `label` is the path to it."""
    if isinstance(value, list):
        return [_nameless(one, label) for one in value]
    if not isinstance(value, dict):
        return value
    paths = {name: f"{label}.{name}".lstrip(".") for name in value}
    return {
        name: {"left_out": len(inner.encode())}
        if isinstance(inner, str) and is_principal(name, value, paths[name])
        else _nameless(inner, paths[name])
        for name, inner in value.items()
    }


def without_ids(messages: Messages, i: int) -> Line:
    """Why there is no body, of a carried request whose API key and version are not there; {} if they are."""
    if messages.side[i] != REQUEST or messages.key[i] >= 0:
        return {}
    if messages.size[i] < IDS_BYTES:
        return {"malformed": str(Truncated(int(messages.size[i])))}
    first = messages.span_offset[messages.span_at[i] : messages.span_at[i + 1]][:1].tolist()
    return {"undecoded": f"left-out at byte {first[0]}"} if first and first[0] < IDS_BYTES else {}


def verdict(decoded: Decoded, i: int, *, contents: bool, body: bool = True) -> Line:
    """The body, and of a draft its name; or why there is none: `undecoded` if we cannot know, `malformed` if wrong.
    What is malformed may be another message than its header says: then anything may be in the place of a name.
    """
    status, marks = Status(decoded.status[i]), {}
    if decoded.malformed[i]:
        marks["malformed"] = str(REASONS[decoded.reason(i)](int(decoded.error_at[i]), decoded.error_path(i)))
    if status == Status.OK:
        dialect = Dialect(decoded.dialect[i])
        drafted = {"dialect": dialect.label} if dialect >= Dialect.KIP516_DRAFT else {}
        if not body or decoded.malformed[i]:
            return marks | drafted
        value = nested(decoded, i, contents=contents)["body"]
        return {**marks, **drafted, "body": value if contents else value | carried(value)}
    if marks:
        return marks
    where = f" at byte {int(decoded.error_at[i])}" if status == Status.LEFT_OUT else ""
    return {"undecoded": status.name.lower().replace("_", "-") + where}


def carried(body: Line, names: Iterable[str] = CARRIED) -> Line:
    """Of an Envelope the bytes that carry a message, as a length: they may hold secrets, and are shown decoded."""
    here = {name: body[name] for name in names if isinstance(body.get(name), str)}
    return {name: {"left_out": len(base64.b64decode(data))} for name, data in here.items()}


WAITING_ROWS = 1 << 16  # of tables in all lines that wait, at some KB each: a busy capture has 1 GB in those seconds


class Waiting:
    """Lines in order of time."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Line]] = []
        self._order, self._rows = count(), 0

    def add(self, ts_ns: int, rows: int, found: Line) -> None:
        heapq.heappush(self._heap, (ts_ns, next(self._order), rows, found))
        self._rows += rows

    def due(self, before_ns: int) -> Iterator[Line]:
        while self._heap and (self._heap[0][0] < before_ns or self._rows > WAITING_ROWS):
            _, _, rows, found = heapq.heappop(self._heap)
            self._rows -= rows
            yield found
