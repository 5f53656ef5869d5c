"""The follower's memory: rows of integers, so that jitted code can read, grow and store it as it is.

Knows: which column of which array holds what, how arrays grow, and how many rows are in use.
Refuses to know what the numbers lead to: stream.py, cutting.py, resync.py, pairing.py and walk.py decide.
Rule: nothing about a connection lives anywhere else (names and endpoints aside); a new fact is a new column here, and
STATE_VERSION in checkpoint.py goes up with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
UNSET = -(1 << 62)  # a position or a time that is not known

# --- limits, in the order of Limits' fields
L_SLACK_FRAMES, L_SLACK_NS, L_HOLE_NS, L_HELD_BYTES, L_HELD_PIECES, L_SEARCH_BYTES, L_SEARCH_PIECES = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
)
L_GIVE_UP_BYTES, L_MESSAGE_BYTES, L_WAITING, L_WAITING_BYTES, L_IDLE_NS, L_LINGER_NS, L_CONNECTIONS = (
    7,
    8,
    9,
    10,
    11,
    12,
    13,
)

# --- the whole: pools (first free row, rows ever used, rows in use) and counters of this call's output
G_PIECE_FREE, G_PIECE_TOP, G_PIECE_USED, G_WAIT_FREE, G_WAIT_TOP, G_WAIT_USED = 0, 1, 2, 3, 4, 5
G_CONN_FREE, G_CONN_TOP, G_CONN_USED = 6, 7, 8
G_MESSAGES, G_PARTS, G_SPANS, G_EXCHANGES, G_GAPS, G_TOUCHED = 9, 10, 11, 12, 13, 14
G_ARENA, G_ARENA_LIVE, G_CALL, G_REFUSED, G_NEED = 15, 16, 17, 18, 19
G_COUNT = 20

# --- a piece of a stream, link of a list
P_NEXT = 0
P_AT = 1  # offset in its direction
P_LENGTH = 2
P_KIND = 3
P_ADDRESS = 4  # of its bytes: >= 0 in this call's payload, < 0 the byte -1 - address of the arena
P_TS = 5
P_TS_LAST = 6
P_FRAME = 7
P_FRAME_LAST = 8
P_SOURCE = 9
P_COUNT = 10
DATA, LEFT, GAP = 0, 1, 2  # kinds: bytes we have, bytes left out by whoever captured, bytes never seen

# --- one direction of a connection
W_OPEN = 0  # CLOSED: nothing seen; HELD: first bytes seen, their predecessors may follow; RUNNING
W_BASE = 1  # sequence number of offset 0
W_NEXT = 2  # offset of the next byte in order
W_TOP = 3  # end of the newest byte seen
W_ACKED = 4  # what the peer acknowledged: newest, and as it was some time and some frames ago
W_ACKED_MID_TIME = 5
W_ACKED_OLD_TIME = 6
W_ACKED_MID_FRAMES = 7
W_ACKED_OLD_FRAMES = 8
W_FIN = 9  # offset of FIN
W_HELD = 10  # list of pieces out of order
W_HELD_TAIL = 11
W_HELD_COUNT = 12
W_HELD_BYTES = 13
W_HEAD = 14  # list of pieces in order, not yet cut
W_TAIL = 15
W_PIECES = 16
W_FROM = 17  # offset of the first of them
W_KEPT = 18  # their bytes of kind DATA
W_SETTLED = 19  # last piece of the list known to lie in the arena
W_MODE = 20
W_NEED = 21  # offset below which cutting has nothing to do
W_AT = 22  # where the current message begins
W_END = 23  # where it ends, -1 unknown
W_LOST = 24  # 1: its header was not seen
W_KEY = 25
W_VERSION = 26
W_CORRELATION = 27
W_LAST_CORRELATION = 28
W_CLIENT = 29  # hash of the client id, -1 unknown
W_SCAN = 30  # searched up to here
W_CANDIDATES = 31
W_SYN = 32  # 1: the beginning is known
W_FRAMES = 33
W_BYTES = 34
W_UNSEEN = 35
W_SKIPPED = 36
W_CONFLICTING = 37
W_MESSAGES = 38
W_RAW = 39
W_RESCANS = 40
W_CANDIDATE = 41  # CANDIDATES times (begin, end, correlation id, hash of client id)
CANDIDATES = 8
W_COUNT = W_CANDIDATE + 4 * CANDIDATES
CLOSED, HELD, RUNNING = 0, 1, 2  # W_OPEN
START, SYNC, SEARCH, OFF = 0, 1, 2, 3  # W_MODE

# --- a connection; its directions are rows 2c (from the lower endpoint) and 2c + 1
C_STATE = 0
C_PAIR = 1  # of this call
C_CLIENT = 2  # which direction carries requests, -1 unknown
C_ROLE_BY = 3
C_PROTOCOL = 4
C_SASL = 5
C_RAW = 6  # 1: SaslHandshake v0 was seen, raw tokens may follow
C_STARTED = 7
C_LAST = 8
C_TICK = 9  # frames seen
C_MARK = 10  # tick at which acknowledgements were remembered
C_GRID = 11  # capture time / half slack at which they were
C_DEADLINE = 12
C_CLOSED_BY = 13
C_CLOSE_NS = 14
C_ASKED = 15  # requests without response: list, tail, count
C_ASKED_TAIL = 16
C_ASKED_COUNT = 17
C_ANSWERS = 18  # responses without request: list, tail, count
C_ANSWERS_TAIL = 19
C_ANSWERS_COUNT = 20
C_WAITING_BYTES = 21
C_OUT_OF_ORDER = 22
C_TOUCHED = 23  # call in which it was last touched
C_TLS = 24  # segments that look like a TLS record
C_PAYLOADS = 25  # segments with payload
C_RESYNCHRONISED = 26
C_LIMITS = 27
C_DUE = 28  # when a connection that is closing is finished
C_BORN = 29  # call in which it was created
C_NEXT = 30  # next free row
C_SEARCHED = 31
C_AGENT = 32
C_COUNT = 33
FREE, LIVE, GONE, RELEASED = (
    0,
    1,
    2,
    3,
)  # C_STATE: GONE is over and remembered, RELEASED given back after the call
BY_NOTHING, BY_SYN, BY_CONTENT, BY_PORT = 0, 1, 2, 3
UNDECIDED, KAFKA, TLS, OTHER = 0, 1, 2, 3
SASL_NONE, SASL_RAW = 0, 1
CLIENT_FIN, SERVER_FIN, CLIENT_RST, SERVER_RST = 1, 2, 3, 4

# --- a message that waits: a request for its response, or the other way round
Q_NEXT = 0
Q_KEY = 1
Q_VERSION = 2
Q_CORRELATION = 3
Q_SIZE = 4
Q_PIECES = 5  # list; its first byte is that after the size
Q_AT = 6  # offset of the size in its direction
Q_TS = 7
Q_TS_LAST = 8
Q_FRAME = 9
Q_FRAME_LAST = 10
Q_SOURCE = 11
Q_FLAGS = 12
Q_MARK = 13  # bytes the answering direction had lost when the request was complete
Q_SETTLED = 14
Q_GAP = 15  # bytes of it that were never seen
Q_SIDE = 16
Q_COUNT = 17
F_RAW, F_ACKS_UNKNOWN = 1, 2

# --- output of a call
M_CONNECTION, M_SIDE, M_KEY, M_VERSION, M_CORRELATION, M_SIZE, M_TS, M_TS_LAST = 0, 1, 2, 3, 4, 5, 6, 7
M_SOURCE, M_FRAME, M_FRAME_LAST, M_AT, M_PARTS, M_SPANS, M_GAP = 8, 9, 10, 11, 12, 13, 14
M_COUNT = 15
E_REQUEST, E_RESPONSE, E_OUTCOME, E_OUT_OF_ORDER = 0, 1, 2, 3
E_COUNT = 4
H_CONNECTION, H_TS, H_DIRECTION, H_BYTES = 0, 1, 2, 3
H_COUNT = 4
ANSWERED, NO_RESPONSE_DUE, REQUEST_UNSEEN, RESPONSE_UNSEEN = 0, 1, 2, 3
CLOSED_BY_SERVER, CLOSED_BY_CLIENT, PENDING, ORPHAN = 4, 5, 6, 7


class Memory(NamedTuple):
    """State (first five), what this call reads, what it writes."""

    whole: Ints
    connection: Ints
    way: Ints
    piece: Ints
    wait: Ints
    arena: NDArray[np.uint8]
    payload: NDArray[np.uint8]
    limit: Ints
    known: NDArray[np.int16]
    scratch: NDArray[np.uint8]
    message: Ints
    part: Ints
    span: Ints
    exchange: Ints
    gap: Ints
    touched: Ints


class Frames(NamedTuple):
    """This call's segments, with their connection's index in `slot` and their direction in it."""

    pair: NDArray[np.int32]
    bit: NDArray[np.int8]
    slot: Ints
    ts_ns: Ints
    frame_no: Ints
    source: NDArray[np.int32]
    agent: NDArray[np.int32]
    seq: Ints
    ack: Ints
    flags: NDArray[np.int32]
    wire: Ints
    at: Ints
    left_at: Ints
    left_offset: Ints
    left_length: Ints


def empty(limit: Ints, known: NDArray[np.int16]) -> Memory:
    whole = np.zeros(G_COUNT, np.int64)
    whole[[G_PIECE_FREE, G_WAIT_FREE, G_CONN_FREE]] = -1
    return Memory(
        whole, _rows(16, C_COUNT), _rows(32, W_COUNT), _rows(256, P_COUNT), _rows(64, Q_COUNT),
        np.zeros(1 << 12, np.uint8), np.zeros(0, np.uint8), limit, known, np.zeros(1 << 12, np.uint8),
        _rows(64, M_COUNT), _rows(256, 2), _rows(256, 2), _rows(64, E_COUNT), _rows(64, H_COUNT),
        np.zeros(16, np.int64),
    )  # fmt: skip


def _rows(count: int, width: int) -> Ints:
    return np.zeros((count, width), np.int64)


def grown(array: NDArray[Any], used: int, free: int) -> NDArray[Any]:
    """The array with at least `free` rows after `used`; at least doubled when it has to move."""
    if len(array) - used >= free:
        return array
    shape = (max(2 * len(array), used + free), *array.shape[1:])
    bigger = np.zeros(shape, array.dtype)
    bigger[:used] = array[:used]
    return bigger
