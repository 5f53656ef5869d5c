"""Claims about transactions: who writes in which, how long each may be open, and where consumers that read committed
records only get nothing although the log goes on; how transactions end.

Rule: a leader gives such a consumer records up to the last stable offset: where the first open transaction begins. An
answer without records below the high watermark says that the consumer has read up to there (KIP-98).
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.api_names import key_of
from wirecheck.decode.wire import REQUEST
from wirecheck.judge.claims.batch import Batch, among, key_of_messages
from wirecheck.judge.claims.claim import AT
from wirecheck.judge.claims.outcomes import SUCCESS
from wirecheck.judge.claims.reduce import Column, Ints, Rows, spelled
from wirecheck.judge.claims.seconds import SECOND_NS, SLOT_S

OF_TRANSACTIONS = "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"
COMMITTED = 1
"""The isolation level READ_COMMITTED."""
ABORTED = 1
"""How a transaction ended, in place of an error."""


def claims(batch: Batch) -> Iterator[Rows]:
    if written := batch.lines("Produce", "request", "topic_data.partition_data"):
        name = written.column("name").only(written.present("name"))
        topic_id = written.column("topic_id") if written.has("topic_id") else "-"
        client, host, _ = key_of_messages(batch, "@who", written.message)
        key = ["transactional_id", name, topic_id, "index", client, host]
        yield written.states("writes_in_transaction", key, written.given("transactional_id"))
    if granted := batch.lines("InitProducerId", "response"):
        transactional_id, _ = granted.other_column("transactional_id")
        peak = {"limit_ms": granted.other("transaction_timeout_ms", absent=0)}
        good = (granted["error_code"] == 0) & ~among(transactional_id, {None})
        yield granted.states("transaction_limit", [transactional_id, "@endpoint"], good, peak=peak)
    if ends := batch.lines("EndTxn", "request"):
        outcome = np.where(ends["committed"] != 0, SUCCESS, ABORTED)
        good = ends.other("error_code", absent=-1) == 0
        yield ends.states("transaction_ended", "@who", good, error=outcome)
        key, second = ["transactional_id", "@endpoint"], Column(ends.ts_ns // SECOND_NS % SLOT_S)
        yield ends.states("transaction_done", key, good, error=outcome, apart=second)
    asked = requests(batch)
    yield batch.states("transaction_request", "@who", asked, error=np.full(len(asked), SUCCESS, np.int64))
    yield from held_back(batch)


def requests(batch: Batch) -> Ints:
    """The messages by which a client begins, does or ends a transaction."""
    messages = batch.decoded.messages
    found = (messages.side == REQUEST) & np.isin(messages.key, [key_of(api) for api in OF_TRANSACTIONS])
    headers = [header for api in ("Produce", "InitProducerId") if (header := batch.lines(api, "request"))]
    rows = [header.message[header.given("transactional_id")] for header in headers]
    return np.unique(np.concatenate([np.flatnonzero(found), *rows]))


def held_back(batch: Batch) -> Iterator[Rows]:
    partitions = batch.lines("Fetch", "response", "responses.partitions")
    if not partitions:
        return
    stable, high = partitions["last_stable_offset"], partitions["high_watermark"]
    committed = partitions.other("isolation_level", absent=0) == COMMITTED
    waits = committed & (partitions["error_code"] == 0) & (stable >= 0) & (stable < high)
    names = spelled(f"{AT}{{}}".format, Column(partitions.batch.slot(partitions.message)))
    name = partitions.column("topic").only(partitions.present("topic"))
    yield partitions.states(
        "held_back",
        [name, "topic_id" if partitions.has("topic_id") else "-", "partition_index", "@who"],
        waits & (partitions.size("records") <= 0),
        peak={"high": high},
        named=(names, stable),
    )
