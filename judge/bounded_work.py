"""How much of the history of one subject is judged: the lives of a topic name and the leader epochs of a partition.

Rule: a name or a partition costs what it has, in order n log n, however often it was recreated or elected. The work of
some checks grows with the square of what is held apart, so only that many are; the others are counted in one row. What
is left out is a function of the claims, not of the batches in which they came.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from wirecheck.judge.claims.claim import ZERO, Claim, Sighting, Subject
from wirecheck.judge.claims.kinds import KINDS

MOST_LIVES = 64
"""Topic IDs of one name that are held apart: those stated last. Test suites recreate one name all day."""
MOST_EPOCHS = 256
"""Leader epochs of one partition that are held apart: the highest."""
FEW = min(MOST_LIVES, MOST_EPOCHS)
"""So many claims of a kind are never too many."""
BINDING = "binding"
BY_EPOCH = frozenset({"partition", "unnumbered"})


class Span(NamedTuple):
    """How much is not held apart, and when it was stated first and last."""

    number: int
    first_ns: int
    last_ns: int


@dataclass
class Omitted:
    """What of one subject is not held apart in one cluster."""

    lives: dict[str, list[Claim]] = field(default_factory=dict)
    """Topic IDs of a name, with the claims that bind them."""
    epochs: dict[int, Span] = field(default_factory=dict)
    """Leader epochs by partition."""

    @property
    def span(self) -> Span:
        """Of the lives; there are some."""
        return span(len(self.lives), (claim for claims in self.lives.values() for claim in claims))


NOTHING = Omitted()


def bounded(subject: Subject, claims: dict[str, list[Claim]]) -> Omitted:
    """Take out what is too much of a subject's claims in one cluster, by kind; what it was."""
    lives = older_lives(claims[BINDING]) if subject[0] == "name" and BINDING in claims else {}
    for kind in [kind for kind in claims if "topic_id" in KINDS[kind].at] if lives else ():
        claims[kind] = [claim for claim in claims[kind] if claim["topic_id"] not in lives]
    found = Omitted(lives)
    for kind in BY_EPOCH & claims.keys():
        claims[kind], found.epochs = newest_epochs(claims[kind])
    return found if lives or found.epochs else NOTHING


def older_lives(bindings: list[Claim]) -> dict[str, list[Claim]]:
    lives: dict[str, list[Claim]] = defaultdict(list)
    for claim in bindings:
        if claim["topic_id"] not in {None, ZERO}:
            lives[claim["topic_id"]].append(claim)
    if len(lives) <= MOST_LIVES:
        return {}

    def stated_last(topic_id: str) -> tuple[Sighting, str]:
        return max(claim.last_word for claim in lives[topic_id]), topic_id

    return {topic_id: lives[topic_id] for topic_id in sorted(lives, key=stated_last)[:-MOST_LIVES]}


def newest_epochs(states: list[Claim]) -> tuple[list[Claim], dict[int, Span]]:
    epochs: dict[int, set[int]] = defaultdict(set)
    for claim in states:
        epochs[claim["partition"]].add(claim["leader_epoch"])
    least = {partition: sorted(found)[-MOST_EPOCHS] for partition, found in epochs.items() if len(found) > MOST_EPOCHS}
    if not least:
        return states, {}
    older: dict[int, list[Claim]] = defaultdict(list)
    kept: list[Claim] = []
    for claim in states:
        partition = claim["partition"]
        of = older[partition] if claim["leader_epoch"] < least.get(partition, claim["leader_epoch"]) else kept
        of.append(claim)
    return kept, {number: span(len(epochs[number]) - MOST_EPOCHS, older[number]) for number in least}


def span(number: int, claims: Iterable[Claim]) -> Span:
    times = [(claim.first.ts_ns, claim.last_word.ts_ns) for claim in claims]
    return Span(number, min(first_ns for first_ns, _ in times), max(last_ns for _, last_ns in times))
