"""Is this Kafka? What the first bytes of a message say, and how sure that makes us.

Knows: request headers of every released API (key, version, client id; KIP-482 tags), where Produce keeps its acks, what
ZooKeeper and TLS look like instead, names of SASL mechanisms.
Refuses to know: where the bytes come from, and everything behind the first fields of a body.
Rule: NO is said only for what no Kafka server takes; doubt is WEAK or, of what no client we know sends, DOUBT, and then
somebody else has to confirm it: the server's answer, the next request, or that the connection is known as Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from wirecheck.decode.connection.state.slots import KNOWN, KNOWN_KEYS

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Bytes, Ints

from wirecheck.decode.wire import NEVER_FLEXIBLE

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Bytes, Ints

NO, WAIT, WEAK, STRONG, DOUBT = 0, 1, 2, 3, 4
PRODUCE, FETCH, METADATA, CONTROLLED_SHUTDOWN, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 0, 1, 3, 7, 17, 18, 36
NOT_SEEN = -100  # acks that could not be read
CLIENT_ID_LIMIT = 255  # broker quotas and metrics make longer ids impractical; librdkafka and Java send tens of bytes
FEW_TAGS = 8  # no client sends a tagged field in a header yet
HIGHEST_KEY, HIGHEST_VERSION = 20_000, 200  # far above any fork's; an unknown API is undecoded, not noise
RESERVED = (1 << 31) - 8  # SaslClientAuthenticator.MIN_RESERVED_CORRELATION_ID: a client that signs in, also again
SHORTEST_REQUEST = 8  # key, version, correlation id
NO_CLIENT = -1
PLAIN, SCRAM_256, SCRAM_512, GSSAPI, OAUTHBEARER, OTHER_MECHANISM = 2, 3, 4, 5, 6, 7
MECHANISMS = (None, "raw", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", "other")


@njit
def int16(b: Bytes, i: int) -> Any:
    value = (np.int64(b[i]) << 8) | np.int64(b[i + 1])
    return value - 0x10000 if value >= 0x8000 else value


@njit
def int32(b: Bytes, i: int) -> Any:
    value = (np.int64(b[i]) << 24) | (np.int64(b[i + 1]) << 16) | (np.int64(b[i + 2]) << 8) | np.int64(b[i + 3])
    return value - 0x100000000 if value >= 0x80000000 else value


@njit
def request_header(known: Ints, b: Bytes, i: int, n: int, largest: int) -> Any:
    """(NO, WAIT for more, WEAK or STRONG, length of size and header, hash of client id) of a request at b[i:n]."""
    have = n - i
    if have < 12:
        return WAIT, 12, NO_CLIENT
    size, key, version = int32(b, i), int16(b, i + 4), int16(b, i + 6)
    if size < SHORTEST_REQUEST or size > largest or key < 0 or key >= known[KNOWN_KEYS]:
        return NO, 0, NO_CLIENT
    if version < known[KNOWN + 3 * key] or version > known[KNOWN + 3 * key + 1]:
        return NO, 0, NO_CLIENT
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return (WEAK if size == 12 else NO), 12, NO_CLIENT
    if have < 14:
        return WAIT, 14, NO_CLIENT
    client = int16(b, i + 12)
    if client < -1 or client > min(CLIENT_ID_LIMIT, size - 10):
        return NO, 0, NO_CLIENT
    length = 14 + max(client, 0)
    hashed = np.int64(client + 7)
    for k in range(i + 14, min(i + length, n)):
        if b[k] < 0x20 or b[k] == 0x7F:
            return NO, 0, NO_CLIENT
        hashed = (hashed * 1000003 + np.int64(b[k])) & 0x3FFFFFFFFFF  # times 1000003 still an int64
    if version >= known[KNOWN + 3 * key + 2] and known[KNOWN + 3 * key + 2] != NEVER_FLEXIBLE:
        if length + 1 > size + 4:
            return NO, 0, NO_CLIENT
        if have > length and b[i + length] > FEW_TAGS:
            return NO, 0, NO_CLIENT
        length = length + 1 if have <= length or b[i + length] == 0 else _tags_end(b, i + length, n) - i
    if have < length:
        return WAIT, length, NO_CLIENT
    return (STRONG if client > 0 else WEAK), length, hashed


@njit
def taken_request(known: Ints, b: Bytes, i: int, n: int, largest: int) -> Any:
    """Like request_header, and DOUBT for what a server takes although no client we know sends it: any bytes in a client
    id, a long one, many tags, ApiVersions of a version that is still to come (KIP-511). A length may lie behind n.
    """
    verdict, length, hashed = request_header(known, b, i, n, largest)
    if verdict != NO:
        return verdict, length, hashed
    size, key, version = int32(b, i), int16(b, i + 4), int16(b, i + 6)
    if size < SHORTEST_REQUEST or size > largest or key < 0 or key >= known[KNOWN_KEYS]:
        return NO, 0, NO_CLIENT
    newest = HIGHEST_VERSION if key == API_VERSIONS else known[KNOWN + 3 * key + 1]
    if version < known[KNOWN + 3 * key] or version > newest or (key == CONTROLLED_SHUTDOWN and version == 0):
        return NO, 0, NO_CLIENT
    if n - i < 14:
        return WAIT, 14, NO_CLIENT
    client = int16(b, i + 12)
    if client < -1 or client > size - 10:
        return NO, 0, NO_CLIENT
    told = 14 + min(max(client, 0), CLIENT_ID_LIMIT)
    if n - i < told:
        return WAIT, told, NO_CLIENT
    hashed = np.int64(client + 7)
    for k in range(i + 14, i + told):
        hashed = (hashed * 1000003 + np.int64(b[k])) & 0x3FFFFFFFFFF
    length = np.int64(14 + max(client, 0))
    if version >= known[KNOWN + 3 * key + 2] and known[KNOWN + 3 * key + 2] != NEVER_FLEXIBLE:
        length = _tags_end(b, i + length, n) - i
    return DOUBT, length, hashed


@njit
def _tags_end(b: Bytes, at: int, n: int) -> Any:
    """Behind the tagged fields that begin here (KIP-482); n + 1 if they are not all there."""
    count, at = _uvarint(b, at, n)
    while count > 0 and at <= n:
        _, at = _uvarint(b, at, n)
        length, at = _uvarint(b, at, n)
        at += length
        count -= 1
    return min(at, n + 1)


@njit
def _uvarint(b: Bytes, at: int, n: int) -> Any:
    """(value, offset behind it); n + 1 if it is not all there, or longer than Kafka's."""
    value, shift = np.int64(0), 0
    while at < n and shift < 35:
        byte = np.int64(b[at])
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, np.int64(at)
    return np.int64(0), np.int64(n + 1)


