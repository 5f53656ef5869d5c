"""Which bytes of messages may reach the disk. Places are stretches of streams; stream = 2 * serial + direction.

Only what is known to be harmless is kept. Of a message that does not decode, the header stays (key, version,
correlation ID, client ID). Of a malformed one also the structure before the error and the wrong length or count, so
that it fails again for the same reason; of kinds with records or secrets only what precedes the first text, bytes,
array or tag. A malformed request that a broker reads to its last byte is kept as any other, but for texts that are
none.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from wirecheck.capture.trim.kept_pieces import MessageSpans, between
from wirecheck.capture.waiting_rows import SECOND, array, vector
from wirecheck.decode import dialect
from wirecheck.decode.columns import tables
from wirecheck.decode.envelope import ENVELOPE
from wirecheck.decode.failed import Contents, before_content, contents
from wirecheck.decode.group_protocol import REASONS, assignment, subscription
from wirecheck.decode.holes import laid_out
from wirecheck.decode.interpret.content import no_text
from wirecheck.decode.interpret.vectors import bytes_of, vec64
from wirecheck.decode.layouts.form import Kind, Slot
from wirecheck.decode.layouts.layout import holds_value
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.log.compression import LARGEST_OUTPUT_BYTES
from wirecheck.decode.log.metadata_log import TOPIC_ID, TOPIC_NAME
from wirecheck.decode.log.records import HEADER_BYTES, read_batches
from wirecheck.decode.log.secrets import LogSecrets
from wirecheck.decode.message import LENIENT, Projection, Status, decode, decode_as_brokers, only
from wirecheck.decode.sasl_name import sasl_name
from wirecheck.decode.secrecy import RECORDS, SECRET, Spans, confidential, confidential_slots, joined, marked, spans_of
from wirecheck.decode.wire import REQUEST, RESPONSE, Messages, together, wire_offset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.holes import Field
    from wirecheck.decode.message import Decoded
    from wirecheck.decode.wire import Ints

Cuts: TypeAlias = tuple[int, int, list[tuple[int, int]]]  # message, offset of the records, secret spans in them

PRODUCE, FETCH, FETCH_SNAPSHOT = 0, 1, 59
_NAME = TOPIC_NAME.encode()
FIRST_BY_ID = 13  # version of Fetch: topics have names before, ids from there on (KIP-516)
MOST_SNAPSHOTS = 64  # streams of chunks followed at once


@dataclass(slots=True)
class LogCuts:
    """Over one capture: chunks of a snapshot come one by one."""

    principals: bool = True
    """Whether those in the log may be kept."""
    _snapshots: dict[tuple[int, int, int], tuple[int, LogSecrets]] = field(default_factory=dict)
    """By connection, end offset and epoch: the position of the next chunk, and the walk up to there."""
    _second: int = 0
    """Of capture."""
    _budget: int = 0
    """What compressed blocks may cost in that second, of all connections: raft compresses none."""

    def cuts(self, messages: Messages, serial: Ints, ts_ns: Ints) -> list[Cuts]:
        """All of the log in these answers."""
        decoded = decode(messages, _log_projection())
        return [*self._fetched(decoded, ts_ns), *self._chunks(decoded, serial, ts_ns)]

    def _secret(self, records: Field, walk: LogSecrets, ts_ns: int) -> list[tuple[int, int]]:
        """Secret spans of a piece of the log; behind bytes that were not seen everything is."""
        if ts_ns // SECOND != self._second:
            self._second, self._budget = ts_ns // SECOND, LARGEST_OUTPUT_BYTES
        seen = int(records.holes[0, 0]) if len(records.holes) else len(records)
        cuts = walk.feed(records.bytes(0, seen), self._budget)
        self._budget = walk.budget
        if seen < len(records):
            walk.lost = True
            cuts.append((seen, len(records) - seen))
        return cuts

    def _fetched(self, decoded: Decoded, ts_ns: Ints) -> list[Cuts]:
        """The metadata log in answers to raft's Fetch as (message, offset, secret spans)."""
        every = tables(decoded, "Fetch", "response")
        table, topics = every["responses.partitions"], every["responses"]
        if not len(table):
            return []
        names, ids = topics["topic"].strings(), topics["topic_id"]
        found = []
        for row in range(len(table)):
            topic = int(table.parent[row])
            if names[topic] != TOPIC_NAME and bytes(ids[topic]) != TOPIC_ID:
                continue
            records = table["records"].field(row)
            if records is not None and len(records):
                message = int(table.message[row])
                place = _offset(decoded, message, int(table["records"].at[row]))
                walk = LogSecrets(principals=self.principals)
                found.append((message, place, self._secret(records, walk, int(ts_ns[message]))))
        return found

    def _chunks(self, decoded: Decoded, serial: Ints, ts_ns: Ints) -> list[Cuts]:
        """Chunks of snapshots as (message, offset, secret spans); they are one stream, position by position."""
        found: list[Cuts] = []
        every = tables(decoded, "FetchSnapshot", "response")
        table, names = every["topics.partitions"], every["topics"]["name"].strings() if len(every["topics"]) else []
        for row in range(len(table)):
            if names[table.parent[row]] != TOPIC_NAME:
                continue
            message, position = int(table.message[row]), int(table["position"][row])
            column = table["unaligned_records"]
            chunk = column.field(row)
            if chunk is None or not len(chunk):
                continue
            snapshot = int(table["snapshot_id.end_offset"][row]), int(table["snapshot_id.epoch"][row])
            name = (int(serial[message]), *snapshot)
            expected, secrets = self._snapshots.pop(name, (0, LogSecrets(principals=self.principals)))
            if position == 0:
                expected, secrets = 0, LogSecrets(principals=self.principals)
            whole = position == expected
            cuts = self._secret(chunk, secrets, int(ts_ns[message])) if whole else [(0, len(chunk))]
            if position == expected:
                self._snapshots[name] = position + len(chunk), secrets
            else:
                self._snapshots[name] = expected, secrets
            if len(self._snapshots) > MOST_SNAPSHOTS:
                del self._snapshots[next(iter(self._snapshots))]
            found.append((message, _offset(decoded, message, int(column.at[row])), cuts))
        return found


