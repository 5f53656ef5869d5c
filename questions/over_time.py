"""What changes while a capture runs, by slots of its time: what reports draw.

    OverTime({"billing-7"}, first_ns, last_ns).read(tables).courses()    {"errors": [Course("billing-7", ...)], ...}

Errors of clients, epochs that controllers send, and the metadata-log offset that a broker reports: a course each, at
most MOST of each kind. A slot without a value has None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.decode.api_names import key_of
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.wire import REQUEST
from wirecheck.questions.traffic import THROTTLED, Traffic

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.wire import Ints
    from wirecheck.questions.traffic import Chunk, Count, Selection

MOST = 200
SLOTS = 160
ERRORS, EPOCHS, OFFSETS = "errors", "epochs", "offsets"
CONTROLLED = "controller_id", "controller_epoch"
HEADERS = {
    "LeaderAndIsr": (EPOCHS, *CONTROLLED),
    "UpdateMetadata": (EPOCHS, *CONTROLLED),
    "StopReplica": (EPOCHS, *CONTROLLED),
    "BrokerHeartbeat": (OFFSETS, "broker_id", "current_metadata_offset"),
}
"""Requests that state a number: what it is, by whom it is, and the number, of the fields of the request."""
ALSO: Selection = tuple((api, SIDES[REQUEST], fields[1:]) for api, fields in HEADERS.items())


class Course(NamedTuple):
    """One client, controller or broker."""

    who: str
    what: str
    """Kafka's name of the error; else empty."""
    values: list[int | None]
    """By slot: errors are counted, of numbers the last is kept."""


class OverTime(Traffic):
    """Counts traffic, and what it is by slots."""

    def __init__(self, clients: Collection[str], first_ns: int, last_ns: int, dialects: Sequence[str] = ()) -> None:
        super().__init__(dialects=dialects, also=ALSO)
        self._clients, self._begin_ns = clients, first_ns
        self._width_ns = max(-(-(last_ns - first_ns + 1) // SLOTS), 1)
        self._courses: dict[tuple[str, str, str], Ints] = {}

    def add(self, exchanges: Exchanges) -> Chunk | None:
        chunk = super().add(exchanges)
        if chunk is None:
            return None
        for api, (kind, who, number) in HEADERS.items():
            header = chunk.tables(key_of(api), REQUEST)[""]
            slots = self.slots(chunk.exchanges.ts_ns[header.message])
            for one in np.unique(header[who]).tolist() if len(header) else ():
                course = self.course(kind, str(one), "")
                own = header[who] == one
                if course is not None:
                    course[slots[own]] = header[number][own]
        return chunk

    def fail(self, chunk: Chunk, index: int, error: str, topic: str, time_ns: int) -> Count | None:
        call = chunk.call(index)
        name = call.client_id or call.host
        if error != THROTTLED and name in self._clients:
            course = self.course(ERRORS, name, error)
            if course is not None:
                slot = self.slots(np.array([time_ns]))
                course[slot] = np.maximum(course[slot], 0) + 1
        return super().fail(chunk, index, error, topic, time_ns)

    def slots(self, times_ns: Ints) -> Ints:
        return np.clip((times_ns - self._begin_ns) // self._width_ns, 0, SLOTS - 1)

    def course(self, kind: str, who: str, what: str) -> Ints | None:
        key = kind, who, what
        if key not in self._courses and len(self._courses) < MOST:
            self._courses[key] = np.full(SLOTS, -1, np.int64)
        return self._courses.get(key)

    def courses(self) -> dict[str, list[Course]]:
        """By kind, in order of their names."""
        found: dict[str, list[Course]] = {}
        for (kind, who, what), values in sorted(self._courses.items()):
            known = [value if value >= 0 else None for value in values.tolist()]
            found.setdefault(kind, []).append(Course(who, what, known))
        return found
