"""Claims about hosts: which of them a server granted anything, and what was odd about the others.

Rule: a response that could not be read, or whose request or bytes were not captured, may have granted anything. Odd
requests are stated of all hosts; the judge knows which of them were ever granted anything.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.api_names import BETWEEN_BROKERS, key_of, names
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT, CLOSED_BY_SERVER, Connection
from wirecheck.decode.message import Status
from wirecheck.decode.wire import RESPONSE
from wirecheck.judge.claims.batch import GREETINGS, Batch
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.extract.error_answers import INCONSISTENT_CLUSTER_ID
from wirecheck.judge.claims.extract.replicas import replicas
from wirecheck.judge.claims.extract.wire_format import span
from wirecheck.judge.claims.members import hashed, sets
from wirecheck.judge.claims.reduce import Column, Ints, Rows, grouped
from wirecheck.judge.claims.response_outcomes import FAILED, ONLY_BROKERS

ORDERS = ("LeaderAndIsr", "StopReplica", "UpdateMetadata")
VERSIONS, MALFORMED, COMMANDS = "versions of no release", "malformed requests", "rejected controller requests"
CLUSTERS, IDS, REFUSED = "other cluster IDs", "unknown topic IDs", "rejected requests"
IDS_OF_BROKERS = "unknown topic IDs in requests of brokers"
STALE, STALE_CONTROLLER_EPOCH = "controller requests with an old epoch", 11
DUPLICATES, DUPLICATE_BROKER_REGISTRATION = "registrations under a node ID in use", 101
WHAT = (VERSIONS, MALFORMED, STALE, COMMANDS, CLUSTERS, IDS_OF_BROKERS, IDS, DUPLICATES, REFUSED, None)
NOTHING = len(WHAT) - 1
UNKNOWN = "an unknown API"
Bools = NDArray[np.bool_]


def claims(batch: Batch) -> Iterator[Rows]:
    every = np.arange(len(batch.decoded))
    granted, unread = granted_to(batch), unread_by(batch)
    peak = {"granted": granted.astype(np.int64), "unread": unread.astype(np.int64)}
    yield batch.states("peer", "@host @endpoint", every, peak=peak)


def connections(batch: Batch) -> Iterator[Claim]:
    """Per connection, whether part of its client's traffic is unknown, and which host is the server."""
    for connection in batch.exchanges.connections:
        if connection.is_guess or connection.unlisted:
            continue
        server, (first, last) = str(connection.server), span(connection)
        if connection.payload_bytes or not connection.from_start:
            peak = {"granted": 0, "unread": int(unsure(connection)), "encrypted": int(connection.protocol == "tls")}
            yield Claim("peer", (connection.client.host, server), first, last, peak=peak)
        if connection.protocol == "kafka":
            peak = {"unseen": int(not connection.from_start)}
            yield Claim("serving", (connection.server.host, server), first, last, peak=peak)


def unsure(connection: Connection) -> bool:
    lost = (
        connection.unseen_response_bytes or connection.cut_bytes or connection.resynchronised or connection.limits_hit
    )
    return not connection.from_start or (connection.protocol == "kafka" and bool(lost))


def odd(batch: Batch) -> Iterator[Claim]:
    """What hosts asked for that is odd if they were never granted anything, by kind; with the least of their client
    ids. Whether they were is known of all batches only.
    """
    exchanges = batch.exchanges
    asked = exchanges.request[exchanges.request >= 0]
    asked = asked[~unread_by(batch)[asked]]
    if not len(asked):
        return
    codes = kinds_of(batch, asked)
    message, what = asked[codes != NOTHING], Column(codes[codes != NOTHING], WHAT)
    if len(message):
        client_ids = batch.client_id(message)
        rows = batch.states("odd_exchange", ["@host", "@endpoint", what], message, tally=api_of(batch, message))
        yield from sets(
            rows, rows, hashed(client_ids), batch.sightings, lambda rows: [one or "" for one in client_ids.at(rows)]
        )


def api_of(batch: Batch, message: Ints) -> Column:
    """API names. All unknown keys share one name, because a client can invent any number of them."""
    apis = batch.api(message)
    return Column(apis.codes, [name if name in names().values() else UNKNOWN for name in apis.values or ()])


