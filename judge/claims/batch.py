"""One batch of exchanges and what was decoded of it, with the parts of a key that every family of claims needs.

Rule: everything is a column over messages; nothing is looked up message by message.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.api_names import key_of, name_of
from wirecheck.decode.columns import Table, kinds, row_of, tables
from wirecheck.decode.connection.exchanges import Exchanges
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import Decoded, Dialect, Status
from wirecheck.decode.show.message_head import client_ids
from wirecheck.decode.texts import Lists, Text
from wirecheck.decode.wire import REQUEST, RESPONSE
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.claims.reduce import Column, Ints, Rows, Sightings, constant, ids, lists, spelled, texts
from wirecheck.judge.claims.response_outcomes import NO_RESPONSE, ResponseOutcomes, outcomes_of

Bools = NDArray[np.bool_]
UNSUPPORTED_VERSION = 35
AUTHENTICATION = (17, 36)
"""SaslHandshake, SaslAuthenticate: a failed authentication ends a connection too."""
GREETINGS = (*AUTHENTICATION, 18)
"""These and ApiVersions."""
Parts = str | Sequence[Any]
"""Of a key: words, with columns among them."""
ABSENT: dict[str, Table] = {}
Made = TypeVar("Made")


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
    dialects: Collection[str] = ()
    """The drafts that were named to read by."""
    read: dict[tuple[str, str], dict[str, Table]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Tables that were asked for; they go with the batch, where a cache of the function's own would keep them all."""

    made: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What `once` was asked for."""

    def once(self, make: Callable[["Batch"], Made]) -> Made:
        """What several families of claims read, made for the first of them."""
        if make not in self.made:
            self.made[make] = make(self)
        found: Made = self.made[make]
        return found

    @cached_property
    def kinds(self) -> set[tuple[str, str]]:
        """API and side of what was decoded."""
        return {(name_of(key), SIDES[side]) for key, side in kinds(self.decoded)}

    def tables(self, api: str, side: str) -> dict[str, Table]:
        """The tables of one message kind; empty where no message of it was decoded."""
        if (api, side) not in self.kinds:
            return ABSENT
        if (api, side) not in self.read:
            self.read[api, side] = tables(self.decoded, api, side)
        return self.read[api, side]

    def lines(self, api: str, side: str, path: str = "") -> "Lines | None":
        """The rows of one of these tables; None where no message of the kind was decoded."""
        found = self.tables(api, side)
        return Lines(self, (api, side), found[path]) if found else None

    def each(self, side: str, tables: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Rows of tables that were decoded: of (API, path, more ...) as (API, rows, more ...)."""
        for api, path, *more in tables:
            if (lines := self.lines(api, side, path)) is not None:
                yield (api, lines, *more)

    def states(self, kind: str, key: Parts, message: Ints, where: Bools | None = None, **more: Any) -> Rows:
        """What messages of any kind state; `more` as of `Rows`."""
        stated = Rows(kind, key_of_messages(self, key, message), message, **more)
        return stated if where is None else stated.where(where)

    def answers(self, but: Collection[int] = ()) -> Iterator[tuple[str, Mapping[str, Table]]]:
        """The responses that were decoded, by API, in the order of their keys; without some keys."""
        answered = (key_of(api) for api, side in self.kinds if side == SIDES[RESPONSE])
        for key in sorted({*answered}.difference(but)):
            yield name_of(key), self.tables(name_of(key), SIDES[RESPONSE])

    @cached_property
    def answers_of(self) -> ResponseOutcomes:
        """What each response comes down to."""
        fate, error = (np.full(len(self.decoded), value, np.int64) for value in (NO_RESPONSE, 0))
        for api, answers in self.answers():
            message, of_message, code = outcomes_of(api, answers)
            fate[message], error[message] = of_message, code
        return ResponseOutcomes(fate, error)

    @cached_property
    def unsupported(self) -> Ints:
        """Responses that have UNSUPPORTED_VERSION anywhere. In an ApiVersions answer it is how versions are
        negotiated.
        """
        errors = (t for _, tables in self.answers(GREETINGS) for t in tables.values() if "error_code" in t.names)
        found = [table.message[table["error_code"] == UNSUPPORTED_VERSION] for table in errors]
        return np.unique(np.concatenate([np.empty(0, np.int64), *found]))

    @cached_property
    def exchange(self) -> Ints:
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

    @cached_property
    def connection_parts(self) -> list[Column]:
        """The same by part, one row per connection."""
        found = []
        for values in zip(*self.names, strict=True):
            unique = {value: code for code, value in enumerate(dict.fromkeys(values))}
            found.append(Column(np.array([unique[value] for value in values], np.int64), [*unique]))
        return found or [Column(np.zeros(0, np.int64), [])] * 3

    def connection_part(self, message: Ints, part: int) -> Column:
        return self.connection_parts[part].take(self.exchanges.connection[message])

    def close_ns(self, message: Ints) -> Ints:
        """When the connection of each message was closed; 0 if it was not."""
        return np.array([one.close_ns or 0 for one in self.exchanges.connections], np.int64)[
            self.exchanges.connection[message]
        ]

    def endpoint(self, message: Ints) -> Column:
        return self.connection_part(message, 1)

    def host(self, message: Ints) -> Column:
        return self.connection_part(message, 2)

    @cached_property
    def client_ids(self) -> Column:
        """Per exchange the client id of its request's header; None where it was not seen."""
        codes, known = client_ids(self.exchanges)
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

    def drafted(self, message: Ints) -> Bools:
        """Which messages were read by the layouts of a draft."""
        decoded = self.decoded
        found: Bools = (decoded.dialect[message] >= Dialect.KIP516_DRAFT) & (decoded.status[message] == Status.OK)
        return found

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