def _offset(decoded: Decoded, message: int, place: int) -> int:
    place = place if place >= 0 else -1 - place
    return int(wire_offset(decoded.messages, np.array([message]), np.array([place]))[0])


@cache
def _log_projection() -> Projection:
    return only({
        ("Fetch", "response"): ["responses.topic", "responses.topic_id", "responses.partitions.records"],
        ("FetchSnapshot", "response"): [
            "topics.name", "topics.partitions.position", "topics.partitions.unaligned_records",
            "topics.partitions.snapshot_id.end_offset", "topics.partitions.snapshot_id.epoch",
        ],
    })  # fmt: skip


def carries_log(messages: Messages, spans: Spans) -> Ints:
    """Messages that may carry the metadata log: its name or id stands before their first records."""
    records = np.flatnonzero(spans.kind == RECORDS)
    rows: Ints = spans.message[records]
    may = (messages.side[rows] == RESPONSE) & ((messages.key[rows] == FETCH) | (messages.key[rows] == FETCH_SNAPSHOT))
    may[1:] &= rows[1:] != rows[:-1]
    rows, first = rows[may], spans.offset[records[may]]
    if not len(rows):
        return rows
    end = np.minimum(messages.at[rows] + first, messages.at[rows + 1])
    by_id = (messages.key[rows] == FETCH) & (messages.version[rows] >= FIRST_BY_ID)
    data = messages.data.tobytes()
    says = np.where(by_id, _says(data, TOPIC_ID, messages.at[rows], end), _says(data, _NAME, messages.at[rows], end))
    picked: Ints = rows[says]
    return picked


def _says(data: bytes, word: bytes, begin: Ints, end: Ints) -> NDArray[np.bool_]:
    """Whether a word stands between these places; there are few of it, if any."""
    found = [-1]
    while (at := data.find(word, found[-1] + 1)) >= 0:
        found.append(at)
    places = np.array([*found[1:], len(data)], np.int64)
    first: Ints = places[np.searchsorted(places, begin)]
    return first <= end - len(word)


# --- logins: the user name is kept, as other principals are

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
MOST_LOGINS = 1024  # connections whose first token is awaited


