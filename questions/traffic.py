"""What clients requested of brokers and the responses, counted in one pass: `errors`, `why` and `diff` read it.

    traffic = Traffic().read(tables)
    traffic.calls[Call("billing-7", "10.0.4.12", "10.0.1.3:9092", "Produce")].count

Nothing runs in Python per message, only per error and per group of a chunk. Each table is bounded; what is beyond its
bound is counted in `others`. A message that was not decoded counts as a call, and for nothing else.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from wirecheck.decode.api_names import key_of, name_of, names
from wirecheck.decode.columns import kinds
from wirecheck.decode.columns import tables as columns_of
from wirecheck.decode.connection.exchanges import CLOSED_BY_SERVER
from wirecheck.decode.dialect import read_exchanges, suggested
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import form
from wirecheck.decode.message import Status, only
from wirecheck.decode.request_waits import WAITS, given_up
from wirecheck.decode.show.learned_names import Brokers, TopicNames, naming
from wirecheck.decode.show.message_head import client_ids
from wirecheck.decode.show.message_lines import Accumulator
from wirecheck.decode.show.message_page import error_name
from wirecheck.decode.show.message_summary import columns, errors_of, topic_codes
from wirecheck.decode.wire import REQUEST, RESPONSE, known
from wirecheck.questions.counted_once import CountedOnce
from wirecheck.wording import during, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from wirecheck.decode.columns import Table
    from wirecheck.decode.connection.exchanges import Connection, Exchanges
    from wirecheck.decode.message import Decoded, Projection
    from wirecheck.decode.wire import Ints

MOST_ROWS = 20_000
"""Rows of each table; a cluster of 200 brokers with 2,000 clients has fewer."""
FETCH, METADATA, API_VERSIONS = 1, 3, 18
REPLICA = ("replica_id", "replica_state.replica_id")
"""Where a Fetch names the broker that fetches as a follower: a field until version 14, a tag from 15 on (KIP-903)."""
SOFTWARE = ("client_software_name", "client_software_version")
USES = frozenset({"Produce", "Fetch", "ShareFetch"})
"""The APIs that write or read records of a topic."""
EPOCH = "session_epoch"
FORGOTTEN = "forgotten_topics_data"
THROTTLE = "throttle_time_ms"
THROTTLED = "throttled"
UNANSWERED = "connection closed without a response"
GIVEN_UP = "no response, the client gave up"
UNKNOWN_API, SHOWN_APIS = "an unknown API", 3
STEPS = 16
"""Buckets of a latency in each doubling: a quantile is right within 2.2 %."""


Selection = tuple[tuple[str, str, tuple[str, ...]], ...]
"""(api, side, columns)"""


class Call(NamedTuple):
    """Who asked whom."""

    client_id: str | None
    host: str
    server: str
    api: str


class Use(NamedTuple):
    """Who writes or reads a topic."""

    client_id: str | None
    host: str
    api: str
    topic: str
    replica: int
    """The broker that fetches as a follower; -1 for a client."""


class Rejection(NamedTuple):
    """What went wrong for whom."""

    error: str
    """Kafka's name, THROTTLED, UNANSWERED or GIVEN_UP."""
    client_id: str | None
    host: str
    api: str
    topic: str
    """Empty where the error is about the whole request."""
    replica: int


@dataclass(slots=True)
class Count:
    count: int = 0
    first_ns: int = 0
    last_ns: int = 0
    servers: dict[str, int] = field(default_factory=dict)
    """How often by broker, MOST_SERVERS at most; of `uses` and `failures`."""
    streak: int = 0
    """Of a rejection, how often since it was away for STREAK_NS."""
    streak_ns: int = 0
    """When that began."""
    sum_ms: int = 0
    """Of THROTTLED."""
    worst_ms: int = 0

    def seen(self, count: int, first_ns: int, last_ns: int) -> None:
        self.first_ns = min(self.first_ns, first_ns) if self.count else first_ns
        self.last_ns = max(self.last_ns, last_ns)
        self.count += count

    def at_server(self, server: str, count: int) -> None:
        if server in self.servers or len(self.servers) < MOST_SERVERS:
            self.servers[server] = self.servers.get(server, 0) + count

    def merge(self, other: Count) -> None:
        """Counted elsewhere too; a streak is not, as others may come in between."""
        self.seen(other.count, other.first_ns, other.last_ns)
        for server, count in other.servers.items():
            self.servers[server] = self.servers.get(server, 0) + count
        self.sum_ms += other.sum_ms
        self.worst_ms = max(self.worst_ms, other.worst_ms)


