"""The metadata log as columns: what the judge reads of topics, partitions, brokers and features.

    found = log_tables(joined([field_entries(records) for ... in fetch answers]))
    topics = found["TopicRecord"]                    a LogTable; no entry if the log held none that decoded
    topics["name"].codes(), topics["topic_id"]       columns as in decode/columns.py
    topics.offset, topics.epoch                       of each row; order is by (epoch, offset)
    found["RegisterBrokerRecord"].inner("end_points")["host"]

Rows are changes, not states: a PartitionChangeRecord raises the partition epoch by one, and the leader epoch where
`leader` is present. Entries that do not decode have no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from wirecheck.decode.columns import Table, tables
from wirecheck.decode.layouts.program import form
from wirecheck.decode.message import Projection, decode, only

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wirecheck.decode.log.metadata_log import Entries

_ENDPOINTS = ("end_points.name", "end_points.host", "end_points.port")
_FEATURES = ("features.name", "features.min_supported_version", "features.max_supported_version")

JUDGED = {
    ("TopicRecord", "record"): ("name", "topic_id"),
    ("RemoveTopicRecord", "record"): ("topic_id",),
    ("PartitionRecord", "record"): (
        "partition_id", "topic_id", "replicas", "isr", "leader", "leader_epoch", "partition_epoch",
    ),
    ("PartitionChangeRecord", "record"): (
        "partition_id", "topic_id", "replicas", "isr", "leader", "leader_recovery_state",
    ),
    ("FeatureLevelRecord", "record"): ("name", "feature_level"),
    ("RegisterBrokerRecord", "record"): (
        "broker_id", "broker_epoch", "incarnation_id", "fenced", *_ENDPOINTS, *_FEATURES,
    ),
    ("UnregisterBrokerRecord", "record"): ("broker_id", "broker_epoch"),
    ("FenceBrokerRecord", "record"): ("id", "epoch"),
    ("UnfenceBrokerRecord", "record"): ("id", "epoch"),
    ("BrokerRegistrationChangeRecord", "record"): ("broker_id", "broker_epoch", "fenced", "in_controlled_shutdown"),
    ("RegisterControllerRecord", "record"): ("controller_id", "incarnation_id", *_ENDPOINTS, *_FEATURES),
    ("UnregisterControllerRecord", "record"): ("controller_id",),
    ("LeaderChangeMessage", "data"): ("leader_id",),
    ("KRaftVersionRecord", "data"): ("kraft_version",),
    ("VotersRecord", "data"): ("voters.voter_id", "voters.endpoints.host", "voters.endpoints.port"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LogTable:
    """The records of one kind, one row each."""

    tables: dict[str, Table]
    entry: NDArray[np.int64]  # row of the entries each came from
    offset: NDArray[np.int64]
    epoch: NDArray[np.int64]
    timestamp_ms: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.entry)

    def __getitem__(self, column: str) -> Any:
        return self.tables[""][column]

    def present(self, column: str) -> NDArray[np.bool_]:
        """Whether a record carried the field; in a PartitionChangeRecord absent means unchanged."""
        return self.tables[""].present(column)

    def inner(self, path: str) -> Table:
        """The elements of an array in them; its `parent` is the row here."""
        return self.tables[path]


@cache
def _judged() -> Projection:
    return only(JUDGED)


def log_tables(entries: Entries) -> dict[str, LogTable]:
    """Columns of the records that are judged by, by record type; only those that are there."""
    decoded = decode(entries.messages, _judged())
    found: dict[str, LogTable] = {}
    there = set(zip(entries.messages.side.tolist(), entries.messages.key.tolist(), strict=True))
    for api, side in JUDGED:
        kind = form(api, side)
        if (kind.side, kind.key) not in there:
            continue
        every = tables(decoded, api, side)
        rows = every[""].message
        if len(rows):
            found[api] = LogTable(every, rows, entries.offset[rows], entries.epoch[rows], entries.timestamp_ms[rows])
    return found
