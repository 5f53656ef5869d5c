"""What a check is given on a part: the same as everywhere, and what it reads elsewhere is asked for.

Knows: which reads are a check's own, and which are made on its behalf and were asked for in other words. Does not know
where what is read is at home.
Rule: a check cannot tell whether it is judged by a part.
"""

from collections.abc import Iterator
from typing import Any

from wirecheck.judge.check_context import CheckContext, Filed
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.parts.part_ledger import PartLedger


class PartContext(CheckContext):
    """Reads as checks ask for them; what is remembered of a topic is another subject's and is asked for again."""

    ledger: PartLedger

    def claims(self, kind: str, group: Any, *subject: str) -> list[Claim]:
        self.ledger.want(kind, subject)
        return super().claims(kind, group, *subject)

    def believed(self, subject: Subject, *kinds: str) -> list[Claim]:
        for kind in kinds:
            self.ledger.want(kind, subject)
        before, self.ledger.listening = self.ledger.listening, False
        try:
            return super().believed(subject, *kinds)
        finally:
            self.ledger.listening = before

    def everybody(self, space: str, kind: str) -> Iterator[tuple[Subject, list[Claim]]]:
        self.ledger.want(kind, (space,))
        before, self.ledger.listening = self.ledger.listening, False
        try:
            found = [(subject, self.believed(subject, kind)) for subject in sorted(self.ledger.all_known(space))]
        finally:
            self.ledger.listening = before
        yield from found

    def hears(self, claim: Claim, host: str | None) -> bool:
        before, self.ledger.listening = self.ledger.listening, True  # what a stranger's connections tell of it
        try:
            return super().hears(claim, host)
        finally:
            self.ledger.listening = before

    def filed_in(self, subject: Subject) -> Filed:
        before, self.ledger.listening = self.ledger.listening, False
        try:
            return super().filed_in(subject)
        finally:
            self.ledger.listening = before
