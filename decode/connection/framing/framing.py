"""Messages out of a stream whose boundaries are known.

A message is cut only when its last byte is accounted for, as seen, redacted or never seen; one whose header was not
seen is dropped. After SaslHandshake v0 come raw SASL tokens (KIP-43).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from wirecheck.decode.connection.connection import KAFKA, UNDECIDED
from wirecheck.decode.connection.framing import recognise
from wirecheck.decode.connection.framing.opening import confirmed_by_answer, on_opening
from wirecheck.decode.connection.framing.recognise import (
    int16,
    int32,
    mechanism,
    produce_acks,
    request_header,
    signs_in,
    taken_request,
)
from wirecheck.decode.connection.matching import (
    answers_request,
    on_request,
    on_response,
    on_token,
    token_is_due,
)
from wirecheck.decode.connection.stream.direction import GIVEN_UP, HEADER_UNSEEN, READABLE
from wirecheck.decode.connection.stream.frame import UNSET
from wirecheck.decode.connection.stream.modes import IN_SYNC, OPENING, SEARCHING
from wirecheck.decode.connection.waiting import ACKS_UNKNOWN, REQUEST, RESPONSE, Message

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Direction

RAW_TOKEN: Final = -2  # key of a frame that is no message
SASL_RAW: Final = 1  # connection.sasl where only tokens were seen
TOKEN_BYTES: Final = 1 << 20  # sasl.server.max.receive.size is 512 KiB by default
PEEK: Final = 64  # enough for size and header of most messages
PEEK_FAR: Final = 1024  # enough for client id, transactional id and acks
GSS_TOKENS: Final = 16  # of a client before its first request; Kerberos takes 3
RESCANS: Final = 256  # times a search may look again at bytes it had passed over
RESCAN_BYTES: Final = 16 << 10


def cut(shared: Shared, connection: Connection, direction: Direction) -> None:
    """Cut what a direction has; it stops at the first incomplete message or lost boundary."""
    while direction.mode in (IN_SYNC, OPENING) and direction.next_offset >= direction.need:
        if direction.message_end < 0:
            if not _on_head(shared, connection, direction):
                return
        elif direction.unsure and direction.drop_unsure():
            direction.lose_boundary()  # where the message ends is not known
        elif direction.next_offset < direction.message_end:
            direction.need = direction.message_end
            if direction.message_state == GIVEN_UP:
                direction.drop(direction.next_offset)
                direction.need = direction.next_offset + 1
            return
        else:
            _on_message(shared, connection, direction)


def _on_head(shared: Shared, connection: Connection, direction: Direction) -> bool:
    """Read size and header at the boundary; False: more bytes are needed, or the protocol is not decided."""
    at = direction.message_begin
    have = direction.next_offset - at
    if have < 4:
        direction.need = at + 4
        return False
    is_request = connection.carries_requests(direction)
    undecided = connection.protocol == UNDECIDED and direction.mode == OPENING and not is_request
    if undecided and not confirmed_by_answer(shared, connection, direction):
        return False
    data = direction.ordered.look(at, min(have, PEEK))
    if len(data) < 4:
        direction.lose_boundary()
        return True
    direction.message_state = READABLE
    if not is_request:
        return _response_head(connection, direction, data, shared.limits.message_bytes)
    if direction.mode == OPENING:
        return on_opening(shared, connection, direction)
    if connection.tokens_may_follow:
        return _token_or_request(shared, connection, direction, data)
    return _request_head(direction, data, shared.limits.message_bytes)


def _request_head(direction: Direction, data: bytes, largest: i64) -> bool:
    at = direction.message_begin
    size = int32(data, 0)
    if size < recognise.SHORTEST_REQUEST or size > largest:
        direction.lose_boundary()
        return True
    enough = min(size + 4, 14)
    if direction.next_offset - at < enough:
        direction.need = at + enough
        return False
    direction.message_end = at + 4 + size
    if len(data) < min(12, enough):
        direction.message_state = HEADER_UNSEEN
        return True
    direction.key, direction.version = int16(data, 4), int16(data, 6)
    direction.correlation = int32(data, 8)
    is_known = 0 <= direction.key <= recognise.HIGHEST_KEY and 0 <= direction.version <= recognise.HIGHEST_VERSION
    has_client = len(data) >= 14 and size >= 10 and size != 12
    if not is_known or (has_client and not -1 <= int16(data, 12) <= size - 10):
        direction.lose_boundary()
    return True


def _token_or_request(shared: Shared, connection: Connection, direction: Direction, data: bytes) -> bool:
    """After SaslHandshake v0 every frame is a raw token until one is a request again."""
    at, largest = direction.message_begin, shared.limits.message_bytes
    have = direction.next_offset - at
    size = int32(data, 0)
    if size < 0 or size > largest:
        direction.lose_boundary()
        return True
    data = direction.ordered.look(at, min(min(have, size + 4), PEEK_FAR))  # noqa: PLW3301 - mypyc compiles min of two
    if connection.protocol == KAFKA:
        verdict, length, _ = taken_request(shared.known, data, largest)
    else:
        verdict, length, _ = request_header(shared.known, data, largest)
    if verdict == recognise.WAIT and length <= size + 4 and have < length:
        direction.need = at + length
        return False
    if verdict == recognise.STRONG or (verdict > recognise.WAIT and connection.protocol == KAFKA):
        connection.tokens_may_follow = False
        connection.protocol = KAFKA
        return _request_head(direction, data, largest)
    if size > TOKEN_BYTES or (connection.protocol == UNDECIDED and direction.raw_frames >= GSS_TOKENS):
        direction.lose_boundary()
        return True
    direction.key = RAW_TOKEN
    direction.message_end = at + 4 + size
    return True


def _response_head(connection: Connection, direction: Direction, data: bytes, largest: i64) -> bool:
    at = direction.message_begin
    size, raw = int32(data, 0), token_is_due(connection)
    have = direction.next_offset - at
    if raw and size >= 4:
        if have < 8:
            direction.need = at + 8
            return False
        raw = len(data) < 8 or not answers_request(connection, int32(data, 4))
    if size < (0 if raw else 4) or size > largest:
        if at == 0 and direction.start_seen:
            connection.answered_in = recognise.another_protocol(data)
        direction.lose_boundary()
        return True
    direction.key = RAW_TOKEN if raw else 0
    if not raw and have < 8:
        direction.need = at + 8
        return False
    if direction.mode != IN_SYNC:
        direction.is_kafka()
    direction.message_end = at + 4 + size
    direction.message_state = HEADER_UNSEEN if len(data) < 8 and not raw else READABLE
    direction.correlation = int32(data, 4) if len(data) >= 8 else 0
    return True


def _on_message(shared: Shared, connection: Connection, direction: Direction) -> None:
    """The message that ends at `message_end` is all there."""
    begin, end = direction.message_begin, direction.message_end
    is_request = connection.carries_requests(direction)
    useful = direction.message_state == READABLE and direction.key != RAW_TOKEN
    due = True
    flags: i64 = 0
    if useful and is_request:
        data = direction.ordered.look(begin, min(end - begin, PEEK_FAR))
        due, flags = _look_into_request(shared, connection, direction, data)
    if direction.message_state == GIVEN_UP:
        direction.drop(end)
    first = direction.ordered.detach(end)
    direction.message_begin = end
    direction.message_end = -1
    direction.need = end + 4
    if not useful or first is None:
        if direction.key == RAW_TOKEN and direction.message_state == READABLE:
            direction.raw_frames += 1
            connection.sasl = max(connection.sasl, SASL_RAW)
            on_token(shared, connection, is_request)
        return
    direction.messages += 1
    if is_request:
        message = Message(REQUEST, direction.key, direction.version, direction.correlation)
        message.lie_in(first, begin, end)
        message.flags = flags
        _is_read(connection, direction, message)
        on_request(shared, connection, message, due)
        _look_again(connection.other(direction))
    else:
        message = Message(RESPONSE, -1, -1, direction.correlation)
        message.lie_in(first, begin, end)
        _is_read(connection, direction, message)
        on_response(shared, connection, message)


def _is_read(connection: Connection, direction: Direction, message: Message) -> None:
    """Where the last gap ends in this message, or just before it, no other message is lost behind that."""
    gap_end = direction.gap_end
    if gap_end == UNSET or message.offset + 4 + message.size < gap_end:
        return
    if message.offset < gap_end:
        connection.end_gaps(direction, message.ts_last_ns)
    elif message.offset == gap_end:
        connection.end_gaps(direction, min(message.ts_ns, direction.gap_sent_ns))
    else:
        connection.end_gaps(direction, message.ts_ns)


def _look_into_request(shared: Shared, connection: Connection, direction: Direction, data: bytes) -> tuple[bool, i64]:
    """(whether a response is due, flags): what the connection learns from a request that begins so."""
    key = direction.key
    verdict, header, client = taken_request(shared.known, data, shared.limits.message_bytes)
    if direction.correlation < recognise.RESERVED:  # signing in again takes ids from elsewhere (KIP-368)
        direction.last_correlation = direction.correlation
    if verdict <= recognise.WAIT:
        return True, (ACKS_UNKNOWN if key == recognise.PRODUCE else 0)
    renamed = direction.client_hash >= 0 and direction.messages >= recognise.KNOWN_BY and verdict == recognise.DOUBT
    unnamed = direction.client_hash < 0 and client != recognise.NULL_CLIENT  # it may end as it signs in
    signs = signs_in(key, direction.correlation, client) and not unnamed
    if client != recognise.NO_CLIENT and not signs and not renamed:
        direction.client_hash = client  # not one that only overwritten bytes name: the others are found by it
    if key == recognise.PRODUCE:
        acks, _ = produce_acks(shared.known, data, header)
        return acks != 0, (ACKS_UNKNOWN if acks == recognise.NOT_SEEN else 0)
    if key == recognise.SASL_HANDSHAKE:
        connection.sasl = mechanism(data[header:])
        connection.tokens_may_follow = direction.version == 0
    return True, 0


def _look_again(answers: Direction) -> None:
    """A new request makes bytes of a searched response stream worth another look."""
    if answers.mode == SEARCHING and answers.rescans < RESCANS:
        answers.rescans += 1
        again = max(answers.ordered.begin, answers.next_offset - RESCAN_BYTES)
        answers.scanned = min(answers.scanned, again)
