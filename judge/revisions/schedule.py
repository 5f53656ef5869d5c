"""When each subject is checked again, and when its rows are emitted.

A subject is checked with the batch that brings news of it. If only counts and times have changed, it is checked once
per slot of 10 s; if that is only traffic without an error, once per minute. A row is emitted with the batch that
changes it; if nothing changed that its table calls news, once per minute. No check reads a connection: its rows are
emitted within a minute of news, and once per CONNECTION_NS while they only grow.

Rules: a subject waits for the earliest time that it was given. Each subject has its own second of the minute. A row
that waits is emitted within that time, when its connection settles, and when the capture ends. So the last revision of
every row is the same as if it had not waited.
"""

import zlib
from typing import Any

from wirecheck.judge.agents import AgentFrontiers
from wirecheck.judge.checks.evaluate import NEWS, ROWS, codes_of
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.ledger.emitted_rows import Revision
from wirecheck.judge.results.result_table import ResultRow
from wirecheck.judge.thresholds import SECOND_NS

CONNECTION = "connection"
MINUTE_NS, CONNECTION_NS = 60 * SECOND_NS, 300 * SECOND_NS
NEVER_NS = 1 << 63


class Schedule:
    def __init__(self, stored: Any, agents: AgentFrontiers) -> None:
        self.agents, self.before_ns = agents, agents.watermark_ns
        """`before_ns`: the watermark of the batch before; what has passed since then is due now."""
        self.due_ns: dict[Subject, int] = {tuple(subject): due_ns for subject, due_ns in stored or ()}
        self.changed = False

    def at(self, subject: Subject, due_ns: int) -> None:
        if due_ns < self.due_ns.get(subject, NEVER_NS):
            self.due_ns[subject], self.changed = due_ns, True

    def drop(self, subject: Subject) -> None:
        self.changed |= self.due_ns.pop(subject, None) is not None

    def due(self) -> set[Subject]:
        """The subjects whose time has come: all of them when the capture has ended."""
        if self.agents.over:
            return {*self.due_ns}
        watermark_ns, passed_ns = self.agents.watermark_ns, self.agents.passed_ns
        return {
            subject
            for subject, due_ns in self.due_ns.items()
            if due_ns <= (passed_ns if subject[0] == CONNECTION else watermark_ns)
        }

    def within(self, subject: Subject, every_ns: int) -> None:
        """At the subject's own time of every period, unless it is due before the period has passed."""
        if not ROWS[subject[0]] and not codes_of(subject[0]):
            return
        since_ns = self.agents.passed_ns if subject[0] == CONNECTION else self.before_ns
        if self.due_ns.get(subject, NEVER_NS) > since_ns + every_ns:
            self.at(subject, next_ns(subject, since_ns, every_ns))

    def may_wait(self, subject: Subject, before: Revision, row: ResultRow) -> bool:
        """Whether a row that has changed has no news, and is emitted another time. One that was seen last so long ago
        that its claims may expire with this batch does not wait.
        """
        now_ns, news = self.agents.watermark_ns, NEWS.get(row.table)
        if news is None or not before.open or news(row.body) != news(before.body):
            return False
        own_second = next_ns(subject, self.before_ns, MINUTE_NS) <= now_ns
        if self.agents.over or own_second or row.body["last_seen"] < now_ns - MINUTE_NS:
            return False
        self.at(subject, next_ns(subject, now_ns, MINUTE_NS))
        return True

    def state(self) -> list[tuple[Subject, int]]:
        return [*self.due_ns.items()]


def next_ns(subject: Subject, now_ns: int, every_ns: int) -> int:
    """The next time that is this subject's own of so many."""
    phase_ns = zlib.crc32("\0".join(subject).encode(errors="surrogatepass")) % (every_ns // SECOND_NS) * SECOND_NS
    return now_ns - (now_ns - phase_ns) % every_ns + every_ns
