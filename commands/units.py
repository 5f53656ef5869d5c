"""Sizes, durations and times as people write them (64M, 10G, 500ms, 24h, 00:20:03); sizes are powers of 1024.

A bare number is bytes or seconds. A time without a day needs a day from the caller.
"""

import re

import click

from wirecheck.wording import TimeSpan

SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def size(text: str) -> int:
    """Bytes, above 0."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", str(text).strip(), re.IGNORECASE)
    number = int(float(found[1]) * SIZES[found[2].upper()]) if found else 0
    if number <= 0:
        raise click.BadParameter(f"{text!r} is not a size; write it like 64M or 10G")
    return number


def duration(text: str) -> float:
    """Seconds, above 0."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|[smhd]?)", str(text).strip())
    seconds = float(found[1]) * SECONDS[found[2]] if found else 0.0
    if seconds <= 0:
        raise click.BadParameter(f"{text!r} is not a duration; write it like 30s, 15m, 24h or 7d")
    return seconds


def time(text: str) -> TimeSpan:
    try:
        return TimeSpan.parse(text)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from None


def need_order(since: TimeSpan | None, until: TimeSpan | None) -> None:
    """click.UsageError where the end is before the beginning; of times of day only if both are, within one day."""
    comparable = since and until and since.of_day == until.of_day and not until.is_over_midnight(since)
    if since and until and comparable and until.last_ns < since.ns:
        raise click.UsageError("--until is before --since")