def granted_to(batch: Batch) -> Bools:
    """Per message whether its server granted its client's host something in this batch."""
    every = np.arange(len(batch.decoded))
    pair, sample = grouped([batch.host(every), batch.endpoint(every)])
    granted = np.zeros(len(sample), np.bool_)
    greets = np.isin(batch.decoded.messages.key, GREETINGS)
    granted[pair[(batch.answers_of.fate >= ONLY_BROKERS) & ~greets]] = True
    found: Bools = granted[pair]
    return found


def unread_by(batch: Batch) -> Bools:
    """Responses that may have granted something, because they could not be read."""
    messages, status = batch.decoded.messages, batch.decoded.status
    found: Bools = (messages.side == RESPONSE) & (status != Status.OK) & ~np.isin(messages.key, GREETINGS)
    return found


def kinds_of(batch: Batch, asked: Ints) -> Ints:
    """Per request what is odd about it: the first of WHAT that holds."""
    key, status = batch.decoded.messages.key[asked], batch.decoded.status[asked]
    open_to_all = np.isin(key, GREETINGS)
    orders = np.isin(key, [key_of(api) for api in ORDERS])
    error, failed = refusals(batch, asked)
    by_id = by_topic_id(batch, asked) & (failed | closed(batch, asked))
    met = (
        np.isin(status, (Status.UNKNOWN_API, Status.UNKNOWN_VERSION)) & ~open_to_all,
        batch.decoded.malformed[asked] & ((status >= Status.TRUNCATED) | (batch.partner(asked, RESPONSE) < 0)),
        orders & (error == STALE_CONTROLLER_EPOCH),
        orders,
        error == INCONSISTENT_CLUSTER_ID,
        by_id & of_brokers(batch, asked),
        by_id & ~of_version(batch, asked),
        (key == key_of("BrokerRegistration")) & (error == DUPLICATE_BROKER_REGISTRATION),
        failed & ~open_to_all,
    )
    return np.select(met, range(NOTHING), NOTHING).astype(np.int64)


def refusals(batch: Batch, asked: Ints) -> tuple[Ints, Bools]:
    """Per request the error at the top of its answer, and whether it was refused; -1 where it was not answered."""
    response = batch.partner(asked, RESPONSE)
    answered, found = response >= 0, batch.answers_of
    return np.where(answered, found.error[response], -1), answered & (found.fate[response] == FAILED)


def closed(batch: Batch, asked: Ints) -> Bools:
    """Requests that were still open when their connection ended; one that merely waits may be granted yet."""
    ended = np.isin(batch.exchanges.outcome, (CLOSED_BY_SERVER, CLOSED_BY_CLIENT))
    exchange = batch.exchange[asked]
    found: Bools = (exchange >= 0) & ended[exchange]
    return found


def of_brokers(batch: Batch, asked: Ints) -> Bools:
    """Requests that only brokers send, and fetches of a replica."""
    found: Bools = np.isin(batch.decoded.messages.key[asked], [*BETWEEN_BROKERS])
    if header := batch.lines("Fetch", "request"):
        _, follows = replicas(header)
        found |= np.isin(asked, header.message[follows])
    return found


def of_version(batch: Batch, asked: Ints) -> Bools:
    """Requests that were answered with UNSUPPORTED_VERSION (35): that is about no topic ID."""
    response = batch.partner(asked, RESPONSE)
    found: Bools = (response >= 0) & np.isin(response, batch.unsupported)
    return found


def by_topic_id(batch: Batch, asked: Ints) -> Bools:
    named = np.zeros(len(batch.decoded), np.bool_)
    asked_keys = set(batch.decoded.messages.key[asked].tolist())
    for api, side in sorted(batch.kinds):
        if side == "request" and key_of(api) in asked_keys:
            for table in batch.tables(api, side).values():
                if "topic_id" in table.names and table["topic_id"].ndim == 2:
                    named[table.message[table["topic_id"].any(axis=1)]] = True
    found: Bools = named[asked]
    return found
