"""Administrative requests as rows of the result table `changes`, and read back as what `wirecheck changes` lists.

A client's request and its Envelope are followed in different buckets, so each has a row, and they are joined when the
table is read.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wirecheck.decode.connection.exchanges import Exchanges
from wirecheck.decode.forwarding import Way
from wirecheck.decode.peer import Peer
from wirecheck.decode.show.learned_names import Brokers
from wirecheck.frame import Frame
from wirecheck.questions.changes import Changes, Seen, Target, administrative, requests_in, without_principals
from wirecheck.streaming.store.result_folder import latest_run
from wirecheck.streaming.store.result_tables import BROKER_AT, CHANGES_NOT_KEPT, table_of
from wirecheck.streaming.store.run_result import Result, last, revisions

Row = dict[str, Any]
Counts = Counter[tuple[str, str]]
PROXY = "CLU005"
"""Its findings name the ways on which a proxy sends on what it receives."""
MOST_ROWS = 1_000
"""Of one bucket in one batch."""


def change_rows(
    exchanges: Exchanges, dialects: Sequence[str], *, principals: bool
) -> tuple[dict[str, pa.Table], Counts]:
    """`changes` with rows for at most so many requests, if there are some; how many more requests and objects there
    are. Without `principals` a row has neither the principal nor the client's address.
    """
    pairs = administrative(exchanges)
    if not len(pairs):
        return {}, Counter()
    kept = list(requests_in(pairs.only(np.arange(min(len(pairs), MOST_ROWS))), dialects))
    more = sum(one.others for one in kept) + max(0, len(pairs) - MOST_ROWS)
    rows = [row_of(exchanges.label, one, principals=principals) for one in kept]
    return {"changes": table_of("changes", rows)} if rows else {}, Counter(
        {(CHANGES_NOT_KEPT, ""): more} if more else {}
    )


SAME = (
    "action", "client_id", "host", "principal", "connection", "correlation_id", "in_envelope", "forwarded_by",
)  # fmt: skip
"""What a row has as a request has it."""


def row_of(label: str, one: Seen, *, principals: bool) -> Row:
    row = {
        "id": f"{label}|{one.connection}|{one.time_ns}|{one.correlation_id}",
        "revision": 1,
        "label": label,
        "time": one.time_ns,
        "answered": one.answered_ns,
        "targets": [target._asdict() for target in one.targets],
        "frame": {"source": one.frame.source, "first": one.frame.first},
        "digest": one.digest,
        **{name: getattr(one, name) for name in SAME},
    }
    if principals:
        return row
    targets = [without_principals(one.action, target)._asdict() for target in one.targets]
    return row | {"host": "", "principal": None, "targets": targets}


def seen(row: Row) -> Seen:
    return Seen(
        time_ns=row["time"],
        answered_ns=row["answered"],
        targets=[Target(**target) for target in row["targets"]],
        frame=Frame(row["frame"]["source"], row["frame"]["first"], row["frame"]["first"]),
        digest=row.get("digest"),
        **{name: row[name] for name in SAME},
    )


def know_clusters(brokers: Brokers, result: Result) -> None:
    """Which servers are of which cluster."""
    for row in result.rows["clusters"]:
        if row["cluster_id"]:
            hosts = {Peer.of(endpoint).host for endpoint in row["endpoints"]}
            brokers.learn_cluster(row["cluster_id"], row["endpoints"], hosts)


def changes_in(out: Path, result: Result, counts: Callable[[str], bool] = lambda _: True) -> Changes:
    """What a folder of result tables keeps of requests to servers that count, the newest if there are more than a list
    has.
    """
    found = Changes()
    for row in result.totals():
        if row["measure"] == BROKER_AT:
            found.brokers[row["detail"]] = row["count"] - 1
        found.others += row["count"] if row["measure"] == CHANGES_NOT_KEPT else 0
    know_clusters(found.brokers, result)
    found.once.ways |= ways_of(result)
    for row in sorted(rows(out), key=lambda row: row["time"], reverse=True):
        if counts(row["connection"].partition(">")[2]):
            found.keep(seen(row))
    return found


def ways_of(result: Result) -> set[Way]:
    """How proxies send on what they receive."""
    found: set[Way] = set()
    for row in result.rows["findings"]:
        words = {word["name"]: word["value"] for word in row["words"]} if row["code"] == PROXY else {}
        found |= {Way(*way.split(">")) for way in words.get("ways", "").split()}
    return found


def rows(out: Path) -> Iterator[Row]:
    return last(revisions(out, "changes", latest_run(out)))