Reads = tuple[str | None, str, str]
"""Client ID, address and topic."""


@dataclass(slots=True)
class Asked:
    """When a client last asked for a topic in so many words, and when it last took it out of a fetch session."""

    asked_ns: int = 0
    forgotten_ns: int = 0

    def seen(self, time_ns: int, *, forgotten: bool) -> None:
        if forgotten:
            self.forgotten_ns = max(self.forgotten_ns, time_ns)
        else:
            self.asked_ns = max(self.asked_ns, time_ns)


def latest(times: dict[Reads, int], key: Reads, time_ns: int) -> None:
    """At most MOST_ROWS of them."""
    if key in times or len(times) < MOST_ROWS:
        times[key] = max(times.get(key, 0), time_ns)


@dataclass(slots=True)
class Refused:
    """Connections from a host to an address, of which some were refused."""

    count: Count = field(default_factory=Count)
    """Those."""
    connections: int = 0
    """All."""
    answered_ns: int = 0
    """When one was last answered on."""


@dataclass(slots=True)
class Calls(Count):
    request_bytes: int = 0
    response_bytes: int = 0
    latencies: Counter[int] = field(default_factory=Counter)
    """Answers by bucket: `2 ** (bucket / STEPS)` microseconds, from the request's last byte to the answer's first."""
    in_broker: Counter[int] = field(default_factory=Counter)
    """The same without the way between the capture point and the broker, where the handshake shows how long it is."""
    in_network: Counter[int] = field(default_factory=Counter)
    """How long the way from the client to the broker and back is, likewise."""
    versions: set[int] = field(default_factory=set)
    clean_ns: int = 0
    """When the last request was sent that was answered without an error."""

    def merge(self, other: Calls) -> None:  # type: ignore[override]
        Count.merge(self, other)
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        for part in PARTS:
            getattr(self, part).update(getattr(other, part))
        self.versions |= other.versions
        self.clean_ns = max(self.clean_ns, other.clean_ns)


PARTS = ("latencies", "in_broker", "in_network")
Key = TypeVar("Key")
Kept = TypeVar("Kept", bound=Count)


class Counts(dict[Key, Kept], Generic[Key, Kept]):
    """Rows by key, at most `most`."""

    def __init__(self, made: Callable[[], Kept], most: int = MOST_ROWS) -> None:
        super().__init__()
        self._made, self._most = made, most
        self.others = 0
        """How often something was counted that has no row."""

    def row(self, key: Key, count: int, first_ns: int, last_ns: int) -> Kept | None:
        """Add these to the row of the key and return it; None if the table is full."""
        found = self._row_of(key, count)
        if found is not None:
            found.seen(count, first_ns, last_ns)
        return found

    def _row_of(self, key: Key, count: int) -> Kept | None:
        if key in self:
            return self[key]
        if len(self) >= self._most:
            self.others += count
            return None
        return self.setdefault(key, self._made())

    def merge(self, other: Counts[Key, Kept]) -> None:
        for key, one in other.items():
            found = self._row_of(key, one.count)
            if found is not None:
                found.merge(one)
        self.others += other.others


def gathered(calls: Iterable[tuple[Call, Calls]], key: Callable[[Call], Key]) -> dict[Key, Calls]:
    """Calls by another key than theirs."""
    found: dict[Key, Calls] = {}
    for call, one in calls:
        found.setdefault(key(call), Calls()).merge(one)
    return found


