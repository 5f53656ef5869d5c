"""Exchanges in, claims out: everything the judge ever hears of a batch.

Knows: the families of claims and which fields they read (WANTED). Does not know what follows from a claim.
Rule: what comes out is reduced to one claim per key; the rest of the pipeline never sees a message.
"""

from collections.abc import Iterable, Iterator

from decode.exchanges import Exchanges
from decode.message import Decoded
from streaming.judge.claim import Claim, merged, pack, unpack
from streaming.judge.extract import bindings, clients, control, errors, log, replicas, servers, uses, wire
from streaming.judge.extract.batch import Batch
from streaming.judge.extract.reduce import Rows, reduced

__all__ = ["claims", "pack", "unpack"]

FAMILIES = (bindings, control, uses, replicas, errors, servers, clients, wire, log)


def claims(exchanges: Exchanges, decoded: Decoded) -> list[Claim]:
    batch = Batch(exchanges, decoded)
    stated = merged(claim for rows in rows_of(batch) for claim in reduced(rows, batch.sightings))
    facts = merged([*wire.connections(batch), *log.orders(batch)])
    return merged([*stated, *servers.carried(stated), *servers.deletions(stated), *facts])


def rows_of(batch: Batch) -> Iterator[Rows]:
    if len(batch.decoded):
        for family in FAMILIES:
            yield from stating(family.claims(batch))


def stating(rows: Iterable[Rows]) -> Iterator[Rows]:
    return (part for part in rows if len(part.message))