@njit
def produce_acks(known: Ints, b: Bytes, i: int, n: int, header: int) -> Any:
    """(acks, topics) of a Produce request at b[i:n] with this header length; NOT_SEEN where bytes are missing."""
    version = int16(b, i + 6)
    flexible = version >= known[KNOWN + 3 * PRODUCE + 2]
    at = i + header
    if version >= 3:
        at, good = _string_end(b, at, n, flexible)
        if not good:
            return NOT_SEEN, NOT_SEEN
    if n - at < 2:
        return NOT_SEEN, NOT_SEEN
    acks = int16(b, at)
    if n - at < 10 or int32(b, at + 2) < 0:
        return acks, (NOT_SEEN if n - at < 10 else -1)
    return acks, (np.int64(b[at + 6]) - 1 if flexible and b[at + 6] < 0x80 else (1 if flexible else int32(b, at + 6)))


@njit
def _string_end(b: Bytes, at: int, n: int, flexible: bool) -> Any:
    """(offset behind a nullable string, whether it is there)."""
    if not flexible:
        if n - at < 2:
            return at, False
        return at + 2 + max(int16(b, at), 0), True
    length, shift = np.int64(0), 0
    while at < n and shift < 28:
        byte = np.int64(b[at])
        at += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return at + (length - 1 if length else 0), True
    return at, False


@njit
def opening_request(known: Ints, b: Bytes, n: int, largest: int) -> Any:
    """Like request_header, for the first bytes of a connection: what follows the header decides WEAK cases."""
    verdict, length, client = taken_request(known, b, 0, n, largest)
    if verdict in (NO, WAIT):
        return verdict, length, client
    key, size = int16(b, 4), int32(b, 0)
    if key == PRODUCE:
        acks, topics = produce_acks(known, b, 0, n, length)
        if acks == NOT_SEEN:
            return (NO if verdict == WEAK else verdict), length, client
        believable = acks in (-1, 0, 1) and (topics == NOT_SEEN or 1 <= topics <= size)
        return (NO if not believable else DOUBT if verdict == DOUBT else STRONG), length, client
    if verdict == DOUBT:
        return DOUBT, length, client
    if verdict == STRONG or key in (METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE, CONTROLLED_SHUTDOWN):
        return STRONG, length, client
    return WEAK, length, client


@njit
def tls_record(b: Bytes, i: int, n: int) -> Any:
    """A TLS record header (RFC 8446 5.1): alert, handshake, data; version 3.0 to 3.4; at most 2^14 + 2048 bytes."""
    if n - i < 5 or not (20 <= b[i] <= 23) or b[i + 1] != 3 or b[i + 2] > 4:
        return False
    return 0 < ((np.int64(b[i + 3]) << 8) | np.int64(b[i + 4])) <= (1 << 14) + 2048


@njit
def gss_token(b: Bytes, size: int) -> Any:
    """A first GSS-API token (RFC 2743 3.1) behind its size: what brokers of 0.9 are sent before any request."""
    length = np.int64(b[5])
    if length == 0x81 or length == 0x82:  # noqa: PLR1714 - numba
        return b[4] == 0x60 and 0 < size <= 1 << 20
    return b[4] == 0x60 and length < 0x80 and size == length + 2


@njit
def mechanism(b: Bytes, n: int, header: int) -> Any:
    """Which SASL mechanism a SaslHandshake request at b[:n] asks for."""
    if n < header + 3:
        return OTHER_MECHANISM
    length, first = int16(b, header), b[header + 2]
    if length > n - header - 2:
        return OTHER_MECHANISM
    if first == 0x50 and length == 5:
        return PLAIN
    if first == 0x53 and length == 13:
        return SCRAM_256 if b[header + 12] == 0x32 else SCRAM_512
    if first == 0x47 and length == 6:
        return GSSAPI
    return OAUTHBEARER if first == 0x4F and length == 11 else OTHER_MECHANISM