def quantile_ms(latencies: Mapping[int, int], share: float) -> float | None:
    """Milliseconds within which this share of requests was answered; None without answers."""
    left = share * sum(latencies.values())
    for bucket, count in sorted(latencies.items()):
        left -= count
        if left <= 0:
            return float(2.0 ** ((bucket + 0.5) / STEPS) / 1000)
    return None


@dataclass
class Coverage(Accumulator):
    """How much of a capture was read."""

    messages: int = 0
    decoded: int | None = None
    """None: not all messages are decoded."""
    first_ns: int = 0
    last_ns: int = 0
    connections: dict[tuple[str, int], Connection] = field(default_factory=dict)
    """The last facts of each, by name and start."""
    drafts: Counter[str] = field(default_factory=Counter)
    """Undecoded messages that a draft reads, by its name."""
    not_read: Counter[str] = field(default_factory=Counter)
    """Requests of the question's APIs that could not be read, by API."""

    @property
    def left_out(self) -> int:
        """Messages that came a second time, out of a proxy."""
        return 0

    def cover(self, exchanges: Exchanges) -> None:
        for connection in exchanges.connections:
            where = connection.name, connection.started_ns
            if where in self.connections or len(self.connections) < MOST_ROWS:
                self.connections[where] = connection
        if len(exchanges):
            self.messages += len(exchanges.messages)
            begin_ns = int(exchanges.ts_ns.min())
            self.first_ns = min(self.first_ns or begin_ns, begin_ns)
            self.last_ns = max(self.last_ns, int(exchanges.ts_ns.max()))

    def text(self) -> str:
        """`9,620 messages, all decoded, 00:36:10 to 00:37:52 UTC`."""
        if not self.messages:
            return f"no Kafka messages could be read{self.encrypted()}"
        read = None if self.decoded is None else self.decoded + self.left_out
        share = "all" if read == self.messages else f"{read:,}" if read is not None else ""
        lost = sum(each.unseen_request_bytes + each.unseen_response_bytes for each in self.connections.values())
        parts = [
            plural(self.messages, "message"),
            f"{share} decoded" if share else "",
            f"{self.left_out:,} of them sent on by a proxy" if self.left_out else "",
            during(self.first_ns, self.last_ns),
            f"{lost:,} bytes not captured" if lost else "",
            *(f"{plural(count, 'message')} not read without --dialect {name}" for name, count in self.drafts.items()),
            self.requests_not_read(),
        ]
        return f"{', '.join(filter(None, parts))}{self.encrypted()}"

    def requests_not_read(self) -> str:
        """`3 requests could not be read (DeleteTopics 2, Fetch 1)`; empty where all could."""
        apis = [f"{api} {count:,}" for api, count in self.not_read.most_common(SHOWN_APIS)]
        more = ", ..." if len(self.not_read) > SHOWN_APIS else ""
        count = plural(self.not_read.total(), "request")
        return f"{count} could not be read ({', '.join(apis)}{more})" if apis else ""

    def encrypted(self) -> str:
        count = sum(each.is_encrypted for each in self.connections.values())
        return f", {plural(count, 'encrypted connection')} not readable" if count else ""


