"""A connection as the follower knows it: two directions, who is the client, what waits, when and how it ends.

A new fact is an attribute here or in Direction, is stored by state.py, and raises STATE_VERSION.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final, final

from mypy_extensions import i64

from wirecheck.decode.connection import exchanges as handed_out
from wirecheck.decode.connection.framing.recognise import MECHANISMS
from wirecheck.decode.connection.stream.direction import Direction
from wirecheck.decode.connection.stream.frame import NEVER, THE_WIRES, UNSET
from wirecheck.decode.connection.stream.modes import IN_SYNC, LINGERING, OFF, OPEN, RELEASED, TAPPED, Mode
from wirecheck.decode.connection.waiting import MessageQueue
from wirecheck.decode.peer import Peer

BY_NOTHING: Final = 0  # role_by: how client and server are known
BY_SYN: Final = 1
BY_CONTENT: Final = 2
UNDECIDED: Final = 0  # protocol
KAFKA: Final = 1
TLS: Final = 2
OTHER: Final = 3
NOT_CLOSED: Final = (
    0  # closed_by: not closed, or BY_FIN or BY_RST plus the side; which side is the client may be learned later
)
BY_FIN: Final = 1
BY_RST: Final = 3
ROLES: Final = ("port", "syn", "content")  # as facts say it
ANSWERED_IN: Final = (None, "http", "tls", "ssh")
PROTOCOLS: Final = ("undecided", "kafka", "tls", "other")
CLOSED_BY: Final = ("client-fin", "server-fin", "client-rst", "server-rst")
NO_PORT: Final = -1  # port of the client that no PROXY header names
ALERT_BYTES: Final = 40  # with the ChangeCipherSpec before it; a Finished of TLS 1.3 takes 58 (RFC 8446 4.4.4)
FIRST_GAPS: Final = 64  # that are kept as facts
CHUNK_BYTES: Final = 96  # what bookkeeping counts for, in eviction.py: of a chunk, of a message that waits
MESSAGE_BYTES: Final = 152


@final
class Handshake:
    """A SYN or SYN-ACK that is not the connection's own. It begins another connection once data follow in its numbers;
    until then it changes nothing, because any host that knows addresses and ports can send one (RFC 5961).
    """

    def __init__(self) -> None:
        self.client: i64 = -1  # side
        self.client_seq: i64 = UNSET  # sequence number behind SYN; UNSET: there is none
        self.server_seq: i64 = UNSET
        self.ts_ns: i64 = 0  # of its first frame
        self.agent: i64 = -1  # that showed it
        self.frames: i64 = 0
        self.answered: bool = False

    def forget(self) -> None:
        self.client_seq = self.server_seq = UNSET
        self.frames = 0
        self.answered = False


@final
class Elsewhere:
    """The last segment whose numbers lie far from the connection's, and nothing came in these since (acceptance.py)."""

    def __init__(self) -> None:
        self.side: i64 = -1
        self.seq: i64 = UNSET  # behind it
        self.ack: i64 = UNSET
        self.frames: i64 = 0  # of that side, each near to the one before

    def forget(self) -> None:
        self.side, self.frames = -1, 0


