"""Sizes, durations and times as people write them (64M, 10G, 500ms, 24h, 00:20:03); sizes are powers of 1024.

A bare number is bytes or seconds. A time without a day needs a day from the caller.
"""

import datetime as dt
import re
from typing import NamedTuple

import click

from wirecheck.wording import NS_PER_S

SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def size(text: str) -> int:
    """Bytes, above 0."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", str(text).strip(), re.IGNORECASE)
    number = int(float(found[1]) * SIZES[found[2].upper()]) if found else 0
    if number <= 0:
        raise click.BadParameter(f"{text!r} is no size; write it like 64M or 10G")
    return number


def duration(text: str) -> float:
    """Seconds, above 0."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|[smhd]?)", str(text).strip())
    seconds = float(found[1]) * SECONDS[found[2]] if found else 0.0
    if seconds <= 0:
        raise click.BadParameter(f"{text!r} is no duration; write it like 30s, 15m, 24h or 7d")
    return seconds


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class TimeSpan(NamedTuple):
    """A time as precisely as it was said: 00:20:03 is a second long."""

    ns: int
    """Since 1970, UTC; of a time of day since midnight."""
    last_ns: int
    of_day: bool


def time(text: str) -> TimeSpan:
    """RFC 3339, UTC where it says nothing else, or a time of day in UTC."""
    of_day = re.fullmatch(r"\d\d:\d\d(:\d\d(\.\d+)?)?Z?", text) is not None
    try:
        found = dt.datetime.fromisoformat(f"1970-01-01T{text}" if of_day else text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no time; write it like 00:20:03.5 or 2026-11-21T00:20:03Z") from None
    since = (found if found.tzinfo else found.replace(tzinfo=dt.UTC)) - EPOCH
    digits = re.search(r"\.(\d+)", text)
    fraction = digits[1] if digits else ""
    ns = (since.days * 86_400 + since.seconds) * NS_PER_S + int(f"{fraction:0<9}"[:9])
    minutes = re.search(r"\d\d:\d\d:\d\d", text) is None
    length = 60 * NS_PER_S if minutes else 10 ** max(9 - len(fraction), 0)
    return TimeSpan(ns, ns + length - 1, of_day)