@dataclass(slots=True)
class LoginCuts:
    """Over one capture: a login's mechanism and its first token are two requests."""

    _mechanisms: dict[int, str | None] = field(default_factory=dict)
    """By connection, from its SaslHandshake to its first token."""

    def cuts(self, messages: Messages, serial: Ints) -> list[Cuts]:
        """Of tokens all that follows the user name. A token without one gets no cut, and stays secret. The messages
        are requests, by connection in the order in which they were sent.
        """
        decoded = decode(messages, _login_projection())
        asked, tokens = (tables(decoded, api, "request").get("") for api in ("SaslHandshake", "SaslAuthenticate"))
        mechanisms = (
            {} if asked is None else dict(zip(asked.message.tolist(), asked["mechanism"].strings(), strict=True))
        )
        rows = {} if tokens is None else {int(message): row for row, message in enumerate(tokens.message)}
        found: list[Cuts] = []
        for message, of in enumerate(serial.tolist()):
            if message in mechanisms:
                self._mechanisms[of] = mechanisms[message]
            elif tokens is not None and message in rows and (mechanism := self._mechanisms.pop(of, None)) is not None:
                column = tokens["auth_bytes"]
                token = column.field(rows[message])
                if token is not None and (name := sasl_name(mechanism, token)) is not None:
                    place = _offset(decoded, message, int(column.at[rows[message]]))
                    found.append((message, place, [(name.end, len(token) - name.end)]))
        while len(self._mechanisms) > MOST_LOGINS:
            del self._mechanisms[next(iter(self._mechanisms))]
        return found


@cache
def _login_projection() -> Projection:
    return only({("SaslHandshake", "request"): ["mechanism"], ("SaslAuthenticate", "request"): ["auth_bytes"]})


def is_login(messages: Messages) -> NDArray[np.bool_]:
    """By message: whether it is a SaslHandshake or SaslAuthenticate request."""
    of_login = (messages.key == SASL_HANDSHAKE) | (messages.key == SASL_AUTHENTICATE)
    found: NDArray[np.bool_] = of_login & (messages.side == REQUEST)
    return found


def without_headers(messages: Messages, spans: Spans) -> Spans:
    """The spans of records without the headers of their batches."""
    found: list[tuple[int, int, int, int]] = []
    for message, offset, length, kind in zip(*(column.tolist() for column in spans), strict=True):
        whole = messages.span_at[message] == messages.span_at[message + 1]
        pieces = [(0, length)]
        if kind == RECORDS and whole and messages.key[message] in {PRODUCE, FETCH}:
            place = int(messages.at[message]) + offset
            pieces = _behind_headers(laid_out(messages.data[place : place + length]))
        found += [(message, offset + begin, end - begin, kind) for begin, end in pieces]
    columns = np.array(found, np.int64).reshape(-1, 4).T
    return Spans(columns[0], columns[1], columns[2], columns[3].astype(np.int8))


def _behind_headers(records: Field) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    at = 0
    for batch in read_batches(records).batches:
        if batch.magic < 2:
            break
        found.append((batch.position + HEADER_BYTES, batch.end))
        at = batch.end
    return [(begin, end) for begin, end in [*found, (at, len(records))] if begin < end]


LENGTH_BYTES = 6  # of a length or count that is wrong: a tag's number and the longest varint
RECORDS_LENGTH_BYTES = 4  # of records; of a secret nothing
UNREADABLE = 2  # a kind of spans, beside SECRET and RECORDS: content of malformed messages
MOST_CLIENT_ID_BYTES = 255
MOST_ENVELOPES = 1024  # requests in Envelopes whose answers are awaited


class Stretches(NamedTuple):
    """Parts of streams, in offsets of their directions."""

    stream: Ints
    begin: Ints
    end: Ints
    # sorted by stream and begin


