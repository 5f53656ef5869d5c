"""A small Kafka in bytes: exchanges written by tests/build.py, read by the real decoder, judged by the real judge.

Knows how the messages that checks speak about look when brokers, controllers and clients send them. Times are seconds
of capture time; every connection was seen from its start unless told otherwise.
"""

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, replace

import numpy as np

from tests import traffic
from tests.build import BY_NAME, HEADERS, Writer, case
from wirecheck.capture.frames import SKIPPED, Mark
from wirecheck.decode.connection.exchanges import ANSWERED, CLOSED_BY_SERVER, Connection, Exchanges, Gap
from wirecheck.decode.dialect import confirmed
from wirecheck.decode.layouts.program import Dialect
from wirecheck.decode.message import EVERYTHING, as_brokers, decode
from wirecheck.decode.peer import Peer
from wirecheck.decode.wire import REQUEST, RESPONSE, pack
from wirecheck.judge.checks import catalogue
from wirecheck.judge.claims.extract.extraction import claims
from wirecheck.judge.revisions.judge import Judge
from wirecheck.judge.thresholds import Settings
from wirecheck.streaming.store.run_result import refused_without_cause

S = 1_000_000_000
START = 1_800_000_000 * S
CLUSTER = "lab-cluster-id-22-char"
ID_1, ID_2, ID_3 = "1kItcVyISSW2qinBWMWing", "3dQYQ6GHSY6paRw3TwiVqA", "uP5yHTjyQ0iPcnTSAyxDFw"
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
B1, B2, B3 = "10.0.0.1:9092", "10.0.0.2:9092", "10.0.0.3:9092"
BROKERS = {B1: 1, B2: 2, B3: 3}


def disagrees_at(second):
    """Of a case that fires, when the first message that disagrees is sent: no finding begins before."""

    def marked(case):
        case.disagrees_at_s = second
        return case

    return marked


def disagrees_later(reason):
    """Of a case that fires, why its findings may begin before the first message that disagrees."""

    def marked(case):
        case.disagrees_later = reason
        return case

    return marked


class Still:
    """In place of a random generator: zeros, empty, nothing optional."""

    def random(self):
        return 0.99

    def choice(self, options):
        return options[0]

    def randbytes(self, count):
        return bytes(count)

    def randint(self, low, _high):
        return low


def written(api, side, version, body, header=None, dialect=Dialect.KAFKA):
    """The bytes of one message; fields that are not given are zero, empty or absent."""
    _, layout, _ = case(api, side, version, dialect)
    head = HEADERS["RequestHeader" if side == "request" else "ResponseHeader"]
    number = layout.header_version(version)
    given = {"requestApiKey": layout.key, "requestApiVersion": version, **(header or {})}
    return part(head, number, given) + part(layout, version, body), layout.key


PARTS = {}
"""Many cases begin with the same messages, and to write one takes as long as to judge it."""


def part(layout, version, given):
    kept = id(layout), version, repr(given)  # layouts stay as long as the process
    if kept not in PARTS:
        writer = Writer(Still())
        writer.struct(layout.fields, version, version in layout.flexible, given)
        PARTS[kept] = bytes(writer.out)
    return PARTS[kept]


def own_dialect(api, side, version, dialect):
    """The dialect if it has a layout for this message; what it does not change is Kafka's."""
    return dialect if (dialect, api, side, version) in BY_NAME else Dialect.KAFKA


