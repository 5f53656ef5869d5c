"""Claims about what came of each request: the ledger of who gets work done, by client, server and API.

Every request is counted in one claim, exactly once: granted, granted late, rejected by an error code, closed by the
server, given up, sent without asking for a response, in flight at the end, or with an unknown outcome.

Rule: nothing is judged here. A response grants if any part of it does; else its code is the first error in it. A step
is no goal: an answer to SaslAuthenticate before the last round neither grants nor rejects. Only a connection that was
captured whole shows that a client gave up, and only if it waited for longer than its request lets the server take.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from wirecheck.decode.api_names import key_of
from wirecheck.decode.connection.exchanges import (
    ANSWERED,
    CLOSED_BY_CLIENT,
    CLOSED_BY_SERVER,
    NO_RESPONSE_DUE,
    PENDING,
    RESPONSE_UNSEEN,
)
from wirecheck.decode.message import Status
from wirecheck.decode.request_waits import OVERDUE_NS, answerable_ns, given_up, until_ns
from wirecheck.decode.sasl_name import sasl_name
from wirecheck.judge.claims.batch import Batch, key_of_messages
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.extract.wire_format import allowed_ns, due_ns
from wirecheck.judge.claims.outcomes import (
    CLOSED,
    GIVEN_UP,
    IN_FLIGHT,
    LATE,
    OPEN,
    SLOT_NS,
    STEP,
    SUCCESS,
    UNASKED,
    UNREADABLE,
    UNSEEN,
    WAITED,
    Run,
    single,
)
from wirecheck.judge.claims.reduce import Column, Ints, Rows
from wirecheck.judge.claims.response_outcomes import outcome_name

OUTCOME = {CLOSED_BY_SERVER: CLOSED, NO_RESPONSE_DUE: UNASKED, RESPONSE_UNSEEN: UNSEEN}
"""Of requests without a captured response; of all others it is open how they end."""
SASL = "SaslAuthenticate"
PRODUCE = key_of("Produce")
HOLD = [key_of(api) for api in ("Fetch", "ShareFetch")]
"""Brokers hold these back until there are records, for as long as they say (max_wait_ms)."""
OF_WORK = [
    key_of(api)
    for api in ("Produce", "Fetch", "ShareFetch", "Metadata", "FindCoordinator", "ListOffsets", "OffsetFetch",
                "OffsetCommit", "TxnOffsetCommit", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn",
                "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
]  # fmt: skip
"""What clients wait for before they work on."""


def claims(batch: Batch) -> Iterator[Rows]:
    exchanges = batch.exchanges
    asked = np.flatnonzero(exchanges.request >= 0)
    waited = batch.once(batch_waits)
    rows = np.setdiff1d(asked, np.concatenate([waited.given_up, waited.late]), assume_unique=True)
    if len(rows):
        outcome = np.full(len(rows), OPEN, np.int64)
        for ending, code in OUTCOME.items():
            outcome[exchanges.outcome[rows] == ending] = code
        outcome[in_flight(batch, rows)] = IN_FLIGHT
        answered = exchanges.outcome[rows] == ANSWERED
        response = exchanges.response[rows]
        outcome[answered] = batch.once(codes)[response[answered]]
        message = np.where(answered, response, exchanges.request[rows])
        unique, number = np.unique(outcome, return_inverse=True)
        named = Column(number.astype(np.int64).ravel(), [outcome_name(code) for code in unique.tolist()])
        yield batch.states("activity", ["@who", "@api", named], message, error=outcome)
    yield from writes_that_wait(batch, waited)


def in_flight(batch: Batch, rows: Ints) -> Ints:
    """Those without a response, and without a lack of bytes, whose connection ended, or was seen last, before they
    waited: a long poll, say, as a short capture ends.
    """
    exchanges = batch.exchanges
    pending = np.flatnonzero(np.isin(exchanges.outcome[rows], (PENDING, CLOSED_BY_CLIENT)))
    message = exchanges.request[rows[pending]]
    found: Ints = pending[until_ns(exchanges, rows[pending]) < due_ns(batch, message) + OVERDUE_NS]
    return found


def codes(batch: Batch) -> Ints:
    """Per message, of responses: 0 if it grants something, else its first error code."""
    found: Ints = np.where(batch.decoded.status == Status.OK, batch.answers_of.error, UNREADABLE)
    found[login_steps(batch)] = STEP
    return found


def login_steps(batch: Batch) -> Ints:
    """Responses to SaslAuthenticate without an error before the last round of a login: those to the first message of
    SCRAM, and, of all other mechanisms, those with a token, to which the client has to answer (RFC 4422 3).
    """
    lines, asked = batch.lines(SASL, "response"), batch.lines(SASL, "request")
    if lines is None:
        return np.empty(0, np.int64)
    connections = batch.exchanges.connections
    of = batch.exchanges.connection[lines.message].tolist()
    scram = np.array([(connections[at].sasl or "").startswith("SCRAM") for at in of], np.bool_)
    first = np.zeros(len(lines), np.bool_)
    if asked is not None:
        tokens = [asked.table["auth_bytes"].field(row) for row in range(len(asked))]
        mechanisms = [connections[at].sasl for at in batch.exchanges.connection[asked.message].tolist()]
        answers = zip(asked.partner.tolist(), mechanisms, tokens, strict=True)
        named = {answer for answer, mechanism, token in answers if token is not None and sasl_name(mechanism, token)}
        first = np.isin(lines.message, sorted(named))
    steps = np.where(scram, first, lines.size("auth_bytes") > 0) & (lines["error_code"] == 0)
    found: Ints = lines.message[steps]
    return found


class Waits(NamedTuple):
    """Exchanges whose client waited for longer than it lets the server take."""

    given_up: Ints
    """It closed the connection; or, of a write, the capture ended first."""
    late: Ints
    """The response came at last, and grants something."""


def batch_waits(batch: Batch) -> Waits:
    tables_of = partial(batch.tables, side="request")
    return Waits(given_up(batch.exchanges, batch.decoded, tables_of), granted_late(batch))


def waits(batch: Batch) -> Iterator[Claim]:
    """Each of these requests, from when it was sent to the response, the close or the end."""
    for rows, outcome in zip(batch.once(batch_waits), (GIVEN_UP, LATE), strict=True):
        if len(rows):
            yield from spans(batch, rows, outcome)


def spans(batch: Batch, rows: Ints, outcome: int) -> Iterator[Claim]:
    message, every = batch.exchanges.request[rows], np.arange(len(rows))
    key = [column.at(every) for column in key_of_messages(batch, "@who @api", message)]
    times = zip(answerable_ns(batch.exchanges, message).tolist(), until_ns(batch.exchanges, rows).tolist(), strict=True)
    ports, seen = batch.sightings.port.take(message).at(every), batch.sightings.of(message)
    for parts, port, one, (first_ns, last_ns) in zip(zip(*key, strict=True), ports, seen, times, strict=True):
        outcomes = single(outcome, last_ns // SLOT_NS, port, Run(1, first_ns, last_ns))
        yield Claim("activity", (*parts, outcome_name(outcome)), one, outcomes=outcomes)


def granted_late(batch: Batch) -> Ints:
    """Of what a client needs for its work, without what waits for other members of its group."""
    exchanges = batch.exchanges
    rows = np.flatnonzero((exchanges.outcome == ANSWERED) & (exchanges.request >= 0))
    waited_ns = exchanges.ts_ns[exchanges.response[rows]] - answerable_ns(exchanges, exchanges.request[rows])
    rows = rows[waited_ns >= OVERDUE_NS]
    if not len(rows):
        return rows
    request, response = exchanges.request[rows], exchanges.response[rows]
    keys = batch.decoded.messages.key[request]
    holds_ns = np.where(np.isin(keys, HOLD), allowed_ns(batch, request), 0)
    waited_ns = exchanges.ts_ns[response] - answerable_ns(exchanges, request) - holds_ns
    of_work = np.isin(keys, OF_WORK)
    found: Ints = rows[(waited_ns >= OVERDUE_NS) & of_work & (batch.once(codes)[response] == SUCCESS)]
    return found


def writes_that_wait(batch: Batch, waited: Waits) -> Iterator[Rows]:
    """Of each write that waits its topics and partitions, and until when it waited."""
    lines = batch.lines("Produce", "request", "topic_data.partition_data")
    rows = np.concatenate(waited)
    if lines is None or not len(rows):
        return
    until, given_up = (np.zeros(len(batch.decoded), np.int64) for _ in range(2))
    until[batch.exchanges.request[rows]] = until_ns(batch.exchanges, rows)
    given_up[batch.exchanges.request[waited.given_up]] = 1
    ends_ns, peak = until[lines.message], given_up[lines.message]
    longest_ns = np.maximum(ends_ns - lines.ts_ns, 0)
    name = lines.column("name").only(lines.present("name")) if lines.has("name") else "-"
    key = ["@who", name, "topic_id" if lines.has("topic_id") else "-"]
    waiting, index = np.full(len(lines), WAITED, np.int64), lines.column("index")
    peaks = {"until": ends_ns, "given_up": peak, "longest": longest_ns}
    yield lines.states("write_wait", key, ends_ns > 0, error=waiting, apart=index, peak=peaks)
