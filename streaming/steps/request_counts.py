"""What the exchanges of one cell add to the counters that operators watch: requests by duration, errors, round trips.

Labels come from closed sets. With 200 brokers there are at most 2,000 series: docs/metrics.md has the sum. A
duration is what the capture point sees, from the request's last byte to the response's first. Durations by broker are
without the APIs that a broker answers only once there is something to answer.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from wirecheck.decode import schemas
from wirecheck.decode.api_names import WAITS, key_of, name_of
from wirecheck.decode.wire import Ints
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.response_outcomes import codes_in

REQUESTS, SERVERS, ROUNDS = "request_duration", "server_duration", "round_trip"
ERRORS, SERVER_ERRORS = "request_errors", "server_errors"
BOUNDS_US: dict[str, tuple[int, ...]] = {
    REQUESTS: (1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_500_000),
    SERVERS: (5_000, 25_000, 100_000, 500_000),
    ROUNDS: (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000),
}
"""Upper bounds; the last bucket has none."""
OTHER = "other"
APIS = (
    "Produce", "Fetch", "Metadata", "ListOffsets", "OffsetCommit", "OffsetFetch", "FindCoordinator", "ApiVersions",
    "InitProducerId", OTHER,
)  # fmt: skip
"""With a histogram each."""
MOST_BROKERS, MOST_SERVERS, MOST_ERRORS = 200, 1_000, 100
"""Brokers with series of their own; addresses, and errors by API, that are counted each."""
Counts = Counter[tuple[str, str]]
"""By measure and detail: `API|bucket`, `address|bucket`, `API:ERROR`, and sums of microseconds under `MEASURE_us`."""


def request_counts(batch: Batch) -> Counts:
    counts: Counts = Counter()
    exchanges, messages = batch.exchanges, batch.decoded.messages
    rows = np.flatnonzero((exchanges.request >= 0) & (exchanges.response >= 0))
    request_rows, answer = exchanges.request[rows], exchanges.response[rows]
    if not len(rows):
        return counts
    us = np.maximum(exchanges.ts_ns[answer] - exchanges.ts_last_ns[request_rows], 0) // 1000
    keys, codes = np.unique(messages.key[request_rows], return_inverse=True)
    apis = [name if (name := name_of(key)) in APIS else OTHER for key in keys.tolist()]
    add(counts, REQUESTS, apis, codes.ravel(), us)
    server, at_once = batch.endpoint(answer), ~np.isin(messages.key[request_rows], [key_of(api) for api in WAITS])
    add(counts, SERVERS, list(server.values or ()), server.codes[at_once], us[at_once])
    rounds = np.array([one.network_ns // 1000 for one in exchanges.connections], np.int64)[
        exchanges.connection[request_rows]
    ]
    add(counts, ROUNDS, [""], np.zeros(int((rounds > 0).sum()), np.int64), rounds[rounds > 0])
    for error, count in errors(batch):
        counts[error] += count
    return counts


def add(found: Counts, measure: str, names: list[str], codes: Ints, us: Ints) -> None:
    """Durations by name and bucket, and their sum."""
    bounds = BOUNDS_US[measure]
    cells, counts = np.unique(codes * (len(bounds) + 1) + np.searchsorted(bounds, us), return_counts=True)
    for cell, count in zip(cells.tolist(), counts.tolist(), strict=True):
        code, bucket = divmod(cell, len(bounds) + 1)
        found[measure, f"{names[code]}|{bucket}"] += count
    sums = np.bincount(codes, us, len(names)).astype(np.int64) if len(codes) else ()
    for name, total in zip(names, sums, strict=False):
        found[f"{measure}_us", name] += int(total)


def errors(batch: Batch) -> Iterator[tuple[tuple[str, str], int]]:
    """Responses by API and error, one that has several errors once for each; and by server."""
    wrong: list[Ints] = []
    for api, tables in batch.answers():
        parts = [
            (table.message[bad], codes[bad])
            for table in tables.values()
            for codes in codes_in(table)
            if (bad := np.flatnonzero(codes)).size
        ]
        if parts:
            pairs = np.unique(np.concatenate(parts, axis=1), axis=1)
            wrong.append(np.unique(pairs[0]))
            for code, count in zip(*np.unique(pairs[1], return_counts=True), strict=True):
                known = schemas.errors().get(int(code))
                yield (ERRORS, f"{api}:{known.name if known else OTHER}"), int(count)
    if wrong:
        server = batch.endpoint(np.concatenate(wrong))
        for code, count in enumerate(np.bincount(server.codes).tolist()):
            if count:
                yield (SERVER_ERRORS, str((server.values or ())[code])), count
