"""Samples of requests: what each endpoint receives, and what each client's host sends to each endpoint.

Rule: what nodes send is never sent on by a proxy: fetches of followers and the APIs between brokers are in no sample of
a sender, and have no sender in those of an endpoint.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from wirecheck.client_ids import is_of_node
from wirecheck.decode.api_names import BETWEEN_BROKERS
from wirecheck.decode.columns import value_per
from wirecheck.decode.forwarding import answers, codes, sampled
from wirecheck.decode.peer import Peer
from wirecheck.judge.claims.batch import Batch, Bools
from wirecheck.judge.claims.claim import SAMPLE, Claim
from wirecheck.judge.claims.extract.error_answers import REPLICA_IDS
from wirecheck.judge.claims.members import sets
from wirecheck.judge.claims.reduce import Column, Ints


def samples(batch: Batch) -> Iterator[Claim]:
    exchanges = batch.exchanges
    answered = exchanges.request[(exchanges.request >= 0) & (exchanges.response >= 0)].astype(np.int64)
    if not len(answered):
        return
    request, response, places = sampled(exchanges)
    of_nodes = by_nodes(batch, request)

    def values(chosen: Ints, senders: Column | None = None) -> Any:
        def of(rows: Ints) -> list[Any]:
            mine, theirs = request[chosen[rows]], response[chosen[rows]]
            times = (exchanges.ts_ns[part].tolist() for part in (mine, theirs))
            parts = [*times, codes(exchanges, mine), exchanges.messages.key[mine].tolist()]
            parts += [] if senders is None else [senders.at(chosen[rows]), answers(exchanges, theirs)]
            return [*map(list, zip(*parts, strict=True))]

        return of

    hosts = batch.host(request)
    senders = Column(np.where(of_nodes, len(hosts.values or ()), hosts.codes), [*(hosts.values or ()), ""])
    rows, members = (batch.states("received", [server_of(batch, at), "@endpoint"], at) for at in (answered, request))
    every = values(np.arange(len(request)), senders)
    yield from sets(rows, members, places, batch.sightings, every, prefix=SAMPLE)
    by_clients = np.flatnonzero(~of_nodes)
    if len(by_clients):
        rows = batch.states("sent_on", "@who", request[by_clients])
        yield from sets(rows, rows, places[by_clients], batch.sightings, values(by_clients), prefix=SAMPLE)


def server_of(batch: Batch, message: Ints) -> Column:
    ends = batch.endpoint(message)
    return Column(ends.codes, [Peer.of(end).host for end in ends.values or ()])


def by_nodes(batch: Batch, request: Ints) -> Bools:
    found: Bools = np.isin(batch.decoded.messages.key[request], [*BETWEEN_BROKERS])
    client_ids = batch.client_id(request)
    found |= np.array([is_of_node(one) for one in client_ids.values or ()], np.bool_)[client_ids.codes]
    if header := batch.lines("Fetch", "request"):
        for name in REPLICA_IDS:
            found |= value_per(request, header.table, name, absent=-1) >= 0
    return found
