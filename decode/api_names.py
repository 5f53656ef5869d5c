"""API keys and their names, from the layouts.

An unknown key keeps its number as its name; nothing is guessed.
"""

from functools import cache

from wirecheck.decode.layouts.layout import layouts

WAITS = frozenset({"Fetch", "JoinGroup", "SyncGroup", "ShareFetch"})
"""A broker holds these until there is something to answer: their latency is no measure of it."""

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
