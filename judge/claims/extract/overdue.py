"""Claims about clients that waited long for a response that never came, or came after they had closed the connection.

Rule: nothing is guessed. A wait counts only if the connection was captured completely up to the packet that ended the
wait: the close, or at least one later packet. A response after the client's close counts as missing, captured or not.
While the client's TCP receive window is 0, no server can send a response: the wait begins once it has opened again.
Requests with an unknown time limit of their own do not count, nor do those of brokers and controllers.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.client_ids import TO_BROKERS, is_internal
from wirecheck.decode.api_names import name_of
from wirecheck.decode.connection.exchanges import (
    ANSWERED,
    CLOSED_BY_CLIENT,
    CLOSED_BY_SERVER,
    PENDING,
    Connection,
    Exchanges,
    Ints,
)
from wirecheck.decode.message import Status
from wirecheck.decode.peer import Conversation
from wirecheck.decode.request_waits import ROUNDS, answerable_ns, whole_since
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.extract.wire_format import due_ns
from wirecheck.judge.claims.outcomes import SLOT_NS, WAITED, Run, single

LONG_NS = 10_000_000_000
"""No client gives up sooner: of the libraries known, franz-go adds the least, 10 s, to what its request allows."""
ENDINGS = (CLOSED_BY_SERVER, CLOSED_BY_CLIENT, PENDING)
NO_TOPIC = (None, None)
WORDS = ("name", "topic_id")
MOST_TOPICS = 8
"""So many topics of one request count."""


def claims(batch: Batch) -> Iterator[Claim]:
    exchanges = batch.exchanges
    asked = exchanges.request[unanswered(exchanges)]
    connection = exchanges.connection[asked]
    until_ns = np.array([each.close_ns or each.last_ns for each in exchanges.connections], np.int64)[connection]
    since_ns = answerable_ns(exchanges, asked)
    waited_ns = until_ns - since_ns
    long = np.flatnonzero((waited_ns >= LONG_NS) & (batch.decoded.status[asked] == Status.OK))
    allowed = (due_ns(batch, asked) - since_ns)[long] if len(long) else long
    for place, allows_ns in zip(long.tolist(), allowed.tolist(), strict=True):
        message, of = int(asked[place]), exchanges.connections[connection[place]]
        gave_up = has_given_up(of)
        enough_ns = max(allows_ns, LONG_NS) if gave_up else allows_ns + LONG_NS
        if waited_ns[place] >= enough_ns and whole_since(exchanges, message):
            yield from overdue(batch, message, int(since_ns[place]), int(until_ns[place]))


def unanswered(exchanges: Exchanges) -> Ints:
    """Exchanges whose request got no response while the client could take one."""
    without = np.isin(exchanges.outcome, ENDINGS)
    if any(map(has_given_up, exchanges.connections)):
        given_up_ns = np.array([each.close_ns if has_given_up(each) else 0 for each in exchanges.connections], np.int64)
        rows = np.flatnonzero(exchanges.outcome == ANSWERED)
        responses = exchanges.response[rows]
        closed_ns = given_up_ns[exchanges.connection[responses]]
        without[rows] = (closed_ns > 0) & (exchanges.ts_ns[responses] > closed_ns)
    return np.flatnonzero(without & (exchanges.request >= 0))


def has_given_up(connection: Connection) -> bool:
    return bool(connection.close_ns) and (connection.closed_by or "").startswith("client")


def overdue(batch: Batch, message: int, since_ns: int, until_ns: int) -> Iterator[Claim]:
    api = name_of(int(batch.decoded.messages.key[message]))
    client_id = batch.client_id(np.array([message])).value(0)
    if api in ROUNDS or is_internal(client_id) or TO_BROKERS.fullmatch(client_id or ""):
        return
    client, server, host = batch.names[batch.exchanges.connection[message]]
    port = Conversation.of(f"{client}>{server}").client.port
    seen = batch.sightings.at(message)
    for topic in topics(batch, message) if api == "Produce" else (NO_TOPIC,):
        outcomes = single(WAITED, until_ns // SLOT_NS, port, Run(1, since_ns, until_ns))
        yield Claim("overdue", (client_id, host, server, api, *topic), seen, outcomes=outcomes)


def topics(batch: Batch, message: int) -> list[tuple[str | None, str | None]]:
    """Name and ID of each topic that a Produce request writes to: a write waits for the replicas of one of them."""
    lines = batch.lines("Produce", "request", "topic_data")
    rows = np.flatnonzero(lines.message == message) if lines else np.empty(0, np.int64)
    if lines is None or not len(rows):
        return [NO_TOPIC]
    names, ids = (lines.column(word if lines.has(word) else "-", rows).at(np.arange(len(rows))) for word in WORDS)
    return sorted(set(zip(names, ids, strict=True)), key=str)[:MOST_TOPICS]