@final
class Connection:
    def __init__(self, key: str, serial: i64) -> None:
        self.key: str = key  # its endpoints, and the agent where addresses are not unique (follower.py)
        self.serial: i64 = serial  # number of the connection, never used again
        self.lower: Direction = Direction(0)
        self.higher: Direction = Direction(1)
        self.life: Mode = OPEN
        self.client: i64 = -1  # side of the client, -1 unknown
        self.role_by: i64 = BY_NOTHING
        self.protocol: i64 = UNDECIDED
        self.sasl: i64 = 0
        self.tokens_may_follow: bool = False  # saslHandshake v0 was seen (KIP-43)
        self.started_ns: i64 = 0
        self.last_ns: i64 = 0
        self.frames: i64 = 0
        self.frames_remembered: i64 = 0  # how many there were when acknowledgements were remembered
        self.half_slack: i64 = 0  # half slacks since 1970 when they were
        self.deadline_ns: i64 = NEVER  # when something falls due if no frame comes
        self.due_ns: i64 = NEVER  # when one that is closing is over
        self.closed_by: i64 = NOT_CLOSED
        self.close_ns: i64 = 0
        self.syn_ns: i64 = UNSET  # time of its SYN, of its SYN-ACK; NEVER: it was sent twice, or is of no use any more
        self.syn_ack_ns: i64 = UNSET
        self.server_round_ns: i64 = 0  # from the capture point to a side and back, by the handshake; 0 unknown
        self.client_round_ns: i64 = 0
        self.again: Handshake = Handshake()  # of another connection of these endpoints, if one is answered
        self.elsewhere: Elsewhere = Elsewhere()
        self.unacceptable: i64 = 0  # segments that no receiver takes
        self.answered_in: i64 = 0  # what the server's first bytes are, where they are not Kafka's: ANSWERED_IN
        self.in_flight: MessageQueue = MessageQueue()  # requests without response
        self.early_responses: MessageQueue = MessageQueue()  # responses without request
        self.answered_out_of_order: i64 = 0
        self.answered_ns: i64 = 0  # when the last of the requests was sent that were answered in order
        self.proxied: i64 = 0  # bytes of the PROXY header it began with
        self.proxied_host: bytes = b""  # the client it names: an address of 4 or 16 bytes, and a port
        self.proxied_port: i64 = NO_PORT
        self.tls_records: i64 = 0  # segments that look like one
        self.hello_bytes: i64 = 0  # of the TLS record that its client begins with
        self.payloads: i64 = 0  # segments with payload, while the protocol is undecided
        self.searched_bytes: i64 = 0
        self.resynchronised: i64 = 0
        self.limits_hit: i64 = 0
        self.agent: i64 = -1
        self.second_agent: i64 = -1  # the other agent that showed the connection, -1 none
        self.run: i64 = THE_WIRES  # or the run of `agent` whose sequence numbers all that is followed of it has
        self.gaps: list[tuple[int, int, int, int, int]] = []  # (time, side, bytes, since, until) of the first ones
        self.pending: i64 = 0  # memory of what waits, as it was counted last (eviction.py)
        self.touched: i64 = -1  # its place among the connections touched in this call

    def direction(self, side: i64) -> Direction:
        return self.lower if side == 0 else self.higher

    def other(self, direction: Direction) -> Direction:
        return self.higher if direction.side == 0 else self.lower

    def is_client_by_port(self, direction: Direction) -> bool:
        """Whether nothing but ports says who is the client, and they do not speak against this side."""
        low, high = ends_of(self.key)
        own, peer = (low, high) if direction.side == 0 else (high, low)
        return own.port >= peer.port

    def requests(self) -> Direction:
        """The client's direction; the client has to be known."""
        return self.lower if self.client == 0 else self.higher

    def responses(self) -> Direction:
        return self.higher if self.client == 0 else self.lower

    def carries_requests(self, direction: Direction) -> bool:
        return self.client == direction.side

    def proxied_for(self, length: i64, host: bytes, port: i64) -> None:
        """It began with a PROXY header of so many bytes; `host`: the address it names, if any."""
        self.proxied = length
        if len(host) > 0:
            self.proxied_host, self.proxied_port = host, port

    def tap(self) -> None:
        """Frame nothing: the caller takes the bytes in order (Follower(tapped=True))."""
        self.protocol = OTHER
        self.lower.tap()
        self.higher.tap()

    def turn_off(self, protocol: i64) -> None:
        """Not Kafka, or not readable: count its bytes, keep none."""
        self.protocol = protocol
        self.lower.turn_off()
        self.higher.turn_off()

    def renumber(self, agent: i64, run: i64) -> None:
        """The agent shows it by sequence numbers of its own: it is followed by these, from where it began."""
        self.agent, self.run = agent, run
        self.second_agent = -1
        self.lower, self.higher = _renumbered(self.lower), _renumbered(self.higher)
        self.in_flight, self.early_responses = MessageQueue(), MessageQueue()
        self.life, self.protocol, self.sasl, self.tokens_may_follow = OPEN, UNDECIDED, 0, False
        self.closed_by, self.close_ns, self.due_ns = NOT_CLOSED, 0, NEVER
        self.proxied = self.tls_records = self.payloads = self.hello_bytes = self.searched_bytes = 0
        self.again.forget()
        self.elsewhere.forget()

    def over(self, linger_ns: i64) -> None:
        """Nothing more is expected of it: it keeps nothing, and is remembered for a while."""
        self.life = LINGERING
        for direction in (self.lower, self.higher):
            if direction.mode != TAPPED:  # who takes it takes it behind the call
                direction.ordered.clear()
            direction.out_of_order.clear()
            direction.last_gap = None
        self.deadline_ns = self.last_ns + linger_ns

    def forget(self) -> None:
        self.life = RELEASED
        self.deadline_ns = NEVER

    def remember_acknowledged(self, ts_ns: i64, half_slack_ns: i64, half_slack_frames: i64) -> None:
        """Keep what was acknowledged at least half the slack ago, in frames and in time, for both directions."""
        half_slack: i64 = ts_ns // half_slack_ns
        steps = half_slack - self.half_slack
        if steps > 0:
            self.lower.time_passed(steps)
            self.higher.time_passed(steps)
            self.half_slack = half_slack
        if self.frames - self.frames_remembered >= half_slack_frames:
            self.lower.frames_passed()
            self.higher.frames_passed()
            self.frames_remembered = self.frames

    def note_gap(self, ts_ns: i64, direction: Direction, begin: i64, end: i64, sent_ns: i64) -> None:
        """What lies between two offsets of a direction is missing, and was sent by then."""
        direction.gap_end, direction.gap_sent_ns = end, sent_ns
        if len(self.gaps) < FIRST_GAPS:
            since_ns = direction.begun_ns()
            since_ns = since_ns if since_ns != UNSET else self.started_ns
            self.gaps.append((ts_ns, direction.side, end - begin, since_ns, NEVER))

    def end_gaps(self, direction: Direction, ts_ns: i64) -> None:
        """What was sent since then is read again."""
        direction.gap_end = UNSET
        for place in range(len(self.gaps)):
            at_ns, side, count, since_ns, until_ns = self.gaps[place]
            if side == direction.side and until_ns == NEVER:
                self.gaps[place] = (at_ns, side, count, since_ns, ts_ns)

    def forget_gap(self, side: i64, count: i64) -> None:
        """One of so many bytes was none."""
        for place in range(len(self.gaps) - 1, -1, -1):
            gap = self.gaps[place]
            if gap[1] == side and gap[2] == count:
                del self.gaps[place]
                return

    def waiting_size(self) -> i64:
        return self.in_flight.size + self.early_responses.size

    def decided(self, direction: Direction) -> i64:
        """What lies before this offset waits for nothing any more."""
        at = direction.next_offset
        if direction.mode != OFF and direction.ordered.first is not None:
            at = direction.ordered.begin
        if direction.last_gap is not None and direction.last_gap.late.count > 0:
            at = min(at, direction.last_gap.begin)
        response = self.early_responses.first  # its request may still come, and both are handed out together
        if response is not None and not self.carries_requests(direction):
            at = min(at, response.offset)
        return at

    def count_pending(self) -> i64:
        """Bytes of memory that wait here. Chunks of a message are not counted: they become one after a call."""
        requests, responses = self.in_flight, self.early_responses
        total = requests.kept + responses.kept + MESSAGE_BYTES * (requests.count + responses.count)
        return total + pending_in(self.lower) + pending_in(self.higher)

    def keep(self, payload: bytes) -> None:
        """The call ends: whatever waits leaves its payload."""
        for direction in (self.lower, self.higher):
            in_body = direction.mode == IN_SYNC and direction.message_end >= 0
            direction.ordered.keep(payload, direction.message_begin if in_body else NEVER)
            direction.out_of_order.keep(payload)
            if direction.last_gap is not None:
                direction.last_gap.late.keep(payload)
        for queue in (self.in_flight, self.early_responses):
            for message in queue.messages:
                message.keep(payload)


