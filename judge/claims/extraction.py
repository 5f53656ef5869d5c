"""Exchanges in, claims out: everything the judge ever hears of a batch.

Knows: the families of claims, and that Envelopes hold exchanges of their own. Does not know what follows from a claim.
Rule: what comes out is reduced to one claim per key; the rest of the pipeline never sees a message.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from wirecheck.decode.connection.exchanges import Exchanges
from wirecheck.decode.envelope import DEEPEST
from wirecheck.decode.message import Decoded, Status
from wirecheck.judge.claims import enveloped
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.claim import Claim, merged, pack, unpack
from wirecheck.judge.claims.extract import (
    administration,
    bindings,
    client_sets,
    clients,
    control,
    drafts,
    error_answers,
    log_entries,
    peers,
    replicas,
    servers,
    uses,
    wire_format,
)
from wirecheck.judge.claims.reduce import Rows, reduced

__all__ = ["claims", "pack", "unpack"]

FAMILIES = (
    bindings,
    administration,
    control,
    uses,
    replicas,
    error_answers,
    servers,
    clients,
    wire_format,
    log_entries,
    drafts,
    client_sets,
    peers,
)


def claims(exchanges: Exchanges, decoded: Decoded) -> list[Claim]:
    batch = Batch(exchanges, answering(exchanges, decoded))
    stated = merged(claim for rows in rows_of(batch) for claim in reduced(rows, batch.sightings))
    forwarded = inner_claims(exchanges, decoded)
    sets = [*client_sets.members(batch), *client_sets.topics_by_name(batch), *peers.odd(batch)] if len(decoded) else []
    facts = merged(
        [
            *forwarded,
            *wire_format.connections(batch),
            *(wire_format.answered(batch) if len(decoded) else ()),
            *peers.connections(batch),
            *log_entries.orders(batch),
            *log_entries.chunks(batch),
            *sets,
        ]
    )
    return merged([*stated, *servers.derived(stated), *facts])


def inner_claims(exchanges: Exchanges, decoded: Decoded, steps: int = DEEPEST) -> list[Claim]:
    """What clients' topic administration says inside Envelopes, and in Envelopes in there."""
    found = enveloped.inside(exchanges, decoded) if steps else None
    if found is None:
        return []
    batch = Batch(found.exchanges, answering(found.exchanges, found.decoded), found.senders)
    stated = [claim for rows in stating(bindings.claims(batch)) for claim in reduced(rows, batch.sightings)]
    return [*stated, *inner_claims(found.exchanges, found.decoded, steps - 1)]


def answering(exchanges: Exchanges, decoded: Decoded) -> Decoded:
    """Without the responses whose request was not seen: nobody knows what they answer, whatever they look like."""
    alone = exchanges.response[(exchanges.request < 0) & (exchanges.response >= 0)]
    key, status = decoded.messages.key.copy(), decoded.status.copy()
    key[alone], status[alone] = -1, Status.NO_REQUEST
    return replace(decoded, messages=replace(decoded.messages, key=key), status=status)


def rows_of(batch: Batch) -> Iterator[Rows]:
    if len(batch.decoded):
        for family in FAMILIES:
            yield from stating(family.claims(batch))


def stating(rows: Iterable[Rows]) -> Iterator[Rows]:
    return (part for part in rows if len(part.message))
