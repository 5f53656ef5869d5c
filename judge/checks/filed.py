"""What is filed about a subject, as words of the catalogue: a check is asked only where a word that it needs is there.

Rule: a name and the IDs that claims join it with are looked at together, because checks of one read the other. Most
topics have one ID, and nothing ever ended it: to see that is cheaper than to ask each check about changes.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from wirecheck.judge.checks.catalogue import SEVERAL
from wirecheck.judge.claims.claim import ZERO, Claim, Subject
from wirecheck.judge.claims.kinds import UNANSWERED
from wirecheck.judge.ledger.ledger import Ledger

TOPIC_SPACES = frozenset({"name", "id"})
BINDS, CHANGES = "binding", frozenset({"deletion", "creation", "absence"})
JOINS = frozenset({BINDS, "deletion", "creation", "stated"})
"""Kinds of claims that are about a name and an ID."""


def neighbours(subject: Subject, ledger: Ledger) -> Iterator[Subject]:
    """Subjects whose rows may change when this one does: a topic name and its IDs depend on each other."""
    if subject[0] in TOPIC_SPACES:
        for claim in ledger.claims_of(*subject).values():
            if claim.kind.removeprefix(UNANSWERED) in JOINS:
                yield from claim.subjects()


Own = dict[Subject, frozenset[str]]
"""The words of topic names and IDs by themselves, of one batch: a name of many IDs is asked for by each of them."""


def words_about(subject: Subject, kinds: frozenset[str], ledger: Ledger, known: Own) -> frozenset[str]:
    """What is filed about a subject, and about the names or IDs that it is joined with. `kinds`: its own claims'."""
    if subject[0] not in TOPIC_SPACES:
        return words(subject[0], kinds)
    near = {subject, *neighbours(subject, ledger)}
    for one in near:
        if one not in known:
            known[one] = own_words(one, ledger.claims_of(*one).values())
    return frozenset().union(*(known[one] for one in near))


def own_words(subject: Subject, claims: Collection[Claim]) -> frozenset[str]:
    found = words(subject[0], frozenset([claim.kind for claim in claims]))
    return found | {SEVERAL} if several(subject, claims) else found


@lru_cache(maxsize=1 << 12)
def words(space: str, kinds: frozenset[str]) -> frozenset[str]:
    return frozenset(f"{space}:{kind.removeprefix(UNANSWERED)}" for kind in kinds)


def several(subject: Subject, claims: Iterable[Claim]) -> bool:
    """Whether more is stated of a name than one ID, or of an ID than one name: several, none, an end or a beginning."""
    other = "topic_id" if subject[0] == "name" else "name"
    stated: set[str | None] = set()
    for claim in claims:
        kind = claim.kind.removeprefix(UNANSWERED)
        if kind == BINDS:
            stated.add(claim[other])
        if kind in CHANGES or len(stated) > 1:
            return True  # the second answers it: a name that many IDs share is looked at for each of them
    return None in stated or ZERO in stated
