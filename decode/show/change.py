"""A change that somebody asked a cluster for, as a value, and where in a capture it is.

Knows: which facts a change has. Refuses to know how they are found (changes.py) and how they are printed.
Rule: what was not seen is None; a value of a configuration or a credential is never part of a change.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True, order=True)
class Frame:
    """Packets of a capture that carry one message."""

    source: str
    """File name of the capture."""
    first: int
    """Number of the packet in its source, as Wireshark counts."""
    last: int
    """Number of the last packet; of a change the same as `first`."""


@dataclass(frozen=True, slots=True)
class Change:
    """One object that an administrative request is about: who asked for what, and the answer."""

    time_ns: int
    """When the request was seen first, in nanoseconds since 1970."""
    action: str
    """The API, by Kafka's name: DeleteTopics."""
    object_type: str
    """topic, broker, group, user, acl, quota, feature, controller, ..."""
    object: str
    """Its name; empty where the request means all objects of its type."""
    details: str
    """Counts, names of configurations, whom an ACL is about; never a value."""
    principal: str | None
    """`User:alice`, from the Envelope in which a broker forwards the request; None where none was seen."""
    client_id: str | None
    """Client ID of the request."""
    host: str
    """Address of the client."""
    via_broker: str | None
    """ID of the broker that the client asked, or its address where nothing named it."""
    error: str | None
    """Kafka's name of the error, NONE if the request was accepted, None where no answer was seen."""
    frame: Frame
    """The packet in which the request begins."""

    @property
    def time(self) -> dt.datetime:
        """When the request was seen first, in UTC, to the microsecond."""
        return EPOCH + dt.timedelta(microseconds=self.time_ns // 1000)
