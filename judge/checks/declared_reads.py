"""What checks and tables read of the ledger, as data: kinds of claims, by the space they are filed in.

Knows: the words in which the catalogue (and a table's value) says so, and what each means. Does not know what a check
makes of it, nor what decides which endpoints are one cluster and which hosts are suspect: every check rests on those.
Rule: a check reads what it declares and nothing else; every case of the lab is held against it. Of its own space it
reads its own subject only; of topics, also the names and ids that claims have with it in common.
"""

from wirecheck.judge.claims.kinds import KINDS, SPACES

Reads = frozenset[str]
TOPIC, WHATEVER, NOTHING, NEEDED = "topic", "*", "-", "!"
OF_TOPIC = ("name:binding", "name:creation", "name:deletion", "id:deletion", "id:partition")
"""What the history of a name rests on: its own claims, and those of its ids (`topic_history.py`)."""


def reads(words: str) -> Reads:
    """From `space:kind`, `space:*` for whatever is filed there, `topic` for a name's history, `-` for nothing. A word
    may be marked as needed (`needs`).
    """
    found: set[str] = set()
    for word in words.replace(NEEDED, "").split():
        found.update(OF_TOPIC if word == TOPIC else () if word == NOTHING else (word,))
    for word in found:
        space, _, kind = word.partition(":")
        if space not in SPACES or not (kind == WHATEVER or is_filed(kind, space)):
            message = f"{word}: nothing of that kind is filed there"
            raise ValueError(message)
    return frozenset(found)


def needs(words: str) -> Reads:
    """Those that are marked: of a subject of their space of which none of these kinds is filed the check is silent."""
    return frozenset(word.removesuffix(NEEDED) for word in words.split() if word.endswith(NEEDED))


def is_filed(kind: str, space: str) -> bool:
    return kind in KINDS and any(filed == space for filed, *_ in KINDS[kind].subjects)


def covers(declared: Reads, word: str) -> bool:
    """Whether what was read is among what was declared."""
    return word in declared or f"{word.partition(':')[0]}:{WHATEVER}" in declared
