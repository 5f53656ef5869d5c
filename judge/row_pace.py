"""When subjects are checked again, and when rows are told.

News is checked with the batch that brings it; where only counts and times have changed, once in SLOT_NS, and where
that is traffic without an error, once in EVERY_NS. Rows are told with the batch that changes them; those that grow with
every message once a minute, and so findings of which only the count, the last time and later evidence have changed.

Knows: which subjects have news that cannot wait, and until when the others wait. Does not know what a row says.
Rule: a row that was held back is told within EVERY_NS of capture time, when its connection ends, and when the capture
does, so that the last revision of every row is the one it would have been. Each subject has its own second of the
minute, so that no batch tells them all.
"""

import zlib
from typing import Any

from wirecheck.judge.agent_frontiers import AgentFrontiers
from wirecheck.judge.checks.evaluate import ROWS, UNHURRIED, codes_of
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.ledger.agenda import Agenda
from wirecheck.judge.ledger.emitted_rows import Revision, table_of
from wirecheck.judge.results.result_table import ResultRow
from wirecheck.judge.settlement import SPACE as CONNECTION
from wirecheck.judge.settlement import Settlement

SECOND_NS = 1_000_000_000
EVERY_NS = 60 * SECOND_NS
NEVER_NS = 1 << 63


class RowPace:
    def __init__(self, agents: AgentFrontiers, due: Agenda, recounts: Agenda, settlement: Settlement) -> None:
        self.agents, self.due, self.recounts, self.settlement = agents, due, recounts, settlement
        self.hurried: set[Subject] = set()
        """Subjects of which every row is told now."""
        self.recounted: set[Subject] = set()
        """Subjects of which only counts and times have changed, and that are checked again now."""
        self.before_ns = agents.watermark_ns
        """The watermark of the batch before: a slot that has passed since then is looked at now."""

    def ripe(self) -> set[Subject]:
        """The subjects whose time has come."""
        found = self.due.ripe(self.agents.watermark_ns, connection=self.agents.passed_ns)
        over, recounts = self.agents.over, self.recounts
        self.recounted = {*recounts.due} if over else recounts.ripe(self.agents.watermark_ns)
        self.hurried = {*self.due.due} | self.recounted if over else found
        return found

    def repeats(self, subject: Subject, every_ns: int) -> None:
        """Something was stated of it again: its counts and times are looked at so often; those of a connection only
        stand in a row that is told once a minute.
        """
        if subject[0] == CONNECTION:
            if self.due.due.get(subject, NEVER_NS) > self.now_ns(subject) + EVERY_NS:
                self.waits(subject)
        elif ROWS[subject[0]] or codes_of(subject[0]):
            agenda = self.due if every_ns == EVERY_NS else self.recounts
            if agenda.due.get(subject, NEVER_NS) > self.before_ns + every_ns:
                agenda.wait(subject, next_ns(subject, self.before_ns, every_ns))

    def later(self, subject: Subject, known: Any) -> str | None:
        """The table whose rows of a subject are told another time. `known`: its rows of before."""
        table, of_connection = UNHURRIED.get(subject[0]), subject[0] == CONNECTION
        over = of_connection and self.settlement.over(subject)
        if over:
            self.due.wait(subject, self.settlement.due_ns(subject) or 0)
        if subject in self.settlement.lacking:
            self.due.wait(subject, 0)
        if table is None or over or subject in self.hurried or self.agents.over:
            return None
        if not of_connection and not any(table_of(name) == table for name in known):
            return None  # a client that nobody knew of, or an id that nobody disputed, is news
        self.waits(subject)
        return table

    def may_wait(self, subject: Subject, before: Revision, row: ResultRow) -> bool:
        """Whether a row that has changed has no news, and is told another time. One that was seen last before so long
        that it may leave with this batch is not held back.
        """
        if row.news is None or not before.open or row.news != before.news or subject in self.hurried:
            return False
        if self.agents.over or row.body["last_seen"] < self.now_ns(subject) - EVERY_NS:
            return False
        if subject[0] == CONNECTION and self.settlement.over(subject):
            return False
        self.waits(subject)
        return True

    def waits(self, subject: Subject) -> None:
        """Until its second of the minute."""
        self.due.wait(subject, next_ns(subject, self.now_ns(subject), EVERY_NS))

    def now_ns(self, subject: Subject) -> int:
        return self.agents.passed_ns if subject[0] == CONNECTION else self.agents.watermark_ns


def next_ns(subject: Subject, now_ns: int, every_ns: int) -> int:
    """The next time that is this subject's own of so many."""
    phase_ns = zlib.crc32("\0".join(subject).encode(errors="surrogatepass")) % (every_ns // SECOND_NS) * SECOND_NS
    return now_ns - (now_ns - phase_ns) % every_ns + every_ns
