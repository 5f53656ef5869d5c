"""Whether bytes begin a Kafka request, and how certain that is.

NO means that no Kafka server accepts it. WEAK and DOUBT (no known client sends it) must be confirmed by the server's
answer, the next request, or because the connection is known as Kafka.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i16_be, read_i32_be
from librt.vecs import vec
from mypy_extensions import i64

NO: Final = 0
WAIT: Final = 1
WEAK: Final = 2
STRONG: Final = 3
DOUBT: Final = 4
PRODUCE: Final = 0
METADATA: Final = 3
CONTROLLED_SHUTDOWN: Final = 7
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36
NOT_SEEN: Final = -100  # acks that could not be read
CLIENT_ID_LIMIT: Final = 255  # broker quotas and metrics make longer ids impractical; clients send tens of bytes
HEADER_LIMIT: Final = 1024  # bytes with size, client id and tags: as far as a first request is looked at (opening.py)
FEW_TAGS: Final = 8  # no client sends a tagged field in a header yet
HIGHEST_KEY: Final = 20_000  # far above any fork's; an unknown API is undecoded, not noise
HIGHEST_VERSION: Final = 200
RESERVED: Final = (
    1 << 31
) - 8  # SaslClientAuthenticator.MIN_RESERVED_CORRELATION_ID: a client that signs in, also again
SHORTEST_REQUEST: Final = 8  # key, version, correlation id
SIGNING_IN: Final = (SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE)  # before a client's own requests, and again
KNOWN_BY: Final = 4  # requests that make sure whose connection it is: a client's first ones may not name it yet
NO_CLIENT: Final = -1
NULL_CLIENT: Final = 6  # hash of a client id that is null
NEVER_FLEXIBLE: Final = 1 << 14  # as in decode/wire.py
PLAIN: Final = 2
SCRAM_256: Final = 3
SCRAM_512: Final = 4
GSSAPI: Final = 5
OAUTHBEARER: Final = 6
OTHER_MECHANISM: Final = 7
NEITHER: Final = 0  # another_protocol, places in connection.ANSWERED_IN
HTTP: Final = 1
TLS_RECORD: Final = 2
SSH: Final = 3
MECHANISMS: Final = (None, "raw", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", "other")


@final
class Known:
    """Which request headers Kafka's releases ever sent: lowest, highest and first flexible version by key; and the
    version that a draft changed (`wire.known`).
    """

    def __init__(self, lowest: list[int], highest: list[int], flexible: list[int], drafted: list[int]) -> None:
        self.keys: i64 = len(lowest)
        self.lowest: vec[i64] = vec[i64](lowest)
        self.highest: vec[i64] = vec[i64](highest)
        self.flexible: vec[i64] = vec[i64](flexible)
        self.drafted: vec[i64] = vec[i64](drafted)

    def is_flexible(self, key: i64, version: i64) -> bool:
        first = self.flexible[key]
        return version >= first != NEVER_FLEXIBLE


def int16(data: bytes, at: i64) -> i64:
    return i64(read_i16_be(data, at))


def int32(data: bytes, at: i64) -> i64:
    return i64(read_i32_be(data, at))


def request_header(known: Known, data: bytes, largest: i64) -> tuple[i64, i64, i64]:
    """(NO, WAIT for more, WEAK or STRONG, length of size and header, hash of client id) of a request that these bytes
    begin.
    """
    return _header(known, data, largest, strict=True)


def taken_request(known: Known, data: bytes, largest: i64) -> tuple[i64, i64, i64]:
    """Like request_header, and DOUBT for what a server takes although no client we know sends it: any bytes in a client
    id, a long one, many tags, ApiVersions of a version still to come (KIP-511). A length may lie behind the end.
    """
    return _header(known, data, largest, strict=False)


def _header(known: Known, data: bytes, largest: i64, *, strict: bool) -> tuple[i64, i64, i64]:
    have = i64(len(data))
    if have < 12:
        return WAIT, 12, NO_CLIENT
    size, key, version = int32(data, 0), int16(data, 4), int16(data, 6)
    if size < SHORTEST_REQUEST or size > largest or key < 0 or key >= known.keys:
        return NO, 0, NO_CLIENT
    newest: i64 = HIGHEST_VERSION if key == API_VERSIONS else known.highest[key]
    if version < known.lowest[key] or version > newest:
        return NO, 0, NO_CLIENT
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return (WEAK if size == 12 else NO), 12, NO_CLIENT
    doubtful = version > known.highest[key]
    if doubtful and strict:
        return NO, 0, NO_CLIENT
    if have < 14:
        return WAIT, 14, NO_CLIENT
    client = int16(data, 12)
    if client < -1 or client > size - 10:
        return NO, 0, NO_CLIENT
    named: i64 = 14 + min(max(client, 0), CLIENT_ID_LIMIT)
    hashed, printable = hash_of_client(data[14:named], client)
    doubtful = doubtful or client > CLIENT_ID_LIMIT or not printable
    length: i64 = 14 + max(client, 0)
    if known.is_flexible(key, version):
        tags: i64 = 0 if have <= length else i64(data[length])
        behind: i64 = length + 1 if have <= length or tags == 0 else _tags_end(data, length)
        doubtful = doubtful or tags > FEW_TAGS or behind > min(size + 4, HEADER_LIMIT)
        length = _tags_end(data, length) if doubtful else behind
    if doubtful and strict:
        return NO, 0, NO_CLIENT
    enough = named if doubtful else length
    if have < enough:
        return WAIT, enough, NO_CLIENT
    return (DOUBT if doubtful else STRONG if client > 0 else WEAK), length, hashed


def signs_in(key: i64, correlation: i64, client: i64) -> bool:
    """Whether a request of this client hash is an authenticator's, which need not bear the client's name: brokers sign
    in to each other without a client ID, and name the fetcher in every other request.
    """
    return key in SIGNING_IN and (correlation >= RESERVED or client == NULL_CLIENT)


def hash_of_client(name: bytes, length: i64) -> tuple[i64, bool]:
    """(hash of a client id of this length that begins so, whether none of its bytes is a control character)."""
    hashed: i64 = length + 7
    printable = True
    for k in range(i64(len(name))):
        byte = i64(name[k])
        if byte < 0x20 or byte == 0x7F:
            printable = False
        hashed = (hashed * 1000003 + byte) & 0x3FFFFFFFFFF  # times 1000003 still an int64
    return hashed, printable


def _tags_end(data: bytes, at: i64) -> i64:
    """Behind the tagged fields that begin here (KIP-482); one behind the data if they are not all there."""
    end = i64(len(data))
    count, at = _uvarint(data, at)
    while count > 0 and at <= end:
        _, at = _uvarint(data, at)
        length, at = _uvarint(data, at)
        at += length
        count -= 1
    return min(at, end + 1)


def _uvarint(data: bytes, at: i64) -> tuple[i64, i64]:
    """(value, offset behind it); one behind the data if it is not all there, or longer than Kafka's."""
    end = i64(len(data))
    value: i64 = 0
    shift: i64 = 0
    while at < end and shift < 35:
        byte = i64(data[at])
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
    return 0, end + 1


