"""Claims about volumes: how many bytes of records a server took in and gave out, by topic, and how many bytes of
requests and responses a client exchanged with it; and when the writes of a client to a topic were granted last, or
were sent last with acks=0.

Rule: of topics counts what clients write and read: no fetch of a replica, and no write whose response has an error.
Records count as they are on the wire: compressed batches with their headers. Messages count without their 4-byte sizes
and without TCP's headers.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.wire import REQUEST, RESPONSE
from wirecheck.judge.claims.batch import Batch, Bools, Lines
from wirecheck.judge.claims.extract.replicas import to_clients
from wirecheck.judge.claims.reduce import Rows

READ = (("Fetch", "responses.partitions", "topic"), ("ShareFetch", "responses.partitions", "-"))


def claims(batch: Batch) -> Iterator[Rows]:
    requests = np.flatnonzero(batch.decoded.messages.side == REQUEST)
    size, response = batch.decoded.messages.size.astype(np.int64), batch.partner(requests, RESPONSE)
    decrypted = np.array([connection.decrypted for connection in batch.exchanges.connections], np.int64)
    sums = {"tls_requests": decrypted[batch.exchanges.connection[requests]]} if decrypted.any() else {}
    sums |= {"request_bytes": size[requests], "response_bytes": np.where(response >= 0, size[response], 0)}
    yield batch.states("exchanged", "@who", requests, sums=sums)
    if written := batch.lines("Produce", "request", "topic_data.partition_data"):
        yield carried(written, "name", "written_bytes", ~refused(written))
        yield from unasked(written)
    if answers := batch.lines("Produce", "response", "responses.partition_responses"):
        yield from granted(answers)
    for api, partitions, name in batch.each("response", READ):
        to_client = np.ones(len(partitions), np.bool_)
        if api == "Fetch":
            to_client = to_clients(partitions)
        yield carried(partitions, name, "read_bytes", to_client)


def unasked(requests: Lines) -> Iterator[Rows]:
    """When a client wrote to a topic last without asking for a response."""
    without = requests["/acks"] == 0
    if without.any():
        named = requests.column("name").only(requests.present("name"))
        key = ["@who", named, "topic_id" if requests.has("topic_id") else "-"]
        yield requests.states("written", key, without, peak={"unasked": requests.ts_ns})


def carried(partitions: Lines, name: str, counter: str, where: Bools) -> Rows:
    size = partitions.size("records")
    named = partitions.column(name).only(partitions.present(name)) if name != "-" else name
    key = [named, "topic_id" if partitions.has("topic_id") else "-", "@endpoint"]
    return partitions.states("carried", key, where & (size > 0), sums={counter: size})


def granted(answers: Lines) -> Iterator[Rows]:
    """When writes to a topic were granted last, and when one was rejected last, with which error."""
    named = answers.column("name").only(answers.present("name"))
    key = ["@who", named, "topic_id" if answers.has("topic_id") else "-"]
    error, ts_ns = answers["error_code"], answers.ts_ns
    yield answers.states("written", key, error == 0, peak={"granted": ts_ns})
    if error.any():
        yield answers.states("written", key, error != 0, latest={"rejected": (ts_ns, error)})


def refused(written: Lines) -> Bools:
    """Whether any partition of a write was refused."""
    answers = written.batch.lines("Produce", "response", "responses.partition_responses")
    bad = np.unique(answers.message[answers["error_code"] != 0]) if answers else np.empty(0, np.int64)
    found: Bools = np.isin(written.partner, bad)
    return found
