"""Exchanges without those that a proxy or balancer sends on: what passes both of its legs counts once.

    once = CountedOnce(brokers); exchanges = once.only(exchanges); once.through[leg]

Knows: samples of what was read so far. What came before a forwarder was known counts on both legs: a capture that is
read in one part is counted exactly.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from wirecheck.client_ids import is_of_node
from wirecheck.decode.api_names import BETWEEN_BROKERS, key_of
from wirecheck.decode.columns import kinds, tables
from wirecheck.decode.forwarding import (
    MOST_SAMPLED,
    Leg,
    Sample,
    Sampled,
    Way,
    all_legs,
    answers,
    codes,
    forwarders,
    sampled,
)
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import decode
from wirecheck.decode.peer import Peer
from wirecheck.decode.show.message_head import client_ids
from wirecheck.decode.wire import RESPONSE

if TYPE_CHECKING:
    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.show.learned_names import Brokers
    from wirecheck.decode.wire import Ints

MOST_LEGS = 20_000
METADATA = key_of("Metadata")
Key = TypeVar("Key")


class Legs:
    """Of every exchange of a batch its client ID, its client's host and its server, as one number."""

    def __init__(self, exchanges: Exchanges) -> None:
        self._exchanges = exchanges
        ends = [(each.client.host, str(each.server)) for each in exchanges.connections]
        self._ends = list(dict.fromkeys(ends))
        places = {pair: place for place, pair in enumerate(self._ends)}
        of_connection = np.array([places[pair] for pair in ends], np.int64)
        ids, self._ids = client_ids(exchanges)
        self.numbers: Ints = (ids + 1) * len(self._ends) + of_connection[exchanges.connection[exchanges.first]]

    def leg(self, number: int) -> Leg:
        code, ends = divmod(number, len(self._ends))
        return Leg(self._ids[code - 1] if code else None, *self._ends[ends])


class CountedOnce:
    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers
        self.through: dict[Leg, str] = {}
        """By back leg the endpoint that sends on."""
        self.ways: set[Way] = set()
        self.left_out = 0
        """Messages of back legs."""
        self._received: dict[str, list[Sampled]] = {}
        self._sent: dict[Leg, list[Sampled]] = {}
        self._asked: dict[Leg, Counter[str]] = {}
        self._answered: Counter[str] = Counter()
        self._hosts: set[str] = set()
        """Of servers."""

    def proxies(self) -> set[str]:
        """Endpoints that send requests on."""
        return {*self.through.values()}

    def only(self, exchanges: Exchanges) -> Exchanges:
        """The exchanges that count; what they show of forwarders is learned."""
        if not len(exchanges):
            return exchanges
        legs = Legs(exchanges)
        self._count(exchanges, legs)
        self._learn(exchanges, legs)
        if self._find():
            shown = exchanges.only(np.flatnonzero(exchanges.messages.key[exchanges.first] == METADATA))
            decoded = decode(shown.messages)
            if (METADATA, RESPONSE) in kinds(decoded):
                self.brokers.learn_answers(shown, tables(decoded, METADATA, SIDES[RESPONSE]))
            self._find()
        if not self.through:
            return exchanges
        back = [number for number in np.unique(legs.numbers).tolist() if legs.leg(number) in self.through]
        kept = exchanges.only(np.flatnonzero(~np.isin(legs.numbers, back)))
        self.left_out += len(exchanges.messages) - len(kept.messages)
        return kept

    def _count(self, exchanges: Exchanges, legs: Legs) -> None:
        """How many requests each leg has, by API."""
        answered = (exchanges.request >= 0) & (exchanges.response >= 0)
        keys = exchanges.messages.key[exchanges.first].astype(np.int64) + 1
        width = int(keys.max()) + 1
        pairs, counts = np.unique(legs.numbers * width + keys, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            leg = legs.leg(pair // width)
            if leg in self._asked or len(self._asked) < MOST_LEGS:
                self._asked.setdefault(leg, Counter())[str(pair % width)] += count
        numbers, counts = np.unique(legs.numbers[answered], return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            server = legs.leg(number).server
            self._answered[server] += count
            self._hosts.add(Peer.of(server).host)

    def _learn(self, exchanges: Exchanges, legs: Legs) -> None:
        request, response, places = sampled(exchanges)
        numbers = legs.numbers[exchanges.exchange[request]]
        by_clients = ~np.isin(exchanges.messages.key[request], [*BETWEEN_BROKERS])
        order = np.lexsort((places, numbers))
        ends = np.flatnonzero(np.diff(numbers[order], append=-1)) + 1
        for begin, end in pairwise([0, *ends.tolist()]):
            rows = order[begin : min(end, begin + MOST_SAMPLED)]
            leg = legs.leg(int(numbers[rows[0]]))
            times = (exchanges.ts_ns[part[rows]].tolist() for part in (request, response))
            of_client = by_clients[rows].all() and not is_of_node(leg.client_id)
            senders = [leg.host if of_client else ""] * len(rows)
            keys = exchanges.messages.key[request[rows]].tolist()
            read = codes(exchanges, request[rows]), keys, senders, answers(exchanges, response[rows])
            found = [*map(Sampled, places[rows].tolist(), *times, *read)]
            keep(self._received, leg.server, found)
            if leg.host in self._hosts and of_client:
                keep(self._sent, leg, found)

    def _find(self) -> bool:
        received = {end: Sample(found, self._answered[end]) for end, found in self._received.items()}
        found = forwarders(received, {leg: Sample(found) for leg, found in self._sent.items()}, self.brokers.apart)
        self.ways = {Way(one.endpoint, *place) for one in found for place in one.reached}
        self.through = all_legs(found, self._asked)
        return bool(found)


def keep(samples: dict[Key, list[Sampled]], key: Key, found: list[Sampled]) -> None:
    if key in samples or len(samples) < MOST_LEGS:
        samples[key] = sorted([*samples.get(key, ()), *found])[:MOST_SAMPLED]
