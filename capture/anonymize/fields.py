"""Which bytes of decoded messages are names, and what takes their place. Lengths never change.

Rule: a text, an ID or bytes of a message that this module does not know how to map become zeros. What the redaction
policy left out is zeros already.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.capture.anonymize.blank_batches import filled
from wirecheck.capture.trim.redaction_policy import headers, structure
from wirecheck.decode import group_protocol
from wirecheck.decode.dialect import ID_BYTES, read_as_any
from wirecheck.decode.envelope import ENVELOPE
from wirecheck.decode.holes import laid_out
from wirecheck.decode.interpret import instruction
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.program import programs
from wirecheck.decode.message import EVERYTHING, Status, as_brokers, decode
from wirecheck.decode.sasl_name import PLAIN, SCRAM
from wirecheck.decode.wire import REQUEST, RESPONSE, pack, short_header, wire_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirecheck.capture.anonymize.names import Names
    from wirecheck.decode.layouts.form import Slot
    from wirecheck.decode.message import Decoded
    from wirecheck.decode.wire import Ints, Messages

CLIENT_ID_AT = 10  # behind key, version, correlation ID and the length
UUID_BYTES = 16
MEMBERS = {
    "JoinGroup.protocols.metadata", "JoinGroup.members.metadata", "SyncGroup.assignments.assignment",
    "SyncGroup.assignment", "DescribeGroups.groups.members.memberMetadata",
    "DescribeGroups.groups.members.memberAssignment",
}  # fmt: skip
READABLE, UNLIKELY = re.compile(rb"[\x20-\x7e]{4,}"), re.compile(rb"[\x20-\x7e]{8,}")
"""Among the numbers of a malformed message, and of any other: text that was taken for numbers."""
CARRIED = {"Envelope.requestData", "Envelope.responseData"}


class Place(NamedTuple):
    """Where in a message, as on the wire, something is."""

    message: int
    offset: int
    length: int
    slot: int


@cache
def _apis() -> dict[int, str]:
    """By slot the name of its message, and of its field."""
    slots = programs().slots
    return {number: f"{form.api}.{slots[number].label}" for form in programs().names.values() for number in form.slots}


@cache
def _kinds() -> np.ndarray:
    return np.array([slot.kind for slot in programs().slots])


@cache
def _runs_with_ids() -> np.ndarray:
    runs, slots = programs().runs, programs().slots
    return np.array([
        any(slots[runs.slot[part]].kind in {Kind.UUID, Kind.UUIDS} for part in range(runs.at[i], runs.at[i + 1]))
        for i in range(len(runs.stride))
    ])  # fmt: skip


class Fields:
    """What is in messages, under other names."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.zeroed: Counter[str] = Counter()
        """Bytes by field that could not be mapped."""
        self.forwarded: dict[tuple[int, int], tuple[int, int]] = {}
        """By connection and correlation ID, key and version of the request in an Envelope."""

    def bodies(
        self, messages: Messages, serial: Ints, records: Callable[[Ints, Decoded], None] = lambda *_: None
    ) -> list[bytearray]:
        """The messages as on the wire, zeros in their holes, their names mapped. `serial` is that of their connections;
        `records` gets what was decoded, with its rows.
        """
        out = [laid_out_message(messages, i) for i in range(len(messages))]
        numbers = [*map(bytearray, out)]  # what is in none of the fields that are mapped
        left = np.ones(len(messages), np.bool_)
        for rows, decoded in readings(messages):
            left[rows[decoded.status == Status.OK]] = False
            records(rows, decoded)
            for place in places(decoded):
                row = int(rows[place.message])
                name = int(serial[row]), int(messages.correlation_id[row])
                numbers[row][place.offset : place.offset + place.length] = bytes(place.length)
                self._map(out[row], place, name, int(messages.side[row]))
        plain = decode(messages).status == Status.OK
        for row in np.flatnonzero(~left).tolist():
            for found in (UNLIKELY if plain[row] else READABLE).finditer(numbers[row]):
                out[row][found.start() : found.end()] = bytes(len(found[0]))
        self._fill_batches(messages, out)
        self._failed(messages, np.flatnonzero(left), out)
        return out

    def _fill_batches(self, messages: Messages, out: list[bytearray]) -> None:
        decoded = decode(messages)
        for place in places(decoded, RECORDS):
            body, span = out[place.message], slice(place.offset, place.offset + place.length)
            body[span] = filled(bytes(body[span]))

    def _failed(self, messages: Messages, rows: Ints, out: list[bytearray]) -> None:
        """What no reading takes keeps its header; a malformed one also structure, in which known IDs are mapped."""
        upto = headers(messages, rows)
        broken = np.flatnonzero(decode(messages.take(rows)).status >= Status.TRUNCATED) if len(rows) else rows
        if len(broken):
            understood, inside = structure(messages.take(rows[broken]))
            upto[broken] = np.maximum(upto[broken], understood)
            for message, offset, length in zip(*(column.tolist() for column in inside), strict=True):
                body = out[int(rows[broken[message]])]
                body[offset : offset + length] = bytes(len(body[offset : offset + length]))
        for i, header, end in zip(rows.tolist(), headers(messages, rows).tolist(), upto.tolist(), strict=True):
            body = out[i]
            body[header:] = READABLE.sub(lambda found: bytes(len(found[0])), bytes(body[header:end])).ljust(
                len(body) - header, b"\0"
            )
            self._client_id(messages, i, body)
            for old, new in self.names.ids.items():
                if old in body:
                    body[:] = body.replace(old, new)

    def _client_id(self, messages: Messages, i: int, body: bytearray) -> None:
        if messages.side[i] == REQUEST and not short_header(int(messages.key[i]), int(messages.version[i])):
            size = int.from_bytes(body[8:CLIENT_ID_AT], "big", signed=True)
            if 0 < size <= len(body) - CLIENT_ID_AT:
                span = slice(CLIENT_ID_AT, CLIENT_ID_AT + size)
                body[span] = self.text(bytes(body[span]))

    def text(self, content: bytes) -> bytes:
        return self.names.text(content) if any(content) else content

    def _map(self, body: bytearray, place: Place, name: tuple[int, int], side: int) -> None:
        slot = programs().slots[place.slot]
        span = slice(place.offset, place.offset + place.length)
        content = bytes(body[span])
        if not any(content):
            return
        if slot.kind == Kind.TEXT:
            new = self.names.text(content)
        elif slot.kind in {Kind.UUID, Kind.UUIDS}:
            new = self._ids(content)
        else:
            new = self._bytes(slot, content, name, side)
        assert len(new) == len(content)
        body[span] = new

    def _ids(self, content: bytes) -> bytes:
        parts = (content[at : at + UUID_BYTES] for at in range(0, len(content), UUID_BYTES))
        return b"".join(map(self.names.topic_id, parts))

    def _bytes(self, slot: Slot, content: bytes, of: tuple[int, int], side: int) -> bytes:
        name = _apis()[slot.number]
        new: bytes | None = None
        if name in CARRIED:
            new = self._carried(content, of, side)
        elif name == "Envelope.requestPrincipal":
            new = self._principal(content)
        elif name == "Envelope.clientHostAddress" and len(content) in {4, 16}:
            new = self.names.address(content)
        elif name in MEMBERS:
            new = self._of_member(name, content)
        elif name == "SaslAuthenticate.authBytes":
            new = self._login(content)
        elif slot.parent is not None and slot.parent.kind == Kind.UNKNOWN_TAG and len(content) == ID_BYTES:
            new = self.names.topic_id(content)
        if new is None:
            self.zeroed[name] += len(content)
            return bytes(len(content))
        return new

    def _of_member(self, name: str, content: bytes) -> bytes | None:
        """What the consumer protocol has; None where it is another one's."""
        read = group_protocol.subscription if name.lower().endswith("metadata") else group_protocol.assignment
        found = read(content)
        if found is None:
            return None
        new = bytearray(content)
        for offset, length in found.names:
            new[offset : offset + length] = self.text(content[offset : offset + length])
        for offset, length in found.content:
            new[offset : offset + length] = bytes(length)
        return bytes(new)

    def _login(self, content: bytes) -> bytes | None:
        """The user name; what followed it was redacted, and is filled in the form that a login has."""
        kept = content.rstrip(b"\0")
        scram = SCRAM[True].fullmatch(kept)
        found = scram or PLAIN[True].fullmatch(kept)
        if found is None:
            return None
        new = bytearray((kept + (b",r=" if scram else b"\0")).ljust(len(content), b"x")[: len(content)])
        for group in ("authorized", "name"):
            begin, end = found.span(group)
            if begin >= 0:
                new[begin:end] = self.text(content[begin:end])
        return bytes(new)

    def _principal(self, content: bytes) -> bytes | None:
        """KafkaPrincipalSerde's: version, type and name as compact texts, whether by a token, tags."""
        if content[:2] != b"\0\0":
            return None
        new, at = bytearray(content), 2
        for _ in range(2):
            size, at = _varint(content, at)
            end = at + size - 1
            if size < 1 or end > len(content):
                return None
            new[at:end] = self.text(content[at:end])
            at = end
        return bytes(new) if content[at:] in {b"\0\0", b"\1\0"} else None

    def _carried(self, content: bytes, of: tuple[int, int], side: int) -> bytes | None:
        """A forwarded message, by the rules of its own API."""
        if side == REQUEST:
            key, version = (int.from_bytes(content[at : at + 2], "big", signed=True) for at in (0, 2))
            self.forwarded[of] = key, version
        else:
            key, version = self.forwarded.pop(of, (-1, -1))
        if key == ENVELOPE:
            return None
        inner = pack([content], [side], [key], [version])
        if decode(inner).status[0] != Status.OK:
            return _ids_alone(content, side)
        return bytes(self.bodies(inner, np.full(1, -1, np.int64))[0])


