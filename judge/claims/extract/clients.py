"""Claims about clients: who sends which versions, what it calls itself, and where it was cut off.

Knows: request headers, ApiVersions v3+, which answers have no error, and what a connection closed by its server with a
request open looks like.
Does not know whether a version is allowed.
Rule: a client is a client id at a host; ports come and go.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.api_names import name_of
from wirecheck.decode.connection.exchanges import CLOSED_BY_SERVER
from wirecheck.decode.wire import REQUEST, RESPONSE
from wirecheck.judge.claims.batch import Batch, connection_key
from wirecheck.judge.claims.reduce import Column, Ints, Rows, spelled
from wirecheck.judge.topology.releases import removed_in_4

AUTHENTICATION = (17, 36)
"""SaslHandshake, SaslAuthenticate: a failed authentication ends a connection too."""
GREETINGS = (*AUTHENTICATION, 18)
"""These and ApiVersions."""
UNSUPPORTED_VERSION = 35
SOON_NS = 60_000_000_000
"""Closed later than this after a request has nothing to do with it; the check's own limit is a setting."""


def claims(batch: Batch) -> Iterator[Rows]:
    requests = np.flatnonzero(batch.decoded.messages.side == REQUEST)
    if len(requests):
        spoken = spelled("{}:{}".format, batch.api(requests), Column(batch.version(requests)))
        served = {"answered": succeeded(batch)[requests].astype(np.int64)}
        # counted by the start of their connections: where an address leads to another cluster, new ones do
        none, since = np.zeros(len(requests), np.int64), connection_key(batch, requests)[-1].codes
        yield Rows("client", who(batch, requests), requests, spoken, served, error=none, since=since)
        yield Rows("spoken", [*connection_key(batch, requests), batch.client_id(requests)], requests, spoken)
        yield old_versions(batch, requests)
        yield closed(batch)
        yield rejected(batch)
    if header := batch.lines("ApiVersions", "request"):
        said = header.present("client_software_name") & (header.size("client_software_name") > 0)
        yield header.states("software", "@who client_software_name client_software_version", said)


def who(batch: Batch, message: Ints) -> list[Column]:
    return [batch.client_id(message), batch.host(message), batch.endpoint(message)]


def succeeded(batch: Batch) -> NDArray[np.bool_]:
    """Per message whether it is a request that was answered without error: an answer that has no error code at its top,
    and none below or one that has none there. A greeting, and a Fetch that fetches nothing, show nothing: everybody
    gets an answer to them.
    """
    found = np.zeros(len(batch.decoded), np.bool_)
    for key, side in sorted(batch.kinds):
        if side != RESPONSE or key in GREETINGS:
            continue
        name = name_of(key)
        tables = batch.tables(name, "response")
        errors = {path: table for path, table in tables.items() if "error_code" in table.names and len(table)}
        good = np.zeros(len(found), np.bool_)
        good[tables[""].message] = True
        within, fine = np.zeros(len(found), np.bool_), np.zeros(len(found), np.bool_)
        for path, table in errors.items():
            if path:
                within[table.message] = True
                fine[table.message[table["error_code"] == 0]] = True
            else:
                good[table.message[table["error_code"] != 0]] = False
        good &= fine | (~within & (name != "Fetch"))
        request = batch.partner(np.flatnonzero(good), REQUEST)
        found[request[request >= 0]] = True
    return found


def old_versions(batch: Batch, requests: Ints) -> Rows:
    keys, versions = batch.decoded.messages.key, batch.decoded.messages.version
    pairs, codes = np.unique(
        keys[requests].astype(np.int64) << 16 | (versions[requests].astype(np.int64) & 0xFFFF), return_inverse=True
    )
    old = np.array([removed_in_4(int(pair) >> 16, int(pair) & 0xFFFF) for pair in pairs], np.bool_)[codes.ravel()]
    message = requests[old]
    return Rows("request_version", [*who(batch, message), batch.api(message), Column(batch.version(message))], message)


def closed(batch: Batch) -> Rows:
    """Requests that were open when their server closed the connection, soon after the request and before the client."""
    exchanges = batch.exchanges
    message = exchanges.request[(exchanges.outcome == CLOSED_BY_SERVER) & (exchanges.request >= 0)]
    close_ns = np.array([connection.close_ns or 0 for connection in exchanges.connections], np.int64)
    late = close_ns[exchanges.connection[message]] - exchanges.ts_last_ns[message]
    wanted = (late >= 0) & (late < SOON_NS) & ~np.isin(batch.decoded.messages.key[message], AUTHENTICATION)
    key = [*who(batch, message), batch.api(message), Column(batch.version(message))]
    return Rows("closed_on", key, message, peak={"soonest": -late}).where(wanted)


def unsupported(batch: Batch) -> Ints:
    """Responses that have UNSUPPORTED_VERSION anywhere. In an ApiVersions answer it is how versions are negotiated."""
    found = [np.empty(0, np.int64)]
    for key, side in sorted(batch.kinds):
        if side == RESPONSE and key not in GREETINGS:
            tables = batch.tables(name_of(key), "response").values()
            errors = [table for table in tables if "error_code" in table.names]
            found += [table.message[table["error_code"] == UNSUPPORTED_VERSION] for table in errors]
    return np.unique(np.concatenate(found))


def rejected(batch: Batch) -> Rows:
    message = unsupported(batch)
    key = [*who(batch, message), batch.api(message), Column(batch.version(message))]
    return Rows("version_error", key, message)