def _renumbered(direction: Direction) -> Direction:
    """One that is followed from its beginning, if that was seen."""
    found = Direction(direction.side)
    found.frames = direction.frames
    found.gaps_have_length = False
    found.window_closed_ns, found.window_opened_ns = direction.window_closed_ns, direction.window_opened_ns
    if direction.start_seen:
        found.begin(direction.base)
    return found


def pending_in(direction: Direction) -> i64:
    chunks = direction.out_of_order.count
    if direction.mode != IN_SYNC or direction.message_end < 0:
        chunks += direction.ordered.count
    late: i64 = 0
    if direction.last_gap is not None:
        late = direction.last_gap.late.kept
        chunks += direction.last_gap.late.count
    return direction.ordered.kept + direction.out_of_order.kept + late + CHUNK_BYTES * chunks


def key_of(low: tuple[str, int], high: tuple[str, int], agent: str) -> str:
    """The text by which the follower knows a pair of endpoints, the lower one first."""
    return f"{low[0]} {low[1]} {high[0]} {high[1]} {agent}"


def ends_of(key: str) -> tuple[Peer, Peer]:
    low, low_port, high, high_port, _ = key.split(" ", 4)
    return Peer(low, int(low_port)), Peer(high, int(high_port))


def proxied_client(connection: Connection) -> Peer | None:
    """Whom its PROXY header names."""
    if connection.proxied_port == NO_PORT:
        return None
    address = ip_address(connection.proxied_host)
    return Peer(str(getattr(address, "ipv4_mapped", None) or address), int(connection.proxied_port))