def _ids_alone(content: bytes, side: int) -> bytes:
    kept = 4 if side == RESPONSE else 8
    return content[:kept] + bytes(max(0, len(content) - kept))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(data) and shift < 28:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at
    return 0, at


def readings(messages: Messages) -> Iterator[tuple[Ints, Decoded]]:
    """Every way in which messages are read: as released, as changed or drafted layouts, as brokers do."""
    decoded = decode(messages)
    yield np.arange(len(messages)), decoded
    rest = np.flatnonzero(decoded.status >= Status.TRUNCATED)
    if len(rest):
        again = read_as_any(messages.take(rest))
        yield rest, again
        rest = rest[again.status != Status.OK]
    if len(rest):
        part = messages.take(rest)
        yield rest, as_brokers(decode(part), EVERYTHING, np.arange(len(part)))


def laid_out_message(messages: Messages, i: int) -> bytearray:
    """As on the wire, zeros in its holes."""
    spans = slice(messages.span_at[i], messages.span_at[i + 1])
    holes = zip(messages.span_offset[spans].tolist(), messages.span_length[spans].tolist(), strict=True)
    kept = messages.data[messages.at[i] : messages.at[i + 1]]
    return bytearray(laid_out(kept.copy(), holes).data.tobytes())


NAMED, RECORDS = (Kind.TEXT, Kind.BYTES, Kind.UUID, Kind.UUIDS), (Kind.RECORDS,)