@dataclass
class Talk:
    """One connection."""

    client: str
    server: str
    client_id: str | None
    messages: list = field(default_factory=list)
    exchanges: list = field(default_factory=list)
    closed: float | None = None
    last_packet: float | None = None
    """If that is later than its messages."""
    early: set = field(default_factory=set)
    """Exchanges that were answered out of order."""
    dialect: int = Dialect.KAFKA
    facts: dict = field(default_factory=dict)
    source: str = "lab.pcap"
    """What it was captured in."""

    def ask(self, at, api, version, request, response=None, *, outcome=None, answered_in=0.001):
        """One exchange: the request at `at` seconds, its answer a millisecond later."""
        number = len(self.exchanges) + 1
        head = {"correlationId": number, "clientId": self.client_id}
        data, key = written(api, "request", version, request, head)
        self.messages.append((data, REQUEST, key, version, number, at))
        asked = len(self.messages) - 1
        answer = -1
        if response is not None:
            data, _ = written(api, "response", version, response, {"correlationId": number})
            self.messages.append((data, RESPONSE, key, version, number, at + answered_in))
            answer = len(self.messages) - 1
        self.exchanges.append((asked, answer, ANSWERED if outcome is None else outcome))
        return self

    def refused(self, at, api, version, request=None):
        """The server closes instead of answering."""
        self.ask(at, api, version, request or {}, outcome=CLOSED_BY_SERVER)
        self.closed = at + 0.005
        return self

    def drafted(self, at, api, version, request, response):
        """One exchange in the layouts of the talk's dialect."""
        number = len(self.exchanges) + 1
        for side, body, code in (("request", request, REQUEST), ("response", response, RESPONSE)):
            head = {"correlationId": number, **({"clientId": self.client_id} if side == "request" else {})}
            data, key = written(api, side, version, body, head, own_dialect(api, side, version, self.dialect))
            self.messages.append((data, code, key, version, number, at))
        self.exchanges.append((len(self.messages) - 2, len(self.messages) - 1, ANSWERED))

    def connection(self):
        times = [at for *_, at in self.messages] or [self.closed or 0]
        given = {
            "from_start": True, "role_by": "syn", "protocol": "kafka", "sasl": None, "frames": len(self.messages),
            "payload_bytes": sum(len(data) for data, *_ in self.messages), "requests": 0,
            "responses": sum(side == RESPONSE for _, side, *_ in self.messages),
            "raw_frames": 0, "unseen_request_bytes": 0, "unseen_response_bytes": 0, "gaps": (), "resynchronised": 0,
            "skipped_bytes": 0, "conflicting_bytes": 0, "out_of_order": 0, "limits_hit": 0,
            "answered_ns": max((ns(self.messages[asked][5]) for asked, answer, _ in self.exchanges
                                if asked >= 0 and answer >= 0), default=0),
            "closed_by": None if self.closed is None else "server-fin",
            "close_ns": 0 if self.closed is None else ns(self.closed),
        }  # fmt: skip
        given |= self.facts
        last_ns = ns(max([*times, self.last_packet or 0]))
        return Connection(Peer.of(self.client), Peer.of(self.server), ns(min(times)), last_ns, **given)


@dataclass
class Said:
    """What an agent says about itself: that it skipped some packets."""

    agent: str
    marks: tuple = (Mark(SKIPPED, START, "lab.pcap", 3, "not-tcp"),)
    missing_files: int = 0


def ns(at):
    return START + int(at * S)


def lacks(at_ns, side, size, *, since_ns=None, noticed_ns=None):
    """Bytes that were not captured just then, or between two times."""
    return Gap(noticed_ns or at_ns, side, size, since_ns or at_ns, at_ns)


