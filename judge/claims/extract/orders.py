"""Which orders count: LeaderAndIsr, UpdateMetadata and StopReplica, by how the broker answered.

Knows: the top-level error of each order's answer, and whether it was seen. Does not know who may give orders.
Rule: an order that was refused (31 CLUSTER_AUTHORIZATION_FAILED, 11 STALE_CONTROLLER_EPOCH, 77 STALE_BROKER_EPOCH, ...)
states nothing about topics; one whose answer was not seen is claimed apart, with its sender's host, and waits until the
sender is known (`context.py`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from wirecheck.decode.wire import RESPONSE
from wirecheck.judge.claims.batch import Batch, value_per
from wirecheck.judge.claims.kinds import UNANSWERED
from wirecheck.judge.claims.reduce import Ints, Rows

ACCEPTED, NOT_SEEN = 0, -1


def errors(batch: Batch, api: str, message: Ints) -> Ints:
    """Per request the top-level error of its answer; NOT_SEEN where there is none."""
    answers = batch.tables(api, "response")
    if not answers:
        return np.full(len(message), NOT_SEEN, np.int64)
    return value_per(batch.partner(message, RESPONSE), answers[""], "error_code", absent=NOT_SEEN)


def accepted(batch: Batch, api: str, stated: Iterable[Rows]) -> Iterator[Rows]:
    """What orders state, as far as they were accepted; what waits for its sender under a kind of its own."""
    for rows in stated:
        error = errors(batch, api, rows.message)
        if (error == ACCEPTED).all():
            yield rows
            continue
        yield rows.where(error == ACCEPTED)
        waiting = rows.where(error == NOT_SEEN)
        yield replace(waiting, kind=f"{UNANSWERED}{rows.kind}", key=[*waiting.key, batch.host(waiting.message)])