@dataclass
class Traffic(Coverage):
    """All that was counted of a capture; read by released layouts, then by those of these dialects."""

    dialects: Sequence[str] = ()
    decoded: int = 0
    calls: Counts[Call, Calls] = field(default_factory=lambda: Counts(Calls))
    uses: Counts[Use, Count] = field(default_factory=lambda: Counts(Count))
    failures: Counts[Rejection, Count] = field(default_factory=lambda: Counts(Count))
    fetched: dict[Reads, Asked] = field(default_factory=dict)
    whole_fetch_ns: dict[Reads, int] = field(default_factory=dict)
    """By server in place of the topic: when a client last asked it for all that it reads there (KIP-227)."""
    software: dict[tuple[str | None, str], str] = field(default_factory=dict)
    """`apache-kafka-java 3.9.1` by client ID and address, where ApiVersions states it (since version 3)."""
    brokers: Brokers = field(default_factory=Brokers)
    topic_names: TopicNames = field(default_factory=TopicNames)
    also: Selection = ()
    """More columns to read, for who is given the chunks."""
    refused: dict[tuple[str, str], Refused] | None = None
    """By host and address; None: as connections show."""
    own: Collection[str] | None = None
    """The APIs that the question is about; None: all."""
    once: CountedOnce = field(init=False)

    def __post_init__(self) -> None:
        self.once = CountedOnce(self.brokers)

    def add(self, exchanges: Exchanges) -> Chunk | None:
        """One chunk of a capture; what it was read as, for who wants more of it."""
        self.cover(exchanges)
        exchanges = self.once.only(exchanges)
        if not len(exchanges):
            return None
        chunk = Chunk(exchanges, read_exchanges(exchanges, self.dialects, projection(self.also)))
        self.count(chunk)
        return chunk

    def count(self, chunk: Chunk) -> None:
        exchanges = chunk.exchanges
        self.topic_names.learn(chunk.decoded)
        self.decoded += int((chunk.decoded.status == Status.OK).sum())
        failed = exchanges.messages.key[(chunk.decoded.status != Status.OK) & (exchanges.messages.side == REQUEST)]
        apis = Counter(name_of(key) if key in names() else UNKNOWN_API for key in failed.tolist())
        self.not_read.update({api: count for api, count in apis.items() if self.own is None or api in self.own})
        doubtful = np.flatnonzero(chunk.decoded.status == Status.POSSIBLY_A_DRAFT)
        if len(doubtful):
            self.drafts.update(filter(None, suggested(exchanges.messages.take(doubtful))))
        for key, side in chunk.kinds:
            self.count_kind(chunk, key, side)
        for key in {key for key, _ in chunk.kinds if name_of(key) in USES}:
            self.count_uses(chunk, key)
        if (FETCH, REQUEST) in chunk.kinds:
            self.count_sessions(chunk)
        self.count_calls(chunk)

    @property
    def left_out(self) -> int:
        return self.once.left_out

    def topics(self) -> set[str]:
        """Names of all topics that were seen."""
        used = {one.topic for table in (self.uses, self.failures) for one in table}
        return (used | set(self.topic_names.values())) - {""}

    def client_ids(self) -> set[str]:
        return {call.client_id for call in self.calls if call.client_id}

    def count_calls(self, chunk: Chunk) -> None:
        pairs = chunk.exchanges
        size = [np.where(half >= 0, pairs.messages.size[half], 0) for half in (pairs.request, pairs.response)]
        both = (pairs.request >= 0) & (pairs.response >= 0)
        parts = [bucket_of(duration) for duration in durations(pairs, both)]
        clean_ns = np.where(both & ~chunk.failed, chunk.asked_ns, 0)
        version = np.where(pairs.request >= 0, pairs.messages.version[pairs.request], -1).astype(np.int64)
        for group in grouped((chunk.party, chunk.server, chunk.api + 1), chunk.asked_ns):
            row = self.calls.row(chunk.call(group.row), group.size, group.first_ns, group.last_ns)
            if row is not None:
                row.request_bytes += int(size[0][group.rows].sum())
                row.response_bytes += int(size[1][group.rows].sum())
                row.clean_ns = max(row.clean_ns, int(clean_ns[group.rows].max()))
                for part, buckets in zip(PARTS, parts, strict=True):
                    found = buckets[group.rows]
                    getattr(row, part).update(found[found >= 0].tolist())
                row.versions.update(np.unique(version[group.rows][version[group.rows] >= 0]).tolist())
        for index in np.flatnonzero((pairs.outcome == CLOSED_BY_SERVER) & (pairs.request >= 0)).tolist():
            self.fail(chunk, index, UNANSWERED, "", int(chunk.asked_ns[index]))
        for index in given_up(pairs, chunk.decoded, chunk.requests).tolist():
            self.fail(chunk, index, GIVEN_UP, "", int(chunk.asked_ns[index]))

    def count_kind(self, chunk: Chunk, key: int, side: int) -> None:
        where, there = columns(key, side), chunk.tables(key, side)
        header = there[""]
        if key == API_VERSIONS and side == REQUEST:
            self.learn_software(chunk, header)
        if key == METADATA and side == RESPONSE:
            self.brokers.learn_answers(chunk.exchanges, there)
        if side != RESPONSE:
            return
        if THROTTLE in header.names:
            waits = header[THROTTLE]
            for row in np.flatnonzero(waits > 0).tolist():
                self.throttle(chunk, int(header.message[row]), int(waits[row]))
        seen: set[tuple[int, int, str]] = set()
        for column in where.errors:
            for message, code, _, topic in errors_of(there, column, self.topic_names):
                if (message, code, topic) not in seen:
                    seen.add((message, code, topic))
                    time_ns = int(chunk.exchanges.ts_ns[message])
                    self.fail(chunk, int(chunk.exchange_of[message]), error_name(code), topic, time_ns)

    def learn_software(self, chunk: Chunk, header: Table) -> None:
        stated = [header[name].strings() for name in SOFTWARE]
        for message, *software in zip(header.message.tolist(), *stated, strict=True):
            if any(software) and len(self.software) < MOST_ROWS:
                call = chunk.call(int(chunk.exchange_of[message]))
                self.software[call.client_id, call.host] = " ".join(filter(None, software))

    def count_uses(self, chunk: Chunk, key: int) -> None:
        """Each exchange once for each topic that it names: in a fetch session not every request, or response, does."""
        texts: dict[str, int] = {}
        parts = [self.topics_of(chunk, key, side, texts) for side in (REQUEST, RESPONSE)]
        pairs = np.unique(np.concatenate(parts, axis=1), axis=1)
        index, topics, named = pairs[0], pairs[1], list(texts)
        replica = chunk.replica[index] if key == FETCH else np.full(len(index), -1)
        for group in grouped((chunk.party[index], topics, replica + 1, chunk.server[index]), chunk.asked_ns[index]):
            call = chunk.call(int(index[group.row]))
            use = Use(call.client_id, call.host, call.api, named[topics[group.row]], int(replica[group.row]))
            row = self.uses.row(use, group.size, group.first_ns, group.last_ns)
            if row is not None:
                row.at_server(call.server, group.size)

    def count_sessions(self, chunk: Chunk) -> None:
        """When each client put a topic into a fetch session last, and when it took it out of one."""
        there = chunk.tables(FETCH, REQUEST)
        header = there[""]
        whole = np.flatnonzero(header[EPOCH] <= 0)  # versions without sessions have -1
        index = chunk.exchange_of[header.message[whole]]
        for group in grouped((chunk.party[index], chunk.server[index]), chunk.asked_ns[index]):
            call = chunk.call(int(index[group.row]))
            latest(self.whole_fetch_ns, (call.client_id, call.host, call.server), group.last_ns)
        for path, name, topic_id in columns(FETCH, REQUEST).topics:
            table = there[path]
            codes, texts = topic_codes(table, name, topic_id, self.topic_names) if len(table) else (np.zeros(0), [])
            rows = np.flatnonzero(codes >= 0)
            index = chunk.exchange_of[table.message[rows]]
            for group in grouped((chunk.party[index], codes[rows].astype(np.int64)), chunk.asked_ns[index]):
                call = chunk.call(int(index[group.row]))
                reads = call.client_id, call.host, texts[int(codes[rows[group.row]])]
                if reads in self.fetched or len(self.fetched) < MOST_ROWS:
                    one = self.fetched.setdefault(reads, Asked())
                    one.seen(group.last_ns, forgotten=path == FORGOTTEN)

    def topics_of(self, chunk: Chunk, key: int, side: int, texts: dict[str, int]) -> Ints:
        """[exchanges, numbers of their topics in `texts`], which grows."""
        found = [np.zeros((2, 0), np.int64)]
        for path, name, topic_id in columns(key, side).topics:
            table = chunk.tables(key, side)[path]
            if len(table):
                codes, own = topic_codes(table, name, topic_id, self.topic_names)
                numbers = np.array([texts.setdefault(text, len(texts)) for text in own] or [0])
                index = chunk.exchange_of[table.message]
                rows = np.flatnonzero((codes >= 0) & (index >= 0))
                found.append(np.stack([index[rows], numbers[codes[rows]]]))
        return np.concatenate(found, axis=1)

    def throttle(self, chunk: Chunk, message: int, wait_ms: int) -> None:
        index, time_ns = int(chunk.exchange_of[message]), int(chunk.exchanges.ts_ns[message])
        row = self.fail(chunk, index, THROTTLED, "", time_ns)
        if row is not None:
            row.sum_ms += wait_ms
            row.worst_ms = max(row.worst_ms, wait_ms)

    def failure_of(self, call: Call, error: str, topic: str, replica: int) -> Rejection:
        """What it is counted as."""
        return Rejection(error, call.client_id, call.host, call.api, topic, replica)

    def fail(self, chunk: Chunk, index: int, error: str, topic: str, time_ns: int) -> Count | None:
        call = chunk.call(index)
        chunk.failed[index] |= error != THROTTLED
        replica = int(chunk.replica[index]) if call.api == "Fetch" else -1
        failure = self.failure_of(call, error, topic, replica)
        known = self.failures.get(failure)
        again = known is not None and time_ns - known.last_ns <= STREAK_NS
        row = self.failures.row(failure, 1, time_ns, time_ns)
        if row is not None:
            row.streak, row.streak_ns = (row.streak + 1, row.streak_ns) if again else (1, time_ns)
        if row is not None:
            row.at_server(call.server, 1)
        return row