@dataclass(slots=True)
class RedactionPolicy:
    """What messages keep, over one capture: the parts of a snapshot and the halves of an Envelope come apart."""

    principals: bool = True
    """Whether principals may be kept, with their addresses: in any message, in the metadata log, and of a login."""
    batch_headers: bool = False
    """Whether headers of record batches are kept, where a message has them whole."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Bytes of messages by reason."""
    _log: LogCuts = field(default_factory=LogCuts)
    _logins: LoginCuts = field(default_factory=LoginCuts)
    _envelopes: dict[tuple[int, int], Messages] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._log.principals = self.principals

    def kept(self, exchanges: Exchanges, order: Ints) -> Stretches:
        """Of the messages of a call; `order` is that of their places."""
        messages = exchanges.messages
        spans, status = self._confidential(exchanges, order)
        upto = messages.size.copy()
        unread = np.flatnonzero(status != Status.OK)
        upto[unread] = headers(messages, unread)
        broken = unread[status[unread] >= Status.TRUNCATED]
        if len(broken):
            understood, inside = structure(messages.take(broken))
            upto[broken] = np.maximum(upto[broken], understood)
            spans = _with_contents(spans, broken, inside)
        self.left_out["unreadable"] += int((messages.size - upto).sum())
        for kind, name in ((RECORDS, "records"), (SECRET, "secrets"), (UNREADABLE, "unreadable")):
            self.left_out[name] += int(spans.length[spans.kind == kind].sum())
        span_at = np.append(0, np.cumsum(np.bincount(spans.message, minlength=len(messages))))
        places = (exchanges.stream_offset, upto, span_at, spans.offset, spans.length)
        parts = between(vector(order), MessageSpans(*map(vector, places)))
        return Stretches(
            (2 * exchanges.serial + exchanges.direction)[array(parts.row)], array(parts.begin), array(parts.end)
        )

    def _confidential(self, exchanges: Exchanges, order: Ints) -> tuple[Spans, NDArray[np.int8]]:
        messages = exchanges.messages
        if (messages.key == ENVELOPE).any():
            spans, status = self._with_envelopes(exchanges)
        else:
            spans, status = confidential(messages, np.full(len(messages), -1, np.int64), principals=self.principals)
        if (status >= Status.TRUNCATED).any():
            secret, malformed = marked(principals=self.principals), np.flatnonzero(status >= Status.TRUNCATED)
            spans, status = _of_dialects(exchanges, spans, status, malformed, secret)
            spans, status = _as_brokers(messages, spans, status, secret)
        members = np.flatnonzero(np.isin(messages.key, GROUP_APIS) & (status == Status.OK))
        if len(members):
            spans = _with_cuts(spans, members, group_cuts(messages.take(members)))
        logins = order[(is_login(messages) & (status == Status.OK))[order]] if self.principals else order[:0]
        if len(logins):
            spans = _with_cuts(spans, logins, self._logins.cuts(messages.take(logins), exchanges.serial[logins]))
        log = carries_log(messages, spans)
        if len(log):
            spans = _with_cuts(
                spans, log, self._log.cuts(messages.take(log), exchanges.serial[log], exchanges.ts_ns[log])
            )
        return without_headers(messages, spans) if self.batch_headers else spans, status

    # --- Envelopes: an answer is read by its request, which was handed out earlier

    def _with_envelopes(self, exchanges: Exchanges) -> tuple[Spans, NDArray[np.int8]]:
        messages = exchanges.messages
        earlier: list[Messages] = []
        request_of = np.full(len(messages), -1, np.int64)
        places: dict[tuple[int, int], int] = {}
        for i in np.flatnonzero(messages.key == ENVELOPE).tolist():
            name = int(exchanges.serial[i]), int(messages.correlation_id[i])
            if messages.side[i] == REQUEST:
                self._envelopes[name] = messages.take(np.array([i]))
                places[name] = i
            elif name in self._envelopes:
                if name not in places:
                    places[name] = len(messages) + len(earlier)
                    earlier.append(self._envelopes[name])
                request_of[i] = places[name]
                del self._envelopes[name]
        while len(self._envelopes) > MOST_ENVELOPES:
            del self._envelopes[next(iter(self._envelopes))]
        count = len(messages)
        both = together([messages, *earlier])
        request_of = np.concatenate([request_of, np.full(len(earlier), -1, np.int64)])
        spans, status = confidential(both, request_of, principals=self.principals)
        mine = spans.message < count
        return _picked(spans, mine), status[:count]


def _with_cuts(spans: Spans, rows: Ints, found: list[Cuts]) -> Spans:
    """Of fields that were read, in the messages of these rows, only the cuts are secret."""
    if not found:
        return spans
    covered = {(int(rows[message]), offset): cuts for message, offset, cuts in found}
    keys = zip(spans.message.tolist(), spans.offset.tolist(), strict=True)
    stays = np.array([key not in covered for key in keys], np.bool_)
    new = [(message, begin + at, n) for (message, begin), cuts in covered.items() for at, n in cuts]
    message, offset, length = np.array(new, np.int64).reshape(-1, 3).T
    return joined(_picked(spans, stays), Spans(message, offset, length, np.full(len(new), SECRET, np.int8)))


# --- classic groups: what the consumer protocol says is kept, without what applications add

GROUP_APIS = (11, 13, 14, 15)
MEMBERS = (
    ("JoinGroup", "request", "protocols", "metadata", "protocol_type", subscription),
    ("JoinGroup", "response", "members", "metadata", "protocol_type", subscription),
    ("SyncGroup", "request", "assignments", "assignment", "protocol_type", assignment),
    ("SyncGroup", "response", "", "assignment", "protocol_type", assignment),
    ("DescribeGroups", "response", "groups.members", "member_metadata", "groups.protocol_type", subscription),
    ("DescribeGroups", "response", "groups.members", "member_assignment", "groups.protocol_type", assignment),
)
"""API, side, table, column, where the protocol's type stands (older versions do not state it), how it is read."""
CONSUMER = "consumer"


