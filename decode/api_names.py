"""API keys and their names, from the layouts.

An unknown key keeps its number as its name; nothing is guessed.
"""

from functools import cache

from wirecheck.decode.layouts.layout import layouts

WAITS = frozenset({"Fetch", "JoinGroup", "SyncGroup", "ShareFetch"})
"""A broker holds these until there is something to answer: their latency is no measure of it."""

BETWEEN_BROKERS = frozenset({4, 5, 6, 7, 27, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82})
"""APIs that only brokers and controllers call: LeaderAndIsr and its kin, WriteTxnMarkers, raft, AlterPartition, ..."""

ACL_OPERATIONS = (
    "UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
)  # fmt: skip
"""Kafka's AclOperation, by number; the number is also the bit of each in authorized operations."""


@cache
def names() -> dict[int, str]:
    return {layout.key: layout.api for layout in layouts("kafka") if layout.side == "request"}


@cache
def keys() -> dict[str, int]:
    return {name: key for key, name in names().items()}


def name_of(key: int) -> str:
    return names().get(key, str(key))


def key_of(name: str) -> int:
    return keys()[name] if name in keys() else int(name)


@cache
def newest(key: int) -> int:
    """The highest version the layouts reach."""
    return max((layout.versions.high for layout in layouts("kafka") if layout.key == key), default=-1)
