"""Times, counts, clients and brokers in text, written and read alike by every command and page.

It imports nothing of the project, so that every package can use it.
"""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from uuid import UUID

NS_PER_S = 1_000_000_000
DAY_NS = 86_400 * NS_PER_S
HALF_DAY_NS = DAY_NS // 2
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TimeSpan(NamedTuple):
    """A time as precisely as it was written: 00:20:03 is a second long."""

    ns: int
    """Since 1970, UTC; of a time of day since midnight."""
    last_ns: int
    of_day: bool = False

    @classmethod
    def parse(cls, text: str) -> "TimeSpan":
        """RFC 3339, UTC where it says nothing else, or a time of day in UTC. Raises ValueError."""
        of_day = re.fullmatch(r"\d\d:\d\d(:\d\d(\.\d+)?)?Z?", text) is not None
        try:
            time = datetime.fromisoformat(f"1970-01-01T{text}" if of_day else text)
        except ValueError:
            raise ValueError(f"{text!r} is not a time; write it like 00:20:03.5 or 2026-11-21T00:20:03Z") from None
        digits = re.search(r"\.(\d+)", text)
        fraction = digits[1] if digits else ""
        ns = cls.of(time.replace(microsecond=0)).ns + int(f"{fraction:0<9}"[:9])
        minutes = re.search(r"\d\d:\d\d:\d\d", text) is None
        length = 60 * NS_PER_S if minutes else 10 ** max(9 - len(fraction), 0)
        return cls(ns, ns + length - 1, of_day)

    @classmethod
    def of(cls, time: datetime) -> "TimeSpan":
        """UTC unless it has a zone."""
        ns = ((time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1) * 1000
        return cls(ns, ns)

    def on_day_of(self, time_ns: int) -> "TimeSpan":
        """A time of day, on the day of another time, where a capture begins; on the next day where it would be more
        than twelve hours before that: 00:05 of a capture that begins at 23:50.
        """
        midnight = time_ns - time_ns % DAY_NS if self.of_day else 0
        if self.of_day and midnight + self.last_ns < time_ns - HALF_DAY_NS:
            midnight += DAY_NS
        return TimeSpan(midnight + self.ns, midnight + self.last_ns)

    def is_over_midnight(self, since: "TimeSpan") -> bool:
        """Of two times of a day, whether the other one may be of the day before: 00:10 after 23:50."""
        return self.of_day and since.of_day and since.ns - self.last_ns >= HALF_DAY_NS


def span_of(since: TimeSpan | None, until: TimeSpan | None, time_ns: int) -> tuple[TimeSpan | None, TimeSpan | None]:
    """Two times, of which those of a day are settled by when a capture begins."""
    begin, end = (one.on_day_of(time_ns) if one else None for one in (since, until))
    if since and until and begin and end and end.last_ns < begin.ns and until.is_over_midnight(since):
        end = TimeSpan(end.ns + DAY_NS, end.last_ns + DAY_NS)
    return begin, end


TIMES = {
    "time_ns": "time",
    "first_ns": "first_seen",
    "last_ns": "last_seen",
    "committed_ns": "committed_at",
    "watermark_ns": "watermark_at",
    "since_ns": "since",
    "until_ns": "until",
    "from_ns": "from",
    "to_ns": "to",
    "deleted_ns": "deleted",
    "created_ns": "created",
    "closed_ns": "closed",
}
"""Fields in nanoseconds since 1970, and what JSON and CSV call them."""


def and_list(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


IN_A_ROW = 5
"""So many numbers are named by the first and the last of them."""


def number_list(found: Iterable[int]) -> list[str]:
    """The parts of a list of brokers or partitions, in their order: `1`, `3 to 49`."""
    rows: list[list[int]] = []
    for number in sorted(set(found)):
        if rows and number == rows[-1][-1] + 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    parts = ([f"{row[0]} to {row[-1]}"] if len(row) >= IN_A_ROW else map(str, row) for row in rows)
    return [*chain.from_iterable(parts)]


MOST_IN_A_SENTENCE = 1_000
"""Characters of one value. A client ID may have 32,767, and a list of names may have any number of them."""


def shortened(value: str) -> str:
    """A value as a sentence has it: of what is too long, the beginning and an ellipsis."""
    return value if len(value) <= MOST_IN_A_SENTENCE else f"{value[: MOST_IN_A_SENTENCE - 1]}…"


def filled(sentence: str, words: Mapping[str, str]) -> str:
    """A sentence with its words in place of `{name}`, each shortened. Raises KeyError for one that is missing."""
    return sentence.format(**{name: shortened(word) for name, word in words.items()})


def in_a_sentence(text: str) -> str:
    """A sentence as a part of another one."""
    return text[:1].lower() + text[1:].removesuffix(".")


def plural(count: int, noun: str) -> str:
    """`1,234 frames`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def rfc3339(time_ns: int) -> str:
    """UTC with microseconds."""
    seconds, rest = divmod(time_ns, NS_PER_S)
    return f"{_second(seconds)}.{rest // 1000:06d}Z"


def ns_of(time: str) -> int:
    """Of an RFC 3339 time."""
    return TimeSpan.of(datetime.fromisoformat(time)).ns


def utc(time_ns: int) -> datetime:
    """To the microsecond."""
    return EPOCH + timedelta(microseconds=time_ns // 1000)


@lru_cache(64)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def clock(time_ns: int, *, dated: bool = False) -> str:
    """`00:44:48`, or with its day."""
    time = rfc3339(time_ns)
    return f"{time[:10]} {time[11:19]}" if dated else time[11:19]


def several_days(times_ns: Iterable[int]) -> bool:
    """Whether times need their day."""
    return len({time_ns // DAY_NS for time_ns in times_ns}) > 1


def during(first_ns: int, last_ns: int) -> str:
    """`00:36:10 to 00:37:52 UTC`, with their days where these differ."""
    dated = several_days((first_ns, last_ns))
    return f"{clock(first_ns, dated=dated)} to {clock(last_ns, dated=dated)} UTC"


def duration(lasted_s: float) -> str:
    """`75 s`, `12 min` or `3 h`."""
    whole = round(lasted_s)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h"


OFTEN_A_SECOND = 10
"""A client that waits between its requests, as Kafka's do by default (retry.backoff.ms), is rejected less often."""


def pace(count: int, lasted_s: float) -> str:
    """`4,480 a second`; empty where it is not remarkable, or for less than a second."""
    often = count >= OFTEN_A_SECOND * lasted_s and lasted_s >= 1
    return f"{count / lasted_s:,.0f} a second" if often else ""


def client_name(client_id: str | None) -> str:
    """The client ID; brokers and controllers have a bare number: `node 3`."""
    return f"node {client_id}" if client_id and client_id.isdecimal() else client_id or "(no client ID)"


def broker_name(broker: str) -> str:
    """`broker 3`, or the address of a broker whose ID is not known."""
    return f"broker {broker}" if broker.isdecimal() else broker


SHORT = 8


def short_id(cluster: str) -> str:
    """`jlNuZSEq..`: how a cluster's ID begins."""
    return f"{cluster[:SHORT]}.." if len(cluster) > SHORT + 2 else cluster


def hex_id(topic_id: str | None) -> str:
    """A topic ID as the dashed hex that tshark and log directories show, from Kafka's base64; empty without one."""
    return str(UUID(bytes=base64.urlsafe_b64decode(topic_id + "=="))) if topic_id else ""


ARROW_DETAIL = re.compile(r"Detail: \[errno \d+\] (.+)", re.IGNORECASE)
"""Where Arrow's long sentence about a local file has the system's reason."""


def reason_of(error: Exception) -> str:
    """What the system reported, in a few words without the path."""
    message = str(getattr(error, "strerror", None) or error or type(error).__name__)
    detail = ARROW_DETAIL.search(message)
    return detail[1] if detail else message.strip().splitlines()[0]
