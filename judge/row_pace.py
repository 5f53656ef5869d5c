"""When rows are told: most of them with the batch that changes them, those that grow with every message once a minute.

Knows: which subjects have news that cannot wait, and until when the others wait. Does not know what a row says.
Rule: a row that was held back is told within EVERY_NS of capture time, when its connection ends, and when the capture
does, so that the last revision of every row is the one it would have been. Each subject has its own second of the
minute, so that no batch tells them all.
"""

import zlib
from typing import Any

from wirecheck.judge.agent_frontiers import AgentFrontiers
from wirecheck.judge.checks.evaluate import UNHURRIED
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.ledger.agenda import Agenda
from wirecheck.judge.ledger.emitted_rows import table_of
from wirecheck.judge.settlement import SPACE as CONNECTION
from wirecheck.judge.settlement import Settlement

SECOND_NS = 1_000_000_000
EVERY_NS = 60 * SECOND_NS


class RowPace:
    def __init__(self, agents: AgentFrontiers, due: Agenda, settlement: Settlement) -> None:
        self.agents, self.due, self.settlement = agents, due, settlement
        self.hurried: set[Subject] = set()
        """Subjects of which every row is told now."""

    def ripe(self) -> set[Subject]:
        """The subjects whose time has come."""
        found = self.due.ripe(self.agents.watermark_ns, connection=self.agents.passed_ns)
        self.hurried = {*self.due.due} if self.agents.over else found
        return found

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
        now_ns = self.agents.passed_ns if of_connection else self.agents.watermark_ns
        phase_ns = zlib.crc32("\0".join(subject).encode(errors="surrogatepass")) % 60 * SECOND_NS
        self.due.wait(subject, now_ns - (now_ns - phase_ns) % EVERY_NS + EVERY_NS)
        return table
