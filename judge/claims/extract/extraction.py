"""Exchanges in, claims out: all that the judge gets of a batch.

Knows: the families of claims, and that Envelopes contain exchanges of their own, which brokers forward to the
controller. An inner message has the time and place of its Envelope. It is its client's request; the broker that
forwards it does not count as a client of that API. Does not know what follows from a claim.
Rule: the output is reduced to one claim per key; the rest of the pipeline never sees a message.
"""

from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from wirecheck.decode.columns import tables
from wirecheck.decode.connection.exchanges import Exchanges
from wirecheck.decode.dialect import read_exchanges
from wirecheck.decode.envelope import DEEPEST, ENVELOPE, client_host, principal, unwrapped
from wirecheck.decode.message import Decoded
from wirecheck.decode.wire import REQUEST, RESPONSE, Ints
from wirecheck.judge.claims.batch import Batch, Senders
from wirecheck.judge.claims.claim import Claim, merged
from wirecheck.judge.claims.extract import (
    acknowledgements,
    activities,
    administration,
    answers,
    bindings,
    client_sets,
    clients,
    control,
    drafts,
    error_answers,
    forwarding,
    group_members,
    log_entries,
    logins,
    named_ids,
    node_features,
    overdue,
    peers,
    positions,
    quorum,
    replicas,
    servers,
    transactions,
    unserved,
    uses,
    volumes,
    wire_format,
)
from wirecheck.judge.claims.reduce import Column, reduced

FAMILIES = (
    acknowledgements,
    activities,
    bindings,
    answers,
    administration,
    control,
    uses,
    volumes,
    replicas,
    error_answers,
    servers,
    node_features,
    clients,
    logins,
    transactions,
    unserved,
    wire_format,
    log_entries,
    drafts,
    named_ids,
    quorum,
    client_sets,
    group_members,
    positions,
    peers,
)

PER_EXCHANGE = ("request", "response", "outcome", "out_of_order")
"""Columns of the exchanges; all others are facts that an inner message has from its Envelope."""


def claims(exchanges: Exchanges, decoded: Decoded, batch: Batch | None = None) -> list[Claim]:
    """`batch`: that of these exchanges, where it is read for something else too."""
    batch = batch or Batch(exchanges, decoded)
    stated: list[Claim] = []
    facts = [
        *inner_claims(exchanges, decoded),
        *wire_format.connections(batch),
        *peers.connections(batch),
        *unserved.connections(batch),
        *log_entries.orders(batch),
        *log_entries.chunks(batch),
    ]
    if len(decoded):
        rows = (rows for family in FAMILIES for rows in family.claims(batch))
        stated = merged(claim for row in rows for claim in reduced(row, batch.sightings))
        facts += [*wire_format.answered(batch), *activities.waits(batch)]
        facts += [*overdue.claims(batch), *peers.odd(batch)]
        facts += [*client_sets.members(batch), *client_sets.topics_by_name(batch), *group_members.sets_of(batch)]
        facts += [*forwarding.samples(batch)]
    return merged([*stated, *servers.derived(stated), *facts])


def inner_claims(exchanges: Exchanges, decoded: Decoded, steps: int = DEEPEST) -> list[Claim]:
    """The claims of clients' topic administration inside Envelopes, also nested ones, and who these clients are."""
    found = inside(exchanges, decoded) if steps else None
    if found is None:
        return []
    batch = Batch(found.exchanges, found.decoded, found.senders)
    stated = [
        claim
        for rows in (*bindings.claims(batch), *logins.forwarded(batch), *node_features.claims(batch))
        for claim in reduced(rows, batch.sightings)
    ]
    return [*stated, *inner_claims(found.exchanges, found.decoded, steps - 1)]


class Inside(NamedTuple):
    exchanges: Exchanges
    decoded: Decoded
    senders: Senders


def inside(exchanges: Exchanges, decoded: Decoded) -> Inside | None:
    """The inner exchanges of a batch; None where it has no Envelopes."""
    if not (decoded.messages.key == ENVELOPE).any():
        return None
    request_of = exchanges.request_of
    messages, outer, _ = unwrapped(decoded, request_of)
    if not len(messages):
        return None
    inner = np.full(len(decoded), -1, np.int64)
    inner[outer] = np.arange(len(outer))
    request, response = halves(exchanges.request, inner), halves(exchanges.response, inner)
    facts: dict[str, Any] = {f.name: getattr(exchanges, f.name) for f in fields(exchanges)}
    columns: dict[str, Any] = {name: value for name, value in facts.items() if isinstance(value, np.ndarray)}
    rows = (request >= 0) | (response >= 0)
    found = replace(
        exchanges,
        messages=messages,
        **{name: column[outer] for name, column in columns.items() if name not in PER_EXCHANGE},
        request=request[rows],
        response=response[rows],
        outcome=exchanges.outcome[rows],
        out_of_order=exchanges.out_of_order[rows],
    )
    assert set(messages.side.tolist()) <= {REQUEST, RESPONSE}
    envelope = np.where(request_of[outer] >= 0, request_of[outer], outer)
    return Inside(found, read_exchanges(found), senders(decoded, envelope))


def senders(decoded: Decoded, envelope: Ints) -> Senders:
    """Per inner message the principal and host that its Envelope names; None if the Envelope was not captured, or has
    another form.
    """
    table = tables(decoded, ENVELOPE, "request")[""]
    named: list[tuple[str | None, str | None]] = [(None, None)]
    for row in range(len(table)):
        data, address = (table[name].field(row) for name in ("request_principal", "client_host_address"))
        named.append(
            (
                principal(None if data is None else data.data.tobytes()),
                client_host(None if address is None else address.data.tobytes()),
            )
        )
    place = {int(message): row + 1 for row, message in enumerate(table.message)}
    codes = np.array([place.get(message, 0) for message in envelope.tolist()], np.int64)
    return Senders(*(Column(codes, [one[part] for one in named]) for part in (0, 1)))


def halves(half: Ints, inner: Ints) -> Ints:
    """Per exchange its inner message, -1 where it has none."""
    return np.where(half >= 0, inner[half], -1)
