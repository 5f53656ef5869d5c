"""What members of a classic group tell each other inside JoinGroup, SyncGroup and DescribeGroups.

The consumer protocol (ConsumerProtocolSubscription, ConsumerProtocolAssignment): Kafka's coordinator does not read
these bytes, consumers do. Other protocols (Connect, applications of their own) have bytes of
their own, which are not read. So everything is checked: what is not exactly a subscription or an assignment is None.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NEWEST = 3
"""Version of both (Kafka 3.4)."""
LEGAL = re.compile(rb"[a-zA-Z0-9._-]{1,249}")
"""Names of topics (org.apache.kafka.common.internals.Topic)."""
MOST = 100_000
"""Topics or partitions of one member."""
POLL_EXPIRED = "consumer poll timeout has expired."
"""Why a member leaves whose application does not poll (max.poll.interval.ms): its process lives on."""
UNSUBSCRIBED = "the consumer unsubscribed from all topics"
"""Why a member leaves that may subscribe again, as of Kafka Streams after a task was taken from it."""
REASONS = frozenset({
    POLL_EXPIRED,
    UNSUBSCRIBED,
    "the consumer is being closed",
    "member was removed by an admin",
})  # fmt: skip
"""Why members leave, in the words of Kafka's own clients (KIP-800: AbstractCoordinator, KafkaConsumer, KafkaAdminClient
of 3.9 and 4.1).
"""


class Subscription(NamedTuple):
    """What a member wants, and what it has."""

    topics: tuple[str, ...]
    owned: tuple[tuple[str, tuple[int, ...]], ...]
    """Topics with partitions; of version 1 on."""
    generation: int
    """In which it had them; -1: not stated."""
    content: tuple[tuple[int, int], ...]
    """(offset, length) of what an application or an operator put there: user data, rack, bytes of newer versions."""
    names: tuple[tuple[int, int], ...] = ()
    """(offset, length) of the names of topics."""


class Assignment(NamedTuple):
    """What a member is to read."""

    topics: tuple[tuple[str, tuple[int, ...]], ...]
    content: tuple[tuple[int, int], ...]
    names: tuple[tuple[int, int], ...] = ()


class _Invalid(Exception):  # noqa: N818 - ends a reading
    """Not these bytes."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.names: list[tuple[int, int]] = []

    def number(self, width: int) -> int:
        if self.at + width > len(self.data):
            raise _Invalid
        self.at += width
        return int.from_bytes(self.data[self.at - width : self.at], "big", signed=True)

    def count(self) -> int:
        found = self.number(4)
        if not 0 <= found <= MOST:
            raise _Invalid
        return found

    def name(self) -> str:
        size = self.number(2)
        text = self.data[self.at : self.at + max(size, 0)]
        if len(text) != size or not LEGAL.fullmatch(text):
            raise _Invalid
        self.names.append((self.at, size))
        self.at += size
        return text.decode("ascii")

    def topics(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple([(self.name(), self.partitions()) for _ in range(self.count())])

    def partitions(self) -> tuple[int, ...]:
        found = tuple([self.number(4) for _ in range(self.count())])
        if min(found, default=0) < 0:
            raise _Invalid
        return found

    def content(self, width: int) -> list[tuple[int, int]]:
        """Of bytes or text with a length of so many bytes; nothing where it is null or empty."""
        size = self.number(width)
        begin = self.at
        if size < -1 or begin + size > len(self.data):
            raise _Invalid
        self.at += max(size, 0)
        return [(begin, size)] if size > 0 else []

    def rest(self, version: int) -> list[tuple[int, int]]:
        """What a newer version has behind; other versions have nothing there."""
        left = len(self.data) - self.at
        if left and version <= NEWEST:
            raise _Invalid
        return [(self.at, left)] if left else []


def subscription(data: bytes) -> Subscription | None:
    """ConsumerProtocolSubscription, versions 0 to 3 and what later ones begin with."""
    read = _Reader(data)
    try:
        version = read.number(2)
        if version < 0:
            return None
        topics = tuple([read.name() for _ in range(read.count())])
        content = read.content(4)
        owned = read.topics() if version >= 1 else ()
        generation = read.number(4) if version >= 2 else -1
        content += read.content(2) if version >= 3 else []
        return Subscription(topics, owned, generation, (*content, *read.rest(version)), tuple(read.names))
    except _Invalid:
        return None


def assignment(data: bytes) -> Assignment | None:
    """ConsumerProtocolAssignment, the same versions. An empty one, of a member that gets nothing, has no bytes."""
    read = _Reader(data)
    try:
        version = read.number(2)
        if version < 0:
            return None
        topics = read.topics()
        content = read.content(4)
        return Assignment(topics, (*content, *read.rest(version)), tuple(read.names))
    except _Invalid:
        return None
