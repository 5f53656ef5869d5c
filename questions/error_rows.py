"""Errors of a capture by client, API and topic: how often, from when to when, and whether they are ongoing.

    for row in error_rows(Traffic().read(tables)): print(row.effect, row.error, row.client_id, row.count, row.status)

"Ongoing" needs evidence: the error is among the client's last responses of this API, and recent. Errors that are part
of the protocol's normal course are `routine`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirecheck.lasting import OFTEN, goes_on, patience_ns
from wirecheck.questions.traffic import GIVEN_UP, THROTTLED, UNANSWERED, Calls, Count, Refused, Rejection, Use, gathered
from wirecheck.wording import NS_PER_S, pace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wirecheck.decode.connection.exchanges import Connection
    from wirecheck.questions.traffic import Traffic

EFFECTS = (
    "write rejected", "login failed", "read rejected", "replication rejected", "transaction rejected",
    "group request rejected", "connection refused", "no response", "request rejected", "throttled", "routine",
)  # fmt: skip
"""What fails, worst first. `routine` errors are part of the protocol: a client answers them with its next request."""
ONGOING, STOPPED, ANOTHER_SINCE, NOT_ASKED_SINCE, RECOVERED = STATUSES = (
    "ongoing", "stopped", "another error since", "not asked since", "recovered",
)  # fmt: skip
"""Worst first. ongoing: again and again until the end of the capture. stopped: among the last answers of a client, and
then it sent no more requests, or too few to decide. another error since: what it asks for is rejected still, by an
ongoing error that took its place. not asked since: it fetches on, and no more from this topic.
recovered: later answers to it do not have the error."""
OF_APIS = {
    "write rejected": ("Produce",),
    "login failed": ("SaslHandshake", "SaslAuthenticate"),
    "read rejected": ("Fetch", "ShareFetch", "ShareAcknowledge", "ListOffsets"),
    "transaction rejected": (
        "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit", "WriteTxnMarkers",
    ),
    "group request rejected": (
        "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch",
        "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat",
    ),
}  # fmt: skip
EFFECT_OF = {api: effect for effect, apis in OF_APIS.items() for api in apis}
ROUTINE = frozenset({
    "MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS", "FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH",
    "ELECTION_NOT_NEEDED",
})  # fmt: skip
"""KIP-394 gives members an ID by an error; a heartbeat announces a rebalance by one; KIP-227's sessions are a cache."""
SHORT_NS, LONG_NS = 2_000_000_000, 10_000_000_000
"""An error about a topic is over when the client asked for it later than this without it: three of the error's
intervals, at least the first and at most the second."""
SHARE = 0.1
"""An error that goes on was seen OFTEN, in this share of the client's requests of that time ..."""
MANY, QUICKLY_NS = 10, 5_000_000_000
"""... or so often, with no more time in between than this: each leader change gives every client an error or two."""


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One error of one client, API and topic."""

    effect: str
    """One of EFFECTS."""
    status: str
    """One of STATUSES."""
    error: str
    """Kafka's name of the error; "throttled", "connection closed without a response", or "no response, the client gave
    up".
    """
    client_id: str | None
    host: str
    """Address of the client."""
    software: str | None
    """Name and version that the client stated in ApiVersions."""
    api: str
    topic: str | None
    """None where the error is about the whole request."""
    follower: int | None
    """ID of the broker that fetches as a follower."""
    count: int
    """Responses with this error."""
    requests: int
    """All requests of this client for this API."""
    first_ns: int
    last_ns: int
    servers: tuple[str, ...]
    """Brokers that answered so, the most frequent first: by ID where Metadata named it, else by address. A proxy or
    balancer that sends requests on keeps its address."""
    through: tuple[str, ...]
    """Those that are such a proxy or balancer."""
    throttle_time_ms: int | None
    """Sum over all answers, of "throttled"."""
    throttle_time_max_ms: int | None
    cluster: str | None
    """ID of the cluster of these brokers; None where it is not known, or where they are of several."""

    @property
    def is_of_unknown(self) -> bool:
        """A refused connection of which it is unknown who made it: a node, or one of several clients of its host."""
        return self.effect == REFUSED and self.client_id is None

    @property
    def about(self) -> str:
        """`Produce orders`, or the API alone."""
        return f"{self.api} {self.topic or ''}".rstrip()

    @property
    def pace(self) -> str:
        """`4,480 a second`; empty where that is not remarkable."""
        return pace(self.count, (self.last_ns - self.first_ns) / NS_PER_S)

    @property
    def throttling(self) -> str:
        """`4,210 ms, at most 900 ms`; empty for every error but "throttled"."""
        return (
            f"{self.throttle_time_ms:,} ms, at most {self.throttle_time_max_ms:,} ms" if self.throttle_time_ms else ""
        )


def error_rows(traffic: Traffic) -> list[ErrorRow]:
    """All of them, by harm: routine ones last; else ongoing ones first, then by effect and count."""
    asked = gathered(traffic.calls.items(), lambda call: (call.client_id, call.host, call.api))
    worked_ns: dict[tuple[str | None, str], int] = {}
    for call, calls in traffic.calls.items():
        if call.api not in BEFORE_WORK:
            who = call.client_id, call.host
            worked_ns[who] = max(worked_ns.get(who, 0), calls.clean_ns)
    statuses = {}
    for failure, count in traffic.failures.items():
        calls = asked.get((failure.client_id, failure.host, failure.api)) or Calls(count.count, 0, count.last_ns)
        last = count.streak, count.streak_ns, count.last_ns
        ongoing = goes_on(*last, traffic.last_ns) and frequent(count, calls)
        status = ONGOING if ongoing else STOPPED
        if failure.api in LOGIN:  # its steps are no success
            is_over = worked_ns.get((failure.client_id, failure.host), 0) > count.last_ns
        else:
            is_over = over(failure, count, calls, traffic)
        if is_over:
            status = NOT_ASKED_SINCE if is_given_up(failure, count, traffic) else RECOVERED
        statuses[failure] = status, calls.count
    statuses |= {failure: (ANOTHER_SINCE, statuses[failure][1]) for failure in replaced_errors(statuses, traffic)}
    found = [row(one, traffic.failures[one], *status_and_calls, traffic) for one, status_and_calls in statuses.items()]
    return sorted([*found, *refused_connections(traffic)], key=by_harm)


def replaced_errors(statuses: Mapping[Rejection, tuple[str, int]], traffic: Traffic) -> list[Rejection]:
    """Errors that are over because another one came in their place, which is ongoing: in between there was no time in
    which the client would not have asked.
    """
    real = [(one, status) for one, (status, _) in statuses.items() if effect_of(one) not in {"routine", THROTTLED}]
    ongoing: dict[tuple[object, ...], list[Count]] = {}
    for failure, status in real:
        if status == ONGOING:
            ongoing.setdefault(activity(failure), []).append(traffic.failures[failure])

    def is_replaced(failure: Rejection) -> bool:
        last_ns = traffic.failures[failure].last_ns
        return any(
            other.streak_ns - last_ns <= patience_ns(other.streak, other.streak_ns, other.last_ns)
            for other in ongoing.get(activity(failure), ())
        )

    return [failure for failure, status in real if status == RECOVERED and is_replaced(failure)]


def activity(failure: Rejection) -> tuple[object, ...]:
    """What one client asks for by one API, whatever is answered."""
    return failure.client_id, failure.host, failure.api, failure.topic, failure.replica


def refused_connections(traffic: Traffic) -> Iterator[ErrorRow]:
    """By host and address. Who connects is known where one client alone was seen on the host."""
    clients: dict[str, set[str | None]] = {}
    for call in traffic.calls:
        clients.setdefault(call.host, set()).add(call.client_id)
    refused = refused_ways(traffic.connections.values()) if traffic.refused is None else traffic.refused
    for (host, server), way in refused.items():
        count = way.count
        on = goes_on(count.count, count.first_ns, count.last_ns, traffic.last_ns) and count.count >= OFTEN
        count.servers[server] = count.count
        known = clients.get(host, set())
        failure = Rejection(REFUSED, next(iter(known)) if len(known) == 1 else None, host, CONNECT, "", -1)
        status = RECOVERED if way.answered_ns > count.last_ns else ONGOING if on else STOPPED
        yield row(failure, count, status, way.connections, traffic)


def refused_ways(connections: Iterable[Connection]) -> dict[tuple[str, str], Refused]:
    """Of hosts and addresses those with a refused connection."""
    found: dict[tuple[str, str], Refused] = {}
    for one in sorted(connections, key=lambda one: one.started_ns):
        way = found.setdefault((one.client.host, str(one.server)), Refused())
        way.connections += max(1, one.unlisted)
        if is_refused(one):
            way.count.seen(max(1, one.unlisted), one.started_ns, one.started_ns)
        elif one.responses:
            way.answered_ns = max(way.answered_ns, one.last_ns)
    return {way: one for way, one in found.items() if one.count.count}


def is_refused(connection: Connection) -> bool:
    """By a RST in answer to its SYN: nothing listens there."""
    nothing = not connection.requests and not connection.payload_bytes
    return nothing and connection.closed_by == "server-rst" and connection.protocol != "tls"


REFUSED, CONNECT = "connection refused", "connect"


def over(failure: Rejection, count: Count, calls: Calls, traffic: Traffic) -> bool:
    """Whether the client was answered without the error later."""
    if not failure.topic or failure.api not in OF_TOPICS:
        return calls.clean_ns > count.last_ns
    last_ns = calls.last_ns
    if failure.api == "Produce":  # other topics are written meanwhile; a Fetch answer names every topic with an error
        use = traffic.uses.get(Use(failure.client_id, failure.host, failure.api, failure.topic, failure.replica))
        last_ns = use.last_ns if use is not None else last_ns
    return last_ns - count.last_ns > patience_ns(count.streak, count.streak_ns, count.last_ns, SHORT_NS, LONG_NS)


def is_given_up(failure: Rejection, count: Count, traffic: Traffic) -> bool:
    """Whether a client that fetches on took the topic out of its session, or began one without it, where it got the
    error; and asked for it nowhere since.
    """
    asked = traffic.fetched.get((failure.client_id, failure.host, failure.topic))
    if failure.api != "Fetch" or asked is None or failure.replica >= 0 or asked.asked_ns > count.last_ns:
        return False
    servers = ((failure.client_id, failure.host, server) for server in count.servers)
    begun_ns = max((traffic.whole_fetch_ns.get(one, 0) for one in servers), default=0)
    return max(asked.forgotten_ns, begun_ns) > count.last_ns


LOGIN = frozenset(OF_APIS["login failed"])
BEFORE_WORK = LOGIN | {"ApiVersions"}


def frequent(count: Count, calls: Calls) -> bool:
    """Of the last streak of errors."""
    span_ns = count.last_ns - count.streak_ns
    requests = calls.count * span_ns / max(calls.last_ns - calls.first_ns, span_ns, 1)
    dense = count.streak >= MANY and span_ns <= QUICKLY_NS * (count.streak - 1)
    return dense or (count.streak >= OFTEN and count.streak >= SHARE * requests)


OF_TOPICS = frozenset({"Produce", "Fetch", "ShareFetch"})


def row(failure: Rejection, count: Count, status: str, requests: int, traffic: Traffic) -> ErrorRow:
    throttled = failure.error == THROTTLED
    servers, proxies = sorted(count.servers.items(), key=lambda one: (-one[1], one[0])), traffic.once.proxies()
    return ErrorRow(
        effect_of(failure),
        status,
        failure.error,
        failure.client_id,
        failure.host,
        traffic.software.get((failure.client_id, failure.host)),
        failure.api,
        failure.topic or None,
        failure.replica if failure.replica >= 0 else None,
        count.count,
        requests,
        count.first_ns,
        count.last_ns,
        tuple(dict.fromkeys(server if server in proxies else traffic.brokers.named(server) for server, _ in servers)),
        tuple(server for server, _ in servers if server in proxies),
        count.sum_ms if throttled else None,
        count.worst_ms if throttled else None,
        traffic.brokers.cluster_of(count.servers),
    )


def effect_of(failure: Rejection) -> str:
    if failure.error == THROTTLED:
        return "throttled"
    if failure.error in ROUTINE or (failure.api, failure.error) == ("ApiVersions", "UNSUPPORTED_VERSION"):
        return "routine"  # KIP-511: a broker that does not know the version lists its own, and the client asks again
    if failure.error == REFUSED:
        return REFUSED
    if failure.error in {UNANSWERED, GIVEN_UP}:
        return "no response"
    if failure.replica >= 0:
        return "replication rejected"
    return EFFECT_OF.get(failure.api, "request rejected")


def by_harm(one: ErrorRow) -> tuple[object, ...]:
    rank = EFFECTS.index(one.effect)
    follower = -1 if one.follower is None else one.follower
    who = one.client_id or "", one.host, one.api, one.topic or "", one.error, follower
    return one.effect == "routine", one.is_of_unknown, STATUSES.index(one.status), rank, -one.count, *who
