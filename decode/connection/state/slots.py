"""The follower's memory: one array of integers, a heap of records that jitted code reads, grows and stores as it is.

Knows: which column of which record holds what. A record is known by where it begins in the heap; lists of records are
linked by their first column, -1 ends them. Two byte arrays stand beside the heap: `new`, the payload of this call, and
`old`, the arena, which keeps the bytes that wait for a later call. (A tuple of arrays would read better and cost some
90 times more: numba counts references at every access.)
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
MIDDLE = (
    1 << 32
)  # offset of the first byte seen of a stream whose start was not: what precedes it has room, all are > 0

# --- the head of the heap: where free space begins, free records of each kind (first, how many), this call's output
G_TOP = 0
G_PIECES, G_WAITS, G_CONNECTIONS, G_LINES = 1, 3, 5, 7
G_CONNECTIONS_USED, G_LINE_HEAD, G_LINE_TAIL = 9, 10, 11
G_MESSAGES, G_BYTES, G_SPANS, G_EXCHANGES, G_GAPS, G_TOUCHED, G_TOUCHED_COUNT, G_CALL = 12, 13, 14, 15, 16, 17, 18, 19
# ... the frame that is looked at ...
NOW_TS, NOW_FRAME, NOW_SOURCE, NOW_AGENT, NOW_PAIR, NOW_BIT = 20, 21, 22, 23, 24, 25
NOW_SEQ, NOW_ACK, NOW_FLAGS, NOW_WIRE, NOW_ADDRESS, NOW_END, NOW_LEFT, NOW_LEFT_END = 26, 27, 28, 29, 30, 31, 32, 33
G_ARENA, G_ARENA_LIVE, G_REFUSED, G_NEED, NOW_OFFSET, G_SERIAL = 34, 35, 36, 37, 38, 39
# ... the limits, in the order of Limits' fields ...
L_SLACK_FRAMES, L_SLACK_NS, L_HOLE_NS, L_HELD_BYTES, L_HELD_PIECES = 40, 41, 42, 43, 44
L_SEARCH_BYTES, L_SEARCH_PIECES, L_GIVE_UP_BYTES, L_MESSAGE_BYTES = 45, 46, 47, 48
L_WAITING, L_WAITING_BYTES, L_IDLE_NS, L_LINGER_NS, L_CONNECTIONS, L_PENDING_BYTES = 49, 50, 51, 52, 53, 54
L_SILENT_NS = 55
LIMITS, LIMITS_END = 40, 56
G_EARLY = 56  # 1: requests are handed out when they are complete, not when they are answered
G_PENDING = 57  # memory of all that waits: the sum of relief.pending() over all connections
G_GONE = 58  # bit per agent (index among the names) that is not waited for
G_AGENTS = 59  # how many are
AGENTS = 62  # agents with a bit
# ... and known request headers: KNOWN_KEYS, then per key lowest, highest and first flexible version
KNOWN_KEYS, KNOWN = 60, 61
SCRATCH_BYTES = 1 << 12  # the arena's first bytes are for reading headers that lie in pieces

NEXT = 0  # first column of every record: the next in its list, or -1

# --- a piece of a stream
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
P_PACKET = 10  # where the payload of its packet begins and ends
P_PACKET_END = 11
P_COUNT = 12
DATA, LEFT, GAP = 0, 1, 2  # kinds: bytes we have, bytes left out by whoever captured, bytes never seen
ALL_LEFT = 3  # P_ADDRESS of what is left out: bits of the agents that left it out

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
W_LOST = 24  # 1: its header was not seen; cutting.GIVEN_UP
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
W_SHOWN = 41  # how far each of two agents has shown this direction, data or acknowledgements ...
W_SHOWN2 = 42
W_BOTH_MID_TIME = 43  # ... and how far both had, some time and some frames ago
W_BOTH_OLD_TIME = 44
W_BOTH_MID_FRAMES = 45
W_BOTH_OLD_FRAMES = 46
W_CANDIDATE = 47  # CANDIDATES times (begin, end, correlation id, hash of client id)
CANDIDATES = 8
W_COUNT = W_CANDIDATE + 4 * CANDIDATES
CLOSED, HELD, RUNNING = 0, 1, 2  # W_OPEN
START, SYNC, SEARCH, OFF = 0, 1, 2, 3  # W_MODE

# --- a connection; its directions follow it: from the lower endpoint, from the higher
C_NEXT = 0
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
C_STATE = 30
C_SEARCHED = 31
C_AGENT = 32
C_TOUCH_NEXT = 33  # next connection touched in this call
C_SERIAL = 34  # number of the connection, never used again
C_WAITING_KEPT = 35  # of C_WAITING_BYTES, those that are here
C_STRAYS = 36  # responses, then requests, in a row whose other half was not where it should be
C_STRAYS_ASKED = 37
C_AGENT2 = 38  # the other agent that showed the connection, -1 none
C_COUNT = 39
C_SIZE = C_COUNT + 2 * W_COUNT  # a record of a connection holds its two directions
FREE, LIVE, GONE, RELEASED = (
    0,
    1,
    2,
    3,
)  # C_STATE: GONE is over and remembered, RELEASED given back after the call
BY_NOTHING, BY_SYN, BY_CONTENT, BY_PORT = 0, 1, 2, 3
UNDECIDED, KAFKA, TLS, OTHER = 0, 1, 2, 3
SASL_NONE, SASL_RAW = 0, 1
FIN_OF, RST_OF = 1, 3  # C_CLOSED_BY: 0, or one of these and the direction; who is client may show later

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
Q_KEPT = 17  # bytes of it that we have
Q_SPANS = 18  # runs of it that we have not
Q_COUNT = 19
CONNECTION_BYTES, PIECE_BYTES, WAIT_BYTES = 8 * C_SIZE, 8 * P_COUNT, 8 * Q_COUNT
F_RAW, F_ACKS_UNKNOWN, F_TOLD = 1, 2, 4

# --- a line of a call's output: an exchange (its waiting messages go with it), or a gap
H_KIND = 1
H_CONNECTION = 2
E_REQUEST, E_RESPONSE, E_OUTCOME, E_OUT_OF_ORDER = 3, 4, 5, 6
H_TS, H_DIRECTION, H_BYTES = 3, 4, 5
H_COUNT = 7
AN_EXCHANGE, A_GAP = 0, 1  # H_KIND
# columns of what is handed out: messages, exchanges, gaps
M_CONNECTION, M_SIDE, M_KEY, M_VERSION, M_CORRELATION, M_SIZE, M_TS, M_TS_LAST = 0, 1, 2, 3, 4, 5, 6, 7
M_SOURCE, M_FRAME, M_FRAME_LAST, M_AT, M_GAP, M_DATA, M_SPANS = 8, 9, 10, 11, 12, 13, 14
M_COUNT = 15
ANSWERED, NO_RESPONSE_DUE, REQUEST_UNSEEN, RESPONSE_UNSEEN = 0, 1, 2, 3
CLOSED_BY_SERVER, CLOSED_BY_CLIENT, PENDING, ORPHAN = 4, 5, 6, 7


class Frames(NamedTuple):
    """This call's segments: `pair` is the index of a frame's endpoints in `slot`, `bit` its direction there."""

    slot: Ints
    pair: NDArray[np.int32]
    bit: NDArray[np.int8]
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
    left: Ints
    """Offset and length per left-out span."""
    where: Ints
    """Filled per frame: number of its connection, its direction there, offset of its payload; -1 for none."""


def empty_heap(limit: Ints, known: NDArray[np.int16]) -> Ints:
    heap = np.zeros(1 << 14, np.int64)
    heap[[G_PIECES, G_WAITS, G_CONNECTIONS, G_LINES, G_LINE_HEAD, G_TOUCHED]] = -1
    heap[G_ARENA] = SCRATCH_BYTES
    heap[LIMITS : LIMITS + len(limit)] = limit
    heap[KNOWN_KEYS] = len(known)
    heap[KNOWN : KNOWN + known.size] = known.ravel()
    heap[G_TOP] = KNOWN + known.size
    return heap


def empty_arena() -> Bytes:
    return np.zeros(2 * SCRATCH_BYTES, np.uint8)


def no_bytes() -> Bytes:
    return fixed(np.zeros(0, np.uint8), np.uint8)


def fixed(array: NDArray[Any], kind: Any) -> NDArray[Any]:
    """The array in the one form that kernels are compiled for: contiguous, of this type, read only."""
    array = np.ascontiguousarray(array, kind)[:]
    array.flags.writeable = False
    return array


def grown(array: NDArray[Any], used: int, wanted: int) -> NDArray[Any]:
    """The array with at least `wanted` places, what was used in front; at least doubled when it has to move."""
    if len(array) >= wanted:
        return array
    bigger = np.zeros(max(2 * len(array), wanted), array.dtype)
    bigger[:used] = array[:used]
    return bigger