def group_cuts(messages: Messages) -> list[Cuts]:
    """Of subscriptions and assignments of consumers, what in them is no name and no number."""
    decoded = decode(messages, _group_projection())
    found = []
    for api, side, lines, column, type_column, read in MEMBERS:
        every = tables(decoded, api, side)
        table = every.get(lines)
        if table is None or not len(table):
            continue
        above, _, name = type_column.rpartition(".")
        types = every[above][name].strings() if above in every and len(every[above]) else []
        for row in range(len(table)):
            data = table[column].field(row)
            at = int(table.parent[row]) if lines else row
            if data is None or not len(data) or len(data.holes) or (types and types[at] not in {CONSUMER, "", None}):
                continue
            known = read(data.bytes(0, len(data)))
            if known is not None:
                message = int(table.message[row])
                found.append((message, _offset(decoded, message, int(table[column].at[row])), list(known.content)))
    return found + _known_reasons(decoded)


def _known_reasons(decoded: Decoded) -> list[Cuts]:
    """Why members leave, in words of Kafka's own clients: nothing of these is secret. Others are an application's."""
    leaving = tables(decoded, "LeaveGroup", "request").get("members")
    if leaving is None or not len(leaving):
        return []
    reasons = leaving["reason"]
    rows = [row for row, reason in enumerate(reasons.strings()) if reason in REASONS]
    messages = [int(leaving.message[row]) for row in rows]
    return [
        (message, _offset(decoded, message, int(reasons.at[row])), [])
        for message, row in zip(messages, rows, strict=True)
    ]


@cache
def _group_projection() -> Projection:
    columns: dict[tuple[str, str], list[str]] = {}
    for api, side, lines, column, type_column, _ in MEMBERS:
        columns.setdefault((api, side), []).extend([f"{lines}.{column}".lstrip("."), type_column])
    columns["LeaveGroup", "request"] = ["members.reason"]
    return only(columns)


def _of_dialects(
    exchanges: Exchanges, spans: Spans, status: NDArray[np.int8], rows: Ints, secret: NDArray[np.bool_]
) -> tuple[Spans, NDArray[np.int8]]:
    """What is not read as shipped may be an older layout or a draft: the spans by that reading.

    Where both read a message, its records and secrets are the same by either.
    """
    decoded = dialect.read_as_any(exchanges.messages.take(rows), Projection(confidential_slots()))
    other = (decoded.dialect != Dialect.KAFKA) & (decoded.status == Status.OK)
    if not other.any():
        return spans, status
    found = spans_of(decoded, secret)
    found = _picked(found, other[found.message])
    stays = ~np.isin(spans.message, rows[other])
    status = status.copy()
    status[rows[other]] = Status.OK
    return joined(_picked(spans, stays), found._replace(message=rows[found.message])), status


def _as_brokers(
    messages: Messages, spans: Spans, status: NDArray[np.int8], secret: NDArray[np.bool_]
) -> tuple[Spans, NDArray[np.int8]]:
    """Malformed requests that a broker reads to their last byte, with their spans: records, secrets, and texts that are
    none. With bytes left over it may be another message than its header says.
    """
    rows = np.flatnonzero(np.isin(status, LENIENT) & (messages.side == REQUEST) & (messages.key != ENVELOPE))
    if not len(rows):
        return spans, status
    lenient = np.ones(len(rows), np.bool_)
    decoded = decode_as_brokers(messages.take(rows), Projection(_texts_and_secrets()), Dialect.KAFKA, lenient)
    well = (decoded.status == Status.OK) & (decoded.error_at == decoded.messages.size)
    found = joined(spans_of(decoded, secret), _no_text(decoded, secret))
    found = _picked(found, well[found.message])
    status = status.copy()
    status[rows[well]] = Status.OK
    return joined(spans, found._replace(message=rows[found.message])), status