class Lab:
    """Several connections under one label, and what the judge makes of them."""

    def __init__(self):
        self.talks = []
        self.ports = iter(range(40000, 60000))
        self.until = 0.0
        self.agents = {}
        self.judged = None
        """The judge that judged last."""
        self.planted = ()
        """Codes of checks that raise, whatever they are asked."""

    def talk(self, server=B1, client_id="app", host="10.0.0.99", **facts):
        talk = Talk(f"{host}:{next(self.ports)}", server, client_id, facts=facts)
        self.talks.append(talk)
        return talk

    def claims(self):
        """Of all connections of one dialect together, as one batch has them."""
        dialects = dict.fromkeys(talk.dialect for talk in self.talks)
        batches = ([talk for talk in self.talks if talk.dialect == dialect] for dialect in dialects)
        return [part for talks in batches for part in claims(*exchanged(*talks))]

    def pcap(self):
        """The bytes of a capture file with all connections, each from its handshake on."""
        segments = []
        for talk in self.talks:
            messages = sorted(talk.messages, key=lambda message: message[5])
            client, server = Peer.of(talk.client), Peer.of(talk.server)
            sent = traffic.Talk(
                (client.host, client.port), (server.host, server.port), ts_ns=ns(messages[0][5]) - 10_000_000
            )
            sent.step_ns = 1000
            sent.open()
            for data, side, *_, at in messages:
                sent.ts_ns = max(sent.ts_ns, ns(at))
                (sent.request if side == REQUEST else sent.response)(traffic.size_prefixed(data))
            if talk.closed is not None:
                sent.ts_ns = max(sent.ts_ns, ns(talk.closed))
                sent.close()
            segments += sent.segments
        return traffic.pcap(traffic.packets(sorted(segments, key=lambda segment: segment.ts_ns)))

    def judge(self, until=None):
        """Every open finding once capture time has come to `until`."""
        judge = self.judged = Judge("lab", settings=Settings())
        judge.absorb(self.claims())
        ends = self.agents or {"agent": (self.until if until is None else until, True)}
        for agent, (at, ended) in ends.items():
            judge.progress(agent, ns(at), ended=ended)
            judge.on_marks(Said(agent))
        with raising(*self.planted):
            return with_unexplained(open_rows(judge.rows()))

    def findings(self, code=None, until=None):
        found = self.judge(until)["findings"].values()
        return [finding for finding in found if code is None or finding["code"] == code]

    # -- what brokers, controllers and clients say ------------------------------------------------------------------

    def metadata(
        self,
        at,
        topics=(),
        *,
        server=B1,
        version=12,
        brokers=BROKERS,
        cluster_id=CLUSTER,
        talk=None,
        leader=1,
        replicas=(1, 2, 3),
        partitions=1,
        leaderless=(),
        leader_error=5,
    ):
        """topics: (name, id or None, error, leader epoch)."""
        rows = []
        for name, topic_id, *more in topics:
            error, epoch = (*more, 0, 0)[:2]
            row = {"errorCode": error, "name": name, "partitions": []}
            if topic_id is not None:
                row["topicId"] = topic_id
            if not error:
                state = {"leaderId": leader, "leaderEpoch": epoch}
                state |= {"replicaNodes": [*replicas], "isrNodes": [*replicas]}
                row["partitions"] = [
                    {"partitionIndex": number, **state, "errorCode": leader_error * (number in leaderless)}
                    for number in range(partitions)
                ]
            rows.append(row)
        nodes = [{"nodeId": n, "host": b.split(":")[0], "port": int(b.split(":")[1])} for b, n in brokers.items()]
        answer = {"brokers": nodes, "clusterId": cluster_id, "topics": rows}
        self.until = max(self.until, at)
        return (talk or self.talk(server)).ask(at, "Metadata", version, {"topics": None}, answer)

    def control(self, at, api, topics, *, server=B1, controller=3, epoch=1, version=None, error=0, errors=(), **more):
        """LeaderAndIsr or UpdateMetadata; topics: (name, id, leader epoch, partition fields)."""
        version = version or {"LeaderAndIsr": 5, "UpdateMetadata": 7}[api]
        states = []
        for name, topic_id, leader_epoch, *more_fields in topics:
            state = {"leader": 1, "leaderEpoch": leader_epoch, "isr": [1, 2, 3], "replicas": [1, 2, 3]}
            state |= more_fields[0] if more_fields else {}
            row = {"topicName": name, "partitionStates": [state]}
            states.append(row if topic_id is None else {**row, "topicId": topic_id})
        request = {"controllerId": controller, "controllerEpoch": epoch, "topicStates": states, **more}
        answer = {"errorCode": error}
        if errors:
            answer["topics"] = [
                {"topicId": topic_id, "partitionErrors": [{"partitionIndex": 0, "errorCode": code}]}
                for topic_id, code in errors
            ]
        self.until = max(self.until, at)
        return self.talk(server, str(controller), f"10.0.0.{controller}").ask(at, api, version, request, answer)

    def deleted(self, at, name, topic_id=None, server=B1):
        row = {"name": name, "topicId": topic_id or NO_ID}
        asked = {"topics": [{"name": name, "topicId": NO_ID}]}
        self.until = max(self.until, at)
        return self.talk(server, "admin").ask(at, "DeleteTopics", 6, asked, {"responses": [row]})

    def created(self, at, name, topic_id, *, server=B1, validate_only=False):
        asked = {"topics": [{"name": name}], "validateOnly": validate_only}
        answer = {"topics": [{"name": name, "topicId": topic_id, "configs": []}]}
        self.until = max(self.until, at)
        return self.talk(server, "admin").ask(at, "CreateTopics", 7, asked, answer)

    def fetches(
        self,
        times,
        topic_id,
        error=0,
        *,
        server=B1,
        client_id="app",
        host="10.0.0.99",
        version=13,
        partition=0,
        from_start=True,
        talk=None,
    ):
        """Fetches by id, one per time, each answered with one error; without `talk` on a new connection."""
        talk = talk or self.talk(server, client_id, host, from_start=from_start)
        for at in times:
            asked = {"topics": [{"topicId": topic_id, "partitions": [{"partition": partition}]}], "sessionEpoch": -1}
            asked["replicaId"] = -1
            row = {"partitionIndex": partition, "errorCode": error, "highWatermark": 10, "records": None}
            row["abortedTransactions"] = None
            talk.ask(at, "Fetch", version, asked, {"responses": [{"topicId": topic_id, "partitions": [row]}]})
            self.until = max(self.until, at)
        return talk

    def versions(self, at, ranges, server=B1, client_id="app"):
        """ranges: key to (low, high)."""
        keys = [{"apiKey": key, "minVersion": low, "maxVersion": high} for key, (low, high) in ranges.items()]
        self.until = max(self.until, at)
        software = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.1"}
        return self.talk(server, client_id).ask(at, "ApiVersions", 3, software, {"apiKeys": keys})