def key_of_messages(batch: Batch, parts: Parts, message: Ints) -> list[Column]:
    """Parts of a key: columns over these messages, and words as of `Lines`."""
    found: list[Column] = []
    for part in parts.split() if isinstance(parts, str) else parts:
        if isinstance(part, Column):
            found.append(part)
        elif part == "@connection":
            found += [batch.host(message), batch.endpoint(message), batch.connection_part(message, 0)]
            started = np.array([connection.started_ns for connection in batch.exchanges.connections], np.int64)
            found.append(Column(started[batch.exchanges.connection[message]]))
        elif part == "@who":
            found += [batch.client_id(message), batch.host(message), batch.endpoint(message)]
        elif part[0] == "@":
            values = getattr(batch, part[1:])(message)
            found.append(values if isinstance(values, Column) else Column(values))
        else:
            found.append(constant(part[1:] or None, len(message)))
    return found


class Lines:
    """The rows of one table of one kind of message, as claims state them.

    A column is found by its name in the table, or else in the nearest table around it that has one; `^` begins to look
    in the table around, `/` is the message's own. Among the parts of a key `=text` is the same for every row, `-` is
    None, and `@endpoint`, `@host`, `@client_id`, `@who` (client ID, host, endpoint) and `@connection` (four parts) are
    who talks to whom, `@api` and `@version` in which request.
    """

    def __init__(self, batch: Batch, kind: tuple[str, str], table: Table) -> None:
        self.batch, self.kind, self.table = batch, kind, table
        self.message: Ints = table.message

    def __len__(self) -> int:
        return len(self.table)

    def __bool__(self) -> bool:
        return True

    def place(self, name: str) -> tuple[Table, str, Ints | None]:
        """The table that has a column, its name there, and the row there of each row here; None for the same."""
        table, rows, bare = self.table, None, name.lstrip("^/")
        up = len(name) - len(bare)
        while up or bare not in table.names:
            if table.enclosing is None:
                if name[0] == "/" and bare in table.names:
                    break
                message = f"{name}: no table of {self.kind} at {self.table.path} has it"
                raise KeyError(message)
            rows = table.parent if rows is None else table.parent[rows]
            table, up = table.enclosing, up if name[0] == "/" else max(0, up - 1)
        return table, bare, rows

    def has(self, name: str) -> bool:
        table: Table | None = self.table
        while table is not None and name not in table.names:
            table = table.enclosing
        return table is not None

    def taken(self, name: str, part: Callable[[Table, str], Any]) -> Any:
        table, bare, rows = self.place(name)
        found = part(table, bare)
        return found if rows is None else found[rows]

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        values: Ints = self.taken(name, lambda table, bare: table[bare])
        return values

    def size(self, name: str) -> Ints:
        """The length of texts, and the count of lists; -1 for null."""
        sizes: Ints = self.taken(name, lambda table, bare: size_of(table[bare]))
        return sizes

    def given(self, name: str) -> Bools:
        """Whether a text is not null, an ID not zero."""
        found: Bools = self.taken(name, lambda table, bare: given_in(table[bare]))
        return found

    def present(self, name: str) -> Bools:
        """Whether the field was on the wire."""
        found: Bools = self.taken(name, Table.present)
        return found

    def column(self, word: str, rows: Ints | None = None) -> Column:
        """One part of a key, of all rows or of some."""
        if word[0] in "-=@":
            (part,) = key_of_messages(self.batch, [word], self.message if rows is None else self.message[rows])
            return part
        table, bare, there = self.place(word)
        found = part_of(table, bare)
        if there is None:
            return found if rows is None else found.take(rows)
        return found.take(there if rows is None else there[rows])

    def key(self, parts: Parts, rows: Ints | None = None) -> list[Column]:
        found: list[Column] = []
        for part in parts.split() if isinstance(parts, str) else parts:
            if isinstance(part, Column):
                found.append(part if rows is None else part.take(rows))
            elif part[0] in "-=@":
                found += key_of_messages(self.batch, [part], self.message if rows is None else self.message[rows])
            else:
                found.append(self.column(part, rows))
        return found

    def states(self, kind: str, key: Parts, where: Bools | None = None, **more: Any) -> Rows:
        """What every row states for which it holds; `more` as of `Rows`."""
        if where is None:
            return Rows(kind, self.key(key), self.message, **more)
        rows = np.flatnonzero(where)
        stated = Rows(kind, (), self.message, **more).where(rows)
        return replace(stated, key=self.key(key, rows)) if len(rows) else stated

    @property
    def ts_ns(self) -> Ints:
        found: Ints = self.batch.exchanges.ts_ns[self.message]
        return found

    @property
    def slots(self) -> Column:
        """Tally names that count by 10 s of capture time."""
        return spelled(str, Column(self.batch.slot(self.message)))

    @cached_property
    def partner(self) -> Ints:
        """The message of the other half of the exchange; -1 where it was not seen."""
        return self.batch.partner(self.message, RESPONSE if self.kind[1] == "request" else REQUEST)

    @cached_property
    def header(self) -> "Lines | None":
        return self.batch.lines(self.kind[0], "response" if self.kind[1] == "request" else "request")

    def other(self, part: str | Ints, absent: int) -> Ints:
        """A number of the other half's header; where that was not seen, or not decoded, it is `absent`."""
        if self.header is None or not len(self.header):
            return np.full(len(self), absent, np.int64)
        row = row_of(self.header.table, self.partner)
        found: Ints = np.where(row >= 0, (self.header[part] if isinstance(part, str) else part)[row], absent)
        return found

    def other_column(self, part: str | Column) -> tuple[Column, Bools]:
        """A part of the other half's header, and whether that was decoded."""
        if self.header is None or not len(self.header):
            return constant(None, len(self)), np.zeros(len(self), np.bool_)
        row = row_of(self.header.table, self.partner)
        return (self.header.column(part) if isinstance(part, str) else part).take(row), row >= 0


def part_of(table: Table, name: str) -> Column:
    values = table[name]
    if isinstance(values, Text):
        return texts(values)
    if isinstance(values, Lists):
        return lists(values)
    return numbered(table, name) if values.ndim > 1 else Column(values)


def numbered(table: Table, column: str = "topic_id") -> Column:
    """Topic IDs; None where the version carries none. Kept with the table: several families ask for them."""
    if column not in table.numbered:
        table.numbered[column] = ids(table[column]).only(table.present(column))
    kept: Column = table.numbered[column]
    return kept


def size_of(values: Any) -> Ints:
    sizes: Ints = (values.count if isinstance(values, Lists) else values.length).astype(np.int64)
    return sizes


def given_in(values: Any) -> Bools:
    found: Bools = np.asarray(values.any(axis=1) if isinstance(values, np.ndarray) else values.length >= 0)
    return found


def among(column: Column, values: set[str | None]) -> Bools:
    """Whether the part of each row is one of these."""
    found: Bools = np.array([value in values for value in column.values or ()], np.bool_)[column.codes]
    return found