def durations(pairs: Exchanges, both: NDArray[np.bool_]) -> Iterator[Ints]:
    """Per exchange the nanoseconds of each of PARTS; -1 where it is not known."""
    ends = [(one.server_round_ns, one.network_ns) for one in pairs.connections]
    to_server, network = np.array(ends, np.int64).reshape(-1, 2)[pairs.connection[pairs.request]].T
    waited = np.maximum(pairs.ts_ns[pairs.response] - pairs.ts_last_ns[pairs.request], 0)
    yield np.where(both, waited, -1)
    yield np.where(both & (to_server > 0), np.maximum(waited - to_server, 0), -1)
    yield np.where(both & (network > 0), network, -1)


def bucket_of(duration_ns: Ints) -> Ints:
    """-1 for what is not known."""
    buckets: Ints = (np.log2(np.maximum(duration_ns, 1000) / 1000) * STEPS).astype(np.int64)
    return np.where(duration_ns >= 0, buckets, -1)


MOST_SERVERS = 20
STREAK_NS = 300_000_000_000
"""metadata.max.age.ms: so seldom a client asks at least."""


class Group(NamedTuple):
    row: int
    """One of its rows."""
    rows: Ints
    size: int
    first_ns: int
    last_ns: int


def grouped(parts: Sequence[Ints], times: Ints) -> Iterator[Group]:
    """Rows that are alike in all these numbers (none below 0), as one group each."""
    if not len(times):
        return
    code = np.zeros(len(times), np.int64)
    for part in parts:
        code = code * (int(part.max()) + 1) + part
    order = np.argsort(code, kind="stable")
    begins = np.flatnonzero(np.r_[True, np.diff(code[order]) != 0])
    first, last = (least.reduceat(times[order], begins).tolist() for least in (np.minimum, np.maximum))
    for begin, end, first_ns, last_ns in zip(
        begins.tolist(), [*begins[1:].tolist(), len(order)], first, last, strict=True
    ):
        yield Group(int(order[begin]), order[begin:end], end - begin, first_ns, last_ns)


