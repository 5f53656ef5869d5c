"""Claims about whose requests a broker answers with errors, by client and topic: the facts of who is hurt.

Knows: the answers about partitions in which clients read, write and commit. Does not know how long an error has to last
before it hurts anybody (`results/harm_rows.py`).
Rule: by topic ID only errors make a claim, as the successes of IDs are kept with their use (`uses.py`); by name both
do. Answers over time are kept apart by partition, and not by port as elsewhere. What followers ask is no client's.
"""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.message import Status
from wirecheck.decode.wire import REQUEST
from wirecheck.judge.claims.batch import Batch, value_per
from wirecheck.judge.claims.claim import RESERVED
from wirecheck.judge.claims.extract.bindings import numbered
from wirecheck.judge.claims.extract.clients import who
from wirecheck.judge.claims.extract.replicas import PARTITION_ANSWERS
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant, texts

ANSWERS = (
    *PARTITION_ANSWERS,
    ("OffsetCommit", "topics", "partitions", "name", "partition_index"),
    ("ShareFetch", "responses", "partitions", "", "partition_index"),
)
"""API, topics, partitions, the columns of the name (none) and of the partition's number."""
INTERNAL = re.compile(r"broker-\d+-fetcher-\d+|raft-client-\d+|\d{1,10}", re.ASCII)
"""Client IDs of brokers and controllers."""
REPLICA_IDS = ("replica_id", "replica_state.replica_id")


def claims(batch: Batch) -> Iterator[Rows]:
    for api, path, inner, name, number in ANSWERS:
        tables = batch.tables(api, "response")
        if not tables:
            continue
        topics, partitions = tables[path], tables[f"{path}.{inner}"]
        error, parent = partitions["error_code"], partitions.parent
        by_id = topics.present("topic_id")[parent] if "topic_id" in topics.names else np.zeros(len(parent), np.bool_)
        rows = np.flatnonzero((error != 0) | ~by_id)
        if not len(rows):
            continue
        message, parent, by_id = partitions.message[rows], parent[rows], by_id[rows]
        wanted = ~followers(batch, api, message)
        topic = (numbered(topics) if by_id.any() else constant(None, len(topics))).take(parent)
        names = (texts(topics[name]) if name else constant(None, len(topics))).take(parent)
        numbers = Column(partitions[number][rows])
        for kind, about, these in (("refused", topic, by_id), ("named_answer", names, ~by_id)):
            known = np.array([value is not None and value not in RESERVED for value in about.values or ()], np.bool_)
            key = [about, constant(api, len(rows)), *who(batch, message)]
            found = Rows(kind, key, message, error=error[rows], apart=numbers)
            yield found.where(these & wanted & known[about.codes])


def followers(batch: Batch, api: str, message: Ints) -> NDArray[np.bool_]:
    """Per answer whether its request carries a replica ID, as only brokers' and controllers' own do. Where the request
    was cut, a broker's kind of client ID is enough: nobody is called hurt who may be a broker.
    """
    request = batch.partner(message, REQUEST)
    asked = batch.tables(api, "request")
    names = batch.client_id(message)
    internal = np.array([INTERNAL.fullmatch(name or "") is not None for name in names.values or ()], np.bool_)
    found: NDArray[np.bool_] = internal[names.codes] & (batch.decoded.status[request] != Status.OK)
    if asked:
        for name in REPLICA_IDS:
            if name in asked[""].names:
                found |= value_per(request, asked[""], name, absent=-1) >= 0
    return found