def places(decoded: Decoded, of: tuple[Kind, ...] = NAMED) -> Iterator[Place]:
    """Of all texts, IDs and bytes of messages that were read, or of their records."""
    kinds, count = _kinds(), len(programs().slots)
    single = np.flatnonzero(decoded.field < count)
    kind = kinds[decoded.field[single]]
    width = np.where(kind == Kind.UUID, UUID_BYTES, np.where(kind == Kind.UUIDS, UUID_BYTES, 1))
    length = np.where(kind == Kind.UUID, 1, decoded.length[single].astype(np.int64)) * width
    mapped = np.isin(kind, of) & (length > 0)
    tokens, length = single[mapped], length[mapped]
    value = decoded.value[tokens]
    yield from _placed(
        decoded, tokens, np.where(value < 0, -1 - value, value), length, decoded.field[tokens].astype(np.int64)
    )
    runs = np.flatnonzero(decoded.field >= count) if of is NAMED else tokens[:0]
    runs = runs[_runs_with_ids()[decoded.field[runs] - count]] if len(runs) else runs
    found = [each for token in runs.tolist() for each in _in_run(decoded, token)]
    if found:
        columns = np.array(found, np.int64).T
        yield from _placed(decoded, columns[0], columns[1], columns[2], columns[3])


def _placed(decoded: Decoded, tokens: Ints, place: Ints, length: Ints, slot: Ints) -> Iterator[Place]:
    message = np.searchsorted(decoded.token_at[1:], tokens, "right")
    offset = wire_offset(decoded.messages, message, place)
    yield from map(Place, message.tolist(), offset.tolist(), length.tolist(), slot.tolist())


def _in_run(decoded: Decoded, token: int) -> Iterator[tuple[int, int, int, int]]:
    """IDs in a run of fixed fields: token, place, length, slot. As nested.py walks it."""
    runs, slots, data = programs().runs, programs().slots, decoded.messages.data
    number = int(decoded.field[token]) - len(slots)
    stride, place = int(runs.stride[number]), int(decoded.value[token])
    for i in range(int(decoded.length[token])):
        for part in range(runs.at[number], runs.at[number + 1]):
            slot, op, offset = int(runs.slot[part]), int(runs.op[part]), int(runs.offset[part])
            kind = slots[slot].kind
            if stride >= 0 or op < instruction.FIXED:
                if kind == Kind.UUID:
                    yield token, place + i * stride + offset if stride >= 0 else place, UUID_BYTES, slot
                place += offset if stride < 0 else 0
                continue
            head = 4 if op == instruction.FIXED else 1
            length = int.from_bytes(data[place : place + head].tobytes()) - int(head == 1)
            if kind == Kind.UUIDS:
                yield token, place + head, length * UUID_BYTES, slot
            place += head + length * slots[slot].width
        place += max(0, -1 - stride)
