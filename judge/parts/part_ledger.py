"""The ledger of one part: the subjects that are at home there, and replicas of what its checks read elsewhere.

Knows: which kinds of claims about a foreign subject were asked for, by which of its own subjects, and what the owners
have told of them so far. Does not know who owns what is foreign, nor what a check makes of it.
Rule: what is asked for and is not here reads as if nothing had been said, and is asked of its owner; when it comes,
whoever read it is judged again. So a part never waits for another one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from wirecheck.judge.claims.claim import Claim, Key, Subject, merged
from wirecheck.judge.claims.kinds import UNANSWERED
from wirecheck.judge.ledger.ledger import Ledger, Load, in_order, shard_of
from wirecheck.judge.ledger.shard import Claims

WHATEVER = "*"
Identity = tuple[str, Key]


class Wanted(NamedTuple):
    """Claims of one kind (or `*`) about one subject, or about all of a space, if no more is named."""

    subject: Subject
    kind: str


class PartLedger(Ledger):
    def __init__(self, load: Load, sizes: dict[str, int], owns: Callable[[Subject], bool]) -> None:
        super().__init__(load, sizes)
        self.owns = owns
        self.reader: Subject = ()
        """The subject in hand: whoever reads is judged again when what it read changes."""
        self.readers: dict[Wanted, set[Subject]] = {}
        self.asks: set[Wanted] = set()
        """What was read for the first time since they were taken."""
        self.replicas: dict[Subject, dict[int, Claims]] = defaultdict(dict)
        """By the part that told them."""
        self.listening = True
        self.moved: dict[Subject, set[Identity]] = defaultdict(set)
        """Own claims that have changed since they were told."""

    # -- what is at home here -----------------------------------------------------------------------------------------

    def absorb(self, claim: Claim) -> None:
        identity = claim.identity
        for subject in [subject for subject in claim.subjects() if self.owns(subject)]:
            name = shard_of(subject)
            claims = self.shard(name).made(subject)
            known = claims.get(identity)
            if known is None:
                claims[identity] = claim.copy()
            else:
                known.merge(claim)
            self.changed.add(name)
            self.touched.add(subject)
            self.moved[subject].add(identity)

    def remove(self, subject: Subject, claims: Iterable[Claim]) -> None:
        gone = [*claims]
        for told in self.replicas.get(subject, {}).values():
            for claim in gone:
                told.pop(claim.identity, None)
        if subject in self:
            super().remove(subject, gone)
            self.moved[subject].update(claim.identity for claim in gone)

    def forget(self, subject: Subject) -> None:
        self.moved[subject].update(self.shard(shard_of(subject)).known(subject) or {})
        super().forget(subject)

    def rewrite(self, subject: Subject, claim: Claim) -> None:
        super().rewrite(subject, claim)
        self.moved[subject].add(claim.identity)

    # -- what is read elsewhere ---------------------------------------------------------------------------------------

    @contextmanager
    def noting(self, *, reads: bool) -> Iterator[None]:
        """Whether what is read meanwhile is asked for: not what was asked for before, kind by kind."""
        before, self.listening = self.listening, reads
        try:
            yield
        finally:
            self.listening = before

    def want(self, kind: str, subject: Subject) -> None:
        if self.listening and self.reader and not self.owns(subject):
            wanted = Wanted(subject, kind)
            if wanted not in self.readers:
                self.asks.add(wanted)
            self.readers.setdefault(wanted, set()).add(self.reader)

    def claims_of(self, *subject: str) -> Claims:
        told = self.replicas.get(subject)
        if self.owns(subject):
            own = super().claims_of(*subject)
            if not told:
                return own
            parts = [own, *told.values()]
        else:
            self.want(WHATEVER, subject)
            parts = [*told.values()] if told else []
        if len(parts) < 2:
            return parts[0] if parts else {}
        found = merged(claim.copy() for claims in parts for claim in claims.values())
        return {claim.identity: claim for claim in found}

    def all_known(self, space: str) -> set[Subject]:
        """The subjects of a space that are here, at home or as replicas."""
        return {*self.subjects(space), *(subject for subject in self.replicas if subject[0] == space)}

    def claims(self, kind: str, *subject: str) -> list[Claim]:
        self.want(kind, subject)
        with self.noting(reads=False):
            return in_order(claim for claim in self.claims_of(*subject).values() if claim.kind == kind)

    def receive(self, sender: int, subject: Subject, told: Iterable[Claim], gone: Iterable[Identity]) -> None:
        """What another part's claims about a subject are now; whoever read some of them is to be judged again."""
        claims, kinds = self.replicas[subject].setdefault(sender, {}), set[str]()
        for claim in told:
            claims[claim.identity] = claim
            kinds.add(stated(claim.kind))
        for identity in gone:
            claims.pop(identity, None)
            kinds.add(stated(identity[0]))
        for kind in (*kinds, WHATEVER):
            for about in (subject, subject[:1]):
                self.touched |= self.readers.get(Wanted(about, kind), set())


def stated(kind: str) -> str:
    """The kind that is asked for: what an order states whose answer was not seen comes with it."""
    return kind.removeprefix(UNANSWERED)