def produce_acks(known: Known, data: bytes, header: i64) -> tuple[i64, i64]:
    """(acks, topics) of the Produce request that the data begins, with this header length; NOT_SEEN where bytes are
    missing.
    """
    version, at, end = int16(data, 6), header, i64(len(data))
    flexible = version >= known.flexible[PRODUCE]
    if version >= 3:
        at = _string_end(data, at, flexible)
    if at < 0 or end - at < 2:
        return NOT_SEEN, NOT_SEEN
    acks = int16(data, at)
    if end - at < 10 or int32(data, at + 2) < 0:
        return acks, (NOT_SEEN if end - at < 10 else -1)
    if not flexible:
        return acks, int32(data, at + 6)
    topics = i64(data[at + 6])
    return acks, (topics - 1 if topics < 0x80 else 1)


def _string_end(data: bytes, at: i64, flexible: bool) -> i64:
    """Behind a nullable string; -1 if its length is not there."""
    if not flexible:
        return -1 if i64(len(data)) - at < 2 else at + 2 + max(int16(data, at), 0)
    length, behind = _uvarint(data, at)
    return -1 if behind > i64(len(data)) else behind + max(length - 1, 0)


def opening_request(known: Known, data: bytes, largest: i64) -> tuple[i64, i64, i64]:
    """Like request_header, for the first bytes of a connection: what follows the header decides WEAK cases."""
    verdict, length, client = taken_request(known, data, largest)
    if verdict in (NO, WAIT):
        return verdict, length, client
    key, size = int16(data, 4), int32(data, 0)
    if key == PRODUCE:
        acks, topics = produce_acks(known, data, length)
        if acks == NOT_SEEN:
            return (NO if verdict == WEAK else verdict), length, client
        believable = -1 <= acks <= 1 and (topics == NOT_SEEN or 1 <= topics <= size)
        return (NO if not believable else DOUBT if verdict == DOUBT else STRONG), length, client
    if verdict == DOUBT:
        return DOUBT, length, client
    if verdict == STRONG or key in (METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE, CONTROLLED_SHUTDOWN):
        return STRONG, length, client
    return WEAK, length, client


