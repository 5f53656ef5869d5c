"""One batch of exchanges and what was decoded of it, with the parts of a key that every family of claims needs.

Knows: which exchange a message belongs to, who sent it to whom, which client id its request carried. Does not know what
a message says.
Rule: everything is a column over messages; nothing is looked up message by message.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.api_names import key_of, name_of
from wirecheck.decode.columns import Table, tables
from wirecheck.decode.connection.exchanges import Exchanges
from wirecheck.decode.message import Decoded, Status
from wirecheck.decode.wire import REQUEST, RESPONSE, SIDES, client_id
from wirecheck.judge.claims.claim import SLOT_NS
from wirecheck.judge.claims.reduce import Column, Ints, Sightings, texts

ABSENT: dict[str, Table] = {}


@dataclass(frozen=True)
class Senders:
    """Per message from Envelopes, the principal and the host that a broker forwards it for."""

    principal: Column
    host: Column


@dataclass(frozen=True)
class Batch:
    exchanges: Exchanges
    decoded: Decoded
    senders: Senders | None = None
    """None where clients send the messages themselves."""
    read: dict[tuple[str, str], dict[str, Table]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Tables that were asked for; they go with the batch, where a cache of the function's own would keep them all."""

    @cached_property
    def kinds(self) -> set[tuple[int, int]]:
        """(key, side) of the messages that were decoded."""
        good = self.decoded.status == Status.OK
        messages = self.decoded.messages
        pairs = np.unique(messages.key[good].astype(np.int64) * len(SIDES) + messages.side[good])
        return {(int(pair) // len(SIDES), int(pair) % len(SIDES)) for pair in pairs}

    def tables(self, api: str, side: str) -> dict[str, Table]:
        """The tables of one message kind; empty where no message of it was decoded."""
        if (key_of(api), SIDES.index(side)) not in self.kinds:
            return ABSENT
        if (api, side) not in self.read:
            self.read[api, side] = tables(self.decoded, api, side)
        return self.read[api, side]

    @cached_property
    def exchange(self) -> Ints:
        """Per message its exchange."""
        return self.exchanges.exchange

    def partner(self, message: Ints, side: int) -> Ints:
        """The request (or response) of the exchange a message belongs to; -1 where it was not seen."""
        half = self.exchanges.request if side == REQUEST else self.exchanges.response
        exchange = self.exchange[message]
        return np.where(exchange >= 0, half[exchange], -1)

    @cached_property
    def names(self) -> list[tuple[str, str, str]]:
        """Per connection its client, its server, its client's host."""
        return [(str(c.client), str(c.server), c.client.host) for c in self.exchanges.connections]

    def connection_part(self, message: Ints, part: int) -> Column:
        values = [names[part] for names in self.names]
        unique = {value: code for code, value in enumerate(dict.fromkeys(values))}
        lookup = np.array([unique[value] for value in values], np.int64)
        return Column(lookup[self.exchanges.connection[message]], list(unique))

    def endpoint(self, message: Ints) -> Column:
        return self.connection_part(message, 1)

    def host(self, message: Ints) -> Column:
        return self.connection_part(message, 2)

    @cached_property
    def client_ids(self) -> Column:
        """Per exchange the client id of its request's header; None where it was not seen."""
        codes = np.full(len(self.exchanges.request), -1, np.int64)
        known: dict[str, int] = {}
        for key, side in sorted(self.kinds):
            if side == REQUEST:
                table = self.tables(name_of(key), "request")[""]
                found = texts(table["client_id"])
                lookup = [known.setdefault(v, len(known)) if v is not None else -1 for v in found.values or ()]
                codes[self.exchange[table.message]] = np.array(lookup, np.int64)[found.codes]
        messages = self.decoded.messages
        for row in np.flatnonzero((self.decoded.status != Status.OK) & (messages.side == REQUEST)).tolist():
            unread = client_id(messages, row)  # the header is whole where the body is not
            if unread is not None and self.exchange[row] >= 0:
                codes[self.exchange[row]] = known.setdefault(unread, len(known))
        return Column(codes, [*known, None])

    def client_id(self, message: Ints) -> Column:
        exchange = self.exchange[message]
        codes = np.where(exchange >= 0, self.client_ids.codes[exchange], -1)
        return Column(codes, self.client_ids.values)

    def api(self, message: Ints) -> Column:
        keys, codes = np.unique(self.decoded.messages.key[message], return_inverse=True)
        return Column(codes.astype(np.int64).ravel(), [name_of(int(key)) for key in keys])

    def api_seen(self, message: Ints) -> Column:
        """The API, and "" of a response whose request was not seen: nobody knows what it answers."""
        found = self.api(message)
        unpaired = self.decoded.status[message] == Status.NO_REQUEST
        return Column(np.where(unpaired, len(found.values or ()), found.codes), [*(found.values or ()), ""])

    def version(self, message: Ints) -> Ints:
        return self.decoded.messages.version[message].astype(np.int64)

    def slot(self, message: Ints) -> Ints:
        """The 10 s of capture time a message began in."""
        slots: Ints = self.exchanges.ts_ns[message] // SLOT_NS
        return slots

    @cached_property
    def sightings(self) -> Sightings:
        every = np.arange(len(self.decoded.messages))
        exchanges, messages = self.exchanges, self.decoded.messages
        return Sightings(
            {
                "ts_ns": Column(exchanges.ts_ns),
                "connection": Column(exchanges.connection.astype(np.int64), [c.name for c in exchanges.connections]),
                "api": self.api_seen(every),
                "version": Column(self.version(every)),
                "correlation_id": Column(messages.correlation_id.astype(np.int64)),
                "source": Column(exchanges.source.astype(np.int64), list(exchanges.names)),
                "frame_first": Column(exchanges.frame_first),
                "frame_last": Column(exchanges.frame_last),
            }
        )


def connection_key(batch: Batch, message: Ints) -> list[Column]:
    started = np.array([connection.started_ns for connection in batch.exchanges.connections], np.int64)
    host, endpoint, client = (batch.connection_part(message, part) for part in (2, 1, 0))
    return [host, endpoint, client, Column(started[batch.exchanges.connection[message]])]


def row_of(table: Table, message: Ints) -> Ints:
    """The row of a message-level table that each message has, in any order; -1 for a message that has none."""
    if not len(table):
        return np.full(len(message), -1)
    order = np.argsort(table.message, kind="stable")
    places = table.message[order]
    at = np.minimum(np.searchsorted(places, message), len(places) - 1)
    return np.where(places[at] == message, order[at], -1)


def value_per(message: Ints, table: Table, name: str, absent: int) -> Ints:
    """A message-level integer column, looked up for messages of that kind in any order."""
    row = row_of(table, message)
    if not len(table):
        return np.full(len(message), absent)
    found: NDArray[np.int64] = table[name][row]
    return np.where(row >= 0, found, absent)


def answered(batch: Batch, message: Ints) -> NDArray[np.bool_]:
    return batch.partner(message, RESPONSE) >= 0
