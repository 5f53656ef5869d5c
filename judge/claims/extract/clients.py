"""Claims about clients: the versions that they send, their software, and where a server closed the connection on them.

Rule: a client is a client ID at a host; its ports change.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.api_names import BETWEEN_BROKERS
from wirecheck.decode.columns import value_per
from wirecheck.decode.connection.exchanges import CLOSED_BY_SERVER
from wirecheck.decode.releases import removed_in_4
from wirecheck.decode.request_waits import MILLISECOND_NS
from wirecheck.decode.wire import REQUEST
from wirecheck.judge.claims.batch import AUTHENTICATION, GREETINGS, Batch, Bools, key_of_messages
from wirecheck.judge.claims.reduce import Column, Ints, Rows, spelled
from wirecheck.judge.claims.response_outcomes import GRANTED

PRODUCE, METADATA = 0, 3
MESSAGE_TOO_LARGE = 10
SOON_NS = 60_000_000_000
"""Closed later than this after a request has nothing to do with it; the check's own limit is a setting."""


def claims(batch: Batch) -> Iterator[Rows]:
    requests = np.flatnonzero(batch.decoded.messages.side == REQUEST)
    if len(requests):
        by_version = spelled("{}:{}".format, batch.api(requests), Column(batch.version(requests)))
        served = peaks(batch, requests)
        # counted by the start of their connections: where an address leads to another cluster, new ones do
        connection = key_of_messages(batch, "@connection", requests)
        none, since = np.zeros(len(requests), np.int64), connection[-1].codes
        yield batch.states("client", "@who", requests, tally=by_version, peak=served, error=none, since=since)
        yield batch.states("connection_requests", [*connection, "@client_id"], requests, tally=by_version)
        keys, versions = batch.decoded.messages.key[requests].astype(np.int64), batch.version(requests)
        pairs, codes = np.unique(keys << 16 | (versions & 0xFFFF), return_inverse=True)
        old = np.array([removed_in_4(int(pair) >> 16, int(pair) & 0xFFFF) for pair in pairs], np.bool_)[codes.ravel()]
        yield batch.states("request_version", "@who @api @version", requests[old])
        yield closed(batch)
        yield batch.states("version_error", "@who @api @version", batch.unsupported)
    yield from throttled(batch)
    if header := batch.lines("ApiVersions", "request"):
        named = header.present("client_software_name") & (header.size("client_software_name") > 0)
        yield header.states("software", "@who client_software_name client_software_version", named)


def throttled(batch: Batch) -> Iterator[Rows]:
    """Responses that make their client wait, because of a quota (KIP-219)."""
    for api, _ in batch.answers():
        header = batch.lines(api, "response")
        if header is not None and header.has("throttle_time_ms"):
            waits_ms = header["throttle_time_ms"]
            if (waits_ms > 0).any():
                peak = {"longest_ms": waits_ms, "until": header.ts_ns + waits_ms * MILLISECOND_NS}
                sums = {"throttle_ms": waits_ms}
                yield header.states("throttled", f"@who ={api}", waits_ms > 0, tally=header.slots, peak=peak, sums=sums)


EPOCH_END_NS = 1 << 62
"""Times are subtracted from it where the earliest one is to be the peak."""
LARGEST_BYTES = 1 << 31
"""Sizes are subtracted from it where the least one is to be the peak."""


def peaks(batch: Batch, requests: Ints) -> dict[str, Ints]:
    """Whether the server granted the client anything, and when first; whether that was a request that only brokers and
    controllers send; when it last got metadata; when it wrote last, and how long it lets a broker take for that; the
    largest batch that was granted, and the least that was too large.
    """
    granted, ts_ns = succeeded(batch)[requests], batch.exchanges.ts_ns[requests]
    keys = batch.decoded.messages.key[requests]
    ended = ended_by_server(batch)[requests] & ~np.isin(keys, [*GREETINGS, *AUTHENTICATION])
    found = {
        "answered": granted.astype(np.int64),
        "as_node": (granted & np.isin(keys, [*BETWEEN_BROKERS])).astype(np.int64),
        "refused": (ended & ~granted).astype(np.int64),
        "first_answered": np.where(granted, EPOCH_END_NS - ts_ns, 0),
        "metadata": np.where(granted & (keys == METADATA), ts_ns, 0),
    }
    if header := batch.lines("Produce", "request"):
        wrote = keys == PRODUCE
        found["wrote"] = np.where(wrote, ts_ns, 0)
        found["timeout_ms"] = value_per(requests, header.table, "timeout_ms", absent=-1)
        size_bytes, too_large = batches_of_writes(batch)
        found["largest_bytes"] = np.where(granted & ~too_large[requests], size_bytes[requests], 0)
        found["too_large"] = np.where(too_large & (size_bytes > 0), LARGEST_BYTES - size_bytes, 0)[requests]
    return found


def batches_of_writes(batch: Batch) -> tuple[Ints, Bools]:
    """Per message the size of the largest batch that it writes, as it is on the wire, and whether one of its batches
    was too large.
    """
    size_bytes, too_large = np.zeros(len(batch.decoded), np.int64), np.zeros(len(batch.decoded), np.bool_)
    if written := batch.lines("Produce", "request", "topic_data.partition_data"):
        np.maximum.at(size_bytes, written.message, written.size("records"))
    if answers := batch.lines("Produce", "response", "responses.partition_responses"):
        request = batch.partner(answers.message[answers["error_code"] == MESSAGE_TOO_LARGE], REQUEST)
        too_large[request[request >= 0]] = True
    return size_bytes, too_large


def succeeded(batch: Batch) -> Bools:
    """Per message whether it is a request that was granted something."""
    found = np.zeros(len(batch.decoded), np.bool_)
    answer = np.flatnonzero((batch.answers_of.fate == GRANTED) & ~np.isin(batch.decoded.messages.key, GREETINGS))
    request = batch.partner(answer, REQUEST)
    found[request[request >= 0]] = True
    return found


def ended_by_server(batch: Batch) -> Bools:
    """Per message whether it is a request that the server answered, or closed the connection on."""
    exchanges, found = batch.exchanges, np.zeros(len(batch.decoded), np.bool_)
    ended = (exchanges.response >= 0) | (exchanges.outcome == CLOSED_BY_SERVER)
    requests = exchanges.request[ended]
    found[requests[requests >= 0]] = True
    return found


def closed_on(batch: Batch) -> tuple[Ints, Ints]:
    """Requests that were open when their server closed the connection, soon after the request and before the client;
    and how long after them.
    """
    exchanges = batch.exchanges
    message = exchanges.request[(exchanges.outcome == CLOSED_BY_SERVER) & (exchanges.request >= 0)]
    late = batch.close_ns(message) - exchanges.ts_last_ns[message]
    closed_soon = (late >= 0) & (late < SOON_NS) & ~np.isin(batch.decoded.messages.key[message], AUTHENTICATION)
    return message[closed_soon], late[closed_soon]


def closed(batch: Batch) -> Rows:
    message, late = closed_on(batch)
    return batch.states("closed_on", "@who @api @version", message, peak={"soonest": -late})
