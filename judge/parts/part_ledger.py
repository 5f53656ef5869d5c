"""The ledger of one part: the subjects that are at home there, and replicas of what its checks read elsewhere.

Knows: which kinds of claims about a foreign subject were asked for, by which of its own subjects, and what the owners
have told of them so far. Does not know who owns what is foreign, nor what a check makes of it.
Rule: what is asked for and is not here reads as if nothing had been said, and is asked of its owner; when it comes,
whoever read it is judged again. So a part never waits for another one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial

from wirecheck.judge.claims.claim import Claim, Subject, merged
from wirecheck.judge.claims.kinds import UNANSWERED
from wirecheck.judge.judge import SERVERS
from wirecheck.judge.ledger.ledger import Ledger, Load, in_order, shard_of, state_of
from wirecheck.judge.ledger.shard import Claims
from wirecheck.judge.parts.kept_sets import KeptSets
from wirecheck.judge.parts.part_message import WHATEVER, Identity, News, Wanted
from wirecheck.judge.parts.replicas import Replicas
from wirecheck.judge.settlement import WIRE


class PartLedger(Ledger):
    def __init__(self, load: Load, sizes: dict[str, int], owns: Callable[[Subject], bool]) -> None:
        super().__init__(load, sizes)
        self.owns = remembered(owns)
        self.reader: Subject = ()
        """The subject in hand: whoever reads is judged again when what it read changes."""
        self.readers: KeptSets[Subject] = KeptSets("readers", partial(state_of, load), tuple)
        """Whoever reads what."""
        self.asks: set[Wanted] = set()
        """What was read for the first time since they were taken."""
        self.unasks: set[Wanted] = set()
        """What nobody reads any more since they were taken."""
        self.replicas = Replicas(load)
        self.listening = True
        """Whether what is read is asked for: not what was asked for before, kind by kind."""
        self.moved: dict[Subject, set[Identity]] = defaultdict(set)
        """Own claims that have changed since they were told."""

    # -- what is at home here -----------------------------------------------------------------------------------------

    def absorb(self, claim: Claim) -> None:
        identity = claim.identity
        owns = self.owns
        for subject in [subject for subject in claim.subjects() if owns(subject)]:
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
        if self.told_elsewhere(subject):
            self.replicas.remove(subject, (claim.identity for claim in gone))
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

    def want(self, kind: str, subject: Subject) -> None:
        if self.listening and self.reader and not self.owns(subject):
            wanted = Wanted(subject, kind)
            if self.readers.add(wanted, self.reader):
                self.unasks.discard(wanted)
                self.asks.add(wanted)

    def told_elsewhere(self, subject: Subject) -> bool:
        """Whether others have claims about it: where it is at home nobody else has, but for the wire."""
        return subject == WIRE or not self.owns(subject)

    def claims_of(self, *subject: str) -> Claims:
        parts = [super().claims_of(*subject)] if self.owns(subject) else []
        if self.told_elsewhere(subject):
            self.want(WHATEVER, subject)
            parts += self.replicas.of(subject)
        if len(parts) < 2:
            return parts[0] if parts else {}
        found = merged(claim.copy() for claims in parts for claim in claims.values())
        return {claim.identity: claim for claim in found}

    def all_known(self, space: str) -> set[Subject]:
        """The subjects of a space that are here, at home or as replicas."""
        return {*self.subjects(space), *self.replicas.subjects(space)}

    def claims(self, kind: str, *subject: str) -> list[Claim]:
        self.want(kind, subject)
        before, self.listening = self.listening, False
        try:
            return in_order(claim for claim in self.claims_of(*subject).values() if claim.kind == kind)
        finally:
            self.listening = before

    def receive(self, sender: int, news: News) -> None:
        """What another part's claims about a subject are now; whoever read some of them is to be judged again."""
        if not self.is_read(news.subject):
            return  # told before it was heard that nobody reads it any more
        self.replicas.hear(sender, news)
        kinds = {stated(claim.kind) for claim in news.changed} | {stated(kind) for kind, _ in news.gone}
        for kind in (*kinds, WHATEVER):
            for about in {news.subject, news.subject[:1]}:
                self.touched |= self.readers.of(Wanted(about, kind))

    def let_go(self, stays: Callable[[Subject], bool]) -> None:
        """What was read for subjects that have left is not told any more; where one comes again it asks again."""
        gone = [(wanted, reader) for wanted, reader in self.readers if not stays(reader)]
        for wanted, reader in gone:
            if self.readers.discard(wanted, reader):
                self.unasks.add(wanted)
        spaces = {wanted.subject[0] for wanted, _ in gone}
        for subject in [subject for space in sorted(spaces) for subject in self.replicas.subjects(space)]:
            if not self.is_read(subject):
                self.replicas.forget(subject)

    def is_read(self, subject: Subject) -> bool:
        """What all rest on is told unasked."""
        return subject == SERVERS or self.readers.wants(subject) or self.readers.wants(subject[:1])

    def shards(self) -> dict[str, bytes]:
        return {**super().shards(), **self.replicas.changed_shards()}


def remembered(owns: Callable[[Subject], bool]) -> Callable[[Subject], bool]:
    """A subject never moves; of a part there are as many as it has seen in a batch."""
    known: dict[Subject, bool] = {}

    def asked(subject: Subject) -> bool:
        found = known.get(subject)
        if found is None:
            found = known[subject] = owns(subject)
        return found

    return asked


def stated(kind: str) -> str:
    """The kind that is asked for: what an order states whose answer was not seen comes with it."""
    return kind.removeprefix(UNANSWERED)