def may_be_inline(known: Known, data: bytes) -> bool:
    """Whether a doubted request is one of a draft's inline form, which has no tag section behind its client ID: of the
    version that the draft changed, with a client ID such as clients have.
    """
    key, client = int16(data, 4), int16(data, 12)
    if int16(data, 6) != known.drafted[key] or client < 1 or client > CLIENT_ID_LIMIT:
        return False
    return hash_of_client(data[14 : 14 + client], client)[1]


def another_protocol(data: bytes) -> i64:
    """What a server's first bytes are that are not Kafka's, where they say it. What has no version, HTTP servers answer
    with a page alone (RFC 1945, 6).
    """
    if data.startswith(b"HTTP") or data[:5].lower() in (b"<!doc", b"<html"):
        return HTTP
    if data.startswith(b"SSH-"):
        return SSH
    return TLS_RECORD if tls_record(data[:5]) else NEITHER


def tls_record(data: bytes) -> bool:
    """A TLS record header (RFC 8446 5.1): alert, handshake, data; version 3.0 to 3.4; at most 2^14 + 2048 bytes."""
    if len(data) < 5 or not 20 <= i64(data[0]) <= 23 or i64(data[1]) != 3 or i64(data[2]) > 4:
        return False
    return 0 < (i64(data[3]) << 8 | i64(data[4])) <= (1 << 14) + 2048


def gss_token(data: bytes) -> bool:
    """A first GSS-API token (RFC 2743 3.1) behind its size: what brokers of 0.9 are sent before any request."""
    size, length = int32(data, 0), i64(data[5])
    if i64(data[4]) != 0x60:
        return False
    if length in (0x81, 0x82):
        return 0 < size <= 1 << 20
    return length < 0x80 and size == length + 2


def mechanism(body: bytes) -> i64:
    """Which SASL mechanism a SaslHandshake request with this body asks for."""
    if len(body) < 3:
        return OTHER_MECHANISM
    length = int16(body, 0)
    first = i64(body[2])
    if length > i64(len(body)) - 2:
        return OTHER_MECHANISM
    if first == 0x50 and length == 5:
        return PLAIN
    if first == 0x53 and length == 13:
        return SCRAM_256 if i64(body[12]) == 0x32 else SCRAM_512
    if first == 0x47 and length == 6:
        return GSSAPI
    return OAUTHBEARER if first == 0x4F and length == 11 else OTHER_MECHANISM
