"""Capture times as people read them in a sentence.

Knows nanoseconds since 1970 and UTC. Knows no clock.
Rule: rows keep nanoseconds; only a summary's words pass through here.
"""

from datetime import UTC, datetime


def clock(ts_ns: int) -> str:
    """As 2026-11-21 00:10:25.616 UTC."""
    seconds, rest = divmod(ts_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest // 1_000_000:03d} UTC"


def about(ts_ns: int) -> str:
    """A time that is known to a slot of 10 s only: as about 2026-11-21 00:10:20 UTC."""
    return f"about {datetime.fromtimestamp(ts_ns // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
