"""Many rows of columns down to one claim per key.

Rule: all work per row is numpy; Python touches unique keys only.
"""

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.peer import Conversation
from wirecheck.decode.texts import Lists, Text, id_codes
from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.claims.outcomes import SLOT_NS, Outcomes, Run

Ints = NDArray[np.int64]
LEAST_OF_ALL, MOST_OF_ALL = np.iinfo(np.int64).min, np.iinfo(np.int64).max
SPARSE = 16
"""A table of so many places for each row is still quicker than sorting the rows."""


@dataclass(frozen=True)
class Column:
    """One part of a key, for every row."""

    codes: Ints
    values: Sequence[Any] | None = None
    """The values of the codes; None if the codes are the values."""

    def value(self, row: int) -> Any:
        code = int(self.codes[row])
        return code if self.values is None else self.values[code]

    def at(self, rows: NDArray[Any]) -> list[Any]:
        """The values of some rows."""
        codes, values = self.codes[rows].tolist(), self.values
        return codes if values is None else [values[code] for code in codes]

    def take(self, rows: NDArray[Any]) -> "Column":
        return Column(self.codes[rows], self.values)

    def only(self, mask: NDArray[np.bool_]) -> "Column":
        """None where the mask does not hold."""
        codes, values = self.codes, self.values
        if values is None:
            unique, codes = np.unique(codes, return_inverse=True)
            values = unique.tolist()
        return Column(np.where(mask, codes, -1), [*values, None])


def moment(ts_ns: int, connection: str = "", source: str = "") -> Sighting:
    """What was seen of no message."""
    return Sighting(ts_ns, connection, "", -1, -1, source, 0, 0)


def constant(value: Any, rows: int) -> Column:
    return Column(np.zeros(rows, np.int64), [value])


def texts(text: Text) -> Column:
    codes, unique = text.codes()
    return Column(codes.astype(np.int64), [*unique, None])


def ids(values: NDArray[np.uint8]) -> Column:
    """Topic ids as Kafka prints them."""
    codes, unique = id_codes(values)
    return Column(codes.astype(np.int64), [base64.urlsafe_b64encode(value)[:22].decode() for value in unique])


def lists(column: Lists) -> Column:
    """Lists of integers as texts like 1,2,3; null as the empty list."""
    codes, unique = column.codes()
    return Column(codes.astype(np.int64), [*(",".join(map(str, one)) for one in unique), ""])


def spelled(spell: Callable[..., str], *columns: Column) -> Column:
    """One text per row, made of its parts."""
    group, sample = grouped(columns)
    return Column(group, [*map(spell, *(column.at(sample) for column in columns))])


def grouped(columns: Iterable[Column]) -> tuple[Ints, Ints]:
    """Per row the number of its key, and per key the first row that has it; keys in the order of their codes."""
    together: Ints | None = None
    width, rows = 1, 0
    for column in columns:
        codes, rows = column.codes, len(column.codes)
        low, high = (int(codes.min()), int(codes.max())) if rows else (0, 0)
        if low == high:  # of all rows one: most parts of a key, in most batches
            continue
        codes, several = dense(codes - low, high - low + 1)
        if together is not None:
            codes, several = dense(together * several + codes, width * several)
        together, width = codes, several
    if together is None:
        return np.zeros(rows, np.int64), np.zeros(min(rows, 1), np.int64)
    sample = np.zeros(width, np.int64)
    sample[together[::-1]] = np.arange(rows)[::-1]  # of a repeated index the last counts
    return together, sample


def dense(codes: Ints, width: int) -> tuple[Ints, int]:
    """Codes of 0 to width as ones without holes, in the same order; how many there are."""
    if not len(codes):
        return codes, 0
    if width > SPARSE * len(codes) + SPARSE:  # a table would be larger than sorting is slow
        values, codes = np.unique(codes, return_inverse=True)
        return codes.astype(np.int64).ravel(), len(values)
    there = np.zeros(width, np.bool_)
    there[codes] = True
    places = there.cumsum()
    return places[codes] - 1, int(places[-1])


class Sightings:
    """The messages of a batch in the order of their sightings, which are made only where a claim needs them."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.columns = [columns[name] for name in Sighting._fields]
        order = np.lexsort([ordered(column) for column in reversed(self.columns)])
        self.order = order
        self.rank = np.empty(len(order), np.int64)
        self.rank[order] = np.arange(len(order))
        self.made: dict[int, Sighting] = {}
        self.lacking: Counter[str] = Counter()
        """By kind the claims that lack a text, because its bytes were not captured."""
        self.ts_ns = columns["ts_ns"].codes
        connection = columns["connection"]
        ports = {name: Conversation.of(name).client.port for name in connection.values or ()}
        places = {port: place for place, port in enumerate(dict.fromkeys(ports.values()))}
        codes = np.array([places[ports[name]] for name in connection.values or ()], np.int64)
        self.port = Column(codes[connection.codes], [*places])
        """The client's port of each message."""

    def at(self, message: int) -> Sighting:
        return self.at_ranks([int(self.rank[message])])[0]

    def of(self, messages: Ints) -> list[Sighting]:
        return self.at_ranks(self.rank[messages].tolist())

    def at_ranks(self, ranks: list[int]) -> list[Sighting]:
        if new := {*ranks} - self.made.keys():
            rows = self.order[[*new]]
            self.made.update(zip(new, map(Sighting, *(column.at(rows) for column in self.columns)), strict=True))
        return [self.made[rank] for rank in ranks]


