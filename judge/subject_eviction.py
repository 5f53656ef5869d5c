"""Room is made: what is too much leaves before a batch is judged, and a finding without room is not emitted.

Knows: what becomes of the rows of what leaves. Does not know what leaves first (`bounds.py`) or how it is counted
(`overflow.py`).
Rule: the rows of a topic or client that leaves are withdrawn, as `others` counts it from then on; what rests on single
claims that leave stands as it was emitted last. What leaves in the batch it came in is never judged.
"""

from collections.abc import Iterator, Mapping

from wirecheck.judge.checks import evaluate
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.ledger import bounds
from wirecheck.judge.ledger.emitted_rows import FINDINGS, NEVER, EmittedRows, Revision, table_of, withdrawn
from wirecheck.judge.ledger.ledger import Ledger
from wirecheck.judge.results.overflow import Overflow
from wirecheck.judge.results.result_table import Body, ResultRow


class Room:
    def __init__(self, ledger: Ledger, emitted: EmittedRows, overflow: Overflow) -> None:
        self.ledger, self.emitted, self.overflow = ledger, emitted, overflow
        self.settings = overflow.settings

    def crowd(self) -> list[Subject]:
        """The topics and clients that are too many; what looks at them is to be judged again."""
        found: list[Subject] = []
        for subject in bounds.too_many_followers(self.ledger):
            self.overflow.left[subject[0]] += 1
            self.ledger.forget(subject)
        for space, most in bounds.bounded(self.settings).items():
            gone = bounds.over(space, self.ledger, self.emitted, most)
            near = {subject for lost in gone for subject in evaluate.neighbours(lost, self.ledger)}
            for subject in gone:
                self.leaves(subject)
            self.ledger.touched |= {subject for subject in near if subject in self.ledger}
            found += gone
        return found

    def leaves(self, subject: Subject) -> None:
        first_ns, last_ns = bounds.standing(subject, self.ledger)[1:]
        if subject[0] != "id" or not any(kind == "binding" for kind, *_ in self.ledger.glance(subject)):
            self.overflow.leaves(subject, first_ns, last_ns)  # an id that has a name is counted by it
        self.ledger.forget(subject)

    def withdraw(self, subject: Subject) -> Iterator[tuple[str, int, Body]]:
        """The last revisions of the rows of a subject that has left; nothing of it is remembered."""
        for name, row in sorted(self.emitted.rows(subject).items()):
            if row.open:
                self.closes(name, row)
                if table_of(name) == FINDINGS:
                    self.overflow.missed(name, row.body)
                body = withdrawn(row.body)
                yield name, self.emitted.emit(subject, name, row, body, is_open=False), body
            self.emitted.forget(subject, name)

    def lessen(self) -> set[Subject]:
        """The subjects of which there were too many claims; these have left."""
        found = set()
        for subject in sorted(self.ledger.touched):
            gone = bounds.surplus(self.ledger.claims_of(*subject), self.settings)
            if gone:
                self.ledger.remove(subject, gone)
                self.overflow.left[subject[0]] += len(gone)
                found.add(subject)
        return found

    def admitted(self, subject: Subject, known: Mapping[str, Revision], now: dict[str, ResultRow]) -> bool:
        """Take new findings that are too many out of a subject's rows; whether the others are a stranger's."""
        new = sorted(name for name in now if table_of(name) == FINDINGS and not known.get(name, NEVER).open)
        stranger = bool(new) and bounds.stranger(subject, self.ledger)
        for name in new:
            if not self.overflow.opens(name, now[name].body, stranger=stranger):
                del now[name]
        return stranger

    def closes(self, name: str, row: Revision) -> None:
        """A row is withdrawn, or forgotten."""
        if row.open and table_of(name) == FINDINGS:
            self.overflow.closes(row.body, stranger=row.stranger)
