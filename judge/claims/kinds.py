"""The kinds of claims, as data (kinds.tsv): the fields of each key, where the ledger files it, and its sentence.

Rule: a kind's fields and their order are part of the stored state. Changing them needs a new STATE_VERSION.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Subject = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    fields: tuple[str, ...]
    """Names of the key's parts, in order."""
    known: tuple[int, ...]
    """The positions of those that must be known: in kinds.tsv all without a question mark. A text may be in bytes that
    were not captured; a claim that lacks one of these states nothing."""
    subjects: tuple[Subject, ...]
    """Where the ledger files it: the space and the fields of the subject's key, once per subject that it is about."""
    sentence: str
    """The sentence of such a claim, with its fields."""
    growing: frozenset[str] = frozenset()
    """Peaks that rise with traffic and that no check has to see at once: a greater value is no news."""
    flows: bool = False
    """It is repeated while traffic continues. Without an error, nothing has to be checked at once."""

    @cached_property
    def at(self) -> dict[str, int]:
        """The position of each field in a key."""
        return {name: place for place, name in enumerate(self.fields)}

    @cached_property
    def filed(self) -> tuple[tuple[str, bool, tuple[int, ...]], ...]:
        """Per subject its space, whether the space is about topics, and the positions of its parts in a key."""
        return tuple(
            (space, space in {"name", "id"}, tuple(self.at[name] for name in names if name))
            for space, *names in self.subjects
        )


def read() -> dict[str, Kind]:
    lines = Path(__file__).with_name("kinds.tsv").read_text("ascii").splitlines()[1:]
    found = {}
    for name, *row in (line.split("\t") for line in lines if not line.startswith("#")):
        key, filed, growing, flows, sentence = ("" if part == "-" else part for part in row)
        subjects = tuple(tuple(subject.split(":")) for subject in filed.split())
        fields, known = tuple(part.removesuffix("?") for part in key.split()), must_be_known(key)
        found[name] = Kind(fields, known, subjects, sentence, frozenset(growing.split()), bool(flows))
    return found


def must_be_known(key: str) -> tuple[int, ...]:
    return tuple(place for place, part in enumerate(key.split()) if not part.endswith("?"))


STATED: Mapping[str, Kind] = read()
TRAFFIC = frozenset(name for name, kind in STATED.items() if kind.flows)
UNANSWERED = "unanswered_"
"""Prefix of the kind of claims from control requests without a captured response; their key ends with the sender's
host.
"""
PAUSE = "pause"
"""The longest time between two successes of an activity that are counted together."""
SENT, FORWARDED = "sent", "forwarded"
"""How a change was seen: from the client itself, or in the Envelope of a broker."""
ORDERED = (
    "binding",
    "deletion",
    "partition",
    "unnumbered",
    "offline",
    "ordered",
    "full_order",
    "order_type",
    "stopped",
)
KINDS: Mapping[str, Kind] = {
    **STATED,
    **{
        f"{UNANSWERED}{name}": Kind(
            (*STATED[name].fields, "host"),
            (*STATED[name].known, len(STATED[name].fields)),
            STATED[name].subjects,
            f"{{host}}, unanswered: {STATED[name].sentence}",
            STATED[name].growing,
        )
        for name in (*ORDERED, "address", "carries")
    },
}
SPACES = {
    "name": 64, "id": 64, "client": 16, "connection": 256, "link": 16, "host": 16, "follower": 16,
    "server": 1, "wire": 1, "agent": 1,
}  # fmt: skip
"""The ledger's spaces and how many shards each is cut into."""
