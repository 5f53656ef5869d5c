"""Turns of a label that is judged in parts: what parts tell each other in one batch they hear with the next.

Knows: that parts have come to an end once none has anything to tell, and that their rows hold only then. Does not know
what they tell, nor where this is kept meanwhile (`mailbox.py`).
Rule: rows wait until none of their label's parts speaks, and then only the last revision of each is told; one that was
made and withdrawn meanwhile was nobody's finding, and is not. So what is told is what one judge would have told.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from wirecheck.streaming.steps.tagged import MAIL, Tagged
from wirecheck.streaming.store import mailbox
from wirecheck.streaming.store.result_tables import TABLES, as_ipc, from_ipc

MOST_TURNS = 32
"""What is not said by then is told all the same, and frames go on."""


@dataclass(frozen=True)
class Turns:
    """What stands between one batch and the next."""

    number: int = 0
    """Of turns since the last rows were told."""
    mail: tuple[Tagged, ...] = ()
    """What is heard next; the bucket is the part's number."""
    waiting: tuple[Tagged, ...] = ()
    """Rows of tables that are not told yet."""

    @property
    def open(self) -> bool:
        """Whether the next batch is for parts to hear each other, before more frames are read."""
        return bool(self.mail) and 0 < self.number < MOST_TURNS

    @classmethod
    def read(cls, checkpoint: str, batch_id: int) -> "Turns":
        """What stands after a batch."""
        number, rows = mailbox.read(checkpoint, batch_id)
        mail = tuple(Tagged(*row[1:]) for row in rows if not row[0])
        return cls(number, mail, tuple(Tagged(*row[1:]) for row in rows if row[0]))

    def write(self, checkpoint: str, batch_id: int) -> None:
        rows = [(waits, *row) for waits, some in ((False, self.mail), (True, self.waiting)) for row in some]
        mailbox.write(checkpoint, batch_id, self.number, rows)

    def after(self, rows: Iterable[Tagged]) -> "tuple[Turns, list[Tagged]]":
        """What stands after a batch that gave these rows, and the rows to be told now."""
        mail: list[Tagged] = []
        tables = [*self.waiting]
        for row in rows:
            (mail if row.route == MAIL else tables).append(row)
        speaking = {row.label for row in mail}
        waiting = [row for row in tables if row.label in speaking]
        after = Turns(self.number + 1, tuple(mail), tuple(waiting))
        if after.open:
            return after, [*last_ones(row for row in tables if row.label not in speaking)]
        return Turns(0, tuple(mail)), [*last_ones(tables)]


def last_ones(rows: Iterable[Tagged]) -> Iterator[Tagged]:
    """Of each row the last revision."""
    ordered = sorted(rows, key=lambda row: (row.label, row.route))
    for (label, route), found in groupby(ordered, key=lambda row: (row.label, row.route)):
        cells = [row.cell for row in found]
        if len(cells) == 1 or not TABLES[route].revised:
            yield from (Tagged(label, -1, route, cell) for cell in cells)
        else:
            table = last_revisions(pa.concat_tables(map(from_ipc, cells)))
            if table.num_rows:
                yield Tagged(label, -1, route, as_ipc(table))


def last_revisions(table: pa.Table) -> pa.Table:
    """Without those that were replaced, and without what was made and withdrawn."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    revisions = table["revision"].to_pylist()
    for at, key in enumerate(table["id"].to_pylist()):
        first.setdefault(key, revisions[at])
        if key not in last or revisions[at] >= revisions[last[key]]:
            last[key] = at
    gone = withdrawn(table)
    kept = [at for key, at in last.items() if not (gone[at] and first[key] == 1)]
    return table.take(pa.array(kept, pa.int64()))


def withdrawn(table: pa.Table) -> list[bool]:
    if "withdrawn" in table.column_names:
        return [bool(value) for value in table["withdrawn"].to_pylist()]
    if "state" in table.column_names:
        return [value == "withdrawn" for value in table["state"].to_pylist()]
    return [False] * table.num_rows