@contextmanager
def raising(*codes):
    """These checks end with an exception, about whatever they are asked."""
    kept = dict(catalogue.CHECKS)
    try:
        catalogue.CHECKS.update({code: replace(kept[code], function=broken) for code in codes})
        yield
    finally:
        catalogue.CHECKS.update(kept)


def broken(subject, _group, _context):
    yield from ()
    raise LookupError(subject)


def exchanged(*talks):
    """What following would have handed out of some connections in one batch, and what the decoder reads in it."""
    rows = [row for talk in talks for row in talk.messages]
    messages = pack(
        [data for data, *_ in rows],
        [side for _, side, *_ in rows],
        [key for _, _, key, *_ in rows],
        [version for _, _, _, version, *_ in rows],
    )
    messages.correlation_id[:] = [number for *_, number, _ in rows]
    count, sizes = len(rows), [len(talk.messages) for talk in talks]
    ts_ns = np.array([ns(at) for *_, at in rows], np.int64)
    whose = np.repeat(np.arange(len(talks), dtype=np.int32), sizes)
    begins = np.cumsum([0, *sizes[:-1]])
    exchanges = [(*shifted(halves, begin), out) for talk, begin in zip(talks, begins, strict=True)
                 for *halves, out in talk.exchanges]  # fmt: skip
    asked, answers, outcomes = np.array(exchanges, np.int64).reshape(-1, 3).T
    alone = answers[(asked < 0) & (answers >= 0)]
    messages.key[alone] = messages.version[alone] = -1  # nobody knows what they answer
    early = [number in talk.early for talk in talks for number in range(len(talk.exchanges))]
    names = [*dict.fromkeys(talk.source for talk in talks)]
    sources = np.array([names.index(talk.source) for talk in talks], np.int32)
    frames = np.arange(1, count + 1, dtype=np.int64) - begins[whose]
    given = dict(  # noqa: C408 -- named as the fields are
        label="lab", names=tuple(names), connections=tuple(talk.connection() for talk in talks), messages=messages,
        connection=whose, ts_ns=ts_ns, ts_last_ns=ts_ns, source=sources[whose],
        frame_first=frames, frame_last=frames, stream_offset=np.zeros(count, np.int64),
        gap_bytes=np.zeros(count, np.int64), request=asked.astype(np.int64), response=answers.astype(np.int64),
        outcome=outcomes.astype(np.int8), out_of_order=np.array(early, np.bool_),
    )  # fmt: skip
    rest = {
        f.name: np.zeros(count, np.int64) for f in fields(Exchanges) if f.default is MISSING and f.name not in given
    }
    rest["serial"] = whose.astype(np.int64)
    (dialect,) = {talk.dialect for talk in talks}
    decoded = decode(messages, dialect=dialect)
    exchanges = Exchanges(**given, **rest)
    read = as_brokers(decoded, EVERYTHING, np.flatnonzero(messages.side == REQUEST))
    return exchanges, confirmed(read, exchanges)


def shifted(halves, begin):
    """Numbers of messages of one connection as those of the batch; -1 stays."""
    return (half if half < 0 else half + begin for half in halves)


def with_unexplained(rows):
    """With the findings that are made of the rows of all subjects."""
    if not rows["harms"]:
        return rows
    tables = {
        table: [{"label": "lab", "revision": 0, "others": None, **row, "id": key} for key, row in found.items()]
        for table, found in rows.items()
        if table in {"findings", "harms"}
    }
    for found in refused_without_cause({"findings": [], **tables}):
        rows["findings"][found["id"]] = found
    return rows


def open_rows(rows):
    """Per route the rows that stand after all revisions."""
    last = {}
    for row in rows:
        if row.revision >= last.get((row.table, row.key), row).revision:
            last[row.table, row.key] = row
    found = defaultdict(dict)
    for (route, key), row in sorted(last.items()):
        if not row.body.get("withdrawn") and row.body.get("state") != "withdrawn":
            found[route][key] = row.body
    return found