def _no_text(decoded: Decoded, secret: NDArray[np.bool_]) -> Spans:
    """The texts that are no UTF-8, but for secrets."""
    texts = np.flatnonzero((_texts() & ~secret)[decoded.field] & (decoded.length > 0) & (decoded.value >= 0))
    place, length = decoded.value[texts], decoded.length[texts].astype(np.int64)
    odd = array(no_text(bytes_of(decoded.messages.data), vec64(place), vec64(length)))
    message = np.searchsorted(decoded.token_at[1:], texts[odd], "right")
    offset = wire_offset(decoded.messages, message, place[odd])
    return Spans(message, offset, length[odd], np.full(len(odd), UNREADABLE, np.int8))


@cache
def _texts() -> NDArray[np.bool_]:
    """By slot: whether it is a text that is kept, the client ID aside, which always is."""
    return np.array([s.kind == Kind.TEXT and not s.secret and s.label != "header.clientId" for s in programs().slots])


@cache
def _texts_and_secrets() -> NDArray[np.uint8]:
    return confidential_slots() | _texts().astype(np.uint8)


@cache
def _kinds() -> NDArray[np.int8]:
    """By slot: RECORDS, SECRET or -1."""
    slots = programs().slots
    return np.array([RECORDS if s.kind == Kind.RECORDS else SECRET if s.secret else -1 for s in slots], np.int8)


def _picked(spans: Spans, rows: NDArray[Any]) -> Spans:
    return Spans(spans.message[rows], spans.offset[rows], spans.length[rows], spans.kind[rows])


def structure(messages: Messages) -> tuple[Ints, Contents]:
    """How much of malformed messages may be kept, so that they are found malformed again, and the content in that."""
    decoded = decode(messages, only({}))
    kinds = np.where(decoded.error_field < 0, -1, _kinds()[decoded.error_field])
    of_length = np.where(kinds == SECRET, 0, np.where(kinds == RECORDS, RECORDS_LENGTH_BYTES, LENGTH_BYTES))
    of_length[decoded.status == Status.LEFTOVER_BYTES] = 0
    upto = np.minimum(decoded.error_at + of_length, messages.size)
    guarded = np.flatnonzero(may_hold_secrets(messages))
    front = before_content(messages.take(guarded))
    upto[guarded] = np.where(decoded.error_at[guarded] <= front, upto[guarded], front)
    upto[(messages.key == ENVELOPE) | (decoded.status == Status.BAD_TEXT)] = 0
    inside = contents(messages)
    front_of_end = inside.offset + inside.length <= upto[inside.message]
    return upto, Contents(*(column[front_of_end] for column in inside))


def _with_contents(spans: Spans, rows: Ints, inside: Contents) -> Spans:
    """The contents as spans of the messages in these rows, of which nothing else is known."""
    kind = np.full(len(inside.message), UNREADABLE, np.int8)
    return joined(spans, Spans(rows[inside.message], inside.offset, inside.length, kind))


def may_hold_secrets(messages: Messages) -> NDArray[np.bool_]:
    """By message: whether a layout of its kind has records, credentials, values or another message."""
    sides, keys = messages.side.tolist(), messages.key.tolist()
    return np.array([kind in _kinds_with_secrets() for kind in zip(sides, keys, strict=True)], np.bool_)


def _is_guarded(slot: Slot) -> bool:
    if slot.parent is not None and slot.parent.kind == Kind.UNKNOWN_TAG:
        return False  # every message with tags may have one
    value = slot.secret and holds_value(slot.name, "bytes" if slot.kind == Kind.BYTES else "string")
    return value or slot.kind == Kind.RECORDS


@cache
def _kinds_with_secrets() -> frozenset[tuple[int, int]]:
    return frozenset(
        (form.side, form.key)
        for form in programs().names.values()
        if form.key == ENVELOPE or any(map(_is_guarded, form.root.walk()))
    )


def headers(messages: Messages, rows: Ints) -> Ints:
    """Bytes of the headers of these messages, as far as they are plain: with the client id, without tags."""
    return np.array([header_bytes(messages, i) for i in rows.tolist()], np.int64)


def header_bytes(messages: Messages, i: int) -> int:
    """Of what stays of any message: ids and client id."""
    size, begin, first = int(messages.size[i]), int(messages.at[i]), int(messages.span_at[i])
    hole = int(messages.span_offset[first]) if messages.span_at[i + 1] > first else size
    length = 8 if messages.side[i] == REQUEST else 4
    if messages.side[i] == REQUEST and hole >= length + 2:
        client = int.from_bytes(messages.data[begin + 8 : begin + 10].tobytes(), "big", signed=True)
        length += 2 + client if 0 <= client <= MOST_CLIENT_ID_BYTES else 2
    return min(length, size)
