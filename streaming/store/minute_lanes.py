"""What a monitor's page draws along its axis: traffic, and errors of clients, of the tables by minute.

These tables have a row for each client, server and API of a minute, so they are summed column by column.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.questions.over_time import ERRORS as ERRORS_OF
from wirecheck.questions.over_time import MOST, SLOTS, Course
from wirecheck.questions.traffic import THROTTLED
from wirecheck.questions.traffic_windows import MINUTE_NS
from wirecheck.streaming.store import result_folder
from wirecheck.streaming.store.window_rows import ERRORS, REQUESTS
from wirecheck.wording import NS_PER_S


class Lanes(NamedTuple):
    """As a replay's report has them."""

    first_ns: int
    last_ns: int
    payload_bytes: tuple[int, ...]
    """By slot: as many of one length are between the two times."""
    courses: dict[str, list[Course]]


def lanes_in(out: Path | str, run: str, clients: Collection[str], since_ns: int) -> Lanes | None:
    """Of these clients, by ID or address, since then; None without traffic. Raises OSError, DamagedResultError."""
    sizes: Counter[int] = Counter()
    for part in rows_since(since_ns, out, run, REQUESTS, ("time", "request_bytes", "response_bytes")):
        size = pc.add(part["request_bytes"], part["response_bytes"])
        sizes.update(dict(summed(pa.table({"time": part["time"], "value": size}))))
    if not sizes:
        return None
    table = rows_since(since_ns, out, run, ERRORS, ("time", "client_id", "host", "error", "count"))
    errors = errors_of(table, clients)
    minutes = {*sizes, *chain.from_iterable(errors.values())}  # who is refused last may send nothing more
    slots = Minutes(min(minutes), max(minutes) + MINUTE_NS)
    courses = [Course(*of, slots.values(counts)) for of, counts in sorted(errors.items())[:MOST]]
    payload_bytes = tuple(value or 0 for value in slots.values(sizes))
    return Lanes(slots.first_ns, slots.last_ns, payload_bytes, {ERRORS_OF: courses})


class Minutes:
    """At most SLOTS slots, of as many whole minutes as it takes."""

    def __init__(self, first_ns: int, until_ns: int) -> None:
        minutes = (until_ns - first_ns) // MINUTE_NS
        self.first_ns, self.width_ns = first_ns, -(-minutes // SLOTS) * MINUTE_NS
        self.count = -(-(until_ns - first_ns) // self.width_ns)
        self.last_ns = first_ns + self.width_ns * self.count

    def values(self, by_minute: Mapping[int, int]) -> list[int | None]:
        """None where there is nothing."""
        found: list[int | None] = [None] * self.count
        for time_ns, value in by_minute.items():
            slot = (time_ns - self.first_ns) // self.width_ns
            found[slot] = (found[slot] or 0) + value
        return found


def errors_of(table: Iterable[pa.Table], clients: Collection[str]) -> dict[tuple[str, str], Counter[int]]:
    """By client and error how many there were in each minute."""
    found: dict[tuple[str, str], Counter[int]] = {}
    for part in table:
        # As the client's row is called, where it states no name.
        who = pc.if_else(pc.equal(pc.fill_null(part["client_id"], ""), ""), part["host"], part["client_id"])
        rows = pa.table({"who": who, "error": part["error"], "time": part["time"], "value": part["count"]})
        rows = rows.filter(pc.is_in(who, pa.array(sorted(clients), pa.string())))
        rows = rows.filter(pc.not_equal(rows["error"], THROTTLED))
        for name, error, time_ns, count in summed(rows):
            found.setdefault((name, error), Counter())[time_ns] += count
    return found


def rows_since(since_ns: int, out: Path | str, run: str, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Rows of minutes that end later; the time in nanoseconds. A row is written after its minute, by any clock."""
    for part in result_folder.read(out, table, run, columns, max(since_ns / NS_PER_S - CLOCKS_S, 0)):
        if part.num_rows and "time" in part.column_names:
            time = pc.cast(pc.cast(part["time"], pa.timestamp("ns", "UTC")), pa.int64())
            part = part.set_column(part.column_names.index("time"), "time", time)  # noqa: PLW2901
            yield part.filter(pc.greater(time, since_ns - MINUTE_NS))


CLOCKS_S = 3600
"""So much may an agent's clock be ahead of the monitor's."""


def summed(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The last column by all others, in their order."""
    *keys, value = rows.column_names
    groups = rows.group_by(keys).aggregate([(value, "sum")])
    yield from zip(*(groups[name].to_pylist() for name in (*keys, f"{value}_sum")), strict=True)