def ordered(column: Column) -> Ints:
    """Codes that sort as their values do."""
    if column.values is None:
        return column.codes
    values = column.values
    place = np.empty(len(values), np.int64)
    place[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
    return place[column.codes]


@dataclass(frozen=True)
class Rows:
    """Rows that each state one thing."""

    kind: str
    key: Sequence[Column]
    message: Ints
    """Which message of the batch states it."""
    tally: Column | None = None
    """A counter's name per row; None counts nothing apart."""
    sums: Mapping[str, Ints] | None = None
    """By name of a counter what each row adds to it."""
    peak: Mapping[str, Ints] | None = None
    latest: Mapping[str, tuple[Ints, Ints]] | None = None
    """By name the time and the value; the latest holds."""
    named: tuple[Column, Ints] | None = None
    """Peaks whose name differs by row: the name, None for no peak, and the value."""
    error: Ints | None = None
    """The error code of each row, where answers are counted over time."""
    apart: Column | None = None
    """By what answers over time are kept apart; by the client's port where that is None."""
    since: Ints | None = None
    """The time by which each row counts for a slot, if that is not the message's own."""

    def where(self, mask: NDArray[Any]) -> "Rows":
        return Rows(
            self.kind,
            [column.take(mask) for column in self.key],
            self.message[mask],
            self.tally.take(mask) if self.tally else None,
            {name: values[mask] for name, values in self.sums.items()} if self.sums else None,
            {name: values[mask] for name, values in self.peak.items()} if self.peak else None,
            {name: (ts[mask], values[mask]) for name, (ts, values) in self.latest.items()} if self.latest else None,
            (self.named[0].take(mask), self.named[1][mask]) if self.named else None,
            None if self.error is None else self.error[mask],
            self.apart.take(mask) if self.apart else None,
            None if self.since is None else self.since[mask],
        )


def reduced(rows: Rows, sightings: Sightings) -> Iterator[Claim]:
    """One claim per key. Those that lack what must be known are counted by kind, and no more."""
    if not len(rows.message):
        return
    known = KINDS[rows.kind].known
    group, sample = grouped(rows.key)
    first, last, counts = spans(sightings.rank[rows.message], group, len(sample))
    tallies, peaks = tallied(rows, group, len(sample)), peaked(rows, group, len(sample))
    outcomes = over_time(rows, group, sightings)
    keys = zip(*(column.at(sample) for column in rows.key), strict=True)
    seen = zip(keys, sightings.at_ranks(first), sightings.at_ranks(last), strict=True)
    for number, (key, first_seen, last_seen) in enumerate(seen):
        if None in key and any(key[place] is None for place in known):
            sightings.lacking[rows.kind] += counts[number]
            continue
        yield Claim(
            rows.kind,
            key,
            first_seen,
            last_seen,
            count=counts[number],
            tally=tallies[number],
            peak=peaks[number],
            outcomes=outcomes.get(number),
        )


def tallied(rows: Rows, group: Ints, groups: int) -> list[dict[str, int]]:
    found: list[dict[str, int]] = [{} for _ in range(groups)]
    if rows.tally is not None:
        both, sample = grouped([Column(group), rows.tally])
        counts = np.bincount(both, minlength=len(sample))
        for number, name, count in zip(group[sample].tolist(), rows.tally.at(sample), counts.tolist(), strict=True):
            if name is not None:
                found[number][name] = count
    for name, values in (rows.sums or {}).items():
        totals = np.zeros(groups, np.int64)
        np.add.at(totals, group, values)
        for number, total in enumerate(totals.tolist()):
            if total:
                found[number][name] = total
    return found


def over_time(rows: Rows, group: Ints, sightings: Sightings) -> dict[int, Outcomes]:
    """By key."""
    found: dict[int, Outcomes] = {}
    if rows.error is None:
        return found
    ts_ns, port = sightings.ts_ns[rows.message], rows.apart or sightings.port.take(rows.message)
    slot = (ts_ns if rows.since is None else rows.since) // SLOT_NS
    each, sample = grouped([Column(group), Column(rows.error), Column(slot), port])
    first, last, counts = spans(ts_ns, each, len(sample))
    where = (group[sample].tolist(), rows.error[sample].tolist(), slot[sample].tolist(), port.at(sample))
    for key, error, in_slot, at_port, *run in zip(*where, counts, first, last, strict=True):
        outcomes = found.get(key)
        if outcomes is None:
            outcomes = found[key] = Outcomes()
        outcomes.add(error, in_slot, at_port, Run(*run))
    return found


def spans(values: Ints, group: Ints, groups: int) -> tuple[list[int], list[int], list[int]]:
    """Per group the least and the greatest value, and how many there are."""
    first, last = np.full(groups, MOST_OF_ALL), np.full(groups, -1)
    np.minimum.at(first, group, values)
    np.maximum.at(last, group, values)
    return first.tolist(), last.tolist(), np.bincount(group, minlength=groups).tolist()


def peaked(rows: Rows, group: Ints, groups: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{} for _ in range(groups)]
    for name, values in (rows.peak or {}).items():
        highest = np.full(groups, LEAST_OF_ALL)
        np.maximum.at(highest, group, values)
        for number, value in enumerate(highest.tolist()):
            found[number][name] = value
    if rows.named is not None:
        names, values = rows.named
        both, sample = grouped([Column(group), names])
        highest = np.full(len(sample), LEAST_OF_ALL)
        np.maximum.at(highest, both, values)
        for number, name, value in zip(group[sample].tolist(), names.at(sample), highest.tolist(), strict=True):
            if name is not None:
                found[number][name] = value
    for name, (ts_ns, values) in (rows.latest or {}).items():
        order = np.lexsort((values, ts_ns, group))
        last = order[np.flatnonzero(np.append(np.diff(group[order]) != 0, True))]
        for number, row in zip(group[last].tolist(), last.tolist(), strict=True):
            found[number][name] = [int(ts_ns[row]), int(values[row])]
    return found