Tables = dict[tuple[int, int], "dict[str, Table]"]
"""Of messages, by API key and side."""


class Chunk:
    """Exchanges of one call of the follower, with what is asked of each: numbers for who, whom and which API."""

    def __init__(self, exchanges: Exchanges, decoded: Decoded, tables: Tables | None = None) -> None:
        """`tables`: those that were made of it before."""
        self.exchanges, self.decoded = exchanges, decoded
        self.exchange_of = exchanges.exchange
        first = exchanges.first
        self.api = exchanges.messages.key[first].astype(np.int64)
        self.asked_ns = exchanges.ts_ns[first]
        connection = exchanges.connection[first]
        hosts, host_of = numbers_of([each.client.host for each in exchanges.connections])
        self.servers, server_of = numbers_of([str(each.server) for each in exchanges.connections])
        self.server = server_of[connection]
        codes, texts = client_ids(exchanges)
        self.party = (codes + 1) * len(hosts) + host_of[connection]
        self._ids, self._hosts = [None, *texts], hosts
        self.failed = np.zeros(len(exchanges), np.bool_)
        """By exchange, whether its response has an error."""
        self._tables: Tables = {} if tables is None else tables
        self._replica: Ints | None = None

    @property
    def kinds(self) -> list[tuple[int, int]]:
        """(API key, side) of messages that were decoded and of which a column is fields_of."""
        return [(key, side) for key, side in kinds(self.decoded) if fields_of(key, side)]

    def tables(self, key: int, side: int) -> dict[str, Table]:
        if (key, side) not in self._tables:
            self._tables[key, side] = columns_of(self.decoded, key, SIDES[side])
        return self._tables[key, side]

    def requests(self, api: str) -> Mapping[str, Table]:
        """The tables of the requests of an API; empty where none was decoded."""
        key = key_of(api)
        return self.tables(key, REQUEST) if (key, REQUEST) in self.kinds else {}

    @property
    def replica(self) -> Ints:
        """By exchange the broker that fetches as a follower; -1 for all others."""
        if self._replica is None:
            self._replica = np.full(len(self.exchanges), -1, np.int64)
            header = self.tables(FETCH, REQUEST)[""]
            if len(header):
                stated = np.maximum(header[REPLICA[0]], header[REPLICA[1]])
                self._replica[self.exchange_of[header.message]] = np.maximum(stated, -1)
        return self._replica

    def of_client(self, client_id: str) -> Ints:
        """Exchanges of a client ID."""
        if client_id not in self._ids:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.party // len(self._hosts) == self._ids.index(client_id))

    def call(self, index: int) -> Call:
        """Who asked whom in an exchange."""
        return self.call_of(int(self.party[index]), index)

    def call_of(self, party: int, index: int) -> Call:
        code, host = divmod(party, len(self._hosts))
        api = int(self.api[index])
        return Call(self._ids[code], self._hosts[host], self.servers[int(self.server[index])], name_of(api))


