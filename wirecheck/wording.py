"""Times, counts, clients and brokers in text, written alike by every command and page.

It imports nothing of the project, so that every package can use it.
"""

from datetime import UTC, datetime
from functools import lru_cache

NS_PER_S = 1_000_000_000


def plural(count: int, noun: str) -> str:
    """`1,234 frames`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def rfc3339(time_ns: int) -> str:
    """UTC with microseconds."""
    seconds, rest = divmod(time_ns, NS_PER_S)
    return f"{_second(seconds)}.{rest // 1000:06d}Z"


@lru_cache(64)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def clock(time_ns: int, *, dated: bool = False) -> str:
    """`00:44:48`, or with its day."""
    time = rfc3339(time_ns)
    return f"{time[:10]} {time[11:19]}" if dated else time[11:19]


def client_name(client_id: str | None) -> str:
    """The client ID; brokers and controllers have a bare number: `node 3`."""
    return f"node {client_id}" if client_id and client_id.isdecimal() else client_id or "(no client ID)"


def broker_name(broker: str) -> str:
    """`broker 3`, or the address of a broker whose ID is not known."""
    return f"broker {broker}" if broker.isdecimal() else broker