def has_unfinished_tls(connection: Connection, ask: Direction) -> bool:
    """Whether it is over, and its client sent no more than a ClientHello and an alert."""
    if connection.protocol != TLS or connection.closed_by == NOT_CLOSED or connection.hello_bytes == 0:
        return False
    return 0 <= ask.payload_bytes - connection.hello_bytes <= ALERT_BYTES


def facts_of(connection: Connection) -> handed_out.Connection:
    """What other packages know of it."""
    low, high = ends_of(connection.key)
    side = connection.client
    if side < 0:
        side = 0 if low.port >= high.port else 1
    client, server = (low, high) if side == 0 else (high, low)
    ask, answer = connection.direction(side), connection.direction(1 - side)
    is_kafka = connection.protocol == KAFKA
    by = connection.closed_by
    return handed_out.Connection(
        client,
        server,
        connection.started_ns,
        connection.last_ns,
        ask.start_seen or answer.start_seen,
        ROLES[connection.role_by],
        PROTOCOLS[connection.protocol],
        MECHANISMS[connection.sasl],
        ask.frames + answer.frames,
        ask.payload_bytes + answer.payload_bytes,
        ask.messages if is_kafka else 0,
        answer.messages if is_kafka else 0,
        ask.raw_frames + answer.raw_frames,
        ask.unseen_bytes,
        answer.unseen_bytes,
        tuple(
            [
                handed_out.Gap(ts, direction ^ side, count, since, until if until != NEVER else -1)
                for ts, direction, count, since, until in connection.gaps
            ]
        ),
        connection.resynchronised,
        ask.skipped_bytes + answer.skipped_bytes,
        ask.out_of_order.conflicting + answer.out_of_order.conflicting,
        None if by == NOT_CLOSED else CLOSED_BY[(by - BY_FIN) ^ side],
        connection.close_ns,
        connection.answered_out_of_order,
        connection.limits_hit,
        connection.run != THE_WIRES,
        connection.life == RELEASED,
        ask.cut_bytes + answer.cut_bytes,
        ask.cut_segments + answer.cut_segments,
        proxied_client(connection),
        retransmitted=ask.retransmitted + answer.retransmitted,
        server_round_ns=connection.server_round_ns,
        client_round_ns=connection.client_round_ns,
        unacceptable=connection.unacceptable,
        answered_in=ANSWERED_IN[connection.answered_in],
        tls_unfinished=has_unfinished_tls(connection, ask),
        client_hash=ask.client_hash if connection.client >= 0 else -1,
        blocked_until_ns=max(ask.window_opened_ns, 0),
        answered_ns=connection.answered_ns,
        silent=answer.is_silent(),
    )