def numbers_of(texts: list[str]) -> tuple[list[str], Ints]:
    """Each text once, and the number of each of these."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return list(numbers), np.array([numbers[text] for text in texts], np.int64)


BROKERS = ("cluster_id", "brokers.node_id", "brokers.host", "brokers.port")
ALSO = {(FETCH, REQUEST): (*REPLICA, EPOCH), (API_VERSIONS, REQUEST): SOFTWARE, (METADATA, RESPONSE): BROKERS}
"""Columns besides topics and errors."""


@cache
def fields_of(key: int, side: int) -> tuple[str, ...]:
    """Columns that are counted of one kind of message."""
    if known()[key][0] < 0:
        return ()
    where, slots = columns(key, side), {slot.path for slot in form(key, SIDES[side]).root.walk()}
    found = {at(path, name) for path, *pair in where.topics for name in pair if name is not None}
    found |= {at(path, name) for path, name in naming(key, side)} | {
        at(path, "topic_id") for path, _ in naming(key, side)
    }
    for column in where.errors if side == RESPONSE else ():
        found.add(at(column.table, column.code))
        found |= {at(*column.partition)} if column.partition else set()
    alone = (*ALSO.get((key, side), ()), *(WAITS if side == REQUEST else ()))
    return tuple(sorted((found | {THROTTLE, *alone}) & slots))


def at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def projection(also: Selection = ()) -> Projection:
    kinds = {(key, side) for key in names() for side in (REQUEST, RESPONSE) if fields_of(key, side)}
    found = {(name_of(key), SIDES[side]): fields_of(key, side) for key, side in kinds}
    for api, side, more in also:
        found[api, side] = (*found.get((api, side), ()), *more)
    return only(found)
