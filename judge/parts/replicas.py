"""What other parts have told of their subjects, kept with a part's state in shards as the ledger has them.

Knows: who told what of which subject. Does not know who reads it (`part_ledger.py`).
Rule: what two parts tell of one subject stands side by side; a shard that nobody asks for stays where it is.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.claims.kinds import SPACES
from wirecheck.judge.ledger.ledger import Load, shard_of, stored, unversioned
from wirecheck.judge.ledger.shard import Claims, Shard
from wirecheck.judge.parts.part_message import Identity, News

REPLICAS = "replicas"


class Replicas:
    def __init__(self, load: Load) -> None:
        self.load = load
        self.shards: dict[str, Shard] = {}
        """A subject of theirs has behind it the number of the part that told of it."""
        self.senders: dict[Subject, set[str]] = defaultdict(set)
        """Of what is loaded."""
        self.changed: set[str] = set()

    def of(self, subject: Subject) -> list[Claims]:
        """By each part that told of it."""
        shard = self.shard(name_of(subject))
        return [shard[(*subject, sender)] for sender in sorted(self.senders.get(subject, ()))]

    def __contains__(self, subject: Subject) -> bool:
        self.shard(name_of(subject))
        return subject in self.senders

    def subjects(self, space: str) -> Iterator[Subject]:
        for number in range(SPACES[space]):
            self.shard(f"{REPLICAS}-{space}-{number:02d}")
        yield from [subject for subject in self.senders if subject[0] == space]

    def hear(self, sender: int, news: News) -> None:
        name = name_of(news.subject)
        shard, key = self.shard(name), (*news.subject, str(sender))
        if key not in shard:
            shard[key] = {}
            self.senders[news.subject].add(str(sender))
        claims = shard[key]
        claims |= {claim.identity: claim for claim in news.changed}
        for identity in news.gone:
            claims.pop(identity, None)
        if not claims:
            self.drop(news.subject, str(sender))
        self.changed.add(name)

    def remove(self, subject: Subject, identities: Iterable[Identity]) -> None:
        """Claims that have left the ledger."""
        gone = [*identities]
        for claims in self.of(subject):
            for identity in gone:
                if claims.pop(identity, None) is not None:
                    self.changed.add(name_of(subject))

    def forget(self, subject: Subject) -> None:
        """Nobody reads of it any more."""
        self.shard(name_of(subject))
        for sender in sorted(self.senders.get(subject, ())):
            self.drop(subject, sender)
            self.changed.add(name_of(subject))

    def drop(self, subject: Subject, sender: str) -> None:
        del self.shards[name_of(subject)][(*subject, sender)]
        self.senders[subject].discard(sender)
        if not self.senders[subject]:
            del self.senders[subject]

    def shard(self, name: str) -> Shard:
        if name not in self.shards:
            blob = self.load(name)
            found = self.shards[name] = Shard(unversioned(blob)) if blob else Shard()
            for *subject, sender in found:
                self.senders[tuple(subject)].add(sender)
        return self.shards[name]

    def changed_shards(self) -> dict[str, bytes]:
        """Since the last call."""
        changed = {name: stored(name, self.shards[name].packed()) for name in sorted(self.changed)}
        self.changed.clear()
        return changed


def name_of(subject: Subject) -> str:
    return f"{REPLICAS}-{shard_of(subject)}"
